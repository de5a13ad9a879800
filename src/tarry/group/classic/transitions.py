"""Transitions of a round, on a copy: members come and go, a join phase ends, the next one begins.

A `Draft` is a decision in the making.  A `decide_*` function calls its methods and returns its
decision; the group itself is only read.  Phases and transitions have Kafka's names.

PreparingRebalance is a join phase.  It ends when every member has joined and every id that was
given out is used, or at its deadline.  The first join phase of an Empty group always waits for
`group.initial.rebalance.delay.ms`, and again while more members came meanwhile, up to the rebalance
time-out of the member that began it.

In Kafka the first join phase can end early, when a member leaves or expires while all others have
joined; here it cannot.  Kafka drops a member's older waiting request for a newer one without an
answer; here the older one is answered REBALANCE_IN_PROGRESS.  A member that is removed while its
SyncGroup waits is answered UNKNOWN_MEMBER_ID.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tarry.base import errors
from tarry.group.classic.notes import (
    BecameEmpty,
    GenerationBegan,
    RebalanceBegan,
    RoundChanged,
)
from tarry.group.classic.records import GroupMetadata, MemberRow
from tarry.group.classic.requests import (
    JoinAnswer,
    JoinedMember,
    SyncAnswer,
)
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    LEGAL_BEFORE,
    PREPARING_REBALANCE,
    STABLE,
    Member,
)
from tarry.group.classic.state import ClassicDecision, ClassicGroup
from tarry.group.decision import Append, Decision, HeartbeatWait, Moment
from tarry.group.notes import MemberRemoved

# A new member cannot send heartbeats while its first join waits, and may be gone.  After so long
# its join is answered with an error, and it asks again.  Kafka's constant.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000

# Shortest extension of a join phase to which no member came.  With a rebalance time-out of 0 the
# phase would otherwise end and be extended forever at the same moment.
EXTENSION_MS_MIN: Final = 100


class EmptyAppend(Append[ClassicGroup]):
    """Append of an Empty group in a new generation; no request waits for it.

    If it fails and the broker fails too, the next start finds the generation before, and the
    sessions of its members end.  That is safe, because none of them works in it.
    """

    what = "the end of the last member"


class Draft:
    """A decision in the making, over a copy of the group's round."""

    def __init__(self, group: ClassicGroup, moment: Moment) -> None:
        self.group = group
        self.moment = moment
        self.round = group.round.copy()
        self.decision = ClassicDecision(moment.now_ms, self.round)
        self._removed: list[MemberRemoved] = []
        # The newest heartbeat wait of each member in this decision.
        self._heartbeats: dict[str, HeartbeatWait] = {}

    def finish(self) -> Decision:
        """Finish the decision; complete the notes of removed members by the phase that follows."""
        follows = {
            EMPTY: "the group is empty",
            PREPARING_REBALANCE: "the others rejoin",
            COMPLETING_REBALANCE: "the next generation begins",
        }.get(self.round.phase, "nothing else changes")
        self.decision.notes[:0] = [replace(each, follows=follows) for each in self._removed]
        self.decision.heartbeats = list(self._heartbeats.values())
        return self.decision

    def append(self, append: Append[Any]) -> None:
        """Set the append of this decision, which has at most one."""
        assert self.decision.append is None
        self.decision.append = append

    # -- sessions

    def hear(self, member: Member) -> None:
        """Restart the session of a member that has sent a request."""
        timeout_ms = NEW_MEMBER_JOIN_TIMEOUT_MS if member.is_new else member.session_timeout_ms
        self.hear_until(member.member_id, timeout_ms)

    def hear_until(self, member_id: str, timeout_ms: int) -> None:
        """Note a sign of life of this id, and that the next one must come within `timeout_ms`."""
        now_ms = self.moment.now_ms
        self._heartbeats[member_id] = HeartbeatWait(member_id, now_ms + timeout_ms, heard_ms=now_ms)

    def restart_session(self, member: Member) -> None:
        """Restart the session of a member that is answered, though it gave no sign of life."""
        earlier = self._heartbeats.get(member.member_id)
        self._heartbeats[member.member_id] = HeartbeatWait(
            member.member_id,
            self.moment.now_ms + member.session_timeout_ms,
            heard_ms=earlier.heard_ms if earlier is not None else None,
        )

    def end_heartbeat(self, member_id: str) -> None:
        """End the session of this id."""
        self._heartbeats[member_id] = HeartbeatWait(member_id, None, ends=True)

    def silent_ms(self, member_id: str) -> int:
        heartbeat = self.group.heartbeats.get(member_id)
        return 0 if heartbeat is None else self.moment.now_ms - heartbeat.heard_ms

    # -- members

    def add_member(self, member: Member, protocol_type: str, ticket: int | None) -> None:
        """Add a member; if there is a ticket, its join waits."""
        now = self.round
        assert member.member_id not in now.members
        if not now.members:
            now.protocol_type = protocol_type
            now.leader_id = member.member_id
        now.members[member.member_id] = member
        if member.instance_id is not None:
            now.static_members[member.instance_id] = member.member_id
        self._count(member, 1)
        now.pending_members.pop(member.member_id, None)
        if now.phase == PREPARING_REBALANCE and now.is_initial:
            now.was_extended_by_join = True
        if ticket is not None:
            now.joins[member.member_id] = ticket

    def update_member(self, member: Member, ticket: int) -> None:
        """Update a member that joins again under its id; its join waits with this ticket."""
        self._count(self.round.members[member.member_id], -1)
        self._count(member, 1)
        self.round.members[member.member_id] = member
        older = self.round.joins.pop(member.member_id, None)
        if older is not None:
            self._answer_older_join(older, member.member_id)
        self.round.joins[member.member_id] = ticket

    def replace_member(self, old_id: str, member: Member) -> None:
        """Replace the id of a static member, in its place; requests of the old id are answered."""
        now = self.round
        assert member.instance_id is not None
        self._count(now.members[old_id], -1)
        self._count(member, 1)
        now.members = {
            (member.member_id if key == old_id else key): (member if key == old_id else each)
            for key, each in now.members.items()
        }
        now.static_members[member.instance_id] = member.member_id
        fenced = errors.FENCED_INSTANCE_ID
        ticket = now.joins.pop(old_id, None)
        if ticket is not None:
            self.decision.answers.append(JoinAnswer(ticket, fenced, member_id=old_id))
        self.fail_sync(old_id, fenced)
        if old_id in now.unsynced:
            del now.unsynced[old_id]
            now.unsynced[member.member_id] = None
        if old_id in now.assignments:
            now.assignments[member.member_id] = now.assignments.pop(old_id)
        if now.leader_id == old_id:
            now.leader_id = member.member_id
        self.end_heartbeat(old_id)

    def remove_member(self, member_id: str, reason: str) -> None:
        """Remove a member; its waiting requests are answered UNKNOWN_MEMBER_ID."""
        now = self.round
        member = now.members.pop(member_id)
        self._count(member, -1)
        if member.instance_id is not None:
            now.static_members.pop(member.instance_id, None)
        ticket = now.joins.pop(member_id, None)
        if ticket is not None:
            self.decision.answers.append(JoinAnswer(ticket, errors.UNKNOWN_MEMBER_ID, member_id=""))
        self.fail_sync(member_id, errors.UNKNOWN_MEMBER_ID)
        now.unsynced.pop(member_id, None)
        now.assignments_size -= len(now.assignments.pop(member_id, b""))
        if now.leader_id == member_id:
            now.leader_id = next(iter(now.members), None)
        self.end_heartbeat(member_id)
        self._removed.append(
            MemberRemoved(
                member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                reason,
                self.silent_ms(member_id),
            )
        )

    def remove_pending_member(self, member_id: str, reason: str) -> None:
        """Remove an id that was given out, which then is invalid."""
        del self.round.pending_members[member_id]
        self.end_heartbeat(member_id)
        silent_ms = self.silent_ms(member_id)
        self._removed.append(MemberRemoved(member_id, None, "", "", reason, silent_ms))

    def _count(self, member: Member, change: int) -> None:
        self.round.members_size += change * member.size
        counts = self.round.protocol_counts
        for name, _ in member.protocols:
            count = counts.get(name, 0) + change
            if count == 0:
                del counts[name]
            else:
                counts[name] = count

    # -- the round

    def rebalance_or_complete_join(self, reason: str) -> None:
        """Begin a rebalance because a member came, left or changed; if one is under way, end its
        join phase if that is possible.
        """
        if self.round.phase == PREPARING_REBALANCE:
            self.decision.notes.append(RoundChanged(self.round.generation_id, reason))
            self.maybe_complete_join()
        else:
            self.begin_rebalance(reason)

    def begin_rebalance(self, reason: str) -> None:
        """Begin a rebalance, in which all members must join again."""
        now = self.round
        is_initial = now.phase == EMPTY
        if now.phase != COMPLETING_REBALANCE:
            now.stands_since_ms = self.moment.now_ms
        for member_id in list(now.syncs):
            self.fail_sync(member_id, errors.REBALANCE_IN_PROGRESS)
            self.restart_session(now.members[member_id])
        self.set_assignments({})
        self._clear_unsynced()
        self._enter(PREPARING_REBALANCE)
        now.is_initial = is_initial
        self.decision.notes.append(RebalanceBegan(now.generation_id, reason))
        if is_initial:
            delay_ms = self.moment.settings.group_initial_rebalance_delay_ms
            now.was_extended_by_join = False
            now.initial_delay_ms = delay_ms
            now.initial_remaining_ms = max(now.rebalance_timeout_ms() - delay_ms, 0)
            now.join_deadline_ms = self.moment.now_ms + delay_ms
        elif now.has_everyone_joined():
            self.complete_join()
        else:
            now.join_deadline_ms = self.moment.now_ms + now.rebalance_timeout_ms()

    def maybe_complete_join(self) -> None:
        """End the join phase if all members have joined and it is not the initial one."""
        now = self.round
        if now.phase == PREPARING_REBALANCE and not now.is_initial and now.has_everyone_joined():
            self.complete_join()

    def extend_initial_delay(self) -> bool:
        """Extend the initial delay at its end if more members came and time is left; return True if
        it was extended.
        """
        now = self.round
        if not (now.is_initial and now.was_extended_by_join and now.initial_remaining_ms > 0):
            return False
        now.was_extended_by_join = False
        delay_ms = min(
            self.moment.settings.group_initial_rebalance_delay_ms, now.initial_remaining_ms
        )
        now.initial_remaining_ms = max(now.initial_remaining_ms - now.initial_delay_ms, 0)
        now.initial_delay_ms = delay_ms
        now.join_deadline_ms = self.moment.now_ms + delay_ms
        return True

    def complete_join(self) -> None:
        """End the join phase: drop dynamic members that did not rejoin, begin a generation."""
        now = self.round
        for member in list(now.members.values()):
            if member.instance_id is None and member.member_id not in now.joins:
                self.remove_member(
                    member.member_id, "it did not rejoin within the rebalance time-out"
                )
        if now.members and not now.joins:
            # Only static members are left and none rejoined: they may until their sessions end.
            wait_ms = max(now.rebalance_timeout_ms(), EXTENSION_MS_MIN)
            now.join_deadline_ms = self.moment.now_ms + wait_ms
            return
        if now.leader_id not in now.joins:
            now.leader_id = next((each for each in now.members if each in now.joins), None)
        now.generation_id += 1
        now.join_deadline_ms = None
        now.is_initial = False
        self._clear_unsynced()
        if now.members:
            self._begin_generation()
        else:
            self._become_empty()

    def _begin_generation(self) -> None:
        now = self.round
        now.protocol_name = now.selected_protocol()
        self._enter(COMPLETING_REBALANCE)
        assert now.leader_id is not None
        self.decision.notes.append(
            GenerationBegan(now.generation_id, now.protocol_name, now.leader_id, len(now.members))
        )
        for member in list(now.members.values()):
            ticket = now.joins.pop(member.member_id, None)
            if ticket is not None:
                self.decision.answers.append(self.joined(ticket, member.member_id))
            settled = replace(member, is_new=False) if member.is_new else member
            now.members[member.member_id] = settled
            now.unsynced[member.member_id] = None
            self.restart_session(settled)
        now.sync_deadline_ms = self.moment.now_ms + now.rebalance_timeout_ms()

    def _become_empty(self) -> None:
        now = self.round
        now.protocol_name = None
        now.leader_id = None
        self._enter(EMPTY)
        self.decision.notes.append(BecameEmpty(now.generation_id))
        self.append(EmptyAppend([self.metadata({})]))

    def note_sync(self, member_id: str) -> None:
        """Note that the member has sent SyncGroup; the last one ends the sync operation."""
        now = self.round
        now.unsynced.pop(member_id, None)
        if not now.unsynced:
            now.sync_deadline_ms = None

    def enter_stable(self, assignments: dict[str, bytes]) -> None:
        """Enter Stable, because the assignment is durable."""
        self.set_assignments(assignments)
        self._enter(STABLE)

    def set_assignments(self, assignments: dict[str, bytes]) -> None:
        """Replace the assignments of all members."""
        self.round.assignments = assignments
        self.round.assignments_size = sum(map(len, assignments.values()))

    def die(self) -> None:
        """Enter Dead: until the removal is durable, requests for the group must be retried."""
        for member_id in list(self.round.pending_members):
            self.end_heartbeat(member_id)
        self.round.pending_members = {}
        self._enter(DEAD)

    def revive(self) -> None:
        """Return a group that could not be removed to Empty."""
        assert self.round.phase == DEAD
        self.round.phase = EMPTY

    def _clear_unsynced(self) -> None:
        self.round.unsynced = {}
        self.round.sync_deadline_ms = None

    def _enter(self, phase: int) -> None:
        assert self.round.phase in LEGAL_BEFORE[phase]
        self.round.phase = phase
        if phase != DEAD:
            # A group that cannot be removed keeps the time at which it became Empty.
            self.round.state_timestamp_ms = self.moment.now_wall_ms

    # -- answers

    def joined(self, ticket: int, member_id: str) -> JoinAnswer:
        """Return the answer to a join, with the current generation."""
        now = self.round
        is_leader = member_id == now.leader_id
        return JoinAnswer(
            ticket,
            member_id=member_id,
            generation_id=now.generation_id,
            protocol_type=now.protocol_type,
            protocol_name=now.protocol_name,
            leader_id=now.leader_id or "",
            members=self.members_for_leader() if is_leader else (),
        )

    def members_for_leader(self) -> tuple[JoinedMember, ...]:
        """Return all members with their metadata for the chosen protocol."""
        now = self.round
        return tuple(
            JoinedMember(each.member_id, each.instance_id, each.metadata(now.protocol_name))
            for each in now.members.values()
        )

    def synced(self, ticket: int, member_id: str) -> SyncAnswer:
        """Return the answer to a SyncGroup, with the member's assignment."""
        now = self.round
        return SyncAnswer(
            ticket,
            protocol_type=now.protocol_type,
            protocol_name=now.protocol_name,
            assignment=now.assignments.get(member_id, b""),
        )

    def fail_sync(self, member_id: str, error_code: int) -> None:
        """Answer the member's SyncGroup with this error, if it waits."""
        ticket = self.round.syncs.pop(member_id, None)
        if ticket is not None:
            self.decision.answers.append(SyncAnswer(ticket, error_code))

    def _answer_older_join(self, ticket: int, member_id: str) -> None:
        self.decision.answers.append(
            JoinAnswer(ticket, errors.REBALANCE_IN_PROGRESS, member_id=member_id)
        )

    # -- records

    def metadata(self, assignments: dict[str, bytes]) -> GroupMetadata:
        """Return the record of this generation; a member that was forgotten has no assignment."""
        now = self.round
        return GroupMetadata(
            self.group.group_id,
            protocol_type=now.protocol_type or "",
            generation_id=now.generation_id,
            protocol_name=now.protocol_name,
            leader_id=now.leader_id,
            state_timestamp_ms=now.state_timestamp_ms,
            members=[
                MemberRow(
                    each.member_id,
                    each.instance_id,
                    each.client_id,
                    each.client_host,
                    each.rebalance_timeout_ms,
                    each.session_timeout_ms,
                    each.metadata(now.protocol_name),
                    assignments.get(each.member_id, b""),
                )
                for each in now.members.values()
            ],
        )
