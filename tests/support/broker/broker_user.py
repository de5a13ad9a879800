"""A user of a broker by hand: requests in one call each, answers without their wrappings."""

from __future__ import annotations

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import (
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
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tarry.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tarry.records import BatchBuilder, Record, decode_records
from tarry.records.builder import Headers
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.wire.reader import Window, window_of

ORDERS = "orders"
# From these versions on, topics are named by their ids.
PRODUCE_BY_ID = 13
FETCH_BY_ID = 13


def a_batch(
    *values: bytes,
    times: tuple[int, ...] = (),
    codec: int = 0,
    producer_id: int = -1,
    epoch: int = 0,
    sequence: int = 0,
    attributes: int = 0,
    headers: tuple[Headers, ...] = (),
) -> bytes:
    """One batch; `times` are the records' timestamps, all the start's wall clock if not given."""
    builder = BatchBuilder()
    for index, value in enumerate(values):
        time = times[index] if times else START_WALL_MS
        builder.append(time, None, value, headers[index] if headers else None)
    if producer_id < 0:
        return builder.build(codec, attributes=attributes)
    return builder.build(
        codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=attributes,
    )


class User:
    """One connection, and short words for what is asked over it."""

    def __init__(self, hand: BrokerByHand) -> None:
        self.hand = hand
        self.client = hand.connect()

    def topic_id(self, topic: str = ORDERS) -> bytes:
        return self.hand.broker.topics[topic].topic_id

    def answers(self) -> list[Message]:
        return self.client.answers()

    # --- Topics.

    def create(self, topic: str, partitions: int = 1, **configs: str) -> None:
        """Keys of settings have underscores for dots."""
        settings = [
            CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        wanted = CreatableTopic(
            name=topic, num_partitions=partitions, replication_factor=1, configs=settings
        )
        request = CreateTopicsRequest(topics=[wanted], timeout_ms=5_000)
        response = self.client.ask(api_keys.CREATE_TOPICS, 7, request)
        assert isinstance(response, CreateTopicsResponse)
        assert response.topics[0].error_code == errors.NONE, response.topics[0].error_message

    def send_delete(self, topic: str = ORDERS) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=5_000)
        self.client.send(api_keys.DELETE_TOPICS, 6, request)

    def delete(self, topic: str = ORDERS) -> None:
        self.send_delete(topic)
        self.hand.settle()
        (response,) = self.answers()
        assert isinstance(response, DeleteTopicsResponse)
        assert response.responses[0].error_code == errors.NONE

    # --- Produce.

    def produce_request(
        self,
        *batches: bytes | None,
        topic: str = ORDERS,
        version: int = 11,
        acks: int = -1,
        timeout_ms: int = 30_000,
        indexes: tuple[int, ...] = (),
    ) -> ProduceRequest:
        """A batch to each partition from 0 on, or to those of `indexes`."""
        data = [
            PartitionProduceData(
                index=indexes[at] if indexes else at,
                records=window_of(batch) if batch is not None else None,
            )
            for at, batch in enumerate(batches)
        ]
        asked = TopicProduceData(partition_data=data)
        if version >= PRODUCE_BY_ID:
            asked.topic_id = self.topic_id(topic)
        else:
            asked.name = topic
        return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[asked])

    def send_produce(self, batch: bytes, *, version: int = 11, **terms: object) -> None:
        request = self.produce_request(batch, version=version, **terms)  # type: ignore[arg-type]
        self.client.send(api_keys.PRODUCE, version, request)

    def produce(
        self, batch: bytes, *, version: int = 11, **terms: object
    ) -> PartitionProduceResponse:
        """To partition 0, until it is answered."""
        request = self.produce_request(batch, version=version, **terms)  # type: ignore[arg-type]
        return produced(self.client.ask(api_keys.PRODUCE, version, request))[0]

    # --- Fetch.

    def fetch_request(
        self,
        *offsets: int,
        topic: str = ORDERS,
        topic_id: bytes = b"",
        version: int = 12,
        epoch: int = -1,
        last_epoch: int = -1,
        max_wait_ms: int = 0,
        min_bytes: int = 1,
        max_bytes: int = 1 << 30,
        partition_bytes: int = 1 << 20,
        indexes: tuple[int, ...] = (),
    ) -> FetchRequest:
        """From each partition from 0 on, or from those of `indexes`."""
        partitions = [
            FetchPartition(
                partition=indexes[at] if indexes else at,
                fetch_offset=offset,
                partition_max_bytes=partition_bytes,
                current_leader_epoch=epoch,
                last_fetched_epoch=last_epoch,
            )
            for at, offset in enumerate(offsets)
        ]
        asked = FetchTopic(partitions=partitions)
        if version >= FETCH_BY_ID:
            asked.topic_id = topic_id or self.topic_id(topic)
        else:
            asked.topic = topic
        request = FetchRequest(
            max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=[asked]
        )
        if version <= 14:
            request.replica_id = -1
        return request

    def send_fetch(self, *offsets: int, version: int = 12, **terms: object) -> None:
        request = self.fetch_request(*offsets, version=version, **terms)  # type: ignore[arg-type]
        self.client.send(api_keys.FETCH, version, request)

    def fetch(self, *offsets: int, version: int = 12, **terms: object) -> PartitionData:
        """The first partition's answer."""
        return self.fetch_all(*offsets, version=version, **terms)[0]

    def fetch_all(self, *offsets: int, version: int = 12, **terms: object) -> list[PartitionData]:
        request = self.fetch_request(*offsets, version=version, **terms)  # type: ignore[arg-type]
        return fetched(self.client.ask(api_keys.FETCH, version, request))

    # --- Offsets.

    def list_offsets(
        self, timestamp: int, *, topic: str = ORDERS, version: int = 10, epoch: int = -1
    ) -> ListOffsetsPartitionResponse:
        asked = ListOffsetsPartition(
            partition_index=0, current_leader_epoch=epoch, timestamp=timestamp
        )
        return self.list_offsets_of([asked], topic=topic, version=version)[0]

    def send_list_offsets(self, timestamp: int) -> None:
        asked = ListOffsetsPartition(
            partition_index=0, current_leader_epoch=-1, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=ORDERS, partitions=[asked])]
        )
        self.client.send(api_keys.LIST_OFFSETS, 10, request)

    def list_offsets_of(
        self, asked: list[ListOffsetsPartition], *, topic: str = ORDERS, version: int = 10
    ) -> list[ListOffsetsPartitionResponse]:
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)]
        )
        response = self.client.ask(api_keys.LIST_OFFSETS, version, request)
        assert isinstance(response, ListOffsetsResponse)
        return response.topics[0].partitions

    def end_of_epoch(
        self, epoch: int, *, current: int = -1, topic: str = ORDERS, index: int = 0
    ) -> EpochEndOffset:
        asked = OffsetForLeaderPartition(
            partition=index, current_leader_epoch=current, leader_epoch=epoch
        )
        request = OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
        )
        response = self.client.ask(api_keys.OFFSET_FOR_LEADER_EPOCH, 4, request)
        assert isinstance(response, OffsetForLeaderEpochResponse)
        return response.topics[0].partitions[0]


def produced(answer: Message) -> list[PartitionProduceResponse]:
    """The partitions of a produce's answer with one topic."""
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses


def fetched(answer: Message) -> list[PartitionData]:
    """The partitions of a fetch's answer with one topic."""
    assert isinstance(answer, FetchResponse)
    assert answer.error_code == errors.NONE
    return answer.responses[0].partitions


def records_in(partition: PartitionData) -> list[Record]:
    """The records of whole batches, their CRC checked."""
    window = partition.records
    assert isinstance(window, Window)
    found: list[Record] = []
    position = window.start
    while position < window.end:
        found += decode_records(window.data, size_max=1 << 26, position=position)
        position += int.from_bytes(window.data[position + 8 : position + 12], "big") + 12
    assert position == window.end
    return found


def values_in(partition: PartitionData) -> list[bytes | None]:
    return [record.value for record in records_in(partition)]
