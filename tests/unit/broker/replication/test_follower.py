"""A follower's lanes with answers made by hand: what is asked, taken, refused and tried again."""

from __future__ import annotations

import pytest
from tests.support.replication.follower_scene import (
    LEADER,
    LEADER_LIFE,
    OWN,
    OWN_EPOCH,
    FollowerScene,
    a_copy,
    part,
)

from tarry.base import errors
from tarry.broker.replication.followed import FETCHING, IDLE, PAUSED, STANDING
from tarry.cluster.records import BrokerDescribed
from tarry.partition.state import Partition


def stored(partition: Partition) -> bytes:
    log = partition.log
    if log.log_start_offset == log.written_end_offset:
        return b""
    region = log.read(log.log_start_offset, log.end_position(), 1 << 20, True)
    assert region is not None
    return region.file.read(region.position, region.size)


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


@pytest.mark.parametrize(
    "code", [errors.FETCH_SESSION_ID_NOT_FOUND, errors.INVALID_FETCH_SESSION_EPOCH]
)
def test_a_session_that_the_leader_has_lost_begins_anew_at_once(code: int) -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.host(1)
    scene.asked()
    scene.answer(part(0), part(1))

    scene.asked()
    scene.answer(error_code=code, session_id=0)

    assert scene.positions() == {0: 0, 1: 0}
    assert scene.asked().session_epoch == 0
    # A leader that says so again is asked less often.
    scene.answer(error_code=code, session_id=0)
    scene.turn()
    assert not scene.transport.requests
    scene.wait(1_500)
    assert scene.asked().session_epoch == 0


def test_an_answer_of_another_session_counts_for_nothing() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0))

    scene.asked()
    scene.answer(part(0, a_copy(0)), session_id=6)

    assert partition.log.log_end_offset == 0
    scene.wait(1_500)
    assert scene.asked().session_epoch == 0


def test_a_lost_link_is_made_again_and_everything_is_asked_for() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0)))
    scene.flush()
    scene.asked()

    scene.transport.lose(scene.transport.requests.popleft().connection_id)
    scene.wait(3_000)

    assert scene.transport.connects == 2
    assert scene.positions() == {0: 1}
    assert scene.asked().session_epoch == 0


def test_a_leader_that_does_not_answer_in_time_is_left() -> None:
    scene = FollowerScene({"replica.socket.timeout.ms": "2000"})
    scene.host(0)
    scene.asked()
    silent = scene.transport.requests.popleft().connection_id

    scene.wait(4_500)

    assert silent not in scene.transport.open
    assert scene.positions() == {0: 0}


def test_a_leader_whose_life_is_over_is_not_asked_until_a_row_names_another() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()

    scene.life(LEADER, -1)
    scene.answer(part(0, a_copy(0)))

    assert scene.state_of(partition) == IDLE
    assert partition.log.log_end_offset == 0
    scene.wait(2_000)
    assert not scene.transport.requests
    scene.life(3, 33)
    scene.role(partition, leader_id=3, leader_epoch=1, leader_broker_epoch=33)
    scene.asked()
    assert ("b3", 9093) in scene.transport.open.values()


def test_a_leader_that_has_restarted_is_asked_when_a_row_names_its_new_life() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.life(LEADER, LEADER_LIFE + 1)
    scene.transport.requests.clear()

    assert scene.state_of(partition) == IDLE
    scene.role(partition, leader_epoch=1, leader_broker_epoch=LEADER_LIFE + 1)
    assert scene.positions() == {0: 0}


def test_the_connection_to_a_life_that_is_over_is_given_up() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.transport.requests.clear()

    # Its machine has lost power: nothing comes from it any more, not even an end.
    scene.life(LEADER, -1)
    assert not scene.transport.open
    scene.life(LEADER, LEADER_LIFE + 1)
    scene.role(partition, leader_epoch=1, leader_broker_epoch=LEADER_LIFE + 1)

    assert scene.positions() == {0: 0}
    assert scene.asked().session_epoch == 0


def test_a_leader_that_moves_is_asked_at_its_new_address() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.host(1)
    scene.asked()
    scene.transport.requests.clear()

    scene.life(LEADER, LEADER_LIFE, port=9999)

    assert scene.positions() == {0: 0, 1: 0}
    assert list(scene.transport.open.values()) == [("b2", 9999)]


def test_nobody_is_asked_while_this_broker_has_no_life() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.asked()
    scene.life(OWN, -1)
    scene.answer(part(0))
    scene.wait(2_000)
    assert not scene.transport.requests

    scene.life(OWN, 12)

    asked = scene.asked()
    assert asked.replica_state is not None
    assert (asked.replica_state.replica_epoch, asked.session_epoch) == (12, 0)


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


