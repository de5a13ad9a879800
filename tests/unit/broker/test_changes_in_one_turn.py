"""Changes that are decided in one turn: each builds on those before it, durable or not."""

from __future__ import annotations

import pytest
from tests.support.broker.admin_user import BROKER, SET, TOPIC, Operator, operator
from tests.support.broker.broker_user import ORDERS

from tarry.base import doors, errors
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_partitions import CreatePartitionsResponse
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tarry.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsResponse
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

Ask = tuple[int, int, Message]

DONE = errors.NONE
EXISTS = errors.TOPIC_ALREADY_EXISTS
UNKNOWN = errors.UNKNOWN_TOPIC_OR_PARTITION
CLASH = errors.INVALID_TOPIC_EXCEPTION


def create(*names: str) -> Ask:
    topics = [CreatableTopic(name, 1, -1) for name in names]
    return api_keys.CREATE_TOPICS, 7, CreateTopicsRequest(topics, 5_000)


def delete(name: str) -> Ask:
    request = DeleteTopicsRequest([DeleteTopicState(name=name)], timeout_ms=5_000)
    return api_keys.DELETE_TOPICS, 6, request


def ask_for(name: str) -> Ask:
    request = MetadataRequest([MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    return api_keys.METADATA, 12, request


def grow(name: str, count: int) -> Ask:
    return api_keys.CREATE_PARTITIONS, 3, Operator.growth(None, (name, count))  # type: ignore[arg-type]


def configure(kind: int, name: str, key: str, value: str) -> Ask:
    request = Operator.change_request(None, (kind, name, [(key, SET, value)]))  # type: ignore[arg-type]
    return api_keys.INCREMENTAL_ALTER_CONFIGS, 1, request


def code_of(answer: Message) -> int:
    """The error code of the answer's first topic or resource."""
    if isinstance(answer, CreateTopicsResponse | MetadataResponse):
        return answer.topics[0].error_code
    if isinstance(answer, CreatePartitionsResponse):
        return answer.results[0].error_code
    assert isinstance(answer, DeleteTopicsResponse | IncrementalAlterConfigsResponse)
    return answer.responses[0].error_code


@pytest.fixture
def someone() -> Operator:
    return operator()


def in_one_turn(someone: Operator, *asks: Ask) -> list[Operator]:
    """Send each request by a connection of its own, all of them in one turn."""
    others = [Operator(someone.hand) for _ in asks]
    someone.hand.turn(
        *(
            doors.received(other.client.connection_id, other.client.encode(*each))
            for other, each in zip(others, asks, strict=True)
        )
    )
    return others


def codes(others: list[Operator]) -> list[int]:
    """The error code that each was answered, in the order of the requests."""
    return [code_of(answer) for other in others for answer in other.answers()]


def facts(someone: Operator) -> dict[str, tuple[int, dict[str, str]]]:
    """Every topic with its number of partitions and its settings."""
    topics = someone.hand.broker.cluster.topics
    return {name: (len(each.partitions), dict(each.configs)) for name, each in topics.items()}


# Topics before, requests of one turn, the codes answered, and topics afterwards.
PAIRS: dict[str, tuple[tuple[Ask, ...], list[int], dict[str, tuple[int, dict[str, str]]]]] = {
    "two creations": ((create("a"), create("a")), [DONE, EXISTS], {"a": (1, {})}),
    "two creations of names that clash": (
        (create("a.b"), create("a_b")),
        [DONE, CLASH],
        {"a.b": (1, {})},
    ),
    "a creation that is not there for a deletion before it": (
        (delete("a"), create("a")),
        [UNKNOWN, DONE],
        {"a": (1, {})},
    ),
    "a creation and a deletion": ((create("a"), delete("a")), [DONE, DONE], {}),
    "a creation, a deletion and a creation": (
        (create("a"), delete("a"), create("a")),
        [DONE, DONE, EXISTS],
        {},
    ),
    "a deletion and another": ((create("a"), delete("a"), delete("a")), [DONE, DONE, UNKNOWN], {}),
    "a creation and its settings": (
        (create("a"), configure(TOPIC, "a", "retention.ms", "7")),
        [DONE, DONE],
        {"a": (1, {"retention.ms": "7"})},
    ),
    "a creation and its growth": (
        (create("a"), grow("a", 3), grow("a", 3), grow("a", 4)),
        [DONE, DONE, errors.INVALID_PARTITIONS, DONE],
        {"a": (4, {})},
    ),
    "two settings of one topic": (
        (
            create("a"),
            configure(TOPIC, "a", "retention.ms", "7"),
            configure(TOPIC, "a", "segment.bytes", "1048576"),
        ),
        [DONE, DONE, DONE],
        {"a": (1, {"retention.ms": "7", "segment.bytes": "1048576"})},
    ),
    "settings and a deletion": (
        (create("a"), configure(TOPIC, "a", "retention.ms", "7"), delete("a")),
        [DONE, DONE, DONE],
        {},
    ),
    "growth and a deletion": ((create("a"), grow("a", 3), delete("a")), [DONE, DONE, DONE], {}),
    "a deletion and settings": (
        (create("a"), delete("a"), configure(TOPIC, "a", "retention.ms", "7")),
        [DONE, DONE, UNKNOWN],
        {},
    ),
    "a creation and two who ask for the topic": (
        (create("a"), ask_for("a"), ask_for("a")),
        [DONE, DONE, DONE],
        {"a": (1, {})},
    ),
    "two who ask for a topic that is not there": (
        (ask_for("a"), ask_for("a")),
        [DONE, DONE],
        {"a": (1, {})},
    ),
}


@pytest.mark.parametrize("case", PAIRS)
def test_a_change_builds_on_those_of_its_turn(someone: Operator, case: str) -> None:
    asks, expected, left = PAIRS[case]

    others = in_one_turn(someone, *asks)
    early = facts(someone)
    someone.hand.settle()

    assert early == {}
    assert codes(others) == expected
    assert facts(someone) == left
    assert {hosted for hosted in left if hosted in someone.hand.broker.topics} == {*left}
    someone.hand.crash()
    assert facts(someone) == left


@pytest.mark.parametrize("case", PAIRS)
def test_what_topics_of_before_become_in_one_turn(someone: Operator, case: str) -> None:
    asks, expected, left = PAIRS[case]
    someone.create("a.c")
    someone.create(ORDERS, 2)

    others = in_one_turn(someone, *asks, delete(ORDERS), create(ORDERS), delete("a.c"))
    someone.hand.settle()

    assert codes(others) == [*expected, DONE, EXISTS, DONE]
    assert facts(someone) == left


@pytest.mark.parametrize("case", PAIRS)
def test_changes_that_the_disk_refuses_are_none(someone: Operator, case: str) -> None:
    asks, _, _ = PAIRS[case]
    someone.hand.disk.fail_writes()

    others = in_one_turn(someone, *asks)
    answered = codes(others)
    someone.hand.disk.heal()
    someone.hand.settle()

    refused = {errors.KAFKA_STORAGE_ERROR, UNKNOWN}
    assert len(answered) == len(asks)
    assert all(code in refused for code in answered)
    assert facts(someone) == {}
    assert codes(in_one_turn(someone, create("a"))) == []
    someone.hand.settle()
    assert facts(someone) == {"a": (1, {})}


def test_settings_of_a_broker_build_on_each_other(someone: Operator) -> None:
    others = in_one_turn(
        someone,
        configure(BROKER, "1", "message.max.bytes", "5000"),
        configure(BROKER, "1", "log.retention.bytes", "3"),
        configure(BROKER, "", "message.max.bytes", "6000"),
        configure(BROKER, "1", "message.max.bytes", "5000"),
    )
    before = dict(someone.hand.broker.cluster.broker_configs)
    someone.hand.settle()

    assert before == {}
    assert codes(others) == [DONE] * 4
    assert someone.hand.broker.cluster.broker_configs == {
        1: {"message.max.bytes": "5000", "log.retention.bytes": "3"},
        -1: {"message.max.bytes": "6000"},
    }


def test_a_name_is_free_again_when_its_removal_counts(someone: Operator) -> None:
    someone.create(ORDERS)
    topic_id = someone.topic_id()

    (first,) = in_one_turn(someone, delete(ORDERS))
    someone.hand.settle()
    others = in_one_turn(someone, create(ORDERS), delete(ORDERS))
    someone.hand.settle()

    assert codes([first, *others]) == [DONE, DONE, DONE]
    assert facts(someone) == {}
    assert topic_id not in someone.hand.broker.cluster.deleted_topics
