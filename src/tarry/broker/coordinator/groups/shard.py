"""Groups of one partition of `__consumer_offsets`: decisions are carried out here.

The order of `group/decision.py` is kept: the new round, the records into the log's tail, the
heartbeats, the answers, and last the join and sync operations, which may expire at once.
"""

from __future__ import annotations

from tarry.base import errors
from tarry.broker.coordinator.groups.context import GroupContext
from tarry.broker.coordinator.groups.load import GroupLoad
from tarry.broker.coordinator.groups.rounds import JoinPhases, SyncPhases
from tarry.broker.coordinator.groups.sessions import Sessions
from tarry.broker.coordinator.groups.waiting import DecisionCarrier
from tarry.broker.coordinator.runtime import ShardLoad, ShardState
from tarry.broker.coordinator.tickets import NO_TICKET
from tarry.group.appends import Append, OffsetsAppend, TombstonesAppend
from tarry.group.decision import Decision
from tarry.group.outcomes import (
    decide_append_failed,
    decide_fresh_sessions,
    decide_recorded,
    decide_unload,
)
from tarry.group.records import GroupRecord, OffsetCommitted, encode_record
from tarry.group.requests import Answer, JoinAnswer, SyncAnswer
from tarry.group.state import Groups, GroupState
from tarry.partition.state import Partition


class GroupAppend:
    """Append together with the id of its group."""

    __slots__ = ("append", "group_id")

    def __init__(self, group_id: str, append: Append) -> None:
        self.group_id = group_id
        self.append = append


def sent_away(answer: Answer) -> Answer:
    """Return what is answered instead while another broker may coordinate already: no generation
    that this one begins by a time-out may come to be used.
    """
    if isinstance(answer, JoinAnswer):
        return JoinAnswer(answer.ticket, errors.NOT_COORDINATOR, member_id=answer.member_id)
    if isinstance(answer, SyncAnswer):
        return SyncAnswer(answer.ticket, errors.NOT_COORDINATOR)
    return answer


class GroupShard(ShardState[GroupRecord, GroupAppend], DecisionCarrier):
    """Groups of one partition, with all that waits in them."""

    def __init__(self, partition: Partition, context: GroupContext) -> None:
        super().__init__(partition, context)
        self.context = context
        self.groups = Groups()
        self.joins = JoinPhases(context, self)
        self.syncs = SyncPhases(context, self)
        self.sessions = Sessions(context, self)

    def group(self, group_id: str) -> GroupState:
        return self.groups.group(group_id)

    def carry_out(self, group: GroupState, decision: Decision) -> None:
        """Put a decision into effect; see the module's text for the order."""
        self.groups.take(group, decision)
        group_id = group.group_id
        append = decision.append
        error_code = errors.NONE if append is None else self._append(group_id, append)
        for wait in decision.heartbeats:
            self.sessions.follow(group_id, wait)
        rests = self.runtime.rests()
        for answer in decision.answers:
            told = sent_away(answer) if rests else answer
            self.context.tickets.answer(answer.ticket, told)
        if decision.notes:
            self.context.history.note(group_id, decision.notes)
        if decision.round is not None:
            self.syncs.follow(group)
            self.joins.follow(group)
        if append is not None and error_code != errors.NONE:
            self.on_append_failed(GroupAppend(group_id, append), error_code)

    def _append(self, group_id: str, append: Append) -> int:
        """Append the records to the log's tail; an error code if it does not take them.

        Of tombstones there may be more than a batch holds, and those that a crash leaves out are
        written again: when they are asked for once more, at the next start, or by age.
        """
        ticket = NO_TICKET
        if isinstance(append, OffsetsAppend | TombstonesAppend) and append.answer is not None:
            ticket = append.answer.ticket
        can_be_split = isinstance(append, TombstonesAppend)
        return self.runtime.append(
            GroupAppend(group_id, append), append.records, ticket, can_be_split
        )

    # -- what the runtime asks

    def encode(self, record: GroupRecord) -> tuple[bytes, bytes | None]:
        return encode_record(record)

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
        """Begin every session anew: nobody could be heard."""
        for group in list(self.groups.by_id.values()):
            now = group.round
            has_deadline = now.join_deadline_ms is not None or now.sync_deadline_ms is not None
            if has_deadline or group.heartbeats:
                self.carry_out(group, decide_fresh_sessions(group, self.context.moment()))

    def on_stop(self) -> None:
        """Send requests that wait for other members to look for another coordinator."""
        code = errors.NOT_COORDINATOR
        tickets = self.context.tickets
        for group in self.groups.by_id.values():
            for member_id, ticket in group.round.joins.items():
                tickets.answer(ticket, JoinAnswer(ticket, code, member_id=member_id))
            for ticket in group.round.syncs.values():
                tickets.answer(ticket, SyncAnswer(ticket, code))

    def on_unload(self) -> None:
        for group in list(self.groups.by_id.values()):
            self.carry_out(group, decide_unload(group, self.context.moment()))
        self.groups = Groups()
