"""The same admin requests to Apache Kafka 4.4 and to Tarry: the answers must agree.

Error codes, order and numbers are compared; sentences are our own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.interop.both_brokers import (
    RUN,
    TARRYS_OWN,
    Ask,
    Both,
    KafkaConnection,
    wait_until_led,
)
from tests.support.patience import PATIENCE_S, tries

from tarry.protocol import api_keys
from tarry.protocol.message import ZERO_UUID, Message
from tarry.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tarry.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from tarry.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tarry.simulation.by_hand import BrokerByHand

# For Kafka's controller on a machine that does other work besides.
TIMEOUT_MS = PATIENCE_S * 1_000

Answers = tuple[list[object], list[object]]


@pytest.fixture(scope="module")
def both(apache_kafka: str) -> Iterator[Both]:
    connection = KafkaConnection(apache_kafka)
    tarry = BrokerByHand({"auto.create.topics.enable": "false"}).connect()
    pair = Both(connection.ask, tarry.ask)
    for name in ("orders", "bills", "a.b"):
        topic = CreatableTopic(
            f"{RUN}-{name}", 3, 1, configs=[CreatableTopicConfig("retention.ms", "5000")]
        )
        for answer in pair.answers(
            api_keys.CREATE_TOPICS,
            7,
            lambda _, topic=topic: CreateTopicsRequest([topic], TIMEOUT_MS),
        ):
            assert isinstance(answer, CreateTopicsResponse)
            assert answer.topics[0].error_code == 0
        wait_until_led(connection.ask, topic.name)
    yield pair
    connection.close()


def named(name: str) -> str:
    return f"{RUN}-{name}" if name and name not in (".", "..") else name


def short(name: str | None) -> str | None:
    return None if name is None else name.removeprefix(f"{RUN}-")


# -- CreateTopics


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    assignments: list[tuple[int, list[int]]] | None = None,
    configs: list[tuple[str, str | None]] | None = None,
) -> CreatableTopic:
    return CreatableTopic(
        named(name),
        partitions,
        replicas,
        [CreatableReplicaAssignment(index, brokers) for index, brokers in assignments or []],
        [CreatableTopicConfig(key, value) for key, value in configs or []],
    )


CREATIONS = {
    "defaults": [topic("n", -1, -1)],
    "exists": [topic("orders")],
    "exists before all else": [topic("orders", 0, 7, configs=[("nope", "1")])],
    "clash": [topic("a_b")],
    "no partitions": [topic("n", 0)],
    "negative partitions": [topic("n", -2)],
    "no replicas": [topic("n", 1, 0)],
    "negative replicas": [topic("n", 1, -2)],
    "too many replicas": [topic("n", 1, 2)],
    "empty name": [topic("")],
    "dot": [topic(".")],
    "dots": [topic("..")],
    "long name": [topic("x" * 250)],
    "space": [topic("a b")],
    "not ASCII": [topic("ä")],
    "named twice": [topic("d"), topic("d"), topic("e")],
    "named thrice and others": [topic("d"), topic("."), topic("d"), topic("d"), topic("e")],
    "assigned with numbers": [topic("n", 1, 1, [(0, [1])])],
    "assigned with partitions": [topic("n", 1, -1, [(0, [1])])],
    "assigned with replicas": [topic("n", -1, 1, [(0, [1])])],
    "assigned": [topic("n", -1, -1, [(1, [1]), (0, [1])])],
    "assigned from 1": [topic("n", -1, -1, [(1, [1])])],
    "assigned with a gap": [topic("n", -1, -1, [(0, [1]), (2, [1])])],
    "assigned negative": [topic("n", -1, -1, [(-1, [1])])],
    "assigned to nobody": [topic("n", -1, -1, [(0, [])])],
    "assigned to a stranger": [topic("n", -1, -1, [(0, [99])])],
    "assigned twice": [topic("n", -1, -1, [(0, [1]), (0, [1])])],
    "assigned to one twice": [topic("n", -1, -1, [(0, [1, 1])])],
    "unknown key": [topic("n", configs=[("nope", "1")])],
    "empty key": [topic("n", configs=[("", "1")])],
    "key with a space": [topic("n", configs=[(" retention.ms", "1")])],
    "no value": [topic("n", configs=[("retention.ms", None)])],
    "no number": [topic("n", configs=[("retention.ms", "abc")])],
    "empty number": [topic("n", configs=[("retention.ms", "")])],
    "number with spaces": [topic("n", configs=[("retention.ms", " 5 ")])],
    "number with a sign": [topic("n", configs=[("segment.bytes", "+1048576")])],
    "number with underscores": [topic("n", configs=[("segment.bytes", "1_048_576")])],
    "hexadecimal": [topic("n", configs=[("segment.bytes", "0x200000")])],
    "fraction": [topic("n", configs=[("segment.bytes", "1048576.0")])],
    "below": [topic("n", configs=[("retention.ms", "-5")])],
    "small segment": [topic("n", configs=[("segment.bytes", "99")])],
    "above int": [topic("n", configs=[("segment.bytes", "99999999999")])],
    "key twice": [topic("n", configs=[("retention.ms", "x"), ("retention.ms", "2")])],
    "wrong choice": [topic("n", configs=[("message.timestamp.type", "createtime")])],
    "choice with a space": [topic("n", configs=[("message.timestamp.type", " CreateTime")])],
    "upper-case boolean": [topic("n", configs=[("preallocate", "FALSE")])],
    "no boolean": [topic("n", configs=[("preallocate", "maybe")])],
    "no replicas in sync": [topic("n", configs=[("min.insync.replicas", "0")])],
    "many replicas in sync": [topic("n", configs=[("min.insync.replicas", "99")])],
    "any size kept": [topic("n", configs=[("retention.bytes", "-99")])],
    "tiered": [topic("n", configs=[("remote.storage.enable", "true")])],
    "nothing": [],
}


@pytest.mark.parametrize("case", CREATIONS)
def test_creations_are_validated_alike(both: Both, case: str) -> None:
    def request(_: Ask) -> Message:
        return CreateTopicsRequest(CREATIONS[case], TIMEOUT_MS, validate_only=True)

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, CreateTopicsResponse)
        return sorted(
            (each.name, each.error_code, each.num_partitions, each.replication_factor)
            for each in answer.topics
        )

    for version in (5, 7):
        kafka, tarry = both.answers(api_keys.CREATE_TOPICS, version, request)
        assert shape(tarry) == shape(kafka)


def test_a_creation_tells_the_same_settings(both: Both) -> None:
    def request(_: Ask) -> Message:
        wanted = topic("n", configs=[("retention.ms", "7"), ("max.message.bytes", "9")])
        return CreateTopicsRequest([wanted], TIMEOUT_MS, validate_only=True)

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, CreateTopicsResponse)
        return sorted(
            (each.name, each.value, each.config_source == 1, each.read_only, each.is_sensitive)
            for each in answer.topics[0].configs or []
            # The Kafka of these tests has another value in its file.
            if each.name != "file.delete.delay.ms" and not each.name.startswith(TARRYS_OWN)
        )

    kafka, tarry = both.answers(api_keys.CREATE_TOPICS, 7, request)

    assert shape(tarry) == shape(kafka)


# -- DeleteTopics


def id_of(ask: Ask, name: str) -> bytes:
    """The id of a topic; Kafka's broker hears of it a moment after the answer to its creation."""
    request = MetadataRequest([MetadataRequestTopic(name=named(name))])
    for _ in tries():
        answer = ask(api_keys.METADATA, 12, request)
        assert isinstance(answer, MetadataResponse)
        if answer.topics[0].topic_id != ZERO_UUID:
            return answer.topics[0].topic_id
    raise AssertionError(f"no broker has told the id of {name}")


