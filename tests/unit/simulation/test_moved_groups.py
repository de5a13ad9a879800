"""Checkers of groups that move among brokers: each rule, broken and kept."""

from __future__ import annotations

import pytest

from tarry.simulation.cluster.groups.history import STALE_MS, MovedGroup, MovedOffset
from tarry.simulation.product.history import ProductHistory

A, B = ("t", 0), ("t", 1)


def group() -> MovedGroup:
    return MovedGroup(ProductHistory())


def test_a_generation_has_one_assignment_with_each_partition_once() -> None:
    kept = group()
    kept.on_synced("m1", 3, [A], 10)
    kept.on_synced("m2", 3, [B], 20)
    kept.on_synced("m1", 3, [A], 30)
    kept.on_synced("m1", 4, [A, B], 40)
    other = group()
    other.on_synced("m1", 3, [A], 10)
    other.on_synced("m1", 3, [B], 20)
    shared = group()
    shared.on_synced("m1", 3, [A], 10)
    shared.on_synced("m2", 3, [A, B], 20)

    assert kept.violations == []
    assert other.violations == ["m1 is given [('t', 1)] in generation 3, and was given [('t', 0)]"]
    assert shared.violations == ["m2 and m1 are both given [('t', 0)] in generation 3"]


@pytest.mark.parametrize(
    ("kind", "sent_ms", "is_wrong"),
    [
        ("commit", 1_000, False),
        ("commit", 1_001, True),
        ("join", 1_000 + STALE_MS, False),
        ("join", 1_001 + STALE_MS, True),
        ("heartbeat", 1_000 + STALE_MS, False),
        ("heartbeat", 1_001 + STALE_MS, True),
    ],
)
def test_nothing_of_an_older_generation_is_taken_once_a_sync_has_told_of_a_later_one(
    kind: str, sent_ms: int, is_wrong: bool
) -> None:
    checked = group()
    checked.on_synced("m1", 4, [A], 1_000)
    take = {
        "commit": checked.on_committed,
        "join": checked.on_joined,
        "heartbeat": checked.on_heartbeat,
    }[kind]

    take("m2", 4, sent_ms)
    assert checked.violations == []
    take("m2", 3, sent_ms)

    assert bool(checked.violations) == is_wrong


@pytest.mark.parametrize(
    ("told", "broker", "sent_ms", "missed"),
    [
        # Before anything was answered, and after the second commit at its own broker.
        (-1, "b1", 20, 0),
        (2, "b1", 50, 0),
        (1, "b1", 50, 2),
        (-1, "b1", 50, 2),
        # Another broker may not have heard of it for a while.
        (1, "b2", 40 + STALE_MS, 0),
        (1, "b2", 41 + STALE_MS, 2),
        # The third was never answered: it may count or not.
        (3, "b1", 50, 0),
        (3, "b2", 41 + STALE_MS, 0),
    ],
)
def test_who_reads_an_offset_is_told_the_last_commit(
    told: int, broker: str, sent_ms: int, missed: int
) -> None:
    offset = MovedOffset()
    for sent_ms_, answered_ms in ((10, 20), (30, 40)):
        offset.begin("b1", sent_ms_).answered_ms = answered_ms
    offset.begin("b1", 45)

    found = offset.missed_by(told, broker, sent_ms)

    assert (0 if found is None else found.number) == missed
