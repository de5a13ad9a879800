"""OffsetCommit (key 8): a group's offsets; the answer comes when they are durable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Final

from mypy_extensions import mypyc_attr

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.tickets import Asked
from tarry.broker.delayed.long_answers import LONG_REQUEST_ELEMENTS
from tarry.broker.request import RequestContext
from tarry.cluster.state.scheduled_topics import readable_topic
from tarry.cluster.state.state import ClusterState, TopicState
from tarry.group.offsets.decisions import decide_commit
from tarry.group.offsets.records import NO_TOPIC_ID
from tarry.group.offsets.requests import (
    CommitAnswer,
    CommitPartition,
    CommitRequest,
)
from tarry.protocol.message import ZERO_UUID, Message
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

# KIP-848: from this version on clients know GROUP_ID_NOT_FOUND.
VERSION_OF_GROUP_NOT_FOUND: Final = 9
# KIP-848: from this version on OffsetCommit and OffsetFetch name topics by their ids.
VERSION_OF_TOPIC_IDS: Final = 10

# Name and id of a topic as a request gives them: one of the two is empty.
AskedTopic = tuple[str, bytes]


@mypyc_attr(allow_interpreted_subclasses=True)
class AskedCommit(Asked[CommitAnswer]):
    """An OffsetCommit that waits for its records."""

    def __init__(self, context: RequestContext, request: OffsetCommitRequest) -> None:
        super().__init__(context)
        self.request = request

    def answer(self, answer: CommitAnswer) -> None:
        if answer.reason:
            self.context.report(f"OffsetCommit: {answer.reason}", "metadata")
        self.respond(iter(answer.partition_error_codes))

    def refuse(self, error_code: int) -> None:
        self.respond(repeat(error_code))

    def respond(self, codes: Iterator[int]) -> None:
        """Answer with an error code for each partition."""
        self.context.respond(_response(self.request, codes))


def handle(
    coordinator: GroupCoordinator,
    take_steps: Callable[[RequestContext, OffsetCommitRequest], Message | None],
    context: RequestContext,
    request: OffsetCommitRequest,
) -> Message | None:
    """Refuse each partition that does not exist, and append the offsets of the others.

    A commit of thousands of partitions is prepared in steps.
    """
    if context.elements > LONG_REQUEST_ELEMENTS:
        return take_steps(context, request)
    request.topics = _once(request.topics)
    shard, error_code = coordinator.find(request.group_id)
    if shard is None:
        return _response(request, repeat(error_code))
    unknown_code = code_of_unknown(context.api_version)
    partitions: list[CommitPartition] = []
    for topic in request.topics:
        known = known_topic(coordinator.cluster, topic.name, topic.topic_id)
        partitions.extend([checked(known, unknown_code, each) for each in topic.partitions])
    ticket = coordinator.ticket(AskedCommit(context, request))
    asked = commit_of(context, request, ticket, tuple(partitions))
    group = shard.group(request.group_id)
    shard.carry_out(group, decide_commit(group, asked, coordinator.moment()))
    return None


def known_topic(known: ClusterState, name: str, topic_id: bytes) -> TopicState | None:
    """Return the topic that a request names, which may be virtual; None if there is none."""
    found = known.topic(name) if topic_id == ZERO_UUID else known.topic_by_id(topic_id)
    return found if found is not None else readable_topic(known, name, topic_id)


def code_of_unknown(api_version: int) -> int:
    """Return the error for a topic that does not exist."""
    if api_version >= VERSION_OF_TOPIC_IDS:
        return errors.UNKNOWN_TOPIC_ID
    return errors.UNKNOWN_TOPIC_OR_PARTITION


def checked(
    known: TopicState | None, unknown_code: int, each: OffsetCommitRequestPartition
) -> CommitPartition:
    """Return a partition of the commit, with an error if the partition does not exist."""
    error_code = unknown_code
    if known is not None:
        is_there = 0 <= each.partition_index < len(known.partitions)
        error_code = errors.NONE if is_there else errors.UNKNOWN_TOPIC_OR_PARTITION
    return CommitPartition(
        "" if known is None else known.name,
        each.partition_index,
        each.committed_offset,
        each.committed_leader_epoch,
        each.committed_metadata,
        NO_TOPIC_ID if known is None else known.topic_id,
        error_code=error_code,
    )


def commit_of(
    context: RequestContext,
    request: OffsetCommitRequest,
    ticket: int,
    partitions: tuple[CommitPartition, ...],
) -> CommitRequest:
    """Return the commit in the form in which a group decides about it."""
    return CommitRequest(
        ticket,
        request.member_id,
        request.group_instance_id,
        generation_id=request.generation_id_or_member_epoch,
        partitions=partitions,
        retention_ms=request.retention_time_ms,
        knows_group_not_found=context.api_version >= VERSION_OF_GROUP_NOT_FOUND,
    )


def _once(topics: list[OffsetCommitRequestTopic]) -> list[OffsetCommitRequestTopic]:
    """Keep the last entry of each partition, as if the entries were committed in their order."""
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        return topics
    asked: dict[AskedTopic, dict[int, OffsetCommitRequestPartition]] = {}
    for topic in topics:
        key = (topic.name, topic.topic_id)
        rows = asked.get(key)
        if rows is None:
            rows = {}
            asked[key] = rows
        for each in topic.partitions:
            rows[each.partition_index] = each
    return [
        OffsetCommitRequestTopic(name, topic_id, list(rows.values()))
        for (name, topic_id), rows in asked.items()
    ]


def _response(request: OffsetCommitRequest, codes: Iterator[int]) -> OffsetCommitResponse:
    topics: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        rows = [
            OffsetCommitResponsePartition(each.partition_index, next(codes))
            for each in topic.partitions
        ]
        topics.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, rows))
    return OffsetCommitResponse(topics=topics)
