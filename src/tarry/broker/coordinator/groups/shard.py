"""Groups of one partition of `__consumer_offsets`, and how decisions about them are carried out.

The order is that of `group/decision.py`: change the group, append the records, follow the sessions,
answer the requests, and last follow the operations of phases, which may expire at once.
"""

from __future__ import annotations

from typing import Any

from tarry.base import errors
from tarry.broker.coordinator.groups.context import GroupContext
from tarry.broker.coordinator.groups.load import GroupLoad
from tarry.broker.coordinator.groups.phases import Phases
from tarry.broker.coordinator.groups.sessions import Sessions
from tarry.broker.coordinator.groups.waiting import DecisionCarrier
from tarry.broker.coordinator.runtime import EncodedRecords, ShardLoad, ShardState
from tarry.broker.coordinator.tickets import NO_TICKET
from tarry.group.decision import Append, Decision
from tarry.group.offsets.records import OffsetCommitted
from tarry.group.records import GroupRecord
from tarry.group.requests import Answer
from tarry.group.state import (
    Groups,
    GroupState,
    decide_append_failed,
    decide_recorded,
    sent_away,
)
from tarry.partition.replicated_log import ReplicatedLog


class GroupAppend:
    """Append of a group's records, with the id of the group."""

    __slots__ = ("append", "group_id")

    def __init__(self, group_id: str, append: Append[Any]) -> None:
        self.group_id = group_id
        self.append = append


class GroupShard(ShardState[GroupRecord, GroupAppend], DecisionCarrier):
    """Groups of one partition, with the requests and operations that wait in them."""

    def __init__(self, partition: ReplicatedLog, context: GroupContext) -> None:
        super().__init__(partition, context)
        self.context = context
        self.groups = Groups(context.kinds)
        self.phases = {name: Phases(name, context, self) for name in context.phases}
        self.sessions = Sessions(context, self)

    def group(self, group_id: str) -> GroupState:
        return self.groups.group(group_id)

    def hears_members(self) -> bool:
        if self.runtime.rests():
            self.runtime.begin_rest()
            return False
        return not self.runtime.end_rest()

    def hear(self, group: GroupState, member_id: str, timeout_ms: int) -> None:
        """Restart the session of a member that sent a heartbeat."""
        now_ms = self.context.turn.now_ms
        group.hear(member_id, now_ms + timeout_ms, now_ms)
        self.sessions.move(group.group_id, member_id, now_ms + timeout_ms)

    def carry_out(self, group: GroupState, decision: Decision) -> None:
        self._carry_out(group, decision, None)

    def carry_out_encoded(
        self, group: GroupState, decision: Decision, encoded: EncodedRecords
    ) -> None:
        """Carry out a decision whose records are encoded already."""
        self._carry_out(group, decision, encoded)

    def _carry_out(
        self, group: GroupState, decision: Decision, encoded: EncodedRecords | None
    ) -> None:
        """Put a decision into effect, in the order that the module's docstring gives."""
        self.groups.take(group, decision)
        group_id = group.group_id
        append = decision.append
        error_code = errors.NONE if append is None else self._append(group_id, append, encoded)
        for wait in decision.heartbeats:
            self.sessions.follow(group_id, wait)
        rests = self.runtime.rests()
        for answer in decision.answers:
            told = answer.sent_away() if rests else answer
            self.context.tickets.answer(answer.ticket, told)
        if decision.notes:
            self.context.history.note(group_id, decision.notes)
        if decision.has_moved:
            for name in group.kind.phases:
                self.phases[name].follow(group)
        if append is not None and error_code != errors.NONE:
            self.on_append_failed(GroupAppend(group_id, append), error_code)

    def _append(self, group_id: str, append: Append[Any], encoded: EncodedRecords | None) -> int:
        """Append the records to the log's tail; return an error code, NONE if they were taken."""
        answer = append.answer
        ticket = NO_TICKET if answer is None else answer.ticket
        group_append, records = GroupAppend(group_id, append), append.records
        if encoded is not None:
            return self.runtime.append_batches(group_append, records, encoded.build(), ticket)
        return self.runtime.append(group_append, records, ticket, append.can_be_split)

    # -- the state, as the runtime calls it

    def encode(self, record: GroupRecord) -> tuple[bytes, bytes | None]:
        return record.encode()

    def apply(self, record: GroupRecord, offset: int) -> None:
        self.groups.apply(record)
        if isinstance(record, OffsetCommitted):
            self.context.history.listener.on_committed(
                record.group_id, record.topic, record.partition, record.offset
            )

    def on_recorded(self, append: GroupAppend) -> None:
        group = self.groups.group(append.group_id)
        self.carry_out(group, decide_recorded(group, append.append, self.context.moment()))

    def on_append_failed(self, append: GroupAppend, error_code: int) -> None:
        group = self.groups.group(append.group_id)
        moment = self.context.moment()
        self.carry_out(group, decide_append_failed(group, append.append, error_code, moment))

    def begin_load(self) -> ShardLoad:
        return GroupLoad(self.groups, self.context, self)

    def size(self) -> int:
        return len(self.groups.by_id)

    def on_stall(self) -> None:
        """Restart all sessions and phases: the broker could not receive heartbeats."""
        for group in list(self.groups.by_id.values()):
            if group.heartbeats or _is_in_phase(group):
                moment = self.context.moment()
                self.carry_out(group, group.kind.decide_fresh_sessions(group, moment))

    def on_stop(self) -> None:
        """Send requests that wait for other members to look for another coordinator."""
        for group in self.groups.by_id.values():
            self._answer(group.waiting_answers(errors.NOT_COORDINATOR))

    def on_rest(self) -> None:
        for group in self.groups.by_id.values():
            self._answer(sent_away(group, errors.NOT_COORDINATOR))

    def on_unload(self) -> None:
        self.on_rest()
        self.sessions.end_all()
        for phases in self.phases.values():
            phases.end_all()
        self.groups = Groups(self.context.kinds)

    def _answer(self, answers: list[Answer]) -> None:
        for answer in answers:
            self.context.tickets.answer(answer.ticket, answer)


def _is_in_phase(group: GroupState) -> bool:
    return any(group.deadline_ms(name) is not None for name in group.kind.phases)
