"""Heartbeat (key 12): a member lives, and hears whether it must join again."""

from __future__ import annotations

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.request import RequestContext
from tarry.group.membership import decide_heartbeat
from tarry.group.requests import HeartbeatRequest
from tarry.protocol.message import Message
from tarry.protocol.messages import heartbeat


def handle(
    coordinator: GroupCoordinator, context: RequestContext, request: heartbeat.HeartbeatRequest
) -> Message | None:
    """Always answered at once."""
    shard, error_code = coordinator.find_named(request.group_id)
    if error_code == errors.COORDINATOR_LOAD_IN_PROGRESS:
        # The member is not known yet, and has a fresh session when it is: it stays.
        error_code = errors.NONE
    if shard is None:
        return heartbeat.HeartbeatResponse(error_code=error_code)
    group = shard.group(request.group_id)
    asked = HeartbeatRequest(
        0, request.member_id, request.group_instance_id, generation_id=request.generation_id
    )
    decision = decide_heartbeat(group, asked, coordinator.moment())
    # The one decision that always answers at once: no ticket is needed.
    error_code = decision.answers.pop().error_code
    if decision.heartbeats:
        shard.carry_out(group, decision)
    return heartbeat.HeartbeatResponse(error_code=error_code)
