"""What an operator reads in the log: who changed what, a full disk, failed appends of groups."""

from __future__ import annotations

import logging

import pytest
from tests.support.broker.admin_user import BROKER, DELETE as UNSET, LOGGER, SET, TOPIC, Operator
from tests.support.broker.broker_user import ORDERS, User, a_batch

from tarry.base import doors, errors
from tarry.broker.apis.metadata import CREATION_MS_MAX
from tarry.protocol import api_keys
from tarry.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tarry.simulation.by_hand import BrokerByHand


@pytest.fixture
def hand() -> BrokerByHand:
    return BrokerByHand({"log.dirs": "/data"})


@pytest.fixture
def operator(hand: BrokerByHand) -> Operator:
    return Operator(hand)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def told(lines: pytest.LogCaptureFixture) -> list[str]:
    """The lines since the last call, without those of a start."""
    messages = [one for one in lines.messages if "logs opened" not in one]
    lines.clear()
    return messages


def test_topics_made_grown_and_deleted_are_told_with_who_asked(
    operator: Operator, lines: pytest.LogCaptureFixture
) -> None:
    operator.create(ORDERS, retention_ms="1000")
    made = told(lines)
    operator.grow((ORDERS, 3))
    grown = told(lines)
    operator.delete(ORDERS)

    by = made[0].partition(", by ")[2]
    assert by.startswith("client '")
    assert made == [f"topic orders created with 1 partition and retention.ms=1000, by {by}"]
    assert grown == [f"topic orders grown from 1 to 3 partitions, by {by}"]
    assert told(lines) == [f"topic orders deleted with 3 partitions, by {by}"]


def test_a_topic_made_because_a_client_asked_for_it_is_told(
    operator: Operator, lines: pytest.LogCaptureFixture
) -> None:
    operator.client.ask(api_keys.METADATA, 9, wanted("new"))

    (line,) = told(lines)
    assert line.startswith("topic new created with 1 partition, by client '")


def test_changed_settings_are_told_with_the_values_before(
    operator: Operator, lines: pytest.LogCaptureFixture
) -> None:
    operator.create(ORDERS, retention_ms="1000")
    told(lines)

    operator.change(TOPIC, ORDERS, ("retention.ms", UNSET, None), ("segment.bytes", SET, "2000000"))
    operator.change(BROKER, "", ("log.roll.ms", SET, "5000"))
    operator.change(BROKER, "1", ("log.roll.ms", SET, "6000"))

    topic, everybody, one = [line.partition(", by ")[0] for line in told(lines)]
    assert topic == (
        "settings of topic orders changed: retention.ms unset (was 1000), segment.bytes=2000000"
    )
    assert everybody == "settings of all brokers changed: log.roll.ms=5000"
    assert one == "settings of broker 1 changed: log.roll.ms=6000"


def test_a_changed_level_of_a_logger_is_told(
    operator: Operator, lines: pytest.LogCaptureFixture
) -> None:
    operator.change(LOGGER, "1", ("tarry.timer", SET, "WARN"))

    (line,) = told(lines)
    assert line.startswith("levels of loggers changed: tarry.timer=WARN (was INFO), by client '")


def test_what_is_refused_or_only_tried_is_not_told_as_a_change(
    operator: Operator, lines: pytest.LogCaptureFixture
) -> None:
    operator.create(ORDERS)
    told(lines)

    operator.grow((ORDERS, 1))
    operator.change(TOPIC, ORDERS, ("retention.ms", SET, "5"), validate_only=True)
    operator.change(LOGGER, "1", ("tarry.timer", SET, "WARN"), validate_only=True)

    assert told(lines) == []


def test_a_change_that_the_disk_refuses_is_told_as_not_done(
    hand: BrokerByHand, operator: Operator, lines: pytest.LogCaptureFixture
) -> None:
    operator.create(ORDERS)
    told(lines)
    hand.disk.capacity_bytes = hand.disk.used_bytes()

    operator.grow((ORDERS, 2))

    full, refused = told(lines)
    assert full.startswith("disk full: /data (0 bytes free); write to cluster metadata failed")
    assert refused.startswith(
        "not done, the disk refused it: topic orders grown from 1 to 2 partitions, by client '"
    )


def test_a_full_disk_is_one_line_at_once_and_one_a_minute_however_many_writes_fail(
    hand: BrokerByHand, operator: Operator, lines: pytest.LogCaptureFixture
) -> None:
    operator.create(ORDERS)
    user = User(hand)
    told(lines)
    hand.disk.capacity_bytes = hand.disk.used_bytes()

    codes = {user.produce(a_batch(b"x")).error_code for _ in range(20)}
    at_once = told(lines)
    for _ in range(61_000 // 400):
        hand.turn(after_ms=400)
        hand.settle()

    assert codes == {errors.KAFKA_STORAGE_ERROR}
    (line,) = at_once
    assert line.startswith("disk full: /data (0 bytes free); write to orders-0 failed")
    (summary,) = told(lines)
    assert summary.startswith("disk full: /data (0 bytes free now); it refused ")


def test_a_change_whose_client_is_gone_is_told_as_it_ended(
    hand: BrokerByHand, lines: pytest.LogCaptureFixture
) -> None:
    client = hand.connect()
    told(lines)
    client.send(api_keys.METADATA, 9, wanted("new"))

    hand.turn(doors.disconnected(client.connection_id))
    at_once = told(lines)
    hand.settle()

    assert at_once == []
    (line,) = told(lines)
    assert line.startswith("topic new created with 1 partition, by client '")


def test_a_change_that_is_late_is_told_when_it_is_late_and_when_it_has_ended(
    hand: BrokerByHand, lines: pytest.LogCaptureFixture
) -> None:
    client = hand.connect()
    told(lines)
    client.send(api_keys.METADATA, 9, wanted("new"))

    for _ in range(CREATION_MS_MAX // 400 + 1):
        hand.turn(after_ms=400)
    (late,) = told(lines)
    hand.settle()

    assert late.startswith("not confirmed in time, it may still happen: topic new created with 1")
    (line,) = told(lines)
    assert line.startswith("topic new created with 1 partition, by client '")


def wanted(name: str) -> MetadataRequest:
    """A request that makes a topic."""
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
