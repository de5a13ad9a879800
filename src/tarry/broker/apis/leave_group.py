"""LeaveGroup (key 13): members go, or an operator removes them."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.tickets import Asked
from tarry.broker.request import RequestContext
from tarry.group.membership import decide_leave
from tarry.group.requests import (
    LeaveAnswer,
    LeaveRequest,
    LeavingMember,
    kept_reason,
)
from tarry.protocol.message import Message
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

# KIP-345: from here on several members in a request.
VERSION_OF_BATCHES: Final = 3


class AskedLeave(Asked[LeaveAnswer]):
    """A LeaveGroup; answered at once, whatever it causes."""

    def __init__(self, context: RequestContext, members: tuple[LeavingMember, ...]) -> None:
        super().__init__(context)
        self.members = members

    def answer(self, answer: LeaveAnswer) -> None:
        codes = answer.member_error_codes
        if self.context.api_version < VERSION_OF_BATCHES:
            error_code = answer.error_code or (codes[0] if codes else errors.NONE)
            self.context.respond(LeaveGroupResponse(error_code=error_code))
            return
        self.context.respond(
            LeaveGroupResponse(error_code=answer.error_code, members=_rows(self.members, codes))
        )


def handle(
    coordinator: GroupCoordinator, context: RequestContext, request: LeaveGroupRequest
) -> Message | None:
    """Decide about every member on its own: each has an answer."""
    shard, error_code = coordinator.find_named(request.group_id)
    if shard is None:
        return LeaveGroupResponse(error_code=error_code)
    if context.api_version < VERSION_OF_BATCHES:
        members: tuple[LeavingMember, ...] = (LeavingMember(request.member_id),)
    else:
        members = tuple(
            LeavingMember(each.member_id, each.group_instance_id, kept_reason(each.reason))
            for each in request.members
        )
    group = shard.group(request.group_id)
    if not group.exists and context.api_version >= VERSION_OF_BATCHES:
        # As in Kafka: nobody is a member there, and the request as such is right.
        return LeaveGroupResponse(
            members=_rows(members, (errors.UNKNOWN_MEMBER_ID,) * len(members))
        )
    asked = LeaveRequest(coordinator.ticket(AskedLeave(context, members)), members)
    shard.carry_out(group, decide_leave(group, asked, coordinator.moment()))
    return None


def _rows(members: tuple[LeavingMember, ...], codes: tuple[int, ...]) -> list[MemberResponse]:
    """Make a row for each member that has a code: none has if the request as such was refused."""
    return [
        MemberResponse(
            member_id=each.member_id, group_instance_id=each.instance_id, error_code=code
        )
        for each, code in zip(members, codes, strict=False)
    ]
