"""DescribeProducers, ListConfigResources, settings of groups and client metrics, over frames."""

from __future__ import annotations

import json

import pytest
from tests.support.broker.admin_user import BROKER, GROUP, METRICS
from tests.support.broker.broker_user import ORDERS, User, a_batch
from tests.support.broker.group_user import READERS, GroupUser

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tarry.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from tarry.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand


@pytest.fixture
def user() -> User:
    user = User(BrokerByHand())
    user.create(ORDERS, 2)
    return user


# -- DescribeProducers


def producers(
    user: User, *topics: tuple[str, list[int]]
) -> dict[tuple[str, int], PartitionResponse]:
    request = DescribeProducersRequest([TopicRequest(name, indexes) for name, indexes in topics])
    answer = user.client.ask(api_keys.DESCRIBE_PRODUCERS, 0, request)
    assert isinstance(answer, DescribeProducersResponse)
    found = [(topic.name, each) for topic in answer.topics for each in topic.partitions]
    assert len({(name, each.partition_index) for name, each in found}) == len(found)
    return {(name, each.partition_index): each for name, each in found}


def test_producers_are_told_with_what_they_wrote_last(user: User) -> None:
    user.produce(a_batch(b"a", b"b", times=(START_WALL_MS, START_WALL_MS + 7), producer_id=40))
    user.produce(a_batch(b"c", producer_id=41, epoch=3))
    user.produce(a_batch(b"d", producer_id=40, sequence=2))
    user.produce(a_batch(b"no id"))

    told = producers(user, (ORDERS, [0]))[ORDERS, 0]

    assert told.error_code == errors.NONE
    rows = [
        (each.producer_id, each.producer_epoch, each.last_sequence, each.last_timestamp)
        for each in told.active_producers
    ]
    assert rows == [(40, 0, 2, START_WALL_MS), (41, 3, 0, START_WALL_MS)]
    assert [
        (each.coordinator_epoch, each.current_txn_start_offset) for each in told.active_producers
    ] == [(-1, -1)] * 2


def test_partitions_without_producers_and_those_that_are_not_there_differ(user: User) -> None:
    told = producers(user, (ORDERS, [0, 2, -1]), ("nope", [0]), ("a b", [0]), ("", [0]))

    assert {place: each.error_code for place, each in told.items()} == {
        (ORDERS, 0): errors.NONE,
        (ORDERS, 2): errors.UNKNOWN_TOPIC_OR_PARTITION,
        (ORDERS, -1): errors.UNKNOWN_TOPIC_OR_PARTITION,
        ("nope", 0): errors.UNKNOWN_TOPIC_OR_PARTITION,
        ("a b", 0): errors.INVALID_TOPIC_EXCEPTION,
        ("", 0): errors.INVALID_TOPIC_EXCEPTION,
    }
    assert told[ORDERS, 0].active_producers == []


def test_a_partition_that_is_named_again_is_described_once(user: User) -> None:
    assert list(producers(user, (ORDERS, [1, 0, 1] * 100), (ORDERS, [0]))) == [
        (ORDERS, 1),
        (ORDERS, 0),
    ]


# -- ListConfigResources


def listed(user: User, *types: int, version: int = 1) -> tuple[int, list[tuple[int, str]]]:
    request = ListConfigResourcesRequest(list(types))
    answer = user.client.ask(api_keys.LIST_CONFIG_RESOURCES, version, request)
    assert isinstance(answer, ListConfigResourcesResponse)
    return answer.error_code, [
        (each.resource_type, each.resource_name) for each in answer.config_resources
    ]


def test_all_that_has_settings_is_listed(user: User) -> None:
    user.create("bills")

    assert listed(user) == (errors.NONE, [(8, "1"), (4, "1"), (2, "bills"), (2, ORDERS)])
    assert listed(user, 2, 2) == (errors.NONE, [(2, "bills"), (2, ORDERS)])
    assert listed(user, GROUP, METRICS) == (errors.NONE, [])


def test_before_version_1_client_metrics_alone_are_listed(user: User) -> None:
    assert listed(user, version=0) == (errors.NONE, [])


@pytest.mark.parametrize("types", [(99,), (2, 99), (0,), (-1,)])
def test_a_type_that_is_not_known_refuses_the_list(user: User, types: tuple[int, ...]) -> None:
    assert listed(user, *types) == (errors.UNSUPPORTED_VERSION, [])


# -- DescribeConfigs of groups and client metrics


def described(user: User, resource_type: int, name: str, *keys: str) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type, name, list(keys) or None)
    request = DescribeConfigsRequest([resource])
    answer = user.client.ask(api_keys.DESCRIBE_CONFIGS, 4, request)
    assert isinstance(answer, DescribeConfigsResponse)
    return answer.results[0]


def test_a_group_has_settings_before_there_is_any_group(user: User) -> None:
    result = described(user, GROUP, "nobody")

    assert result.error_code == errors.NONE
    told = {config.name: config.value for config in result.configs}
    assert told["consumer.session.timeout.ms"] == "45000"
    assert [key for key in told if key.startswith("tarry.")] == []


def test_a_groups_notes_are_told_to_those_who_ask_for_them_by_name(user: User) -> None:
    result = described(user, GROUP, "nobody", "tarry.notes")

    told = {config.name: config.value for config in result.configs}
    assert told == {"tarry.notes.error.code": str(errors.NOT_COORDINATOR)}


def test_an_unknown_group_has_the_reason_for_the_lack_of_notes() -> None:
    user = GroupUser(BrokerByHand())
    user.create(ORDERS)
    user.find()

    unknown = described(user, GROUP, "nobody", "tarry.notes")
    user.commit({0: 7})
    known = described(user, GROUP, READERS, "tarry.notes")

    told = [{config.name: config.value for config in one.configs} for one in (unknown, known)]
    assert told[0]["tarry.notes.error.code"] == str(errors.GROUP_ID_NOT_FOUND)
    assert "tarry.notes.error.code" not in told[1]
    assert "tarry.notes.since.ms" in told[1]


def test_client_metrics_have_settings_that_nobody_set(user: User) -> None:
    result = described(user, METRICS, "any")

    assert result.error_code == errors.NONE
    assert [(each.name, each.value) for each in result.configs] == [
        ("interval.ms", "300000"),
        ("match", ""),
        ("metrics", ""),
    ]


# --- Calendars


def test_calendars_are_described_to_those_who_ask_for_them_alone(user: User) -> None:
    user.hand.broker.calendars.compare(2, user.hand.broker.this_turn.now_wall_ms + 40)

    asked = described(user, BROKER, "1", "tarry.calendars")
    others = described(user, BROKER, "1")

    (entry,) = asked.configs
    assert entry.name == "tarry.calendar.2"
    assert entry.read_only
    assert json.loads(entry.value or "")["ahead_ms"] == 40
    assert not any(each.name.startswith("tarry.") for each in others.configs)


def test_calendars_are_those_of_one_broker(user: User) -> None:
    result = described(user, BROKER, "", "tarry.calendars")

    assert result.error_code == errors.INVALID_REQUEST
