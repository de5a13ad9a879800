"""What a look at a partition finds for a fetch: bytes, a refusal, or that no more can come.

The first look, the condition of a fetch that waits and its answer all go by it.
"""

from __future__ import annotations

import pytest
from tests.support.partition_scene import LEADER, PartitionScene, a_batch

from tarry.base import errors
from tarry.broker.reads import (
    COMPLETE,
    REFUSED,
    FetchLimits,
    FetchStatus,
    reader_of,
)
from tarry.log.batch_walk import Flaw
from tarry.protocol.messages.fetch import FetchPartition

SIZE = len(a_batch())
EVERYTHING = 1 << 20

# Offset 0 is of epoch 1, the others are of epoch 2.  0 to 2 lie in an older segment, 3 and 4 in the
# last one; 5 is written and not flushed.
LOOKS = """
# offset  known-epoch last-epoch  limit  found     error

0         -           -           all    complete  NONE
2         -           -           all    complete  NONE
3         -           -           all    2         NONE
4         -           -           all    1         NONE
5         -           -           all    0         NONE
6         -           -           all    0         NONE
7         -           -           all    refused   OFFSET_OUT_OF_RANGE
-1        -           -           all    refused   OFFSET_OUT_OF_RANGE

3         2           -           all    2         NONE
3         1           -           all    refused   FENCED_LEADER_EPOCH
3         3           -           all    refused   UNKNOWN_LEADER_EPOCH
7         1           -           all    refused   FENCED_LEADER_EPOCH

3         -           2           all    2         NONE
1         -           1           all    complete  NONE
2         -           1           all    refused   diverges
3         -           1           all    refused   diverges
3         -           0           all    refused   diverges
3         -           3           all    refused   OFFSET_OUT_OF_RANGE
7         -           2           all    refused   diverges

# The first batch counts whole, however small the limit.
3         -           -           none   1         NONE
4         -           -           none   1         NONE
5         -           -           none   0         NONE
"""


def looks() -> list[list[str]]:
    lines = [line.split() for line in LOOKS.splitlines()]
    return [words for words in lines if words and words[0] != "#"]


@pytest.fixture
def scene() -> PartitionScene:
    scene = PartitionScene()
    scene.config.segment_bytes = 3 * SIZE
    for epoch, count in ((1, 1), (2, 4)):
        scene.lead(epoch, [LEADER], [LEADER])
        scene.produce(*[a_batch() for _ in range(count)])
    scene.append(a_batch())
    scene.write()
    return scene


def status_of(scene: PartitionScene, offset: int, **terms: int) -> FetchStatus:
    asked = FetchPartition(
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=terms.get("limit", EVERYTHING),
        current_leader_epoch=terms.get("known", -1),
        last_fetched_epoch=terms.get("last", -1),
    )
    return FetchStatus(scene.partition, asked, errors.UNKNOWN_TOPIC_ID)


def limits(min_bytes: int = 1, isolation_level: int = 0) -> FetchLimits:
    return FetchLimits(reader_of(isolation_level), min_bytes, EVERYTHING, 12)


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("row", looks(), ids=" ".join)
def test_a_look_at_a_partition(scene: PartitionScene, row: list[str], isolation_level: int) -> None:
    offset, known, last = (-1 if word == "-" else int(word) for word in row[:3])
    limit, found, error = row[3:]
    size_max = 0 if limit == "none" else EVERYTHING
    status = status_of(scene, offset, known=known, last=last, limit=size_max)

    size = status.look(limits(isolation_level=isolation_level), is_first=True)

    codes = {"complete": COMPLETE, "refused": REFUSED}
    assert size == (codes[found] if found in codes else int(found) * SIZE)
    assert (status.diverging is not None) == (error == "diverges")
    assert errors.error_name(status.error_code) == ("NONE" if error == "diverges" else error)


@pytest.mark.parametrize(
    ("limit", "min_bytes", "is_first", "found"),
    [
        (EVERYTHING, 1, True, 2 * SIZE),
        (SIZE + 5, 1, True, SIZE + 5),
        (SIZE - 5, 1, True, SIZE - 5),
        # Only if more is wanted than the limit allows, the batch's size is looked up.
        (SIZE - 5, SIZE, True, SIZE),
        (SIZE - 5, 9 * SIZE, True, SIZE),
        (SIZE - 5, 9 * SIZE, False, SIZE - 5),
        (0, 1, False, 0),
        (-1, 1, False, 0),
        (-1, 1, True, SIZE),
    ],
)
def test_a_look_counts_what_the_answer_would_hold(
    scene: PartitionScene, limit: int, min_bytes: int, is_first: bool, found: int
) -> None:
    status = status_of(scene, 3, limit=limit)

    assert status.look(limits(min_bytes), is_first=is_first) == found


def test_what_is_not_here_has_the_code_that_the_fetch_brought(scene: PartitionScene) -> None:
    gone = FetchStatus(None, FetchPartition(partition=9), errors.UNKNOWN_TOPIC_OR_PARTITION)
    given_up = status_of(scene, 3)
    scene.partition.leadership.close()

    found = [status.look(limits(), is_first=True) for status in (gone, given_up)]

    assert found == [REFUSED, REFUSED]
    assert gone.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert given_up.error_code == errors.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(("offset", "is_refused"), [(3, False), (4, True), (5, True)])
def test_a_reader_at_or_behind_a_flaw_is_refused(
    scene: PartitionScene, offset: int, is_refused: bool
) -> None:
    scene.partition.log.note_flaw(Flaw("a bit has changed", 4, SIZE))
    status = status_of(scene, offset)

    size = status.look(limits(), is_first=True)

    assert (size == REFUSED) == is_refused
    assert status.error_code == (errors.KAFKA_STORAGE_ERROR if is_refused else errors.NONE)


def test_a_look_is_true_again_after_what_has_happened_since(scene: PartitionScene) -> None:
    status = status_of(scene, 4)
    terms = limits()

    found = [status.look(terms, is_first=True)]
    scene.flush()
    found.append(status.look(terms, is_first=True))
    scene.lead(3, [LEADER], [LEADER])
    scene.produce(a_batch())
    found.append(status.look(terms, is_first=True))
    status.asked.current_leader_epoch = 2
    found.append(status.look(terms, is_first=True))
    status.asked.current_leader_epoch = 3
    found.append(status.look(terms, is_first=True))

    # The last batch went to a new segment: what the fetch stands in is complete.
    assert found == [SIZE, 2 * SIZE, COMPLETE, REFUSED, COMPLETE]
    assert status.error_code == errors.NONE
