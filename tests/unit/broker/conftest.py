"""What the broker's tests ask with: a broker by hand with a topic, and short requests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.records import BatchBuilder
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand, ClientByHand
from tarry.wire.reader import window_of

# For `broker_user`, the module beside this one.


def make_batch(*values: bytes, producer_id: int = -1, sequence: int = -1, codec: int = 0) -> bytes:
    """One batch of records with these values."""
    builder = BatchBuilder()
    for value in values:
        builder.append(START_WALL_MS, None, value)
    return builder.build(
        codec,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
    )


def make_produce(
    batch: bytes, topic: str = "orders", *, acks: int = -1, timeout_ms: int = 30_000
) -> ProduceRequest:
    """A produce of one batch to partition 0."""
    data = [PartitionProduceData(index=0, records=window_of(batch))]
    return ProduceRequest(
        acks=acks, timeout_ms=timeout_ms, topic_data=[TopicProduceData(topic, partition_data=data)]
    )


def make_fetch(
    offset: int,
    topic: str = "orders",
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
) -> FetchRequest:
    """A fetch from partition 0."""
    partition = FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=-1
    )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def create_topic(client: ClientByHand, name: str, partitions: int = 1, **configs: str) -> None:
    """Create a topic; keys of settings with underscores for dots."""
    settings = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=1, configs=settings
            )
        ],
        timeout_ms=1_000,
    )
    response = client.ask(api_keys.CREATE_TOPICS, 7, request)
    assert isinstance(response, CreateTopicsResponse)
    assert [topic.error_code for topic in response.topics] == [0], response.topics[0].error_message


@pytest.fixture
def batch() -> Callable[..., bytes]:
    return make_batch


@pytest.fixture
def produce() -> Callable[..., ProduceRequest]:
    return make_produce


@pytest.fixture
def fetch() -> Callable[..., FetchRequest]:
    return make_fetch


@pytest.fixture
def topic() -> Callable[..., None]:
    return create_topic


@pytest.fixture
def hand() -> BrokerByHand:
    """A broker with the topic `orders` of one partition."""
    hand = BrokerByHand()
    create_topic(hand.connect(), "orders")
    return hand
