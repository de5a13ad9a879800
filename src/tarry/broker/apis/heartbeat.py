"""Heartbeat (key 12): a member shows that it is alive, and is told whether it must join again."""

from __future__ import annotations

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.request import RequestContext
from tarry.group.classic.kind import CLASSIC
from tarry.group.classic.membership import decide_heartbeat
from tarry.protocol.message import Message
from tarry.protocol.messages import heartbeat


def handle(
    coordinator: GroupCoordinator, context: RequestContext, request: heartbeat.HeartbeatRequest
) -> Message | None:
    """Answer at once, in every case."""
    shard, error_code = coordinator.find_named(request.group_id)
    if error_code == errors.COORDINATOR_LOAD_IN_PROGRESS:
        # The member is not loaded yet, and begins a fresh session when it is: it need not join
        # again.
        error_code = errors.NONE
    if shard is None:
        return heartbeat.HeartbeatResponse(error_code=error_code)
    group = shard.groups.of_kind(CLASSIC, request.group_id)
    if group is None:
        return heartbeat.HeartbeatResponse(error_code=errors.UNKNOWN_MEMBER_ID)
    error_code, member = decide_heartbeat(
        group, request.member_id, request.group_instance_id, request.generation_id
    )
    if member is not None:
        shard.hear(group, member.member_id, member.session_timeout_ms)
    return heartbeat.HeartbeatResponse(error_code=error_code)