# Names, "#name" for the id of that topic, "?" for an unknown id, "" for neither.
DELETIONS = {
    "unknown name": ["nope"],
    "unknown id": ["?"],
    "neither": [""],
    "both": ["orders#orders"],
    "a name twice": ["orders", "orders"],
    "an id twice": ["#orders", "#orders"],
    "a name and its id": ["orders", "#orders"],
    "an invalid name": ["a b"],
    "an unknown name twice": ["nope", "nope"],
    "nothing": [],
}


@pytest.mark.parametrize("case", DELETIONS)
def test_deletions_are_refused_alike(both: Both, case: str) -> None:
    def request(ask: Ask) -> Message:
        topics = []
        for entry in DELETIONS[case]:
            name, _, of = entry.partition("#")
            topic_id = id_of(ask, of) if of else bytes(16)
            if entry == "?":
                name, topic_id = "", b"?" * 16
            topics.append(DeleteTopicState(named(name) if name else None, topic_id))
        return DeleteTopicsRequest(topics, timeout_ms=TIMEOUT_MS)

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, DeleteTopicsResponse)
        return sorted((short(each.name) or "", each.error_code) for each in answer.responses)

    kafka, tarry = both.answers(api_keys.DELETE_TOPICS, 6, request)

    assert shape(tarry) == shape(kafka)


