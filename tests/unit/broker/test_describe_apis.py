"""DescribeConfigs, DescribeCluster and DescribeTopicPartitions over frames."""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tarry.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tarry.simulation.by_hand import BrokerByHand, ClientByHand


@pytest.fixture
def broker(topic) -> BrokerByHand:
    hand = BrokerByHand({"node.id": "7", "broker.rack": "r1", "log.retention.hours": "24"})
    client = hand.connect()
    topic(client, "orders", 3, retention_ms="5000")
    topic(client, "bills", 2)
    topic(client, "cash", 1)
    return hand


# -- DescribeConfigs


def configs(
    client: ClientByHand,
    resource_type: int,
    name: str,
    keys: list[str] | None = None,
    *,
    version: int = 4,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResult:
    request = DescribeConfigsRequest(
        [DescribeConfigsResource(resource_type, name, keys)], synonyms, documentation
    )
    response = client.ask(api_keys.DESCRIBE_CONFIGS, version, request)
    assert isinstance(response, DescribeConfigsResponse)
    (result,) = response.results
    assert (result.resource_type, result.resource_name) == (resource_type, name)
    return result


@pytest.mark.parametrize("version", range(1, 5))
def test_a_topics_settings_are_told_in_every_version(broker, version):
    result = configs(broker.connect(), 2, "orders", version=version, synonyms=True)

    assert result.error_code == errors.NONE
    assert len(result.configs) == 44
    by_name = {config.name: config for config in result.configs}
    own = by_name["retention.ms"]
    assert (own.value, own.config_source, own.read_only) == ("5000", 1, False)
    # Kafka does the same: log.retention.hours is given, and log.retention.ms is behind the key.
    assert [(each.name, each.value, each.source) for each in own.synonyms] == [
        ("retention.ms", "5000", 1),
    ]
    assert own.config_type == (5 if version >= 3 else 0)
    assert by_name["min.cleanable.dirty.ratio"].config_type == (6 if version >= 3 else 0)


def test_only_the_keys_that_are_asked_for_are_told(broker):
    client = broker.connect()

    some = configs(client, 2, "orders", ["retention.ms", "nope", "segment.ms", "retention.ms"])
    none_named = configs(client, 2, "orders", [])

    assert [config.name for config in some.configs] == ["retention.ms", "segment.ms"]
    assert len(none_named.configs) == 44


def test_synonyms_and_documentation_are_told_to_who_asks(broker):
    client = broker.connect()

    (short,) = configs(client, 2, "orders", ["segment.ms"]).configs
    (long,) = configs(client, 2, "orders", ["segment.ms"], documentation=True).configs

    assert (short.synonyms, short.documentation) == ([], None)
    assert "new segment" in (long.documentation or "")


def test_this_brokers_settings_are_told_and_which_of_them_may_change(broker):
    result = configs(broker.connect(), 4, "7")

    by_name = {config.name: config for config in result.configs}
    assert by_name["node.id"].read_only
    assert not by_name["log.segment.bytes"].read_only
    assert not any(config.is_sensitive for config in result.configs)
    assert (by_name["node.id"].value, by_name["node.id"].config_source) == ("7", 4)
    assert (by_name["log.segment.bytes"].value, by_name["log.segment.bytes"].config_source) == (
        "1073741824",
        5,
    )


def test_nothing_is_set_for_all_brokers_at_first(broker):
    result = configs(broker.connect(), 4, "")

    assert (result.error_code, result.configs) == (errors.NONE, [])


@pytest.mark.parametrize(("resource_type", "name"), [(2, "orders"), (4, "7")])
def test_every_key_has_a_type_a_source_and_a_sentence(broker, resource_type, name):
    result = configs(broker.connect(), resource_type, name, documentation=True, synonyms=True)

    for config in result.configs:
        assert 1 <= config.config_type <= 7, config.name
        assert config.config_source in (1, 4, 5), config.name
        assert (config.documentation or "").endswith("."), config.name
        if config.synonyms:
            assert config.synonyms[0].source == config.config_source, config.name


def test_the_levels_of_the_brokers_loggers_are_told(broker):
    result = configs(broker.connect(), 8, "7")

    assert result.error_code == errors.NONE
    assert "tarry.broker" in [config.name for config in result.configs]
    levels = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
    assert all(config.value in levels for config in result.configs)
    assert {config.config_source for config in result.configs} == {6}


def test_where_the_data_lies_is_told_also_if_nobody_said_it():
    def told(settings: dict[str, str]) -> tuple[str | None, int]:
        (config,) = configs(BrokerByHand(settings).connect(), 4, "1", ["log.dirs"]).configs
        return config.value, config.config_source

    assert told({}) == ("./tarry-data", 5)
    assert told({"log.dir": "/a"}) == ("/a", 4)
    assert told({"log.dir": "/a", "log.dirs": "/b"}) == ("/b", 4)


@pytest.mark.parametrize(
    ("resource_type", "name", "error_code", "word"),
    [
        (2, "nope", errors.UNKNOWN_TOPIC_OR_PARTITION, "no topic"),
        (2, "a b", errors.INVALID_TOPIC_EXCEPTION, "ASCII"),
        (2, "", errors.INVALID_TOPIC_EXCEPTION, "empty"),
        (4, "8", errors.INVALID_REQUEST, "broker 7"),
        (4, "x", errors.INVALID_REQUEST, "number"),
        (4, "-1", errors.INVALID_REQUEST, "broker 7"),
        (4, "-", errors.INVALID_REQUEST, "number"),
        (8, "8", errors.INVALID_REQUEST, "broker 7"),
        (8, "", errors.INVALID_REQUEST, "name its id"),
        (16, "", errors.INVALID_REQUEST, "named"),
        (32, "", errors.INVALID_REQUEST, "named"),
        (99, "x", errors.INVALID_REQUEST, "99"),
        (-3, "x", errors.INVALID_REQUEST, "-3"),
    ],
)
def test_what_cannot_be_described_is_refused_with_a_sentence(
    broker, resource_type, name, error_code, word
):
    result = configs(broker.connect(), resource_type, name)

    assert result.error_code == error_code
    assert word in (result.error_message or "")
    assert result.configs == []


# -- DescribeCluster


def cluster(
    client: ClientByHand, version: int = 2, **fields: int | bool
) -> DescribeClusterResponse:
    request = DescribeClusterRequest()
    for name, value in fields.items():
        setattr(request, name, value)
    response = client.ask(api_keys.DESCRIBE_CLUSTER, version, request)
    assert isinstance(response, DescribeClusterResponse)
    return response


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_this_broker(broker, version):
    response = cluster(broker.connect(), version)

    assert (response.error_code, response.controller_id) == (errors.NONE, 7)
    assert response.cluster_id == broker.broker.cluster.cluster_id
    (node,) = response.brokers
    assert (node.broker_id, node.host, node.port, node.rack) == (7, "127.0.0.1", 9092, "r1")
    assert not node.is_fenced
    assert response.cluster_authorized_operations == -(2**31)


def test_what_is_allowed_on_the_cluster_is_told_to_who_asks(broker):
    response = cluster(broker.connect(), include_cluster_authorized_operations=True)

    assert response.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "error_code"),
    [(2, errors.MISMATCHED_ENDPOINT_TYPE), (3, errors.UNSUPPORTED_ENDPOINT_TYPE)],
)
def test_this_is_no_controllers_address(broker, endpoint_type, error_code):
    response = cluster(broker.connect(), endpoint_type=endpoint_type)

    assert response.error_code == error_code
    assert response.error_message
    assert (response.brokers, response.cluster_id, response.controller_id) == ([], "", -1)


