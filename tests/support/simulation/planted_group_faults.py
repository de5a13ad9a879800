"""Faults planted into the coordinator one at a time, as in `planted_faults.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.base import errors
from tarry.broker.coordinator.groups.sessions import Sessions
from tarry.broker.coordinator.groups.shard import GroupShard
from tarry.broker.coordinator.loader import Loader
from tarry.broker.coordinator.runtime import EncodedRecords
from tarry.broker.coordinator.tickets import Tickets
from tarry.group.classic import joining, membership, state
from tarry.group.classic.appends import AssignmentAppend
from tarry.group.classic.kind import ClassicKind
from tarry.group.classic.records import GroupTombstone
from tarry.group.classic.round import GroupRound
from tarry.group.classic.state import ClassicGroup
from tarry.group.classic.transitions import Draft
from tarry.group.decision import Append, Decision, Moment
from tarry.group.loading import Loading
from tarry.group.offsets import decisions as offsets
from tarry.group.offsets.appends import OffsetsAppend, TombstonesAppend
from tarry.group.offsets.records import OffsetCommitted, OffsetTombstone
from tarry.group.records import NO_TIMESTAMP
from tarry.group.state import GroupState, MemberSession
from tarry.log.compaction.batch import KeepRules
from tarry.log.compaction.key_map import KeyMap
from tarry.log.compaction.record_scan import RecordScan


def commit_without_the_generation_check() -> None:
    def commit_error(
        self: ClassicGroup, member_id: str, instance_id: str | None, epoch: int
    ) -> int:
        code = honest(self, member_id, instance_id, epoch)
        return errors.NONE if code == errors.ILLEGAL_GENERATION else code

    honest = ClassicGroup.commit_error
    ClassicGroup.commit_error = commit_error


def leave_static_fencing_out() -> None:
    def commit_error(
        self: ClassicGroup, member_id: str, instance_id: str | None, epoch: int
    ) -> int:
        code = honest(self, member_id, instance_id, epoch)
        return errors.NONE if code == errors.FENCED_INSTANCE_ID else code

    honest = ClassicGroup.commit_error
    ClassicGroup.commit_error = commit_error


def tell_a_fenced_member_that_it_is_unknown() -> None:
    def member_error(now: GroupRound, member_id: str, instance_id: str | None) -> int:
        code = honest(now, member_id, instance_id)
        return errors.UNKNOWN_MEMBER_ID if code == errors.FENCED_INSTANCE_ID else code

    honest = membership.member_error
    for module in (membership, joining, state):
        module.member_error = member_error


def answer_a_commit_before_it_is_durable() -> None:
    def carry_out(self: GroupShard, group: GroupState, decision: Decision) -> None:
        honest(self, group, decision)
        if isinstance(decision.append, OffsetsAppend):
            answer = decision.append.answer
            self.context.tickets.answer(answer.ticket, answer)

    honest = GroupShard.carry_out
    GroupShard.carry_out = carry_out


def answer_a_deletion_before_it_is_durable() -> None:
    def carry_out(self: GroupShard, group: GroupState, decision: Decision) -> None:
        honest(self, group, decision)
        append = decision.append
        if isinstance(append, TombstonesAppend) and append.answer is not None:
            self.context.tickets.answer(append.answer.ticket, append.answer)

    honest = GroupShard.carry_out
    GroupShard.carry_out = carry_out


def sync_completes_at_the_leaders_word() -> None:
    def carry_out(self: GroupShard, group: GroupState, decision: Decision) -> None:
        honest(self, group, decision)
        append = decision.append
        if isinstance(append, AssignmentAppend) and not append.has_failed:
            honest(self, group, append.recorded(group, self.context.moment()))

    honest = GroupShard.carry_out
    GroupShard.carry_out = carry_out


def keep_a_stale_heartbeat_operation() -> None:
    """The operation that a heartbeat should have moved expires, and nobody looks at the time."""

    def move(self: Sessions, group_id: str, member_id: str, deadline_ms: int) -> None:
        if (group_id, member_id) not in self.operations:
            honest(self, group_id, member_id, deadline_ms)

    def expired(self: ClassicKind, group: GroupState, member_id: str, moment: Moment) -> Decision:
        heartbeat = group.heartbeats.get(member_id)
        if heartbeat is not None and heartbeat.deadline_ms is not None:
            group.heartbeats[member_id] = MemberSession(moment.now_ms, heartbeat.heard_ms)
        return honest_expired(self, group, member_id, moment)

    honest = Sessions.move
    honest_expired = ClassicKind.decide_session_expired
    Sessions.move = move
    ClassicKind.decide_session_expired = expired


def forget_pending_members() -> None:
    GroupRound.has_everyone_joined = lambda self: len(self.joins) == len(self.members)


def let_pending_ids_expire_never() -> None:
    def give_id(draft: Draft, request: object, member_id: str) -> None:
        honest(draft, request, member_id)
        del draft._heartbeats[member_id]

    honest = joining._give_id
    joining._give_id = give_id


def lose_the_tombstones_of_a_deletion() -> None:
    def append(
        self: GroupShard, group_id: str, append: Append, encoded: EncodedRecords | None
    ) -> int:
        records = append.records
        append.records = [
            record for record in records if not isinstance(record, OffsetTombstone | GroupTombstone)
        ] or records[-1:]
        code = honest(self, group_id, append, None)
        append.records = records
        return code

    honest = GroupShard._append
    GroupShard._append = append


def load_what_was_committed_first() -> None:
    def add(self: Loading, key: bytes, value: bytes | None) -> None:
        if value is None or key not in self._latest:
            honest(self, key, value)

    honest = Loading.add
    Loading.add = add


def compaction_drops_the_last_value() -> None:
    def last_offset(self: KeyMap, key: bytes) -> int:
        offset = honest(self, key)
        return offset + 1 if offset % 5 == 4 else offset

    honest = KeyMap.last_offset
    KeyMap.last_offset = last_offset


def compaction_forgets_what_a_tombstone_deletes() -> None:
    def next_record(self: RecordScan) -> None:
        honest(self)
        if self.is_tombstone and self.key is not None:
            self.key = self.key + b"?"

    honest = RecordScan._next
    RecordScan._next = next_record
    KeepRules.drops_tombstones = lambda self, header: True


def apply_an_offset_before_it_is_durable() -> None:
    def append(
        self: GroupShard, group_id: str, append: Append, encoded: EncodedRecords | None
    ) -> int:
        code = honest(self, group_id, append, encoded)
        group = self.groups.by_id.get(group_id)
        for record in append.records:
            if code == errors.NONE and group is not None and isinstance(record, OffsetCommitted):
                record.apply_to(group)
        return code

    honest = GroupShard._append
    GroupShard._append = append


def remove_members_for_the_brokers_own_absence() -> None:
    GroupShard.on_stall = lambda self: None


def forget_sessions_in_a_restart() -> None:
    def decide_load(self: ClassicKind, group: GroupState, moment: Moment) -> Decision:
        decision = honest(self, group, moment)
        decision.heartbeats = []
        return decision

    honest = ClassicKind.decide_load
    ClassicKind.decide_load = decide_load


def end_a_join_phase_with_the_first_who_rejoins() -> None:
    def has_everyone_joined(self: GroupRound) -> bool:
        return len(self.joins) > 0 and not self.pending_members

    GroupRound.has_everyone_joined = has_everyone_joined


def serve_the_groups_of_a_damaged_log() -> None:
    def step(self: Loader) -> bool:
        if self.runtime.partition.log.flaw_offset < 0:
            return honest(self)
        self.runtime.error_code = errors.NONE
        return True

    honest = Loader.step
    Loader.step = step


def take_commits_of_nobody_into_a_working_group() -> None:
    def commit_error(
        self: ClassicGroup, member_id: str, instance_id: str | None, epoch: int
    ) -> int:
        code = honest(self, member_id, instance_id, epoch)
        return errors.NONE if epoch < 0 else code

    honest = ClassicGroup.commit_error
    ClassicGroup.commit_error = commit_error


def count_the_age_of_offsets_from_their_commits() -> None:
    honest = offsets._ExpiryCondition.__init__

    def begin(self: offsets._ExpiryCondition, group: GroupState, moment: Moment) -> None:
        honest(self, group, moment)
        self.since_ms = NO_TIMESTAMP

    offsets._ExpiryCondition.__init__ = begin


def tell_a_client_that_a_write_has_timed_out() -> None:
    def time_out(self: Tickets, ticket: int) -> None:
        asked = self._asked.pop(ticket, None)
        if asked is not None:
            asked.refuse(errors.REQUEST_TIMED_OUT)

    Tickets.time_out = time_out


def let_a_join_phase_go_on_when_all_have_joined() -> None:
    Draft.maybe_complete_join = lambda self: None


# A seed that found each.
GROUPS: Final[dict[Callable[[], None], int]] = {
    commit_without_the_generation_check: 2,
    leave_static_fencing_out: 5,
    tell_a_fenced_member_that_it_is_unknown: 5,
    answer_a_commit_before_it_is_durable: 1,
    answer_a_deletion_before_it_is_durable: 44,
    sync_completes_at_the_leaders_word: 10,
    keep_a_stale_heartbeat_operation: 1,
    forget_pending_members: 28,
    let_pending_ids_expire_never: 1,
    lose_the_tombstones_of_a_deletion: 1,
    load_what_was_committed_first: 1,
    compaction_drops_the_last_value: 1,
    compaction_forgets_what_a_tombstone_deletes: 19,
    apply_an_offset_before_it_is_durable: 1,
    remove_members_for_the_brokers_own_absence: 9,
    forget_sessions_in_a_restart: 1,
    end_a_join_phase_with_the_first_who_rejoins: 1,
    serve_the_groups_of_a_damaged_log: 36,
    take_commits_of_nobody_into_a_working_group: 2,
    count_the_age_of_offsets_from_their_commits: 86,
    tell_a_client_that_a_write_has_timed_out: 12,
    let_a_join_phase_go_on_when_all_have_joined: 1,
}