def test_topics_are_deleted_alike(both: Both) -> None:
    def create(_: Ask) -> Message:
        return CreateTopicsRequest([topic("x1"), topic("x2"), topic("x3")], TIMEOUT_MS)

    def by_name(_: Ask) -> Message:
        return DeleteTopicsRequest(
            topic_names=[named("x1"), named("x2"), named("x2"), named("nope")],
            timeout_ms=TIMEOUT_MS,
        )

    def by_id(ask: Ask) -> Message:
        return DeleteTopicsRequest(
            [DeleteTopicState(topic_id=id_of(ask, "x2")), DeleteTopicState(name=named("x3"))],
            timeout_ms=TIMEOUT_MS,
        )

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, DeleteTopicsResponse)
        return sorted(
            (short(each.name), each.error_code, any(each.topic_id)) for each in answer.responses
        )

    both.answers(api_keys.CREATE_TOPICS, 7, create)
    kafka, tarry = both.answers(api_keys.DELETE_TOPICS, 5, by_name)
    assert shape(tarry) == shape(kafka)
    kafka, tarry = both.answers(api_keys.DELETE_TOPICS, 6, by_id)
    assert shape(tarry) == shape(kafka)


# -- Metadata


@pytest.mark.parametrize("version", range(14))
def test_topics_are_told_alike_by_name(both: Both, version: int) -> None:
    def request(_: Ask) -> Message:
        names = ["orders", "nope", "a b", "", "orders", "a.b"]
        return MetadataRequest(
            [MetadataRequestTopic(name=named(name)) for name in names],
            allow_auto_topic_creation=version < 4,
            include_topic_authorized_operations=version >= 8,
            include_cluster_authorized_operations=8 <= version <= 10,
        )

    kafka, tarry = both.answers(api_keys.METADATA, version, request)

    assert shape_metadata(tarry) == shape_metadata(kafka)


@pytest.mark.parametrize("version", range(10, 14))
def test_topics_are_told_alike_by_id(both: Both, version: int) -> None:
    def request(ask: Ask) -> Message:
        return MetadataRequest(
            [
                MetadataRequestTopic(id_of(ask, "orders"), None),
                MetadataRequestTopic(b"?" * 16, None),
            ],
            allow_auto_topic_creation=False,
        )

    kafka, tarry = both.answers(api_keys.METADATA, version, request)

    assert shape_metadata(tarry) == shape_metadata(kafka)


def shape_metadata(answer: Message) -> list[object]:
    assert isinstance(answer, MetadataResponse)
    topics = sorted(
        (
            short(each.name) or "",
            each.error_code,
            any(each.topic_id),
            each.is_internal,
            # Kafka has bits of access for a topic that is not there.
            each.topic_authorized_operations if each.error_code == 0 else None,
            sorted(
                (part.error_code, part.partition_index, part.leader_id, part.leader_epoch)
                for part in each.partitions
            ),
        )
        for each in answer.topics
    )
    return [
        topics,
        [(node.node_id, node.rack) for node in answer.brokers],
        (answer.cluster_id is None, answer.controller_id, answer.error_code),
        answer.cluster_authorized_operations,
    ]


# -- DescribeTopicPartitions


PAGES: dict[str, tuple[list[str], int, tuple[str, int] | None]] = {
    "all of some": (["orders", "nope", "bills", "orders"], 2_000, None),
    "a part": (["orders", "bills"], 4, None),
    "from a cursor": (["orders", "bills", "a.b"], 4, ("bills", 2)),
    "from past the end": (["orders", "bills"], 2_000, ("bills", 5)),
    "a whole topic": (["orders", "bills"], 3, None),
    "none": (["orders"], 0, None),
    "fewer than none": (["orders"], -1, None),
    "a strange cursor": (["orders"], 5, ("nope", 0)),
    "a negative cursor": (["orders"], 5, ("orders", -1)),
    "an unknown topic next": (["bills", "nope"], 3, None),
    "from an unknown topic": (["bills", "nope"], 3, ("nope", 0)),
}


