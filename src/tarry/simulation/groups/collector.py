"""Collectors of groups: read all offsets, then remove all members and groups for good."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import error_name
from tarry.protocol import api_keys
from tarry.protocol.messages.delete_groups import DeleteGroupsResponse
from tarry.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tarry.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tarry.protocol.messages.offset_fetch import OffsetFetchResponse
from tarry.simulation.clients.simulated_client import (
    Delay,
    Query,
    QueryOutcome,
    Script,
    ScriptedClient,
    Steps,
)
from tarry.simulation.groups.context import OF_THE_COORDINATOR, GroupsContext

_RETRY_MS: Final = 20
_LEAVE_OF_SEVERAL: Final = 3


class GroupCollector(ScriptedClient):
    """Client that reads all offsets, then removes all members and groups."""

    def __init__(self, groups_context: GroupsContext, name: str, names: list[str]) -> None:
        super().__init__(groups_context.context, name)
        self._groups = groups_context
        self._names = names

    def script(self) -> Script:
        for name in self._names:
            yield from self._read(name)
        for name in self._names:
            yield from self._remove_members(name)
            yield from self._delete(name)
            yield from self._read(name)

    def _ask(self, query: Query) -> Steps[QueryOutcome]:
        """Ask until there is an answer."""
        while True:
            outcome = yield query
            if outcome is not None and outcome.answer is not None:
                return outcome
            yield Delay(_RETRY_MS)

    def _read(self, group: str) -> Script:
        """Read all offsets that the group has committed, those of deleted topics included."""
        registers = self._groups.registers(group)
        while True:
            outcome = yield from self._ask(self._groups.fetch_offsets(group, None))
            assert isinstance(outcome.answer, OffsetFetchResponse)
            offsets = self._groups.take_offsets(
                self.name, group, registers, outcome.exchange, outcome.answer
            )
            if offsets is not None:
                return
            # The topic of the offsets may be gone: FindCoordinator makes it again.
            yield from self._ask(self._groups.find_coordinator(group))
            yield Delay(_RETRY_MS)

    def _describe(self, group: str) -> Steps[DescribedGroup]:
        while True:
            request = DescribeGroupsRequest(groups=[group])
            outcome = yield from self._ask(
                self._groups.query(api_keys.DESCRIBE_GROUPS, request, (0, 6), 0)
            )
            assert isinstance(outcome.answer, DescribeGroupsResponse)
            described = outcome.answer.groups[0]
            if described.error_code not in OF_THE_COORDINATOR:
                return described
            yield Delay(_RETRY_MS)

    def _remove_members(self, group: str) -> Script:
        """Remove all members with one request."""
        described = yield from self._describe(group)
        if not described.members:
            return
        request = LeaveGroupRequest(group_id=group)
        request.members = [
            MemberIdentity(member_id=member.member_id, group_instance_id=member.group_instance_id)
            for member in described.members
        ]
        query = self._groups.query(api_keys.LEAVE_GROUP, request, (_LEAVE_OF_SEVERAL, 5), 0)
        outcome = yield from self._ask(query)
        assert isinstance(outcome.answer, LeaveGroupResponse)
        for member in outcome.answer.members:
            # The session of the member may just have ended.
            if member.error_code not in (errors.NONE, errors.UNKNOWN_MEMBER_ID):
                self.context.history.violate(
                    f"member {member.member_id} of group {group} cannot be removed when all is "
                    f"quiet: {error_name(member.error_code)}"
                )

    def _delete(self, group: str) -> Script:
        while True:
            query, write = self._groups.delete_group(group)
            outcome = yield from self._ask(query)
            assert isinstance(outcome.answer, DeleteGroupsResponse)
            code = outcome.answer.results[0].error_code
            self._groups.take_deletion(write, code)
            if code in (errors.NONE, errors.GROUP_ID_NOT_FOUND):
                return
            if code not in OF_THE_COORDINATOR:
                self.context.history.violate(
                    f"group {group} cannot be deleted when all is quiet: {error_name(code)}"
                )
                return
            yield Delay(_RETRY_MS)


class LastLook(GroupCollector):
    """Client that looks after one more loss of the broker: no group and no offset has come back."""

    def script(self) -> Script:
        for name in self._names:
            yield from self._read(name)
        while True:
            query = self._groups.query(api_keys.LIST_GROUPS, ListGroupsRequest(), (0, 5), 0)
            outcome = yield from self._ask(query)
            assert isinstance(outcome.answer, ListGroupsResponse)
            if outcome.answer.error_code == errors.NONE:
                break
            yield Delay(_RETRY_MS)
        for group in outcome.answer.groups:
            self.context.history.violate(f"group {group.group_id} was deleted and is listed")
