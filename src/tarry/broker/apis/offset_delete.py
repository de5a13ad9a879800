"""OffsetDelete (key 47): offsets of topics that a group does not work on any more."""

from __future__ import annotations

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.tickets import Asked
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics
from tarry.group.offsets import decide_delete_offsets
from tarry.group.requests import CommitPartition, DeleteAnswer
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


class AskedOffsetDelete(Asked[DeleteAnswer]):
    """An OffsetDelete that waits for its tombstones."""

    def __init__(self, context: RequestContext, request: OffsetDeleteRequest) -> None:
        super().__init__(context)
        self.request = request

    def answer(self, answer: DeleteAnswer) -> None:
        if answer.error_code != errors.NONE:
            self.context.respond(OffsetDeleteResponse(error_code=answer.error_code))
            return
        codes = iter(answer.partition_error_codes)
        self.context.respond(
            OffsetDeleteResponse(
                topics=[
                    OffsetDeleteResponseTopic(
                        name=topic.name,
                        partitions=[
                            OffsetDeleteResponsePartition(
                                partition_index=each.partition_index, error_code=next(codes)
                            )
                            for each in topic.partitions
                        ],
                    )
                    for topic in self.request.topics
                ]
            )
        )

    def time_out(self) -> None:
        self.context.respond(OffsetDeleteResponse(error_code=errors.REQUEST_TIMED_OUT))


def handle(
    coordinator: GroupCoordinator,
    topics: Topics,
    context: RequestContext,
    request: OffsetDeleteRequest,
) -> Message | None:
    """Partitions that are not there are refused singly."""
    shard, error_code = coordinator.find_named(request.group_id)
    if shard is None:
        return OffsetDeleteResponse(error_code=error_code)
    partitions: list[CommitPartition] = []
    for topic in request.topics:
        hosted = topics.get(topic.name)
        for each in topic.partitions:
            is_there = hosted is not None and hosted.has(each.partition_index)
            code = errors.NONE if is_there else errors.UNKNOWN_TOPIC_OR_PARTITION
            partitions.append(CommitPartition(topic.name, each.partition_index, 0, error_code=code))
    ticket = coordinator.ticket(AskedOffsetDelete(context, request))
    group = shard.group(request.group_id)
    shard.carry_out(group, decide_delete_offsets(group, ticket, partitions, coordinator.moment()))
    return None
