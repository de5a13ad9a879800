"""A clean stop: what waits is answered, what was acknowledged is marked, nobody holds it up."""

from __future__ import annotations

import logging

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch, fetched, produced, values_in
from tests.support.broker.stand_in_member import StandInMember

from tarry.base import errors
from tarry.base.doors import connected, received, stop_requested
from tarry.broker.membership.cluster_member import HAND_OVER_MS_MAX
from tarry.broker.shutdown import FLUSH_MS_MAX, STOP_MS_MAX
from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.runtime import loop
from tarry.simulation.by_hand import BrokerByHand


def test_waiting_fetches_are_answered_at_once_with_what_is_there(hand: BrokerByHand) -> None:
    User(hand).produce(a_batch(b"a"))
    empty, partly = User(hand), User(hand)
    empty.send_fetch(1, max_wait_ms=60_000)
    partly.send_fetch(0, max_wait_ms=60_000, min_bytes=1_000_000)

    hand.turn(stop_requested())
    hand.settle()

    (nothing,) = empty.answers()
    (something,) = partly.answers()
    assert values_in(fetched(nothing)[0]) == []
    assert values_in(fetched(something)[0]) == [b"a"]
    assert (hand.broker.is_stopped, hand.broker.stop_reason) == (True, "")


def test_a_waiting_produce_is_answered_when_it_is_durable(hand: BrokerByHand) -> None:
    user = User(hand)
    user.send_produce(a_batch(b"a"))

    hand.turn(stop_requested())
    before = (user.answers(), hand.broker.is_stopped)
    hand.settle()

    (answer,) = user.answers()
    assert before == ([], False)
    assert produced(answer)[0].error_code == errors.NONE
    hand.start()
    assert hand.broker.logs.was_clean
    assert values_in(User(hand).fetch(0)) == [b"a"]


def test_a_topic_that_is_being_made_is_made_and_answered(hand: BrokerByHand) -> None:
    user = User(hand)
    topics = [CreatableTopic(name="new", num_partitions=3, replication_factor=1)]
    request = CreateTopicsRequest(topics=topics, timeout_ms=5_000)
    frame = user.client.encode(api_keys.CREATE_TOPICS, 7, request)

    hand.turn(received(user.client.connection_id, frame), stop_requested())
    hand.settle()

    (answer,) = user.answers()
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code == errors.NONE
    hand.start()
    assert len(hand.broker.topics["new"].partitions) == 3


def test_after_a_clean_stop_nothing_is_scanned(hand: BrokerByHand) -> None:
    user = User(hand)
    for _ in range(10):
        user.produce(a_batch(b"x" * 100))
    hand.stop()
    hand.start()
    partition = hand.broker.topics[ORDERS].partitions[0]

    assert partition.log.recovery_report.scanned_bytes == 0
    assert partition.leadership.leader_epoch == 0
    assert partition.high_watermark == 10


def test_a_stopping_broker_takes_nobody_new_and_handles_nothing_more(hand: BrokerByHand) -> None:
    user = User(hand)
    user.send_produce(a_batch(b"a"))
    hand.turn(stop_requested())

    user.send_produce(a_batch(b"too late"))
    hand.turn(connected(99, "PLAINTEXT", "10.0.0.9:1"))
    hand.settle()

    assert not hand.transport.is_listening
    assert hand.transport.closed[99]
    assert len(user.answers()) == 1
    hand.start()
    assert values_in(User(hand).fetch(0)) == [b"a"]


def test_a_peer_that_takes_no_answers_does_not_hold_the_stop_up_for_long(
    hand: BrokerByHand,
) -> None:
    user = User(hand)
    user.produce(a_batch(b"a" * 1_000))
    hand.transport.stuck[user.client.connection_id] = True
    user.send_fetch(0)

    hand.turn(stop_requested())
    took_ms = 0
    while not hand.broker.is_stopped and took_ms < 10_000:
        hand.turn(*hand.disk.complete_flushes(), after_ms=100)
        took_ms += 100

    assert took_ms <= 3_600
    assert hand.broker.stop_reason == ""


