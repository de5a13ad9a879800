"""The event log: what the broker tells of itself in `__tarry_events`."""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st
from tests.support.broker.broker_user import ORDERS, User, a_batch, values_in
from tests.support.broker.group_user import GroupUser, Member

from tarry.base.wait_buckets import bucket_of
from tarry.broker.events.kinds import Event
from tarry.broker.events.operation_waits import SUBJECTS_MAX, OperationWaits
from tarry.cluster.state.topic_names import EVENTS_TOPIC
from tarry.group.classic.notes import RebalanceBegan
from tarry.group.notes import Note
from tarry.purgatory import DelayedOperation, OperationListener, PayloadOperation, Purgatory
from tarry.simulation.by_hand import BrokerByHand
from tarry.simulation.groups.workload import GroupsWorkload
from tarry.simulation.records.workload import RecordsWorkload
from tarry.simulation.workload import Workload
from tarry.simulation.workload_run import WorkloadRun
from tarry.timer.wheel import TimingWheel

INTERVAL_MS = 1_000
EVENTS = {"events.enable": "true", "events.interval.ms": str(INTERVAL_MS)}
STEP_MS = 200


def events(hand: BrokerByHand, *kinds: str) -> list[dict[str, Any]]:
    """What the topic holds, of these kinds."""
    if EVENTS_TOPIC not in hand.broker.topics:
        return []
    values = values_in(User(hand).fetch(0, topic=EVENTS_TOPIC))
    found = [json.loads(value) for value in values if value is not None]
    return [event for event in found if not kinds or event["kind"] in kinds]


def told(hand: BrokerByHand, kind: str) -> list[dict[str, Any]]:
    """The events of a kind, without what every event has."""
    common = ("kind", "v", "at_ms", "broker")
    found = events(hand, kind)
    assert all((each["v"], each["broker"]) == (1, 1) for each in found)
    return [{key: each[key] for key in each if key not in common} for each in found]


def pass_time(hand: BrokerByHand, ms: int) -> None:
    """So much time in steps that the broker does not take for a stall of its own."""
    for _ in range(0, ms, STEP_MS):
        hand.turn(after_ms=STEP_MS)
        hand.settle()


def quiet_broker(**settings: str) -> BrokerByHand:
    """A broker whose event log has told that it started."""
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    hand = BrokerByHand({**EVENTS, **texts})
    User(hand).create(ORDERS)
    pass_time(hand, 3 * INTERVAL_MS)
    assert [each["what"] for each in told(hand, "broker")][:1] == ["started"]
    return hand


def end(hand: BrokerByHand) -> int:
    return hand.broker.topics[EVENTS_TOPIC].partitions[0].high_watermark


def test_without_the_setting_nothing_is_there() -> None:
    hand = BrokerByHand()
    User(hand).create(ORDERS)
    User(hand).produce(a_batch(b"a"))
    pass_time(hand, 60_000)

    assert EVENTS_TOPIC not in hand.broker.topics


def test_nothing_is_appended_while_nothing_happens() -> None:
    hand = quiet_broker()
    before = end(hand)

    pass_time(hand, 60_000)

    assert end(hand) == before


def test_scheduled_records_of_an_interval_are_counted_by_topic() -> None:
    hand = quiet_broker()
    user = User(hand)
    user.create("tasks", delay_enable="true", delay_default_ms="5000")
    user.produce(a_batch(b"a", b"b"), topic="tasks")
    pass_time(hand, INTERVAL_MS)

    pass_time(hand, 5 * INTERVAL_MS)

    parked, released = told(hand, "schedule")
    assert (parked["topic"], parked["parked"], parked["pending"]) == ("tasks", 2, 2)
    assert parked["pending_bytes"] > 0
    assert parked["furthest_due_ms"] > 0
    assert (released["parked"], released["released"], released["pending"]) == (0, 2, 0)
    assert sum(released["lateness"].values()) == 2
    assert released["furthest_due_ms"] == -1
    assert 0 <= released["longest_late_ms"] < INTERVAL_MS


