"""DescribeTopicPartitions (key 75, KIP-966): topics page by page, in the order of their names.

An answer holds a limited number of partitions; `next_cursor` says where the next one begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.base import errors
from tarry.broker.cluster_answers import TOPIC_OPERATIONS, offline_replicas
from tarry.broker.request import RequestContext
from tarry.cluster.state import PartitionState, TopicState
from tarry.cluster.topic_names import is_internal, name_fault
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker


def handle(
    broker: Broker, context: RequestContext, request: DescribeTopicPartitionsRequest
) -> Message | None:
    """The topics asked for, or all of them, from the cursor on."""
    asked = {topic.name: None for topic in request.topics}
    cursor = request.cursor
    if cursor is not None and (
        cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)
    ):
        return DescribeTopicPartitionsResponse(
            topics=[_refused(name, errors.INVALID_REQUEST) for name in asked]
        )
    names = sorted(asked or broker.cluster.topics)
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    limit = min(request.response_partition_limit, broker.settings.max_request_partition_size_limit)
    return _page(broker, names, cursor, max(limit, 1))


def _page(
    broker: Broker, names: list[str], cursor: Cursor | None, left: int
) -> DescribeTopicPartitionsResponse:
    """At most `left` partitions of these topics."""
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = broker.cluster.topic(name)
        if topic is None:
            response.topics.append(_refused(name, _error_of(name)))
            continue
        start = 0
        if cursor is not None and cursor.topic_name == name:
            start = cursor.partition_index
        partitions = topic.partitions[start : start + left]
        left -= len(partitions)
        response.topics.append(_described(broker, topic, partitions))
        end = start + len(partitions)
        if end < len(topic.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return response


def _error_of(name: str) -> int:
    if name_fault(name):
        return errors.INVALID_TOPIC_EXCEPTION
    return errors.UNKNOWN_TOPIC_OR_PARTITION


def _refused(name: str, error_code: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error_code, name=name, is_internal=is_internal(name)
    )


def _described(
    broker: Broker, topic: TopicState, partitions: list[PartitionState]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                partition_index=partition.index,
                leader_id=partition.leader_id,
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                offline_replicas=offline_replicas(broker, topic.name, partition.index),
                # Eligible leader replicas are those that left the in-sync ones: none has.
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            for partition in partitions
        ],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )
