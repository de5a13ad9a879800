"""DescribeGroups (key 15): state, protocol and members of groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.metadata.cluster_view import GROUP_OPERATIONS, OPERATIONS_NOT_ASKED
from tarry.broker.once import once
from tarry.broker.request import RequestContext
from tarry.group.views import DescribedMember
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

# KIP-1043: from this version on an unknown group is an error; before it is described as Dead.
VERSION_OF_GROUP_NOT_FOUND: Final = 6
DEAD: Final = "Dead"

# Looking a member up takes so small a part of the unit of work in which long answers count.
MEMBERS_PER_UNIT: Final = 5


def handle(
    long_answers: LongAnswers,
    coordinator: GroupCoordinator,
    context: RequestContext,
    request: DescribeGroupsRequest,
) -> Message | None:
    """Describe each group once, and add its members one by one."""
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, coordinator, request))


def _steps(
    answer: LongAnswer, coordinator: GroupCoordinator, request: DescribeGroupsRequest
) -> Iterator[int]:
    operations = OPERATIONS_NOT_ASKED
    if request.include_authorized_operations:
        operations = GROUP_OPERATIONS
    answer.open(DescribeGroupsResponse())
    for group_id in once(request.groups):
        group, members = _described(answer, coordinator, group_id)
        if group.error_code == errors.NONE:
            group.authorized_operations = operations
        answer.open(group)
        yield 1 + len(members) // MEMBERS_PER_UNIT
        for each in members:
            answer.add(_member(each))
            yield 1
        answer.close()


def _described(
    answer: LongAnswer, coordinator: GroupCoordinator, group_id: str
) -> tuple[DescribedGroup, tuple[DescribedMember, ...]]:
    """Return a group's description without its members, and the members."""
    shard, error_code = coordinator.find(group_id)
    if shard is None:
        return DescribedGroup(error_code=error_code, group_id=group_id), ()
    known = shard.groups.by_id.get(group_id)
    group = None if known is None else known.kind.described(known)
    if group is None:
        gone = DescribedGroup(group_id=group_id, group_state=DEAD)
        if answer.api_version >= VERSION_OF_GROUP_NOT_FOUND:
            gone.error_code = errors.GROUP_ID_NOT_FOUND
            gone.error_message = f"Group {group_id} not found."
        return gone, ()
    size = sum(len(each.metadata) + len(each.assignment) for each in group.members)
    if not answer.has_room(size):
        return (
            DescribedGroup(
                group_id=group_id,
                error_code=errors.INVALID_REQUEST,
                error_message="the answer would be too large; describe fewer groups at once",
            ),
            (),
        )
    return (
        DescribedGroup(
            group_id=group_id,
            group_state=group.state,
            protocol_type=group.protocol_type,
            protocol_data=group.protocol_name,
        ),
        group.members,
    )


def _member(member: DescribedMember) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata,
        member_assignment=member.assignment,
    )