def test_waits_of_an_interval_are_counted_by_topic() -> None:
    hand = quiet_broker()
    slow, quick = User(hand), User(hand)
    quick.create("other")
    slow.send_fetch(0, max_wait_ms=60_000)
    quick.send_fetch(0, topic="other", max_wait_ms=200)
    hand.turn(after_ms=100)
    hand.turn(after_ms=100)
    hand.turn(after_ms=90)
    User(hand).produce(a_batch(b"a"))

    pass_time(hand, INTERVAL_MS)

    fetches = [each for each in told(hand, "operations") if each["purgatory"] == "Fetch"]
    assert fetches == [
        {
            "interval_ms": fetches[0]["interval_ms"],
            "purgatory": "Fetch",
            "subject": "other",
            "completed": 1,
            "expired": 1,
            "sum_ms": 200,
            "longest_ms": 200,
            "buckets": {str(bucket_of(200)): 1},
        },
        {
            "interval_ms": fetches[0]["interval_ms"],
            "purgatory": "Fetch",
            "subject": ORDERS,
            "completed": 1,
            "expired": 0,
            "sum_ms": 290,
            "longest_ms": 290,
            "buckets": {str(bucket_of(290)): 1},
        },
    ]
    assert [each for each in told(hand, "operation") if each["purgatory"] == "Fetch"] == [
        {
            "purgatory": "Fetch",
            "subject": ORDERS,
            "key": "orders-0",
            "waited_ms": 290,
            "expired": False,
        },
        {
            "purgatory": "Fetch",
            "subject": "other",
            "key": "other-0",
            "waited_ms": 200,
            "expired": True,
        },
    ]


def test_every_wait_that_purgatories_count_is_told() -> None:
    hand = quiet_broker()
    user, reader = User(hand), User(hand)
    before = {each.name: each.completed_total for each in hand.broker.parts.purgatories()}
    for offset in range(20):
        reader.send_fetch(offset, max_wait_ms=60_000)
        user.produce(a_batch(b"a"))
        hand.turn(after_ms=70)
        reader.answers()

    pass_time(hand, INTERVAL_MS)

    told_by: dict[str, int] = {}
    for each in told(hand, "operations"):
        told_by[each["purgatory"]] = told_by.get(each["purgatory"], 0) + each["completed"]
        assert sum(each["buckets"].values()) == each["completed"]
    for purgatory in hand.broker.parts.purgatories():
        if purgatory.name in ("Produce", "Fetch"):
            counted = purgatory.completed_total - before[purgatory.name]
            assert counted >= 20
            assert told_by[purgatory.name] >= counted


def test_a_reader_of_the_events_is_no_event() -> None:
    hand = quiet_broker()
    before = end(hand)
    reader = User(hand)

    for _ in range(10):
        reader.send_fetch(before, topic=EVENTS_TOPIC, max_wait_ms=200)
        pass_time(hand, INTERVAL_MS)

    assert end(hand) == before


def test_a_group_is_told_as_its_notes_have_it_and_its_lag_where_it_commits() -> None:
    hand = quiet_broker(group_initial_rebalance_delay_ms="0", offsets_topic_num_partitions="1")
    for _ in range(5):
        User(hand).produce(a_batch(b"a"))
    assert GroupUser(hand).find().error_code == 0
    member = Member(hand)
    member.join()
    member.sync()
    member.commit_as_member({0: 1})
    member.commit_as_member({0: 3})
    member.leave()

    pass_time(hand, INTERVAL_MS)

    groups = told(hand, "group")
    assert {each["group"] for each in groups} == {"readers"}
    assert [each["what"] for each in groups] == [
        type(note).__name__ for _, _, note in hand.broker.groups.history.notes("readers")
    ]
    assert "GenerationBegan" in [each["what"] for each in groups]
    assert {"generation_id", "stood_ms"} <= next(
        each["note"] for each in groups if each["what"] == "BecameStable"
    ).keys()
    assert told(hand, "lag") == [
        {"group": "readers", "topic": ORDERS, "partition": 0, "committed": 3, "end": 5}
    ]
    kinds = {each["purgatory"]: each["subject"] for each in told(hand, "operations")}
    assert kinds["Heartbeat"] == "readers"


def test_a_stall_is_told_and_counts_for_no_wait() -> None:
    hand = quiet_broker()
    User(hand).send_fetch(0, max_wait_ms=500)
    hand.turn(after_ms=60_000)
    pass_time(hand, 2 * INTERVAL_MS)

    (stalled,) = [each for each in told(hand, "broker") if each["what"] == "stalled"]
    assert 50_000 < stalled["stalled_ms"] <= 60_000
    (fetch,) = [each for each in told(hand, "operations") if each["purgatory"] == "Fetch"]
    assert fetch["longest_ms"] < 2_000


def test_a_clean_stop_is_told() -> None:
    hand = quiet_broker()

    hand.stop()
    hand.start()

    assert [each["what"] for each in told(hand, "broker") if each["what"] != "counted"] == [
        "started",
        "stopped",
    ]


def test_events_that_a_full_disk_refuses_are_counted() -> None:
    hand = quiet_broker()
    user = User(hand)
    hand.turn(after_ms=STEP_MS)
    user.produce(a_batch(b"a"))
    hand.disk.fail_writes(1, EVENTS_TOPIC)
    pass_time(hand, INTERVAL_MS)
    lost = end(hand)
    user.produce(a_batch(b"a"))

    pass_time(hand, INTERVAL_MS)

    assert end(hand) > lost
    last = told(hand, "broker")[-1]
    assert last["dropped"] > 0


