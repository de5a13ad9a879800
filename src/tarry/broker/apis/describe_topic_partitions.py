"""DescribeTopicPartitions (key 75, KIP-966): topics page by page, in the order of their names.

An answer holds a limited number of partitions; `next_cursor` says where the next one begins.
"""

from __future__ import annotations

from tarry.base import errors
from tarry.base.settings import Settings
from tarry.broker.metadata.cluster_view import TOPIC_OPERATIONS, ClusterView
from tarry.broker.request import RequestContext
from tarry.cluster.records import PartitionRow
from tarry.cluster.state import TopicState
from tarry.cluster.topic_names import is_internal, name_fault
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(
    view: ClusterView,
    settings: Settings,
    context: RequestContext,
    request: DescribeTopicPartitionsRequest,
) -> Message | None:
    """Describe the topics asked for, or all of them, from the cursor on."""
    asked = {topic.name: None for topic in request.topics}
    cursor = request.cursor
    if cursor is not None and (
        cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)
    ):
        return DescribeTopicPartitionsResponse(
            topics=[_refused(name, errors.INVALID_REQUEST) for name in asked]
        )
    names = sorted(asked or view.state.topics)
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    limit = min(request.response_partition_limit, settings.max_request_partition_size_limit)
    return _page(view, names, cursor, max(limit, 1))


def _page(
    view: ClusterView, names: list[str], cursor: Cursor | None, left: int
) -> DescribeTopicPartitionsResponse:
    """Describe at most `left` partitions of these topics."""
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = view.state.topic(name)
        if topic is None:
            response.topics.append(_refused(name, _error_of(name)))
            continue
        start = 0
        if cursor is not None and cursor.topic_name == name:
            start = cursor.partition_index
        end = max(start, min(start + left, len(topic.partitions)))
        left -= end - start
        response.topics.append(_described(view, topic, range(start, end)))
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
    view: ClusterView, topic: TopicState, indexes: range
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[
            _partition(view, topic.name, index, topic.partitions[index]) for index in indexes
        ],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _partition(
    view: ClusterView, topic: str, index: int, row: PartitionRow
) -> DescribeTopicPartitionsResponsePartition:
    leader_id = view.leader(topic, index, row)
    return DescribeTopicPartitionsResponsePartition(
        error_code=errors.NONE if leader_id >= 0 else errors.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=leader_id,
        leader_epoch=row.leader_epoch,
        replica_nodes=row.replicas,
        isr_nodes=view.in_sync(row),
        offline_replicas=view.offline_replicas(topic, index, row),
        # The last in-sync replicas stay in the row though they are dead (KIP-966 without a second
        # list).
        eligible_leader_replicas=view.eligible(row),
        last_known_elr=[],
    )
