"""Leaves: who takes itself out of the isr, how far, and what must hold when it is written."""

from __future__ import annotations

import pytest
from tests.support.cluster.row_scene import TOPIC_ID, Rows

from tarry.cluster.decisions.leaves import LeavePartitions
from tarry.cluster.state.records import PartitionChanged

PLACE = (TOPIC_ID, 0)


@pytest.fixture
def rows() -> Rows:
    rows = Rows()
    for broker_id in (1, 2, 3):
        rows.live(broker_id)
    rows.topic([[1, 2, 3]])
    return rows


def leave(
    rows: Rows, broker_id: int = 2, *, keeps_floor: bool = False
) -> tuple[LeavePartitions, list[PartitionChanged]]:
    rows.hear()
    change = LeavePartitions(
        rows.known,
        broker_id,
        rows.epochs[broker_id],
        [PLACE],
        rows.settings if keeps_floor else None,
    )
    return change, rows.decide(change)


@pytest.mark.parametrize(
    ("isr", "min_insync", "not_whole", "cannot_append"),
    [
        ([1, 2, 3], "1", [1, 3], [1, 3]),
        ([1, 2, 3], "2", [1, 3], [1, 3]),
        ([1, 2, 3], "3", [1, 3], None),
        ([1, 2], "2", [1], None),
        ([2, 3], "1", [3], [3]),
        # The last one stays, whatever it has lost.
        ([2], "1", None, None),
        ([1, 3], "1", None, None),
    ],
)
def test_a_log_that_is_not_whole_leaves_below_the_floor_one_that_is_full_does_not(
    rows: Rows,
    isr: list[int],
    min_insync: str,
    not_whole: list[int] | None,
    cannot_append: list[int] | None,
) -> None:
    rows.configs = {"min.insync.replicas": min_insync}
    rows.topic([[1, 2, 3]])
    rows.part(0, leader=1, epoch=4, life=rows.epochs[1], isr=isr)
    for keeps_floor, expected in ((False, not_whole), (True, cannot_append)):
        change, records = leave(rows, keeps_floor=keeps_floor)

        assert change.is_last
        assert [record.row.isr for record in records] == ([] if expected is None else [expected])
    assert rows.row().leader_epoch == 4


def test_leader_and_epoch_stay_and_the_partition_epoch_grows(rows: Rows) -> None:
    rows.part(0, leader=1, epoch=4, life=rows.epochs[1], isr=[1, 2, 3])
    change, records = leave(rows)

    row = records[0].row
    assert (row.leader_id, row.leader_epoch, row.broker_epoch) == (1, 4, rows.epochs[1])
    assert row.partition_epoch == 5
    assert rows.write(change, records)
    assert leave(rows)[1] == []


def test_a_leader_of_an_earlier_life_leaves_and_others_claim(rows: Rows) -> None:
    rows.part(0, leader=2, epoch=4, life=rows.epochs[2], isr=[1, 2, 3])
    rows.die(2)
    rows.live(2, "starting")

    assert leave(rows)[1][0].row.isr == [1, 3]


def test_who_leads_in_this_life_does_not_leave(rows: Rows) -> None:
    rows.part(0, leader=2, epoch=4, life=rows.epochs[2], isr=[1, 2, 3])

    assert leave(rows)[1] == []


def test_a_leave_fails_if_its_life_is_over(rows: Rows) -> None:
    change, records = leave(rows)
    rows.die(2)
    rows.live(2)

    assert records
    assert not rows.write(change, records)
    rows.hear()
    assert rows.decide(change) == []


def test_a_leave_fails_if_the_row_has_moved_on(rows: Rows) -> None:
    change, records = leave(rows)
    rows.part(0, leader=3, epoch=1, life=rows.epochs[3], isr=[2])

    assert not rows.write(change, records)
    # It would be the last now.
    rows.hear()
    assert rows.decide(change) == []


def test_a_leave_that_was_done_unknown_to_its_broker_is_not_done_twice(rows: Rows) -> None:
    change, records = leave(rows)
    assert rows.write(change, records)
    rows.hear()

    assert rows.decide(change) == []
    assert change.is_last
