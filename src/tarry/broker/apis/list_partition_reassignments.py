"""ListPartitionReassignments (key 46): the reassignments that are under way (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import ELEMENTS_PER_UNIT, once_each
from tarry.broker.request import RequestContext
from tarry.cluster.state.state import ClusterState, TopicState, is_reassigned
from tarry.protocol.message import Message
from tarry.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(
    long_answers: LongAnswers,
    state: ClusterState,
    context: RequestContext,
    request: ListPartitionReassignmentsRequest,
) -> Message | None:
    """List the reassignments under way of the partitions asked for; null asks for all
    partitions.
    """
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, state, request))


def _steps(
    answer: LongAnswer, state: ClusterState, request: ListPartitionReassignmentsRequest
) -> Iterator[int]:
    answer.open(ListPartitionReassignmentsResponse())
    if request.topics is None:
        for topic in list(state.topics.values()):
            yield from _topic(answer, topic, range(len(topic.partitions)))
        return
    asked = yield from once_each(
        ((each.name, each.partition_indexes) for each in request.topics), int
    )
    for name, indexes in asked.items():
        named = state.topic(name)
        if named is not None:
            yield from _topic(answer, named, indexes)
        yield 1


def _topic(answer: LongAnswer, topic: TopicState, indexes: Iterable[int]) -> Iterator[int]:
    """Add a topic if any of these partitions is being reassigned."""
    count = len(topic.partitions)
    under_way = [
        index for index in indexes if 0 <= index < count and is_reassigned(topic.partitions[index])
    ]
    yield 1 + count // ELEMENTS_PER_UNIT
    if not under_way:
        return
    answer.open(OngoingTopicReassignment(name=topic.name))
    for index in under_way:
        row = topic.partitions[index]
        answer.add(
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=row.replicas,
                # A replica that an earlier reassignment added and the present one removes is listed
                # as removed.
                adding_replicas=[each for each in row.adding if each not in row.removing],
                removing_replicas=row.removing,
            )
        )
        yield 1
    answer.close()