def test_a_deleted_event_topic_is_made_anew() -> None:
    hand = quiet_broker()
    user = User(hand)
    user.delete(EVENTS_TOPIC)

    user.produce(a_batch(b"a"))
    pass_time(hand, 3 * INTERVAL_MS)

    assert told(hand, "operations")


def test_a_batch_has_a_bounded_size_and_the_rest_is_counted() -> None:
    hand = quiet_broker()
    history = hand.broker.groups.history
    note = RebalanceBegan(1, "x" * 400)
    for _ in range(5_000):
        history.note("readers", [note])

    pass_time(hand, 2 * INTERVAL_MS)

    kept = len(told(hand, "group"))
    assert 500 < kept < 2_000
    assert sum(each.get("dropped", 0) for each in told(hand, "broker")) == 5_000 - kept


def test_the_topic_is_internal_and_bounded() -> None:
    hand = quiet_broker()

    assert hand.broker.topics[EVENTS_TOPIC].is_internal
    config = hand.broker.topics[EVENTS_TOPIC].partitions[0].config
    assert config.retention_bytes == 64 * 1024 * 1024


def test_the_page_names_every_field_of_every_kind() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "events.md").read_text()

    for kind in get_args(Event):
        section = page.partition(f"\n## {kind.__struct_config__.tag}\n")[2].partition("\n## ")[0]
        common = ("v", "at_ms", "broker")
        named = [name for name in kind.__struct_fields__ if f"`{name}`" not in section]
        assert [name for name in named if name not in common] == []
    assert all(f"`{note.__name__}`" in page for note in Note.__subclasses__())


# --- Waits of one purgatory.


class Noting(OperationListener):
    """A second listener, beside the event log."""

    def __init__(self) -> None:
        self.waits: list[tuple[Hashable, int, bool]] = []

    def on_completed(
        self, operation: DelayedOperation, key: Hashable, waited_ms: int, is_expired: bool
    ) -> None:
        self.waits.append((key, waited_ms, is_expired))


def test_the_event_log_and_another_listener_are_told_of_the_same_waits() -> None:
    hand = quiet_broker()
    purgatory = hand.broker.fetches.purgatory
    noting = Noting()
    purgatory.listen(noting)
    User(hand).send_fetch(0, max_wait_ms=400)

    pass_time(hand, INTERVAL_MS)

    key = hand.broker.topics[ORDERS].partitions[0].watch_key
    assert noting.waits == [(key, 400, True)]
    (told_of,) = (each for each in told(hand, "operations") if each["purgatory"] == "Fetch")
    assert (told_of["subject"], told_of["sum_ms"], told_of["expired"]) == (ORDERS, 400, 1)
    assert purgatory.waits[(400).bit_length()] == 1


def test_topics_beyond_the_limit_are_counted_together() -> None:
    waits = OperationWaits("Test", "ignored")
    purgatory = Purgatory(TimingWheel(0), "Test")
    purgatory.listen(waits)
    for number in range(SUBJECTS_MAX + 10):
        operation = Noted(1_000, None)
        purgatory.try_complete_else_watch(operation, [(f"topic-{number}", 0, b"")])
        operation.force_complete()

    assert len(waits.by_subject) == SUBJECTS_MAX + 1
    assert waits.by_subject[""].completed == 10


class Noted(PayloadOperation[None]):
    """An operation that answers nobody."""

    def complete_with(self, payload: None) -> None:
        pass


@given(st.integers(min_value=0, max_value=2**40))
def test_buckets_begin_where_the_page_says(waited_ms: int) -> None:
    number = bucket_of(waited_ms)

    if number == 0:
        assert waited_ms == 0
    else:
        assert 2 ** ((number - 1) / 2) <= waited_ms + 1e-3
        assert waited_ms < 2 ** (number / 2) + 1e-3


# --- In simulated worlds.


class EventfulRecords(RecordsWorkload):
    """Records, written and read beside an event log."""

    def settings_of(self, life: int) -> dict[str, str]:
        return {**super().settings_of(life), **EVENTS}


class EventfulGroups(GroupsWorkload):
    """Groups beside an event log."""

    def settings_of(self, life: int) -> dict[str, str]:
        return {**super().settings_of(life), **EVENTS}


@pytest.mark.parametrize("workload", [EventfulRecords, EventfulGroups])
@pytest.mark.parametrize("seed", range(1, 4))
def test_nothing_is_wrong_beside_the_event_log(workload: type[Workload], seed: int) -> None:
    assert WorkloadRun(workload, seed).run() == []
