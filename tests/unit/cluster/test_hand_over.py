"""Hand-overs: who takes over, in which life, and what must hold when it is written."""

from __future__ import annotations

import pytest
from tests.support.cluster.row_scene import KEYS, TOPIC_ID, Rows

from tarry.cluster.decisions.hand_over import HandOver, PreferLeaders, can_take_over, successor
from tarry.cluster.decisions.row_changes import Place
from tarry.cluster.state.records import PartitionChanged


@pytest.fixture
def rows() -> Rows:
    """Brokers 1, 2 and 3 serve; 1 leads a partition of all of them in epoch 4."""
    rows = Rows()
    for broker_id in (1, 2, 3):
        rows.live(broker_id)
    rows.topic([[1, 2, 3]])
    rows.part(0, leader=1, epoch=4, life=rows.epochs[1], isr=[3, 2, 1])
    return rows


def hand_over(
    rows: Rows, *, places: list[Place] | None = None, stops: bool = False
) -> tuple[HandOver, list[PartitionChanged]]:
    rows.hear()
    change = HandOver(
        rows.known,
        1,
        rows.epochs[1],
        places=places,
        settings=rows.settings if stops else None,
    )
    return change, rows.decide(change)


def test_the_next_replica_in_sync_leads_in_its_present_life(rows: Rows) -> None:
    change, records = hand_over(rows)

    (record,) = records
    assert (record.row.leader_id, record.row.leader_epoch) == (2, 5)
    assert record.row.partition_epoch == 5
    assert record.row.broker_epoch == rows.epochs[2]
    assert record.row.isr == [3, 2, 1]
    assert rows.write(change, records)
    assert hand_over(rows)[1] == []


@pytest.mark.parametrize(
    ("isr", "phases", "leader"),
    [
        ([1, 2, 3], {}, 2),
        ([1, 3], {}, 3),
        ([1, 2, 3], {2: "starting"}, 3),
        ([1, 2, 3], {2: "leaving"}, 3),
        ([1, 2, 3], {2: ""}, 3),
        ([1, 2, 3], {2: "", 3: "starting"}, -1),
        ([1], {}, -1),
    ],
)
def test_only_who_is_in_sync_and_serves_takes_over(
    rows: Rows, isr: list[int], phases: dict[int, str], leader: int
) -> None:
    for broker_id, phase in phases.items():
        rows.die(broker_id)
        if phase:
            rows.live(broker_id, phase)
    rows.part(0, leader=1, epoch=4, life=rows.epochs[1], isr=isr)
    rows.hear()

    assert successor(rows.state, rows.row(), without=1) == leader
    assert [record.row.leader_id for record in hand_over(rows)[1]] == [leader][: leader > 0]


@pytest.mark.parametrize(
    ("min_insync", "isr"), [("1", [3, 2]), ("2", [3, 2]), ("3", [3, 2, 1]), ("9", [3, 2, 1])]
)
def test_who_stops_leaves_the_isr_down_to_the_floor(
    rows: Rows, min_insync: str, isr: list[int]
) -> None:
    rows.configs = {"min.insync.replicas": min_insync}
    rows.topic([[1, 2, 3]])

    assert hand_over(rows, stops=True)[1][0].row.isr == isr


def test_only_the_partitions_that_are_named_are_handed_over(rows: Rows) -> None:
    rows.topic([[1, 2, 3], [1, 2], [2, 1]])

    found = hand_over(rows, places=[(TOPIC_ID, 1), (TOPIC_ID, 2)])[1]
    assert [record.index for record in found] == [1]


def test_what_is_led_in_another_life_is_not_handed_over(rows: Rows) -> None:
    rows.part(0, leader=1, epoch=4, life=rows.epochs[1] - 1, isr=[1, 2, 3])

    assert hand_over(rows)[1] == []


