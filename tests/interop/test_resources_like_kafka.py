"""DescribeProducers, ListConfigResources, settings with their synonyms, and what Kafka answers
without the new consumer protocol: the same to Apache Kafka 4.4 and to Tarry, field by field.

Error codes, order and numbers are compared; sentences are our own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from tarry.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tarry.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tarry.records import BatchBuilder
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.reader import window_of

TOPIC = f"{RUN}-written"
TIME_MS = 1_700_000_000_000

# For Kafka's controller on a machine that does other work besides.
TIMEOUT_MS = PATIENCE_S * 1_000

# Kafka's keys of settings that its ELR feature or the file of these tests sets.
OTHER_KEYS = ("min.insync.replicas", "file.delete.delay.ms")


@pytest.fixture(scope="module")
def both(apache_kafka: str) -> Iterator[Both]:
    connection = KafkaConnection(apache_kafka)
    tarry = BrokerByHand()
    pair = Both(connection.ask, tarry.connect().ask)
    pair.answers(
        api_keys.CREATE_TOPICS,
        7,
        lambda _: CreateTopicsRequest([CreatableTopic(TOPIC, 2, 1)], TIMEOUT_MS),
    )
    wait_until_led(connection.ask, TOPIC)
    yield pair
    connection.close()


# -- DescribeProducers


def batch(producer_id: int, epoch: int, sequence: int, count: int) -> bytes:
    builder = BatchBuilder()
    for number in range(count):
        builder.append(TIME_MS + number, None, b"v")
    return builder.build(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def produce(ask: Ask, records: bytes) -> None:
    data = [PartitionProduceData(index=0, records=window_of(records))]
    request = ProduceRequest(
        acks=-1, timeout_ms=TIMEOUT_MS, topic_data=[TopicProduceData(TOPIC, partition_data=data)]
    )
    error_code = -1
    # Kafka has made the topic and does not lead it yet.
    while error_code in (-1, 3, 6):
        answer = ask(api_keys.PRODUCE, 11, request)
        assert isinstance(answer, ProduceResponse)
        error_code = answer.responses[0].partition_responses[0].error_code
    assert error_code == 0


def test_producers_are_told_alike(both: Both) -> None:
    for ask in (both.kafka, both.tarry):
        produce(ask, batch(1_000_001, 0, 0, 3))
        produce(ask, batch(1_000_002, 4, 0, 1))
        produce(ask, batch(1_000_001, 0, 3, 2))

    def request(_: Ask) -> Message:
        return DescribeProducersRequest(
            [
                TopicRequest(TOPIC, [0, 1, 2, -1]),
                TopicRequest(f"{RUN}-nope", [0]),
                TopicRequest("a b", [0]),
                TopicRequest("", [0]),
            ]
        )

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, DescribeProducersResponse)
        return [
            (topic.name, each.partition_index, each.error_code, producers_of(each))
            for topic in answer.topics
            for each in topic.partitions
        ]

    def producers_of(partition: Any) -> list[object]:
        return sorted(
            (
                each.producer_id,
                each.producer_epoch,
                each.last_sequence,
                each.last_timestamp,
                each.coordinator_epoch,
                each.current_txn_start_offset,
            )
            for each in partition.active_producers
        )

    kafka, tarry = both.answers(api_keys.DESCRIBE_PRODUCERS, 0, request)

    assert shape(tarry) == shape(kafka)
    assert isinstance(tarry, DescribeProducersResponse)
    assert len(tarry.topics[0].partitions[0].active_producers) == 2


# -- ListConfigResources


@pytest.mark.parametrize(
    ("version", "types"),
    [(0, [])]
    + [
        (1, types) for types in ([], [2], [4], [8], [16], [32], [2, 4], [2, 2], [99], [2, 99], [-1])
    ],
)
def test_what_has_settings_is_listed_alike(both: Both, version: int, types: list[int]) -> None:
    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, ListConfigResourcesResponse)
        found = sorted(
            (each.resource_type, each.resource_name)
            for each in answer.config_resources
            # Other tests have topics on the same Kafka, and may have set what groups have.
            if each.resource_type != 2 or each.resource_name == TOPIC
            if each.resource_type not in (16, 32)
        )
        return [answer.error_code, found]

    kafka, tarry = both.answers(
        api_keys.LIST_CONFIG_RESOURCES, version, lambda _: ListConfigResourcesRequest(types)
    )

    assert shape(tarry) == shape(kafka)


# -- Settings with what stands behind them


def entries(answer: Message) -> list[object]:
    assert isinstance(answer, DescribeConfigsResponse)
    (result,) = answer.results
    told = sorted(
        (
            each.name,
            each.value,
            each.config_source,
            each.config_type,
            each.is_sensitive,
            [(one.name, one.value, one.source) for one in each.synonyms],
        )
        for each in result.configs
        if each.name not in OTHER_KEYS and not each.name.startswith(TARRYS_OWN)
    )
    return [result.error_code, result.resource_type, result.resource_name, told]


def describe(resource_type: int, name: str, keys: list[str] | None = None) -> Message:
    resource = DescribeConfigsResource(resource_type, name, keys)
    return DescribeConfigsRequest([resource], include_synonyms=True)


@pytest.mark.parametrize(
    ("resource_type", "name"),
    [(32, f"{RUN}-nobody"), (32, ""), (16, f"{RUN}-metrics"), (16, "")],
    # The names differ from process to process, and all workers must collect the same tests.
    ids=["group", "group without a name", "client metrics", "client metrics without a name"],
)
def test_groups_and_client_metrics_that_nobody_knows_have_settings_alike(
    both: Both, resource_type: int, name: str
) -> None:
    kafka, tarry = both.answers(
        api_keys.DESCRIBE_CONFIGS, 4, lambda _: describe(resource_type, name)
    )

    assert entries(tarry) == entries(kafka)


KEYS_WITH_OTHERS_BEHIND = [
    "log.retention.ms",
    "log.retention.minutes",
    "log.retention.hours",
    "log.roll.ms",
    "log.roll.hours",
    "log.roll.jitter.ms",
    "log.roll.jitter.hours",
    "message.max.bytes",
]


def test_what_stands_behind_a_setting_is_told_alike(both: Both) -> None:
    kafka, tarry = both.answers(api_keys.DESCRIBE_CONFIGS, 4, lambda _: describe(2, TOPIC))

    assert entries(tarry) == entries(kafka)


def test_what_stands_behind_a_change_is_told_alike(both: Both) -> None:
    def change(operation: int) -> Message:
        return IncrementalAlterConfigsRequest(
            [
                AlterConfigsResource(4, "1", [AlterableConfig("log.retention.ms", operation, "7")]),
                AlterConfigsResource(4, "", [AlterableConfig("log.roll.ms", operation, "9000")]),
            ]
        )

    for answer in both.answers(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, lambda _: change(0)):
        assert isinstance(answer, IncrementalAlterConfigsResponse)
        assert [each.error_code for each in answer.responses] == [0, 0]
    try:
        for request in (
            describe(4, "1", KEYS_WITH_OTHERS_BEHIND),
            describe(2, TOPIC, ["retention.ms", "segment.ms", "segment.jitter.ms"]),
        ):
            tarry = both.tarry(api_keys.DESCRIBE_CONFIGS, 4, request)
            # Kafka's broker follows its controller, the value a little later than the rest.
            for _ in tries():
                kafka = both.kafka(api_keys.DESCRIBE_CONFIGS, 4, request)
                if entries(kafka) == entries(tarry):
                    break

            assert entries(tarry) == entries(kafka)
    finally:
        both.answers(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, lambda _: change(1))


# -- More replicas wanted than there are


def test_a_partition_needs_no_more_replicas_than_it_has_alike(both: Both) -> None:
    def shrink(operation: int) -> Message:
        key = AlterableConfig("min.insync.replicas", operation, "3")
        return IncrementalAlterConfigsRequest([AlterConfigsResource(2, TOPIC, [key])])

    both.answers(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, lambda _: shrink(0))

    for ask in (both.kafka, both.tarry):
        produce(ask, batch(1_000_003, 0, 0, 1))
    both.answers(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, lambda _: shrink(1))
