"""Logs that are begun anew: the leader epoch of their start, and restarts that were dropped."""

from __future__ import annotations

import pytest
from tests.support.replication.follower_scene import FollowerScene, a_copy, part, stored
from tests.unit.broker.replication.test_two_logs import RECORDS, SCHEDULE, two_copies

from tarry.base import errors
from tarry.broker.replication.cuts import LOOKS_PER_TURN_MAX
from tarry.protocol.messages.list_offsets import ListOffsetsPartitionResponse


@pytest.mark.parametrize("ends", ["stop", "crash"])
def test_a_log_begun_anew_knows_the_epoch_of_its_start_after_the_end_of_a_broker(
    ends: str,
) -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 100, epoch=1)
    scene.run()
    assert scene.positions() == {0: 100}

    scene.open_again(ends)
    again = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(120, epoch=1), high_watermark=121, log_start=100))
    scene.answer_start(0, 100, epoch=1)
    scene.run()
    scene.answer(part(0, a_copy(120, epoch=1), high_watermark=121, log_start=100))
    scene.flush()

    assert again.log.log_end_offset == 121
    assert again.log.end_offset_for_epoch(0) == (0, 100)


@pytest.mark.parametrize("ends", ["stop", "crash"])
def test_a_log_whose_records_are_all_deleted_knows_its_epoch_after_the_end_of_a_broker(
    ends: str,
) -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0, epoch=1), high_watermark=1))
    scene.flush()
    scene.asked()
    scene.answer(part(0, high_watermark=1, log_start=1))
    scene.run()
    assert partition.log.log_start_offset == 1
    scene.rounds.begin()
    scene.run()

    scene.open_again(ends)
    again = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(21, epoch=1), high_watermark=22, log_start=1))
    scene.flush()

    assert again.log.log_end_offset == 22
    assert again.log.end_offset_for_epoch(0) == (0, 1)


def test_a_restart_that_was_dropped_is_not_taken_for_a_later_cut() -> None:
    """More logs are begun anew than one turn looks at; before the last one's turn the row changes.

    The log then loses committed records, and no leader is followed any more: it is stuck.
    """
    scene = FollowerScene()
    count = LOOKS_PER_TURN_MAX + 1
    for index in range(count):
        scene.host(index)
    common = a_copy(0)
    scene.asked()
    scene.answer()
    scene.asked()
    scene.answer(
        *(part(each, common, a_copy(1, b"own"), high_watermark=1) for each in range(count))
    )
    scene.flush()
    scene.asked()
    scene.answer(*(part(each, code=errors.OFFSET_OUT_OF_RANGE) for each in range(count)))
    scene.answer_starts(
        [ListOffsetsPartitionResponse(each, 0, -1, 100, 0) for each in range(count)]
    )
    last = scene.partitions[-1]
    assert not last.log.is_being_cut

    scene.role(last, leader_epoch=1)
    while count - 1 not in scene.positions():
        scene.answer()
    scene.answer(part(count - 1, diverging=(0, 1)))
    scene.run(60)

    assert (last.log.log_start_offset, last.log.log_end_offset) == (0, 1)
    assert stored(last) == common


def test_a_restart_after_an_unclean_election_that_was_dropped_is_begun_again() -> None:
    """A compaction holds the restart up until the leader is elected again, cleanly."""
    scene = FollowerScene()
    partition, schedule = two_copies(scene, second_offset=4)
    schedule.log.compaction.target_offset = 4
    scene.role(partition, leader_epoch=2, unclean_epoch=2)
    scene.answer()
    scene.asked()
    scene.answer(part(RECORDS, high_watermark=1), part(SCHEDULE, high_watermark=5))
    scene.answer_start(SCHEDULE, 0, epoch=1)
    scene.run(2)
    assert schedule.log.log_end_offset == 5

    scene.role(partition, leader_epoch=3)
    schedule.log.compaction.target_offset = -1

    assert scene.followed(schedule).must_begin_anew()


def test_a_compaction_that_has_dropped_nothing_while_the_start_was_asked_for_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = FollowerScene()
    partition, schedule = two_copies(scene, second_offset=1)
    schedule.log.compaction.target_offset = 1
    scene.role(partition, leader_epoch=2, unclean_epoch=2)
    scene.answer()
    scene.asked()
    scene.answer(part(RECORDS, high_watermark=1), part(SCHEDULE, high_watermark=2))
    schedule.log.compaction.target_offset = -1

    scene.answer_start(SCHEDULE, 0, epoch=1)

    assert "its log begins before it" not in caplog.text
