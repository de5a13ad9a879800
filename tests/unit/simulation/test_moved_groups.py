"""Checkers of groups that move among brokers: each rule, broken and kept."""

from __future__ import annotations

import pytest

from tarry.client.core.group.events import ASSIGNED
from tarry.simulation.cluster.groups.history import STALE_MS, MovedGroup, MovedOffset
from tarry.simulation.product.checkers import check_members
from tarry.simulation.product.history import HandOut, ProductHistory, Told

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

    def take(generation: int) -> None:
        if kind == "heartbeat":
            checked.on_heartbeat("m2", generation, sent_ms, sent_ms + 5)
        else:
            {"commit": checked.on_committed, "join": checked.on_joined}[kind](
                "m2", generation, sent_ms
            )

    take(4)
    assert checked.violations == []
    take(3)

    assert bool(checked.violations) == is_wrong


@pytest.mark.parametrize(
    ("sent_ms", "answered_ms", "is_blind"),
    [
        (10_000, 10_009, False),
        (10_000, 10_010, True),
        (10_020, 10_030, True),
        (10_021, 10_030, False),
    ],
)
def test_a_heartbeat_that_met_a_coordinator_without_its_groups_proves_nothing(
    sent_ms: int, answered_ms: int, is_blind: bool
) -> None:
    checked = group()
    checked.product_history.session_ms = 1_500
    checked.on_synced("m1", 4, [A], 1_000)
    checked.note_loading("b2", 10_010, is_loading=True)
    checked.note_loading("b2", 10_015, is_loading=True)
    checked.note_loading("b2", 10_020, is_loading=False)

    checked.on_heartbeat("m2", 3, sent_ms, answered_ms)

    assert bool(checked.violations) == (not is_blind)
    assert checked.product_history.is_in_good_faith("m2", answered_ms + 1_500) == is_blind
    assert not checked.product_history.is_in_good_faith("m2", answered_ms + 1_501)


@pytest.mark.parametrize(("blind_ms", "is_wrong"), [(-1, True), (499, True), (500, False)])
def test_who_has_lost_a_partition_reads_on_only_while_nothing_tells_it(
    blind_ms: int, is_wrong: bool
) -> None:
    history = ProductHistory()
    history.session_ms = 1_500
    history.blind_heartbeats = {"m1": [blind_ms]} if blind_ms >= 0 else {}
    for client, now_ms in (("m1", 0), ("m2", 500)):
        history.told.append(Told(now_ms, client, ASSIGNED, [A], {}))
    for client, now_ms, first in (("m1", 100, 0), ("m2", 600, 0), ("m1", 2_000, 1)):
        history.handed_out.append(HandOut(now_ms, client, A, first, first, [b"v"]))

    found = check_members(history, {A: 2})

    assert found == (["m1 was handed out 1..1 of t-0 although m2 has read on"] if is_wrong else [])


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