@pytest.mark.parametrize("case", PAGES)
def test_pages_of_partitions_are_alike(both: Both, case: str) -> None:
    names, limit, cursor = PAGES[case]

    def request(_: Ask) -> Message:
        return DescribeTopicPartitionsRequest(
            [TopicRequest(named(name)) for name in names],
            limit,
            None if cursor is None else Cursor(named(cursor[0]), cursor[1]),
        )

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, DescribeTopicPartitionsResponse)
        after = answer.next_cursor
        topics = [
            (
                each.name,
                each.error_code,
                [
                    (part.partition_index, part.eligible_leader_replicas, part.last_known_elr)
                    for part in each.partitions
                ],
            )
            for each in answer.topics
        ]
        return [topics, None if after is None else (after.topic_name, after.partition_index)]

    kafka, tarry = both.answers(api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, request)

    assert shape(tarry) == shape(kafka)


# -- DescribeConfigs


def ask_configs(
    both: Both, version: int, resource_type: int, name: str, keys: list[str] | None
) -> Answers:
    def request(_: Ask) -> Message:
        return DescribeConfigsRequest([DescribeConfigsResource(resource_type, name, keys)])

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, DescribeConfigsResponse)
        (result,) = answer.results
        entries = sorted(
            (each.name, each.value, each.config_source == 1, each.is_sensitive, each.config_type)
            for each in result.configs
            if each.name != "file.delete.delay.ms" and not each.name.startswith(TARRYS_OWN)
        )
        return [result.error_code, result.resource_type, result.resource_name, entries]

    kafka, tarry = both.answers(api_keys.DESCRIBE_CONFIGS, version, request)
    return shape(kafka), shape(tarry)


@pytest.mark.parametrize("version", range(1, 5))
def test_all_settings_of_a_topic_are_told_alike(both: Both, version: int) -> None:
    kafka, tarry = ask_configs(both, version, 2, named("orders"), None)

    assert tarry == kafka


@pytest.mark.parametrize(
    ("resource_type", "name", "keys"),
    [
        (2, "orders", ["retention.ms", "nope", "retention.ms"]),
        (2, "orders", []),
        (2, "nope", None),
        (2, "a b", None),
        (2, "", None),
        (4, "1", ["node.id", "log.segment.bytes", "message.max.bytes"]),
        (4, "2", None),
        (4, "x", None),
        (8, "", None),
        (99, "x", None),
        (0, "x", None),
    ],
)
def test_resources_are_found_alike(
    both: Both, resource_type: int, name: str, keys: list[str] | None
) -> None:
    kafka, tarry = ask_configs(
        both, 4, resource_type, named(name) if resource_type == 2 else name, keys
    )

    assert tarry == kafka


# -- DescribeCluster and InitProducerId


@pytest.mark.parametrize(("version", "endpoint_type"), [(0, 1), (1, 1), (1, 2), (2, 1), (2, 3)])
def test_clusters_are_described_alike(both: Both, version: int, endpoint_type: int) -> None:
    def request(_: Ask) -> Message:
        return DescribeClusterRequest(True, endpoint_type, version == 2)

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, DescribeClusterResponse)
        return [
            answer.error_code,
            answer.endpoint_type,
            answer.controller_id,
            len(answer.cluster_id),
            [(node.broker_id, node.is_fenced) for node in answer.brokers],
            answer.cluster_authorized_operations,
        ]

    kafka, tarry = both.answers(api_keys.DESCRIBE_CLUSTER, version, request)

    assert shape(tarry) == shape(kafka)


@pytest.mark.parametrize(
    ("producer_id", "epoch"), [(-1, -1), (5, 3), (5, 32767), (-5, 3), (5, -1), (-1, 3), (-1, 0)]
)
def test_producer_ids_are_given_alike(both: Both, producer_id: int, epoch: int) -> None:
    def request(_: Ask) -> Message:
        return InitProducerIdRequest(None, 60_000, producer_id, epoch)

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, InitProducerIdResponse)
        return [answer.error_code, answer.producer_id >= 0, answer.producer_epoch]

    kafka, tarry = both.answers(api_keys.INIT_PRODUCER_ID, 5, request)
    while getattr(kafka, "error_code", 0) == 14:
        # Kafka is still asking its controller for the first block.
        kafka, tarry = both.answers(api_keys.INIT_PRODUCER_ID, 5, request)

    assert shape(tarry) == shape(kafka)