def test_a_divergence_is_cut_and_the_cut_is_durable_before_the_next_fetch() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    common, own = a_copy(0, epoch=0), a_copy(1, b"own", epoch=1)
    scene.asked()
    scene.answer(part(0, common, own, high_watermark=1))
    scene.flush()
    assert [one.last_fetched_epoch for one in scene.asked_partitions()] == [1]

    scene.role(partition, leader_epoch=2)
    scene.answer()
    scene.answer(part(0, diverging=(0, 1)))
    assert not scene.transport.requests
    scene.run()

    assert stored(partition) == common
    assert scene.positions() == {0: 1}
    assert [one.last_fetched_epoch for one in scene.asked_partitions()] == [0]


def test_epochs_without_records_are_forgotten_by_a_divergence() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0, epoch=0)))
    scene.flush()
    partition.log.assign_epoch(1)
    scene.role(partition, leader_epoch=2)
    scene.answer()
    assert [one.last_fetched_epoch for one in scene.asked_partitions()] == [1]

    scene.answer(part(0, diverging=(0, 1)))
    scene.run()

    assert [one.last_fetched_epoch for one in scene.asked_partitions()] == [0]
    assert scene.positions() == {0: 1}


def test_what_was_promised_is_not_cut(caplog: pytest.LogCaptureFixture) -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0), a_copy(1), high_watermark=2))
    scene.flush()
    scene.asked()

    scene.answer(part(0, diverging=(0, 1)))
    scene.wait(3_000)

    assert scene.state_of(partition) == STANDING
    assert partition.log.log_end_offset == 2
    assert "everything below 2 was promised" in caplog.text
    # A leader that was elected all the same is followed.
    scene.role(partition, leader_epoch=5, unclean_epoch=5)
    scene.answer()
    scene.answer(part(0, diverging=(0, 1)))
    scene.run()
    assert partition.log.log_end_offset == 1
    assert partition.high_watermark == 1


def test_a_log_that_ends_before_the_leaders_begins_is_begun_anew() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0), high_watermark=1))
    scene.flush()
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))

    question = scene.answer_start(0, 100)
    scene.run()

    assert question.replica_id == OWN
    assert scene.positions() == {0: 100}
    assert partition.log.log_start_offset == 100
    assert stored(partition) == b""


def test_a_leader_whose_log_begins_inside_a_batch_sends_it_whole() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 5)
    scene.run()
    assert scene.positions() == {0: 5}
    batch = a_copy(3, b"a", b"b", b"c", b"d")

    scene.answer(part(0, batch, high_watermark=7, log_start=5))
    scene.run(12)

    assert partition.log.log_end_offset == 7
    assert partition.log.log_start_offset == 5
    assert scene.positions() == {0: 7}


def test_who_has_only_what_is_deleted_at_the_leader_begins_anew_with_its_first_batch() -> None:
    """The leader's epochs begin with that batch, so it cannot tell that this is not its own."""
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0, b"x"), a_copy(1, b"y"), high_watermark=0))
    scene.flush()
    assert scene.positions() == {0: 2}
    batch = a_copy(1, b"b", b"c", b"d", epoch=0)

    scene.answer(part(0, batch, high_watermark=4, log_start=2))
    scene.run(12)

    assert partition.log.log_end_offset == 4
    assert partition.log.log_start_offset == 2
    assert stored(partition) == batch
    assert scene.positions() == {0: 4}


def test_the_leaders_log_start_is_followed_and_told() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0), a_copy(1), a_copy(2), high_watermark=3))
    scene.flush()
    scene.asked()

    scene.answer(part(0, high_watermark=3, log_start=2))
    scene.run()
    scene.answer()

    assert partition.log.log_start_offset == 2
    assert [one.log_start_offset for one in scene.asked_partitions()] == [2]


def test_who_leads_from_now_on_takes_nothing_more() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()

    scene.role(partition, leader_id=OWN, leader_epoch=1, is_leader=True)
    scene.answer(part(0, a_copy(0)))
    scene.turn()

    assert partition.log.log_end_offset == 0
    assert partition not in scene.follower.placement.followed
    assert not scene.follower.placement.lanes
    assert not scene.transport.open


def test_who_was_deposed_fetches_when_what_it_wrote_is_flushed() -> None:
    scene = FollowerScene()
    partition = scene.host(0, leader_id=OWN, is_leader=True)
    partition.log.append_bytes(a_copy(0), 0, 0)
    scene.flushes.touch(partition)
    scene.role(partition, leader_id=LEADER, leader_epoch=1, is_leader=False)

    scene.turn()
    assert not scene.transport.requests
    scene.flush()

    assert scene.positions() == {0: 1}


