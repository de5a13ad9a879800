"""SyncGroup (key 14): the leader sends the assignment of a generation, other members fetch it."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.tickets import Asked
from tarry.broker.request import RequestContext
from tarry.group.classic.kind import CLASSIC
from tarry.group.classic.membership import decide_sync
from tarry.group.classic.requests import SyncAnswer, SyncRequest
from tarry.protocol.message import Message
from tarry.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

# KIP-559: from this version on the request gives type and name of the protocol.
VERSION_OF_PROTOCOLS: Final = 5


class AskedSync(Asked[SyncAnswer]):
    """A SyncGroup that waits for the leader's assignment."""

    def answer(self, answer: SyncAnswer) -> None:
        if answer.reason:
            self.context.report(f"SyncGroup: {answer.reason}", "metadata")
        self.context.respond(
            SyncGroupResponse(
                error_code=answer.error_code,
                protocol_type=answer.protocol_type,
                protocol_name=answer.protocol_name,
                assignment=answer.assignment,
            )
        )


def handle(
    coordinator: GroupCoordinator, context: RequestContext, request: SyncGroupRequest
) -> Message | None:
    """Decide now; the answer comes when the assignment is durable."""
    shard, error_code = coordinator.find_named(request.group_id)
    if error_code == errors.COORDINATOR_LOAD_IN_PROGRESS:
        # The member's generation may be lost with the crash, so it joins again, as in Kafka.
        error_code = errors.REBALANCE_IN_PROGRESS
    if shard is None:
        return SyncGroupResponse(error_code=error_code)
    if context.api_version >= VERSION_OF_PROTOCOLS and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return SyncGroupResponse(error_code=errors.INCONSISTENT_GROUP_PROTOCOL)
    group = shard.groups.of_kind(CLASSIC, request.group_id)
    if group is None:
        return SyncGroupResponse(error_code=errors.UNKNOWN_MEMBER_ID)
    asked = SyncRequest(
        coordinator.ticket(AskedSync(context)),
        request.member_id,
        request.group_instance_id,
        generation_id=request.generation_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments=tuple((each.member_id, each.assignment) for each in request.assignments),
    )
    shard.carry_out(group, decide_sync(group, asked, coordinator.moment()))
    return None