# -- DescribeTopicPartitions


def partitions(
    client: ClientByHand,
    *names: str,
    limit: int = 2_000,
    cursor: tuple[str, int] | None = None,
) -> DescribeTopicPartitionsResponse:
    request = DescribeTopicPartitionsRequest(
        [TopicRequest(name) for name in names], limit, Cursor(*cursor) if cursor else None
    )
    response = client.ask(api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, request)
    assert isinstance(response, DescribeTopicPartitionsResponse)
    return response


def shape(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, int, list[int]]]:
    return [
        (topic.name, topic.error_code, [each.partition_index for each in topic.partitions])
        for topic in response.topics
    ]


def next_of(response: DescribeTopicPartitionsResponse) -> tuple[str, int] | None:
    cursor = response.next_cursor
    return None if cursor is None else (cursor.topic_name, cursor.partition_index)


def test_without_names_all_topics_are_described_in_order(broker):
    response = partitions(broker.connect())

    assert shape(response) == [("bills", 0, [0, 1]), ("cash", 0, [0]), ("orders", 0, [0, 1, 2])]
    assert next_of(response) is None
    partition = response.topics[0].partitions[0]
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (7, [7], [7])
    # Java's admin client does not take null for these.
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
    assert response.topics[0].topic_authorized_operations == 3576


def test_named_topics_come_in_the_order_of_their_names_and_once(broker):
    response = partitions(broker.connect(), "orders", "nope", "cash", "orders", "a b")

    assert shape(response) == [
        ("a b", errors.INVALID_TOPIC_EXCEPTION, []),
        ("cash", 0, [0]),
        ("nope", errors.UNKNOWN_TOPIC_OR_PARTITION, []),
        ("orders", 0, [0, 1, 2]),
    ]


def test_pages_follow_each_other_without_gap_or_overlap(broker):
    client = broker.connect()
    seen: list[tuple[str | None, int]] = []
    cursor: tuple[str, int] | None = None
    pages = 0

    while True:
        response = partitions(client, limit=2, cursor=cursor)
        found = [(name, index) for name, _, indexes in shape(response) for index in indexes]
        assert 0 < len(found) <= 2
        seen.extend(found)
        pages += 1
        cursor = next_of(response)
        if cursor is None:
            break

    assert pages == 3
    assert seen == [
        ("bills", 0),
        ("bills", 1),
        ("cash", 0),
        ("orders", 0),
        ("orders", 1),
        ("orders", 2),
    ]


def test_a_page_that_ends_with_a_topic_names_the_next_one(broker):
    assert next_of(partitions(broker.connect(), "bills", "nope", limit=2)) == ("nope", 0)
    assert next_of(partitions(broker.connect(), "bills", limit=2)) is None


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_one_partition_at_least(broker, limit):
    response = partitions(broker.connect(), "orders", limit=limit)

    assert shape(response) == [("orders", 0, [0])]
    assert next_of(response) == ("orders", 1)


def test_the_broker_bounds_a_page_too(topic):
    broker = BrokerByHand({"max.request.partition.size.limit": "2"})
    topic(broker.connect(), "orders", 3)

    assert next_of(partitions(broker.connect(), limit=1_000)) == ("orders", 2)


@pytest.mark.parametrize("cursor", [("orders", -1), ("nope", 0), ("", 0)])
def test_a_cursor_that_does_not_fit_is_an_invalid_request(broker, cursor):
    response = partitions(broker.connect(), "orders", "cash", cursor=cursor)

    assert {topic.error_code for topic in response.topics} == {errors.INVALID_REQUEST}
    assert len(response.topics) == 2


def test_a_cursor_goes_on_behind_a_topic_that_was_deleted_meanwhile(broker):
    response = partitions(broker.connect(), cursor=("c", 4))

    assert shape(response) == [("cash", 0, [0]), ("orders", 0, [0, 1, 2])]
