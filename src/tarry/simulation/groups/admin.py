"""Administrator of groups: looks, resets offsets, removes members, offsets and groups."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.cluster.state.topic_names import OFFSETS_TOPIC
from tarry.protocol import api_keys
from tarry.protocol.messages.delete_groups import DeleteGroupsResponse
from tarry.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tarry.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tarry.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tarry.protocol.messages.offset_commit import OffsetCommitResponse
from tarry.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tarry.protocol.messages.offset_fetch import OffsetFetchResponse
from tarry.simulation.clients.simulated_client import Script, ScriptedClient
from tarry.simulation.groups.context import (
    OF_THE_COORDINATOR,
    GroupsContext,
    Sent,
)
from tarry.simulation.groups.history import (
    ACKNOWLEDGED,
    ALL,
    LEAVE,
    REFUSED,
    MemberRequest,
    OffsetWrite,
)
from tarry.simulation.groups.scenario import GroupPlan

_TIMEOUT_MS: Final = 3_000

# Refusals of a commit without membership, which a group takes only while it is empty.
_RESET_REFUSALS: Final = (
    errors.ILLEGAL_GENERATION,
    errors.REBALANCE_IN_PROGRESS,
    errors.UNKNOWN_MEMBER_ID,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    *OF_THE_COORDINATOR,
)


class GroupAdmin(ScriptedClient):
    """Client that makes one change after the other, with pauses."""

    def __init__(self, groups_context: GroupsContext, name: str, groups: list[GroupPlan]) -> None:
        super().__init__(groups_context.context, name)
        self._groups = groups_context
        self._plans = groups

    def script(self) -> Script:
        context = self.context
        random = context.random
        while not context.is_quiet:
            yield from self._groups.pause(
                20 + random.randrange(self._groups.scenario.admin_pause_ms_max)
            )
            plan = self._plans[random.randrange(len(self._plans))]
            kind = random.randrange(8)
            if self._groups.scenario.loses_offsets_topic and random.randrange(8) == 0:
                yield from self._delete_topic_of_offsets()
            elif kind == 0:
                yield from self._delete_group(plan.name)
            elif kind == 1:
                yield from self._delete_offsets(plan.name)
            elif kind == 2:
                yield from self._remove_instance(plan)
            elif kind == 3:
                yield from self._reset(plan.name)
            elif kind == 4:
                yield from self._look(plan.name)
            else:
                yield from self._read(plan.name)

    def _delete_group(self, group: str) -> Script:
        query, write = self._groups.delete_group(group)
        outcome = yield query
        if outcome is not None and isinstance(outcome.answer, DeleteGroupsResponse):
            self._judge(write, "DeleteGroups", outcome.answer.results[0].error_code)

    def _delete_topic_of_offsets(self) -> Script:
        """Delete the topic of offsets, and with it the offsets of all groups."""
        request = DeleteTopicsRequest(topic_names=[OFFSETS_TOPIC], timeout_ms=_TIMEOUT_MS)
        query = self._groups.query(api_keys.DELETE_TOPICS, request, (1, 5), _TIMEOUT_MS)
        write = OffsetWrite(("", "", ALL), "", -1)
        outcome = yield self._groups.ask_to_write(query, write)
        if outcome is not None and isinstance(outcome.answer, DeleteTopicsResponse):
            code = outcome.answer.responses[0].error_code
            if code == errors.NONE:
                write.outcome = ACKNOWLEDGED
            elif code == errors.UNKNOWN_TOPIC_OR_PARTITION:
                write.outcome = REFUSED

    def _judge(self, write: OffsetWrite, what: str, error_code: int) -> None:
        if not self._groups.take_deletion(write, error_code):
            self._groups.unexpected(self.name, what, error_code)

    def _delete_offsets(self, group: str) -> Script:
        """Delete the committed offset of one partition."""
        context = self.context
        registers = self._groups.registers(group)
        if not registers:
            return
        register = registers[context.random.randrange(len(registers))]
        topic = OffsetDeleteRequestTopic(
            name=register[1],
            partitions=[OffsetDeleteRequestPartition(partition_index=register[2])],
        )
        request = OffsetDeleteRequest(group_id=group, topics=[topic])
        query = self._groups.query(
            api_keys.OFFSET_DELETE, request, (0, 0), self._groups.scenario.commit_timeout_ms
        )
        write = OffsetWrite(register, "", -1)
        outcome = yield self._groups.ask_to_write(query, write)
        if outcome is not None and isinstance(outcome.answer, OffsetDeleteResponse):
            code = outcome.answer.error_code
            for topic_answer in outcome.answer.topics:
                for partition in topic_answer.partitions:
                    code = code or partition.error_code
            self._judge(write, "OffsetDelete", code)

    def _remove_instance(self, plan: GroupPlan) -> Script:
        """Remove a static member by its instance id."""
        instances = [each.instance_id for each in plan.members if each.instance_id is not None]
        if not instances:
            return
        instance_id = instances[self.context.random.randrange(len(instances))]
        asked = MemberRequest(LEAVE, plan.name, self.name, "")
        asked.instance_id = instance_id
        member = MemberIdentity(member_id="", group_instance_id=instance_id)
        request = LeaveGroupRequest(group_id=plan.name, members=[member])
        query = self._groups.query(api_keys.LEAVE_GROUP, request, (3, 5), 0)
        query.on_sent = Sent(self._groups.history, asked).happen
        outcome = yield query
        if outcome is not None and isinstance(outcome.answer, LeaveGroupResponse):
            asked.error_code = outcome.answer.error_code

    def _reset(self, group: str) -> Script:
        """Reset a committed offset to another one, if the group has no members."""
        registers = self._groups.registers(group)
        if not registers:
            return
        register = registers[self.context.random.randrange(len(registers))]
        offset = self.context.random.randrange(20)
        writes = [self._groups.new_write(register, self.name, offset)]
        writes[0].is_of_nobody = True
        outcome = yield self._groups.commit(group, writes)
        if outcome is not None and isinstance(outcome.answer, OffsetCommitResponse):
            for code in self._groups.take_commit(writes, outcome.answer).values():
                if code != errors.NONE and code not in _RESET_REFUSALS:
                    self._groups.unexpected(self.name, "OffsetCommit", code)

    def _look(self, group: str) -> Script:
        """Describe the group, or list all groups."""
        if self.context.random.randrange(2):
            request = DescribeGroupsRequest(groups=[group])
            outcome = yield self._groups.query(api_keys.DESCRIBE_GROUPS, request, (0, 6), 0)
            if outcome is not None and isinstance(outcome.answer, DescribeGroupsResponse):
                code = outcome.answer.groups[0].error_code
                if code not in (errors.NONE, errors.GROUP_ID_NOT_FOUND, *OF_THE_COORDINATOR):
                    self._groups.unexpected(self.name, "DescribeGroups", code)
            return
        outcome = yield self._groups.query(api_keys.LIST_GROUPS, ListGroupsRequest(), (0, 5), 0)
        if outcome is not None and isinstance(outcome.answer, ListGroupsResponse):
            code = outcome.answer.error_code
            if code not in (errors.NONE, *OF_THE_COORDINATOR):
                self._groups.unexpected(self.name, "ListGroups", code)

    def _read(self, group: str) -> Script:
        """Read all offsets that the group has committed."""
        registers = self._groups.registers(group)
        outcome = yield self._groups.fetch_offsets(group, None)
        if outcome is not None and isinstance(outcome.answer, OffsetFetchResponse):
            self._groups.take_offsets(self.name, group, registers, outcome.exchange, outcome.answer)
