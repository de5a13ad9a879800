"""ListGroups (key 16): the groups that this broker coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import ELEMENTS_PER_UNIT
from tarry.broker.request import RequestContext
from tarry.group.views import without_case
from tarry.protocol.message import Message
from tarry.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

# Looking at a group takes so small a part of the unit of work in which long answers count.
GROUPS_PER_UNIT: Final = 10


def handle(
    long_answers: LongAnswers,
    coordinator: GroupCoordinator,
    context: RequestContext,
    request: ListGroupsRequest,
) -> Message | None:
    """List the groups; while some are still being loaded, answer with that error and no groups."""
    if coordinator.is_loading():
        return ListGroupsResponse(error_code=errors.COORDINATOR_LOAD_IN_PROGRESS)
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, coordinator, request))


def _steps(
    answer: LongAnswer, coordinator: GroupCoordinator, request: ListGroupsRequest
) -> Iterator[int]:
    answer.open(ListGroupsResponse())
    states = without_case(request.states_filter)
    types = without_case(request.types_filter)
    yield (len(request.states_filter) + len(request.types_filter)) // ELEMENTS_PER_UNIT
    for shard in list(coordinator.shards.values()):
        if shard.runtime.code() == errors.NOT_COORDINATOR:
            continue
        yield len(shard.groups.by_id) // GROUPS_PER_UNIT
        for each in shard.groups.listed(states, types):
            answer.add(
                ListedGroup(
                    group_id=each.group_id,
                    protocol_type=each.protocol_type,
                    group_state=each.state,
                    group_type=each.group_type,
                )
            )
            yield 1
