"""Requests that name each partition of a topic of thousands, in the order in which they are sent.

Unlike the largest requests that the schema allows, they find logs to append to, to read and to cut.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tarry.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tarry.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from tarry.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from tarry.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tarry.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tarry.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.records import BatchBuilder
from tarry.wire.reader import window_of

WIDE: Final = "wide"
# Of an idempotent producer, so that each partition has one to describe.
PRODUCER_ID: Final = 9


class WideRequest(NamedTuple):
    """A request, and what it asks of each partition."""

    label: str
    key: int
    version: int
    request: Message


def creation(count: int) -> CreateTopicsRequest:
    """Create the topic; its indexes are small, so that thousands of them fill no disk."""
    small = [CreatableTopicConfig("segment.index.bytes", "4096")]
    topic = CreatableTopic(WIDE, count, 1, configs=small)
    return CreateTopicsRequest([topic], timeout_ms=120_000)


def a_batch(sequence: int) -> bytes:
    builder = BatchBuilder()
    builder.append(time.time_ns() // 1_000_000, None, b"x" * 50)
    return builder.build(0, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=sequence)


def a_produce(count: int, acks: int, sequence: int) -> ProduceRequest:
    window = window_of(a_batch(sequence))
    rows = [PartitionProduceData(index, window) for index in range(count)]
    return ProduceRequest(None, acks, 30_000, [TopicProduceData(WIDE, partition_data=rows)])


def a_fetch(
    count: int, offset: int, *, wait_ms: int = 0, min_bytes: int = 1, replica_id: int = -1
) -> FetchRequest:
    rows = [
        FetchPartition(index, -1, offset, partition_max_bytes=1 << 20) for index in range(count)
    ]
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=50 << 20,
        topics=[FetchTopic(WIDE, partitions=rows)],
    )
    if replica_id >= 0:
        request.replica_state = ReplicaState(replica_id, 1)
    return request


def a_list_offsets(count: int, timestamp: int) -> ListOffsetsRequest:
    rows = [ListOffsetsPartition(index, -1, timestamp) for index in range(count)]
    return ListOffsetsRequest(-1, topics=[ListOffsetsTopic(WIDE, rows)])


def wide_requests(count: int, topic_id: bytes) -> Iterator[WideRequest]:
    """Make the requests for a topic of so many partitions; they build on each other."""
    each = range(count)
    for sequence, acks in enumerate((-1, 1, -1)):
        label = f"a batch each, acks={acks}"
        yield WideRequest(label, api_keys.PRODUCE, 12, a_produce(count, acks, sequence))
    again = a_produce(count, -1, 2)
    yield WideRequest("the same again", api_keys.PRODUCE, 12, again)
    yield WideRequest("all there is", api_keys.FETCH, 12, a_fetch(count, 0))
    end = a_fetch(count, 3, wait_ms=500)
    yield WideRequest("nothing new, 500 ms", api_keys.FETCH, 12, end)
    much = a_fetch(count, 0, wait_ms=500, min_bytes=1 << 30)
    yield WideRequest("more than there is, 500 ms", api_keys.FETCH, 12, much)
    stranger = a_fetch(count, 0, replica_id=1)
    stranger.topics[0].topic_id = topic_id
    yield WideRequest("as a replica", api_keys.FETCH, 17, stranger)
    follow = a_fetch(count, 0, replica_id=1)
    follow.topics[0].topic_id = topic_id
    follow.session_id, follow.session_epoch = 5, 1
    yield WideRequest("as a replica in a session", api_keys.FETCH, 17, follow)
    yield WideRequest("ends", api_keys.LIST_OFFSETS, 10, a_list_offsets(count, -1))
    yield WideRequest("by time", api_keys.LIST_OFFSETS, 10, a_list_offsets(count, 0))
    epochs = [OffsetForLeaderPartition(index, -1, 0) for index in each]
    yield WideRequest(
        "ends of an epoch",
        api_keys.OFFSET_FOR_LEADER_EPOCH,
        4,
        OffsetForLeaderEpochRequest(-2, [OffsetForLeaderTopic(WIDE, epochs)]),
    )
    names = MetadataRequest([MetadataRequestTopic(name=WIDE)])
    yield WideRequest("the topic", api_keys.METADATA, 12, names)
    rows = [OffsetCommitRequestPartition(index, 1) for index in each]
    topics = [OffsetCommitRequestTopic(WIDE, partitions=rows)]
    commit = OffsetCommitRequest("wide-group", topics=topics)
    yield WideRequest("an offset each", api_keys.OFFSET_COMMIT, 8, commit)
    one = OffsetFetchRequestGroup(
        "wide-group", topics=[OffsetFetchRequestTopics(WIDE, partition_indexes=list(each))]
    )
    fetch = OffsetFetchRequest(groups=[one])
    yield WideRequest("an offset each", api_keys.OFFSET_FETCH, 8, fetch)
    yield WideRequest("all topics", api_keys.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(None))
    sizes = DescribeLogDirsRequest([DescribableLogDirTopic(WIDE, list(each))])
    yield WideRequest("each partition", api_keys.DESCRIBE_LOG_DIRS, 4, sizes)
    producers = DescribeProducersRequest([TopicRequest(WIDE, list(each))])
    yield WideRequest("each partition", api_keys.DESCRIBE_PRODUCERS, 0, producers)
    cuts = [DeleteRecordsPartition(index, 1) for index in each]
    delete = DeleteRecordsRequest([DeleteRecordsTopic(WIDE, cuts)], timeout_ms=60_000)
    yield WideRequest("a record of each", api_keys.DELETE_RECORDS, 2, delete)
    gone = DeleteTopicsRequest([DeleteTopicState(WIDE)], timeout_ms=60_000)
    yield WideRequest("the topic", api_keys.DELETE_TOPICS, 6, gone)
