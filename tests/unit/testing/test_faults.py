"""Faults of a broker in a thread, as clients meet them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tarry.client import BrokerError, ConnectionLost, DeliveryFailed, TimedOut
from tarry.client.errors import DeliveryTimedOut
from tarry.testing import Tarry


@pytest.fixture(scope="module")
def shared() -> Iterator[Tarry]:
    with Tarry() as broker:
        yield broker


@pytest.fixture
def broker(shared: Tarry) -> Iterator[Tarry]:
    yield shared
    shared.heal()


def test_a_refused_produce_is_tried_again_and_nothing_is_doubled(broker: Tarry) -> None:
    fault = broker.fail("Produce", code="NOT_LEADER_OR_FOLLOWER", times=2)

    with broker.producer() as producer:
        producer.send("again", b"one")

    assert fault.count == 2
    assert fault.is_over
    assert [record.value for record in broker.records("again")] == [b"one"]


def test_a_code_that_no_retry_helps_is_told(broker: Tarry) -> None:
    broker.fail("Produce", code=10)

    with pytest.raises(DeliveryFailed, match="MESSAGE_TOO_LARGE") as told, broker.producer() as one:
        one.send("large", b"one")

    assert told.value is not None
    assert broker.records("large") == []


def test_one_topic_fails_and_the_other_does_not(broker: Tarry) -> None:
    broker.topic("bad")
    broker.topic("good")
    broker.fail("Produce", code="TOPIC_AUTHORIZATION_FAILED", times=None, topic="bad")

    with broker.producer(linger_ms=50) as producer:
        refused = producer.send("bad", b"one")
        taken = producer.send("good", b"two")
        with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
            refused.result()

        assert taken.result().offset == 0


def test_a_reading_api_fails_with_its_own_answer_around(broker: Tarry) -> None:
    broker.topic("seen")
    broker.fail("DescribeGroups", code="GROUP_AUTHORIZATION_FAILED")
    broker.fail("Metadata", code="TOPIC_AUTHORIZATION_FAILED", topic="seen")

    outcome = broker.admin.describe_groups(["hidden"])["hidden"]
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        broker.admin.describe_topics(["seen"])

    assert "GROUP_AUTHORIZATION_FAILED" in str(outcome)
    assert [topic.name for topic in broker.admin.describe_topics(["seen"])] == ["seen"]


def test_a_slow_answer_comes_when_the_broker_s_time_is_over(broker: Tarry) -> None:
    broker.topic("slow")
    fault = broker.delay("Produce", 30)

    with broker.producer() as producer:
        receipt = producer.send("slow", b"one")
        while fault.count == 0:
            with pytest.raises(TimedOut):
                receipt.result(timeout=0.05)
        broker.clock.advance_sessions("31s")

        assert receipt.result().offset == 0


@pytest.mark.parametrize("is_carried_out", [False, True])
def test_a_cut_connection_loses_and_doubles_nothing(broker: Tarry, is_carried_out: bool) -> None:
    topic = broker.topic(f"cut-{is_carried_out}".lower())
    fault = broker.cut("Produce", is_carried_out=is_carried_out)

    with broker.producer() as producer:
        producer.send(topic, b"one")
        producer.send(topic, b"two")

    assert fault is not None
    assert fault.count == 1
    assert [record.value for record in broker.records(topic)] == [b"one", b"two"]


def test_the_helpers_of_the_fixture_meet_no_faults(broker: Tarry) -> None:
    for api in ("Produce", "Fetch", "Metadata", "CreateTopics", "ListOffsets", "FindCoordinator"):
        broker.fail(api, code="UNKNOWN_SERVER_ERROR", times=None)

    topic = broker.topic("untouched")
    broker.send(topic, b"one")

    assert [record.value for record in broker.records(topic)] == [b"one"]


def test_a_client_whose_versions_are_refused_reads_the_refusal_and_asks_again(
    broker: Tarry,
) -> None:
    fault = broker.fail("ApiVersions", code="UNSUPPORTED_VERSION")

    with broker.producer() as producer:
        producer.send("versions", b"one")

    assert fault.is_over
    assert len(broker.records("versions")) == 1


def test_all_connections_are_cut_at_once(broker: Tarry) -> None:
    broker.send("before", b"one")

    broker.cut()
    broker.send("before", b"two")

    assert len(broker.records("before")) == 2


def test_a_request_that_is_not_repeated_tells_of_the_cut(broker: Tarry) -> None:
    broker.cut("Produce", times=None)

    producer = broker.producer(delivery_timeout_ms=300, request_timeout_ms=100)
    receipt = producer.send("cut", b"one")

    with pytest.raises((ConnectionLost, DeliveryTimedOut)):
        receipt.result()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("Prodce", 6), "there is no API 'Prodce'; did you mean Produce?"),
        (("Produce", "NOT_LEADER"), "there is no error code 'NOT_LEADER'; did you mean"),
        (("Produce", 0), "there is no error code 0"),
        (("Heartbeat", 25, 1, "orders"), "Heartbeat has no code by topic at any place"),
        (("Fetch", 6, 1, None, "topics"), "Fetch has no code at 'topics'; it has error_code, resp"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(
    broker: Tarry, words: tuple[object, ...], sentence: str
) -> None:
    api, code, *rest = words
    times, topic, place = [*rest, *[1, None, None][len(rest) :]]

    with pytest.raises(ValueError, match=sentence.replace("?", r"\?")):
        broker.fail(str(api), code, times, topic=topic, place=place)  # type: ignore[arg-type]
