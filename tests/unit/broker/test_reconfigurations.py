"""Settings of many logs: all of them follow, and no turn does more of it than its share."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from tests.support.broker.admin_user import BROKER, SET, TOPIC, Operator, operator

from tarry.base import doors
from tarry.broker.metadata.reconfigurations import RECONFIGURED_PER_TURN
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol import api_keys
from tarry.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from tarry.protocol.messages.api_versions import ApiVersionsRequest
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.delete_topics import DeleteTopicsRequest
from tarry.simulation.by_hand import ClientByHand

COUNT = 2 * RECONFIGURED_PER_TURN + 100
TURNS = COUNT // RECONFIGURED_PER_TURN + 1

ONE_MINUTE, TWO_MINUTES = 60_000, 120_000


def with_topics(topics: int, partitions: int) -> Operator:
    someone = operator({"log.retention.check.interval.ms": "10000000"})
    wanted = [CreatableTopic(f"topic-{each}", partitions, 1) for each in range(topics)]
    someone.client.send(api_keys.CREATE_TOPICS, 7, CreateTopicsRequest(wanted, timeout_ms=60_000))
    someone.hand.settle()
    assert len(someone.client.answers()) == 1
    assert len(logs_of(someone)) == topics * partitions
    return someone


def logs_of(someone: Operator) -> list[ReplicatedLog]:
    return [log for topic in someone.hand.broker.topics.all() for log in topic.logs()]


def ask_incrementally(someone: Operator, kind: int, name: str, key: str, value: str) -> None:
    request = someone.change_request((kind, name, [(key, SET, value)]))
    someone.client.send(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, request)


def ask(someone: Operator, kind: int, name: str, key: str, value: str) -> None:
    resource = AlterConfigsResource(kind, name, [AlterableConfig(key, value)])
    someone.client.send(api_keys.ALTER_CONFIGS, 1, AlterConfigsRequest([resource]))


def pass_turn(someone: Operator, other: ClientByHand) -> None:
    """Pass a turn in which another client is answered."""
    frame = other.encode(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
    events = someone.hand.disk.complete_flushes()
    someone.hand.turn(*events, doors.received(other.connection_id, frame))
    assert len(other.answers()) == 1


def shares(someone: Operator, retention_ms: int) -> list[int]:
    """Return how many logs take the retention in each turn, until nothing is left to do."""
    watched, other = logs_of(someone), someone.hand.connect()
    followed = [sum(log.config.retention_ms == retention_ms for log in watched)]
    while followed[-1] < len(watched) and len(followed) < 10 * TURNS:
        pass_turn(someone, other)
        followed.append(sum(log.config.retention_ms == retention_ms for log in watched))
    return [after - before for before, after in itertools.pairwise(followed) if after > before]


@pytest.mark.parametrize("asks", [ask, ask_incrementally])
def test_the_logs_of_a_large_topic_follow_its_settings_some_in_each_turn(
    asks: Callable[[Operator, int, str, str, str], None],
) -> None:
    someone = with_topics(1, COUNT)

    asks(someone, TOPIC, "topic-0", "retention.ms", str(ONE_MINUTE))

    assert shares(someone, ONE_MINUTE) == [RECONFIGURED_PER_TURN, RECONFIGURED_PER_TURN, 100]
    assert len(someone.client.answers()) == 1
    assert not someone.hand.broker.has_work_left()


def test_the_logs_of_many_topics_follow_the_broker_some_in_each_turn() -> None:
    someone = with_topics(COUNT, 1)

    ask_incrementally(someone, BROKER, "1", "log.retention.ms", str(ONE_MINUTE))

    assert shares(someone, ONE_MINUTE) == [RECONFIGURED_PER_TURN, RECONFIGURED_PER_TURN, 100]


def test_a_change_during_another_one_reaches_the_logs_that_have_followed_already() -> None:
    someone = with_topics(1, COUNT)
    other = someone.hand.connect()
    ask(someone, TOPIC, "topic-0", "retention.ms", str(ONE_MINUTE))
    pass_turn(someone, other)
    assert 0 < sum(log.config.retention_ms == ONE_MINUTE for log in logs_of(someone)) < COUNT

    ask(someone, TOPIC, "topic-0", "retention.ms", str(TWO_MINUTES))
    someone.hand.settle()

    assert {log.config.retention_ms for log in logs_of(someone)} == {TWO_MINUTES}


def test_a_topic_that_is_deleted_meanwhile_is_left_and_the_others_follow() -> None:
    someone = with_topics(2, COUNT // 2)
    other = someone.hand.connect()
    ask_incrementally(someone, BROKER, "1", "log.retention.ms", str(ONE_MINUTE))
    pass_turn(someone, other)

    request = DeleteTopicsRequest(topic_names=["topic-0"], timeout_ms=60_000)
    someone.client.send(api_keys.DELETE_TOPICS, 1, request)
    someone.hand.settle()

    assert {log.leadership.topic for log in logs_of(someone)} == {"topic-1"}
    assert {log.config.retention_ms for log in logs_of(someone)} == {ONE_MINUTE}
