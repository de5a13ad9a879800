"""DeleteGroups (key 42): groups without members are deleted, with all their offsets."""

from __future__ import annotations

from collections.abc import Iterator

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.tickets import Asked
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import once
from tarry.broker.request import RequestContext
from tarry.group.offsets.decisions import decide_delete_group
from tarry.group.requests import Answer
from tarry.protocol.message import Message
from tarry.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


class GroupDeletion:
    """A request's deletions, which are answered once the last of them is settled."""

    def __init__(
        self, long_answers: LongAnswers, context: RequestContext, group_ids: list[str]
    ) -> None:
        self._long_answers = long_answers
        self.context = context
        self.results = [DeletableGroupResult(group_id=each) for each in group_ids]
        self.left = len(group_ids)

    def settle(self, index: int, error_code: int) -> None:
        """Note the result of one deletion, and answer the request after the last one."""
        self.results[index].error_code = error_code
        self.left -= 1
        if self.left == 0:
            answer = LongAnswer(self.context)
            self._long_answers.begin(answer, self._rows(answer))

    def _rows(self, answer: LongAnswer) -> Iterator[int]:
        answer.open(DeleteGroupsResponse())
        for result in self.results:
            answer.add(result)
            yield 1


class AskedDeletion(Asked[Answer]):
    """Deletion of one group of the request."""

    def __init__(self, context: RequestContext, deletion: GroupDeletion, index: int) -> None:
        super().__init__(context)
        self.deletion = deletion
        self.index = index

    def answer(self, answer: Answer) -> None:
        self.deletion.settle(self.index, answer.error_code)

    def refuse(self, error_code: int) -> None:
        self.deletion.settle(self.index, error_code)


def handle(
    long_answers: LongAnswers,
    coordinator: GroupCoordinator,
    context: RequestContext,
    request: DeleteGroupsRequest,
) -> Message | None:
    """Decide about each group by itself; a group that is named twice is deleted once."""
    group_ids = once(request.groups_names)
    if not group_ids:
        return DeleteGroupsResponse()
    deletion = GroupDeletion(long_answers, context, group_ids)
    answer = LongAnswer(context, must_end=True)
    return long_answers.begin(answer, _steps(coordinator, deletion, group_ids))


def _steps(
    coordinator: GroupCoordinator, deletion: GroupDeletion, group_ids: list[str]
) -> Iterator[int]:
    context = deletion.context
    for index, group_id in enumerate(group_ids):
        yield 1
        # The empty group id is allowed here, as in Kafka, whose oldest clients commit under it.
        shard, error_code = coordinator.find(group_id)
        if shard is None:
            deletion.settle(index, error_code)
            continue
        if group_id not in shard.groups.by_id:
            deletion.settle(index, errors.GROUP_ID_NOT_FOUND)
            continue
        ticket = coordinator.ticket(AskedDeletion(context, deletion, index))
        group = shard.group(group_id)
        shard.carry_out(group, decide_delete_group(group, ticket, coordinator.moment()))
