"""ListGroups (key 16): the groups that this broker coordinates."""

from __future__ import annotations

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.request import RequestContext
from tarry.group.views import GROUP_TYPE, listed
from tarry.protocol.message import Message
from tarry.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)


def handle(
    coordinator: GroupCoordinator, context: RequestContext, request: ListGroupsRequest
) -> Message | None:
    """List groups; while some are being loaded the answer says so, and has none."""
    if coordinator.is_loading():
        return ListGroupsResponse(error_code=errors.COORDINATOR_LOAD_IN_PROGRESS)
    response = ListGroupsResponse()
    for shard in coordinator.shards.values():
        if shard.runtime.code() == errors.NOT_COORDINATOR:
            continue
        for each in listed(shard.groups, request.states_filter, request.types_filter):
            response.groups.append(
                ListedGroup(
                    group_id=each.group_id,
                    protocol_type=each.protocol_type,
                    group_state=each.state,
                    group_type=GROUP_TYPE,
                )
            )
    return response
