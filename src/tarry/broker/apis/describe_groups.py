"""DescribeGroups (key 15): state, protocol and members of groups."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.metadata.cluster_view import GROUP_OPERATIONS, OPERATIONS_NOT_ASKED
from tarry.broker.request import RequestContext
from tarry.group.views import described
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

# KIP-1043: from here on an unknown group is an error; before, it is one that is Dead.
VERSION_OF_GROUP_NOT_FOUND: Final = 6
DEAD: Final = "Dead"


def handle(
    coordinator: GroupCoordinator, context: RequestContext, request: DescribeGroupsRequest
) -> Message | None:
    """Always answered at once."""
    operations = OPERATIONS_NOT_ASKED
    if request.include_authorized_operations:
        operations = GROUP_OPERATIONS
    answers: list[DescribedGroup] = []
    for group_id in request.groups:
        answer = _described(coordinator, context, group_id)
        if answer.error_code == errors.NONE:
            answer.authorized_operations = operations
        answers.append(answer)
    return DescribeGroupsResponse(groups=answers)


def _described(
    coordinator: GroupCoordinator, context: RequestContext, group_id: str
) -> DescribedGroup:
    shard, error_code = coordinator.find(group_id)
    if shard is None:
        return DescribedGroup(error_code=error_code, group_id=group_id)
    known = shard.groups.by_id.get(group_id)
    if known is None:
        answer = DescribedGroup(group_id=group_id, group_state=DEAD)
        if context.api_version >= VERSION_OF_GROUP_NOT_FOUND:
            answer.error_code = errors.GROUP_ID_NOT_FOUND
            answer.error_message = f"Group {group_id} not found."
        return answer
    group = described(known)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                client_id=each.client_id,
                client_host=each.client_host,
                member_metadata=each.metadata,
                member_assignment=each.assignment,
            )
            for each in group.members
        ],
    )
