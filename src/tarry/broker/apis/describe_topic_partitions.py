"""DescribeTopicPartitions (key 75, KIP-966): topics page by page, in the order of their names.

An answer has a limited number of partitions; `next_cursor` says where the next page begins.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.metadata.cluster_view import TOPIC_OPERATIONS, ClusterView
from tarry.broker.once import ELEMENTS_PER_UNIT, once
from tarry.broker.request import RequestContext
from tarry.cluster.state.scheduled_topics import readable_topic
from tarry.cluster.state.state import TopicState
from tarry.cluster.state.topic_names import is_internal, name_fault
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def handle(
    long_answers: LongAnswers,
    view: ClusterView,
    settings: Settings,
    context: RequestContext,
    request: DescribeTopicPartitionsRequest,
) -> Message | None:
    """Describe the topics asked for, or all of them, from the cursor on."""
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, view, settings, request))


def _steps(
    answer: LongAnswer,
    view: ClusterView,
    settings: Settings,
    request: DescribeTopicPartitionsRequest,
) -> Iterator[int]:
    asked = once(topic.name for topic in request.topics)
    yield len(request.topics) // ELEMENTS_PER_UNIT
    cursor = request.cursor
    if cursor is not None and (
        cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)
    ):
        answer.open(DescribeTopicPartitionsResponse())
        for name in asked:
            answer.add(_refused(name, errors.INVALID_REQUEST))
            yield 1
        return
    names = sorted(asked or view.state.topics)
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    yield len(names) // ELEMENTS_PER_UNIT
    limit = min(request.response_partition_limit, settings.max_request_partition_size_limit)
    yield from _page(answer, view, names, cursor, max(limit, 1))


def _page(
    answer: LongAnswer, view: ClusterView, names: list[str], cursor: Cursor | None, limit: int
) -> Iterator[int]:
    """Describe at most `limit` partitions of these topics."""
    pages, next_cursor = yield from _pages(view, names, cursor, limit)
    answer.open(DescribeTopicPartitionsResponse(next_cursor=next_cursor))
    for name, indexes in pages:
        topic = readable_topic(view.state, name)
        if topic is None:
            answer.add(_refused(name, _error_of(name)))
            yield 1
            continue
        answer.open(_described(topic))
        for index in indexes:
            # The topic may have been deleted and created again with fewer partitions meanwhile.
            if index < len(topic.partitions):
                answer.add(_partition(view, topic.hosted_name, index, topic.partitions[index]))
            yield 1
        answer.close()


def _pages(
    view: ClusterView, names: list[str], cursor: Cursor | None, left: int
) -> Generator[int, None, tuple[list[tuple[str, range]], Cursor | None]]:
    """Find in steps the partitions for which the answer has room, and the next page's cursor."""
    pages: list[tuple[str, range]] = []
    for number, name in enumerate(names):
        if number % ELEMENTS_PER_UNIT == 0:
            yield 1
        if left == 0:
            return pages, Cursor(topic_name=name, partition_index=0)
        topic = readable_topic(view.state, name)
        count = 0 if topic is None else len(topic.partitions)
        start = 0
        if cursor is not None and cursor.topic_name == name and topic is not None:
            start = cursor.partition_index
        end = max(start, min(start + left, count))
        left -= end - start
        pages.append((name, range(start, end)))
        if end < count:
            return pages, Cursor(topic_name=name, partition_index=end)
    return pages, None


def _error_of(name: str) -> int:
    if name_fault(name):
        return errors.INVALID_TOPIC_EXCEPTION
    return errors.UNKNOWN_TOPIC_OR_PARTITION


def _refused(name: str, error_code: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=error_code, name=name, is_internal=is_internal(name)
    )


def _described(topic: TopicState) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
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
        # The last in-sync replicas stay in the row even if they are dead, so the row has KIP-966's
        # eligible leaders and needs no second list.
        eligible_leader_replicas=view.eligible(row),
        last_known_elr=[],
    )
