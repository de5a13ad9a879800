"""LeaveGroup (key 13): members go, or an operator removes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.broker.coordinator.coordinator import Asked
from tarry.broker.request import RequestContext
from tarry.group.decision import Answer, LeaveAnswer, LeaveRequest, LeavingMember
from tarry.group.membership import decide_leave
from tarry.protocol.message import Message
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

# KIP-345: from here on several members in a request.
VERSION_OF_BATCHES: Final = 3


# So much of a reason Kafka's own clients send; it is kept and logged.
REASON_CHARACTERS_MAX: Final = 255


class AskedLeave(Asked):
    """A LeaveGroup; answered at once, whatever it causes."""

    def __init__(self, context: RequestContext, members: tuple[LeavingMember, ...]) -> None:
        super().__init__(context)
        self.members = members

    def answer(self, answer: Answer) -> None:
        assert isinstance(answer, LeaveAnswer)
        codes = answer.member_error_codes
        if self.context.api_version < VERSION_OF_BATCHES:
            error_code = answer.error_code or (codes[0] if codes else errors.NONE)
            self.context.respond(LeaveGroupResponse(error_code=error_code))
            return
        self.context.respond(
            LeaveGroupResponse(
                error_code=answer.error_code,
                members=[
                    MemberResponse(
                        member_id=each.member_id,
                        group_instance_id=each.instance_id,
                        error_code=code,
                    )
                    for each, code in zip(self.members, codes, strict=False)
                ],
            )
        )


def handle(broker: Broker, context: RequestContext, request: Message) -> Message | None:
    """Every member has an answer of its own."""
    assert isinstance(request, LeaveGroupRequest)
    coordinator = broker.coordinator
    shard, error_code = coordinator.find(request.group_id)
    if not request.group_id:
        shard, error_code = None, errors.INVALID_GROUP_ID
    if shard is None:
        return LeaveGroupResponse(error_code=error_code)
    if context.api_version < VERSION_OF_BATCHES:
        members: tuple[LeavingMember, ...] = (LeavingMember(request.member_id),)
    else:
        members = tuple(
            LeavingMember(
                each.member_id, each.group_instance_id, (each.reason or "")[:REASON_CHARACTERS_MAX]
            )
            for each in request.members
        )
    group = shard.group(request.group_id)
    if not group.exists and context.api_version >= VERSION_OF_BATCHES:
        # As in Kafka: nobody is a member there, and the request as such is right.
        return _nobody(members)
    asked = LeaveRequest(coordinator.ticket(AskedLeave(context, members)), members)
    shard.carry_out(group, decide_leave(group, asked, coordinator.moment()))
    return None


def _nobody(members: tuple[LeavingMember, ...]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                error_code=errors.UNKNOWN_MEMBER_ID,
            )
            for each in members
        ]
    )
