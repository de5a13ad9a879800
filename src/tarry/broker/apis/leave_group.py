"""LeaveGroup (key 13): members leave a group, or an operator removes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.tickets import NO_TICKET, Asked
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import ELEMENTS_PER_UNIT
from tarry.broker.request import RequestContext
from tarry.group.classic.kind import CLASSIC
from tarry.group.classic.membership import decide_leave
from tarry.group.classic.requests import (
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

# KIP-345: from this version on a request may have several members.
VERSION_OF_BATCHES: Final = 3


# Number of members that leave in one step.  Each step rebalances the group once, so a step takes
# many.
MEMBERS_PER_DECISION: Final = 250


class AskedLeave(Asked[LeaveAnswer]):
    """A LeaveGroup request, or a portion of one.  Its answer does not wait for the rebalance."""

    def __init__(self, context: RequestContext) -> None:
        super().__init__(context)
        self.given: LeaveAnswer | None = None

    def answer(self, answer: LeaveAnswer) -> None:
        self.given = answer


def handle(
    long_answers: LongAnswers,
    coordinator: GroupCoordinator,
    context: RequestContext,
    request: LeaveGroupRequest,
) -> Message | None:
    """Decide about every member by itself, and answer for each."""
    if context.api_version < VERSION_OF_BATCHES:
        member = LeavingMember(request.member_id)
        answer = _leave(coordinator, context, request.group_id, (member,))
        codes = answer.member_error_codes
        return LeaveGroupResponse(error_code=answer.error_code or (codes[0] if codes else 0))
    long_answer = LongAnswer(context, must_end=True)
    return long_answers.begin(long_answer, _steps(long_answer, coordinator, context, request))


def _steps(
    long_answer: LongAnswer,
    coordinator: GroupCoordinator,
    context: RequestContext,
    request: LeaveGroupRequest,
) -> Iterator[int]:
    named: dict[tuple[str, str | None], LeavingMember] = {}
    for number, each in enumerate(request.members, start=1):
        named[each.member_id, each.group_instance_id] = LeavingMember(
            each.member_id, each.group_instance_id, kept_reason(each.reason)
        )
        if number % ELEMENTS_PER_UNIT == 0:
            yield 1
    members = tuple(named.values())
    for start in range(0, max(len(members), 1), MEMBERS_PER_DECISION):
        portion = members[start : start + MEMBERS_PER_DECISION]
        answer = _leave(coordinator, context, request.group_id, portion)
        if start == 0:
            long_answer.open(LeaveGroupResponse(error_code=answer.error_code))
            if answer.error_code != errors.NONE:
                return
        # A refusal of the whole portion has one code, and none for single members.
        codes = answer.member_error_codes or (answer.error_code,) * len(portion)
        for member, code in zip(portion, codes, strict=True):
            long_answer.add(MemberResponse(member.member_id, member.instance_id, code))
        yield 1 + len(portion)


def _leave(
    coordinator: GroupCoordinator,
    context: RequestContext,
    group_id: str,
    members: tuple[LeavingMember, ...],
) -> LeaveAnswer:
    """Let members leave, and return their part of the answer."""
    shard, error_code = coordinator.find_named(group_id)
    if shard is None:
        return LeaveAnswer(NO_TICKET, error_code)
    group = shard.groups.of_kind(CLASSIC, group_id)
    if group is None or not group.exists:
        if context.api_version < VERSION_OF_BATCHES:
            return LeaveAnswer(NO_TICKET, errors.UNKNOWN_MEMBER_ID)
        # Such a group has no members.  As in Kafka the codes of the members say so, not the
        # request's.
        codes = (errors.UNKNOWN_MEMBER_ID,) * len(members)
        return LeaveAnswer(NO_TICKET, member_error_codes=codes)
    asked = AskedLeave(context)
    leave = LeaveRequest(coordinator.ticket(asked), members)
    shard.carry_out(group, decide_leave(group, leave, coordinator.moment()))
    assert asked.given is not None
    return asked.given
