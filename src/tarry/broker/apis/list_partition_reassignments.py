"""ListPartitionReassignments (key 46): which partitions are getting other replicas (KIP-455)."""

from __future__ import annotations

from collections.abc import Iterable

from tarry.broker.request import RequestContext
from tarry.cluster.state import ClusterState, TopicState, is_reassigned
from tarry.protocol.message import Message
from tarry.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(
    state: ClusterState, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> Message | None:
    """Tell of those that are under way, among the partitions asked for; null asks for all."""
    if request.topics is None:
        told = [_told(topic, range(len(topic.partitions))) for topic in state.topics.values()]
    else:
        asked: dict[str, dict[int, None]] = {}
        for each in request.topics:
            asked.setdefault(each.name, {}).update(dict.fromkeys(each.partition_indexes))
        told = [
            _told(topic, indexes)
            for name, indexes in asked.items()
            if (topic := state.topic(name)) is not None
        ]
    return ListPartitionReassignmentsResponse(topics=[topic for topic in told if topic.partitions])


def _told(topic: TopicState, indexes: Iterable[int]) -> OngoingTopicReassignment:
    count = len(topic.partitions)
    return OngoingTopicReassignment(
        name=topic.name,
        partitions=[
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=row.replicas,
                # One that an earlier reassignment has brought and that goes again only goes.
                adding_replicas=[each for each in row.adding if each not in row.removing],
                removing_replicas=row.removing,
            )
            for index in indexes
            if 0 <= index < count and is_reassigned(row := topic.partitions[index])
        ],
    )