def test_a_hand_over_fails_if_the_new_leader_has_died(rows: Rows) -> None:
    change, records = hand_over(rows)
    rows.die(2)

    assert not rows.write(change, records)


def test_a_hand_over_fails_if_the_new_leader_lives_anew(rows: Rows) -> None:
    change, records = hand_over(rows)
    rows.die(2)
    rows.live(2)

    assert not rows.write(change, records)


def test_a_hand_over_fails_if_the_row_has_moved_on(rows: Rows) -> None:
    change, records = hand_over(rows)
    rows.part(0, leader=1, epoch=4, life=rows.epochs[1], isr=[1, 3])

    assert not rows.write(change, records)
    assert hand_over(rows)[1][0].row.leader_id == 3


def test_a_hand_over_brings_no_row_of_a_deleted_topic_back(rows: Rows) -> None:
    change, records = hand_over(rows)
    rows.etcd._remove([KEYS.topic(TOPIC_ID), KEYS.part(TOPIC_ID, 0)])

    assert not rows.write(change, records)


def test_a_hand_over_done_unknown_to_its_broker_is_not_done_twice(rows: Rows) -> None:
    change, records = hand_over(rows)
    assert rows.write(change, records)
    rows.hear()

    assert rows.decide(change) == []
    assert rows.row().leader_id == 2


def test_many_are_handed_over_in_transactions_that_etcd_takes(rows: Rows) -> None:
    rows.topic([[1, 2 + index % 2] for index in range(100)])
    rows.etcd._remove([KEYS.part(TOPIC_ID, 0)])
    count = 0
    is_last = False
    while not is_last:
        change, records = hand_over(rows)
        assert rows.write(change, records)
        count += len(records)
        is_last = change.is_last

    assert count == 100


# --- Preferred leaders.


def prefer(
    rows: Rows, broker_id: int, percentage: int = 0
) -> tuple[PreferLeaders, list[PartitionChanged]]:
    rows.hear()
    change = PreferLeaders(rows.known, broker_id, percentage)
    return change, rows.decide(change)


def led_by_two(rows: Rows, isr: list[int]) -> None:
    rows.part(0, leader=2, epoch=4, life=rows.epochs[2], isr=isr)


def test_the_first_replica_takes_over_again_once_it_is_in_sync(rows: Rows) -> None:
    led_by_two(rows, [2, 3])
    assert prefer(rows, 1)[1] == []
    led_by_two(rows, [2, 3, 1])
    change, records = prefer(rows, 1)

    assert (records[0].row.leader_id, records[0].row.leader_epoch) == (1, 5)
    assert rows.write(change, records)
    assert prefer(rows, 1)[1] == []


def test_nobody_else_takes_over(rows: Rows) -> None:
    led_by_two(rows, [1, 2, 3])

    assert prefer(rows, 2)[1] == prefer(rows, 3)[1] == []


def test_what_nobody_leads_is_left_to_claims(rows: Rows) -> None:
    led_by_two(rows, [1, 2, 3])
    rows.die(2)

    assert prefer(rows, 1)[1] == []


def test_who_is_starting_does_not_take_over(rows: Rows) -> None:
    led_by_two(rows, [1, 2, 3])
    rows.die(1)
    rows.live(1, "starting")

    assert prefer(rows, 1)[1] == []
    assert not can_take_over(rows.state, rows.row(), 1)


@pytest.mark.parametrize(("percentage", "count"), [(24, 1), (25, 0), (100, 0)])
def test_a_small_share_elsewhere_stays_there(rows: Rows, percentage: int, count: int) -> None:
    rows.topic([[1, 2, 3]] * 4)
    led_by_two(rows, [1, 2, 3])

    assert len(prefer(rows, 1, percentage)[1]) == count


def test_a_take_over_fails_if_its_own_life_is_over(rows: Rows) -> None:
    led_by_two(rows, [1, 2, 3])
    change, records = prefer(rows, 1)
    rows.die(1)

    assert not rows.write(change, records)
