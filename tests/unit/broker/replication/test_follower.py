"""A follower's lanes with answers made by hand: what is asked, taken, refused and tried again."""

from __future__ import annotations

import pytest
from tests.support.replication.follower_scene import (
    LEADER,
    OWN,
    OWN_EPOCH,
    FollowerScene,
    a_copy,
    part,
    stored,
)

from tarry.base import errors
from tarry.broker.replication.followed import FETCHING, PAUSED


def test_the_first_fetch_names_everything_and_says_who_asks() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.host(1)

    asked = scene.asked()

    assert asked.replica_state is not None
    assert (asked.replica_state.replica_id, asked.replica_state.replica_epoch) == (OWN, OWN_EPOCH)
    assert (asked.session_id, asked.session_epoch) == (0, 0)
    assert scene.positions() == {0: 0, 1: 0}
    assert [one.current_leader_epoch for one in scene.asked_partitions()] == [0, 0]
    assert {one.replica_directory_id for one in scene.asked_partitions()} == {bytes([OWN]) * 16}
    assert (asked.max_wait_ms, asked.min_bytes, asked.max_bytes) == (500, 1, 10_485_760)


def test_records_keep_their_bytes_and_the_next_fetch_waits_for_their_flush() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    first, second = a_copy(0, b"a", b"b"), a_copy(2, b"c", epoch=0)

    scene.asked()
    scene.answer(part(0, first, second, high_watermark=2))

    assert stored(partition) == first + second
    assert not scene.transport.requests
    assert partition.high_watermark == 0

    scene.flush()

    assert scene.positions() == {0: 3}
    assert partition.high_watermark == 2


def test_with_the_policy_os_what_is_written_counts() -> None:
    scene = FollowerScene({"flush.policy": "os"})
    partition = scene.host(0)
    partition.is_flushed_at_once = False

    scene.asked()
    scene.answer(part(0, a_copy(0), high_watermark=1))
    scene.turn()

    assert scene.positions() == {0: 1}
    assert partition.high_watermark == 1


def test_a_cycle_names_only_partitions_with_news() -> None:
    scene = FollowerScene()
    partitions = [scene.host(index) for index in range(100)]

    assert len(scene.asked_partitions()) == 100
    scene.answer(*(part(index) for index in range(100)))
    assert scene.asked_partitions() == []
    assert (scene.asked().session_id, scene.asked().session_epoch) == (5, 1)
    scene.answer(part(7, a_copy(0)), part(42, a_copy(0)))
    scene.flush()

    assert scene.positions() == {7: 1, 42: 1}
    assert scene.asked().session_epoch == 2
    assert scene.asked().forgotten_topics_data == []
    assert partitions[7].log.flushed_offset == 1


def test_gaps_stay_and_producers_are_followed() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    batch = a_copy(10, b"x", producer_id=77)

    scene.asked()
    scene.answer(part(0, batch))
    # A leader that does not know the epoch of its log start is not asked again.
    scene.answer_start(0, 0, epoch=-1)
    scene.run()
    scene.answer(part(0, batch))
    scene.flush()

    assert scene.positions() == {0: 11}
    assert stored(partition) == batch
    assert partition.producers.last_offsets(11) == {77: 10}


@pytest.mark.parametrize(
    "code",
    [
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.FENCED_LEADER_EPOCH,
        errors.UNKNOWN_LEADER_EPOCH,
        errors.UNKNOWN_TOPIC_ID,
        errors.KAFKA_STORAGE_ERROR,
        errors.UNKNOWN_SERVER_ERROR,
        errors.CORRUPT_MESSAGE,
    ],
)
def test_an_error_of_one_partition_pauses_it_alone(code: int) -> None:
    scene = FollowerScene()
    bad, good = scene.host(0), scene.host(1)

    scene.asked()
    scene.answer(part(0, code=code), part(1, a_copy(0)))
    scene.flush()

    assert scene.state_of(bad) == PAUSED
    assert scene.positions() == {1: 1}
    assert [topic.partitions for topic in scene.asked().forgotten_topics_data] == [[0]]
    scene.answer()
    scene.wait(1_500)
    scene.answer()
    assert scene.positions() == {0: 0}
    assert scene.state_of(good) == FETCHING


def test_a_batch_with_a_flipped_bit_is_not_taken_and_harms_no_other() -> None:
    scene = FollowerScene()
    bad = scene.host(0)
    scene.host(1)
    broken = bytearray(a_copy(0, b"abc"))
    broken[-2] ^= 1

    scene.asked()
    scene.answer(part(0, bytes(broken)), part(1, a_copy(0)))
    scene.flush()

    assert bad.log.log_end_offset == 0
    assert scene.state_of(bad) == PAUSED
    assert scene.positions() == {1: 1}


def test_a_disk_that_takes_nothing_pauses_the_partition_and_no_other() -> None:
    scene = FollowerScene()
    bad, good = scene.host(0), scene.host(1)
    scene.disk.fail_writes(1, "orders-0")

    scene.asked()
    scene.answer(part(0, a_copy(0)), part(1, a_copy(0)))
    scene.flush()

    assert (bad.log.log_end_offset, good.log.log_end_offset) == (0, 1)
    assert scene.state_of(bad) == PAUSED
    assert scene.positions() == {1: 1}
    scene.answer()
    scene.wait(2_500)
    scene.answer()
    assert scene.positions() == {0: 0}


def test_an_answer_for_an_earlier_epoch_is_dropped() -> None:
    scene = FollowerScene()
    partition = scene.host(0)

    scene.asked()
    scene.role(partition, leader_epoch=1)
    scene.answer(part(0, a_copy(0)))

    assert partition.log.log_end_offset == 0
    assert [one.current_leader_epoch for one in scene.asked_partitions()] == [1]


def test_the_throttle_slows_only_the_lane_of_those_behind() -> None:
    scene = FollowerScene({"follower.replication.throttled.rate": "100"})
    scene.host(0, isr=[LEADER])
    size = len(a_copy(0))
    scene.asked()
    scene.answer(part(0, a_copy(0)))
    scene.flush()
    scene.wait(size * 10 - 200)
    assert not scene.transport.requests

    scene.wait(300)

    assert scene.positions() == {0: 1}


def test_who_leads_from_now_on_takes_nothing_more() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()

    scene.role(partition, leader_id=OWN, leader_epoch=1)
    scene.answer(part(0, a_copy(0)))
    scene.turn()

    assert partition.log.log_end_offset == 0
    assert partition not in scene.follower.placement.followed
    assert not scene.follower.placement.lanes
    assert not scene.transport.open


def test_who_was_deposed_fetches_when_what_it_wrote_is_flushed() -> None:
    scene = FollowerScene()
    partition = scene.host(0, leader_id=OWN)
    partition.log.append_bytes(a_copy(0), 0, 0)
    scene.flushes.touch(partition)
    scene.role(partition, leader_id=LEADER, leader_epoch=1)

    scene.turn()
    assert not scene.transport.requests
    scene.flush()

    assert scene.positions() == {0: 1}


def test_who_is_deposed_and_leads_again_in_one_turn_keeps_what_waits_for_its_write() -> None:
    scene = FollowerScene()
    partition = scene.host(0, leader_id=OWN)
    partition.log.append_bytes(a_copy(0), 0, 0)
    scene.flushes.touch(partition)

    scene.role(partition, leader_id=LEADER, leader_epoch=1)
    scene.role(partition, leader_id=OWN, leader_epoch=2)
    scene.run(1)

    assert partition.log.flushed_offset == 1
    assert partition.log.leader_epochs.latest_epoch == 2
    assert partition.epoch_start == 1