def test_a_disk_that_does_not_finish_its_flush_leaves_no_clean_marker(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    user = User(hand)
    user.send_produce(a_batch(b"a"))
    hand.turn(stop_requested())

    for _ in range(250):
        if not hand.broker.is_stopped:
            hand.turn(after_ms=100)

    assert hand.broker.is_stopped
    assert "did not finish a flush" in hand.broker.stop_reason
    assert user.answers() == []
    hand.disk.kill()
    hand.start()
    assert not hand.broker.logs.was_clean


def test_a_stop_waits_for_a_slow_disk_and_is_clean(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    user = User(hand)
    user.send_produce(a_batch(b"a"))
    hand.turn(stop_requested())

    for _ in range(60):
        hand.turn(after_ms=100)
    assert not hand.broker.is_stopped
    hand.turn(*hand.disk.complete_flushes())
    hand.settle()

    assert hand.broker.is_stopped
    assert hand.broker.stop_reason == ""
    assert caplog.text.count("the disk has not finished a flush") == 1


class CountedMember(StandInMember):
    """Member that counts how often it was told to leave."""

    leaves = 0

    def leave(self) -> bool:
        self.leaves += 1
        return True


def test_a_member_leaves_its_cluster_before_it_waits_for_a_slow_disk(hand: BrokerByHand) -> None:
    # It copies nothing any more, and others must not wait for it as for a replica in sync.
    member = CountedMember(hand.broker, 1)
    hand.broker.neighbours.join(member, None)
    User(hand).send_produce(a_batch(b"a"))
    hand.turn(stop_requested())

    for _ in range(STOP_MS_MAX // 100):
        hand.turn(after_ms=100)

    assert not hand.broker.is_stopped
    assert member.leaves == 1


def test_the_loop_is_more_patient_than_all_steps_of_a_stop_together() -> None:
    assert HAND_OVER_MS_MAX + STOP_MS_MAX + FLUSH_MS_MAX < loop.STOP_MS_MAX


def test_a_clean_end_that_cannot_be_written_says_so_and_loses_nothing(hand: BrokerByHand) -> None:
    User(hand).produce(a_batch(b"a"))
    hand.disk.fail_writes(1, path_part="recovery-points")

    hand.turn(stop_requested())
    hand.settle()

    assert "clean end could not be written" in hand.broker.stop_reason
    hand.disk.crash()
    hand.start()
    assert values_in(User(hand).fetch(0)) == [b"a"]
    assert hand.broker.topics[ORDERS].partitions[0].leadership.leader_epoch == 1


def test_a_stop_on_a_full_disk_loses_neither_records_nor_what_is_known_of_producers(
    hand: BrokerByHand,
) -> None:
    batch = a_batch(b"a", b"b", producer_id=7)
    User(hand).produce(batch)
    hand.disk.capacity_bytes = hand.disk.used_bytes()

    hand.turn(stop_requested())
    hand.settle()
    assert hand.broker.is_stopped
    hand.disk.heal()
    hand.disk.crash()
    hand.start()
    user = User(hand)

    assert user.produce(batch).base_offset == 0
    assert values_in(user.fetch(0)) == [b"a", b"b"]


def test_a_stop_that_is_asked_for_twice_is_one_stop(hand: BrokerByHand) -> None:
    hand.turn(stop_requested(), stop_requested())
    hand.settle()

    assert (hand.broker.is_stopped, hand.broker.stop_reason) == (True, "")


def test_a_flush_that_fails_while_it_stops_is_said_and_nothing_is_acknowledged(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    user = User(hand)
    user.send_produce(a_batch(b"a"))
    hand.disk.fail_flushes(1)

    hand.turn(stop_requested())
    hand.settle()

    assert "a flush failed" in hand.broker.stop_reason
    assert user.answers() == []
    assert [r for r in caplog.records if r.levelno >= logging.CRITICAL] != []


def test_a_failure_between_the_steps_of_a_turn_is_no_clean_stop(hand: BrokerByHand) -> None:
    User(hand).produce(a_batch(b"a"))
    hand.broker.hosting.retries.later(lambda: hand.broker.shutdown.fail("a flush failed"))

    hand.turn(after_ms=1_000)

    assert (hand.broker.is_stopped, hand.broker.stop_reason) == (True, "a flush failed")
    hand.start()
    assert not hand.broker.logs.was_clean
