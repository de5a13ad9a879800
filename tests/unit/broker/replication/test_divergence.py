"""Where a follower cuts: a table of logs, of what their leaders answer, and of the cuts."""

from __future__ import annotations

import pytest

from tarry.broker.replication.divergence import cut_offset, may_cut
from tarry.log.index.epoch_index import EpochIndex


def epochs(*entries: tuple[int, int]) -> EpochIndex:
    index = EpochIndex()
    for epoch, start in entries:
        index.assign(epoch, start)
    return index


@pytest.mark.parametrize(
    ("own", "start", "end", "answer", "cut"),
    [
        # The same epoch: the shorter end counts.
        ([(1, 0)], 0, 10, (1, 7), 7),
        ([(1, 0)], 0, 10, (1, 12), 10),
        ([(1, 0), (3, 6)], 0, 10, (1, 7), 6),
        ([(1, 0), (3, 6)], 0, 10, (1, 4), 4),
        # The leader's epoch is unknown here: everything behind the one before it goes.
        ([(1, 0), (3, 6)], 0, 10, (2, 8), 6),
        ([(1, 0), (3, 6), (5, 8)], 0, 10, (4, 20), 8),
        # The leader has nothing as old, or this log has not.
        ([(3, 6)], 6, 10, (2, 8), 6),
        ([(3, 0)], 0, 10, (-1, 0), 0),
        # An epoch without a record.
        ([(1, 0), (3, 10)], 0, 10, (1, 10), 10),
        # Nothing is here.
        ([], 5, 5, (1, 3), 5),
        # The leader's end lies below what is here at all.
        ([(1, 4)], 4, 10, (1, 2), 4),
    ],
)
def test_the_cut(
    own: list[tuple[int, int]], start: int, end: int, answer: tuple[int, int], cut: int
) -> None:
    assert cut_offset(epochs(*own), start, end, *answer) == cut


@pytest.mark.parametrize(
    ("offset", "high_watermark", "last_epoch", "unclean_epoch", "may"),
    [
        (5, 5, 1, -1, True),
        (4, 5, 1, -1, False),
        (4, 5, 1, 1, False),
        (4, 5, 1, 2, True),
        (0, 0, -1, -1, True),
    ],
)
def test_what_was_promised_is_given_up_only_after_an_unclean_election(
    offset: int, high_watermark: int, last_epoch: int, unclean_epoch: int, may: bool
) -> None:
    assert may_cut(offset, high_watermark, last_epoch, unclean_epoch) is may