def test_after_a_loss_of_power_it_goes_on_from_what_it_has_flushed() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    batch = a_copy(0, b"kept", epoch=3)
    scene.asked()
    scene.answer(part(0, batch, high_watermark=1))
    scene.flush()
    scene.answer(part(0, a_copy(1, b"written", epoch=3), high_watermark=1))
    assert partition.log.written_end_offset == 2

    scene.disk.crash()
    scene.transport.requests.clear()
    scene.open()
    again = scene.host(0)

    assert stored(again) == batch
    assert scene.positions() == {0: 1}
    assert [one.last_fetched_epoch for one in scene.asked_partitions()] == [3]


def test_what_was_promised_is_known_after_a_clean_stop() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.asked()
    scene.answer(part(0, a_copy(0), a_copy(1), high_watermark=1))
    scene.flush()
    scene.logs.close_cleanly()

    scene.transport.requests.clear()
    scene.open()
    again = scene.host(0)

    assert again.high_watermark == 1
    scene.asked()
    scene.answer(part(0, diverging=(-1, 0)))
    assert scene.state_of(again) == STANDING


def test_a_stop_closes_every_link() -> None:
    scene = FollowerScene()
    scene.host(0)
    scene.host(1, isr=[LEADER])
    scene.asked()

    scene.follower.stop()
    scene.turn()

    assert not scene.transport.open
    assert not scene.follower.has_work_left()


def test_who_begins_anew_and_is_elected_before_it_was_answered_leads_from_there() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 100)
    scene.run()
    assert scene.positions() == {0: 100}

    scene.role(partition, leader_id=OWN, leader_epoch=1, is_leader=True)

    assert partition.high_watermark == 100
    assert partition.high_watermark_position.offset == 100


def test_who_is_deposed_and_leads_again_in_one_turn_keeps_what_waits_for_its_write() -> None:
    scene = FollowerScene()
    partition = scene.host(0, leader_id=OWN, is_leader=True)
    partition.log.append_bytes(a_copy(0), 0, 0)
    scene.flushes.touch(partition)

    scene.role(partition, leader_id=LEADER, leader_epoch=1, is_leader=False)
    scene.role(partition, leader_id=OWN, leader_epoch=2, is_leader=True)
    scene.run(1)

    assert partition.log.flushed_offset == 1
    assert partition.log.leader_epochs.latest_epoch == 2
    assert partition.epoch_start == 1


def test_a_leader_ends_a_cut_turn_by_turn_and_when_the_disk_lets_it() -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    # So many that not even a new leader reads them at once.
    count = 6_500
    for first in range(0, count, 1_000):
        batches = [a_copy(each, producer_id=7) for each in range(first, min(count, first + 1_000))]
        scene.asked()
        scene.answer(part(0, *batches, high_watermark=1))
        scene.run(2)
    log = partition.log
    assert log.log_end_offset == count
    scene.asked()
    scene.answer(part(0, diverging=(0, count - 1)))
    assert log.is_being_cut
    scene.disk.fail_reads(1, ".log")

    scene.role(partition, leader_id=OWN, leader_epoch=1, is_leader=True)
    assert (log.is_being_cut, log.leader_epochs.latest_epoch) == (True, 1)
    scene.turn(1_100)
    assert log.is_being_cut
    scene.run(8)

    assert not log.is_being_cut
    assert log.log_end_offset == partition.epoch_start == count - 1
    assert log.leader_epochs.latest_epoch == 1
    assert partition.producers.last_offsets(count) == {7: count - 2}


@pytest.mark.parametrize(("unclean_epoch", "begins_at"), [(1, 0), (-1, 100)])
def test_an_empty_log_behind_the_end_of_an_unclean_leader_begins_where_that_one_does(
    unclean_epoch: int, begins_at: int
) -> None:
    scene = FollowerScene()
    partition = scene.host(0)
    scene.asked()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 100)
    scene.run()
    scene.asked()
    scene.answer(part(0, high_watermark=100, log_start=100))
    scene.asked()

    scene.role(partition, leader_epoch=1, unclean_epoch=unclean_epoch)
    scene.answer()
    scene.answer(part(0, code=errors.OFFSET_OUT_OF_RANGE))
    scene.answer_start(0, 0)
    scene.run()

    assert partition.log.log_end_offset == partition.high_watermark == begins_at


def test_a_leader_without_the_listener_between_brokers_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = FollowerScene()
    scene.state.apply(
        BrokerDescribed(
            broker_id=LEADER, directory_id="d", rack="", endpoints={"OUTSIDE": ("b", 9092)}
        )
    )
    scene.host(0)

    assert not scene.transport.requests
    assert f"broker {LEADER}" in caplog.text
    assert "it has no listener PLAINTEXT, its listeners are OUTSIDE" in caplog.text
