"""OffsetCommit (key 8): offsets into the log; answered when they are durable."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.tickets import Asked
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics
from tarry.group.offsets import decide_commit
from tarry.group.records import NO_TOPIC_ID
from tarry.group.requests import CommitAnswer, CommitPartition, CommitRequest
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

# KIP-848: from here on clients know GROUP_ID_NOT_FOUND.
VERSION_OF_GROUP_NOT_FOUND: Final = 9


class AskedCommit(Asked[CommitAnswer]):
    """An OffsetCommit that waits for its records."""

    def __init__(self, context: RequestContext, request: OffsetCommitRequest) -> None:
        super().__init__(context)
        self.request = request

    def answer(self, answer: CommitAnswer) -> None:
        self.context.respond(_response(self.request, list(answer.partition_error_codes)))

    def time_out(self) -> None:
        self.context.respond(refusal_of(self.request, errors.REQUEST_TIMED_OUT))


def handle(
    coordinator: GroupCoordinator,
    topics: Topics,
    context: RequestContext,
    request: OffsetCommitRequest,
) -> Message | None:
    """Partitions that are not there are refused singly; the others are appended."""
    shard, error_code = coordinator.find(request.group_id)
    if shard is None:
        return refusal_of(request, error_code)
    partitions: list[CommitPartition] = []
    for topic in request.topics:
        hosted = topics.get(topic.name)
        for each in topic.partitions:
            is_there = hosted is not None and hosted.has(each.partition_index)
            partitions.append(
                CommitPartition(
                    topic.name,
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata,
                    NO_TOPIC_ID if hosted is None else hosted.topic_id,
                    error_code=errors.NONE if is_there else errors.UNKNOWN_TOPIC_OR_PARTITION,
                )
            )
    asked = CommitRequest(
        coordinator.ticket(AskedCommit(context, request)),
        request.member_id,
        request.group_instance_id,
        generation_id=request.generation_id_or_member_epoch,
        partitions=tuple(partitions),
        retention_ms=request.retention_time_ms,
        knows_group_not_found=context.api_version >= VERSION_OF_GROUP_NOT_FOUND,
    )
    group = shard.group(request.group_id)
    shard.carry_out(group, decide_commit(group, asked, coordinator.moment()))
    return None


def refusal_of(request: OffsetCommitRequest, error_code: int) -> OffsetCommitResponse:
    """Make the answer that gives every partition this error."""
    count = sum(len(topic.partitions) for topic in request.topics)
    return _response(request, [error_code] * count)


def _response(request: OffsetCommitRequest, codes: list[int]) -> OffsetCommitResponse:
    topics: list[OffsetCommitResponseTopic] = []
    number = 0
    for topic in request.topics:
        rows: list[OffsetCommitResponsePartition] = []
        for each in topic.partitions:
            rows.append(
                OffsetCommitResponsePartition(
                    partition_index=each.partition_index, error_code=codes[number]
                )
            )
            number += 1
        topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=rows))
    return OffsetCommitResponse(topics=topics)
