"""AlterPartitionReassignments (key 45): partitions get other replicas, or go back (KIP-455)."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.limits import PARTITIONS_PER_REQUEST_MAX
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.row_changes_asked import ask_for_rows
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.reassignments import ReassignmentWish
from tarry.protocol.message import Message
from tarry.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

# Before this version a reassignment may always change the number of replicas.
VERSION_OF_FACTOR: Final = 1


def handle(
    changes: MetadataChanges, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Message | None:
    """Begin, replace or cancel reassignments; each partition has an answer of its own."""
    may_change_factor = request.allow_replication_factor_change
    count = sum(len(topic.partitions) for topic in request.topics)
    if count > PARTITIONS_PER_REQUEST_MAX:
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=may_change_factor,
            error_code=errors.INVALID_REQUEST,
            error_message=f"one request names at most {PARTITIONS_PER_REQUEST_MAX} partitions",
        )
    asked: dict[tuple[str, int], list[ReassignablePartition]] = {}
    for topic in request.topics:
        for each in topic.partitions:
            asked.setdefault((topic.name, each.partition_index), []).append(each)
    wishes: dict[tuple[str, int], ReassignmentWish] = {}
    for place, (first, *others) in asked.items():
        wish = ReassignmentWish(
            *place, first.replicas, changes.settings, may_change_factor=may_change_factor
        )
        if others:
            wish.refuse(errors.INVALID_REQUEST, "this partition is named twice")
        wishes[place] = wish
    # Wishes that were not refused here; their answers are known once the change was decided.
    looked_at = [wish for wish in wishes.values() if wish.error_code == errors.NONE]

    def respond() -> Message:
        return _response(request, wishes)

    return ask_for_rows(changes, context, [*looked_at], respond, request.timeout_ms)


def _response(
    request: AlterPartitionReassignmentsRequest, wishes: dict[tuple[str, int], ReassignmentWish]
) -> AlterPartitionReassignmentsResponse:
    by_topic: dict[str, list[ReassignablePartitionResponse]] = {}
    for wish in wishes.values():
        by_topic.setdefault(wish.topic, []).append(
            ReassignablePartitionResponse(
                partition_index=wish.index, error_code=wish.error_code, error_message=wish.message
            )
        )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            ReassignableTopicResponse(name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ],
    )
