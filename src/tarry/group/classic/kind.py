"""Kind of classic groups: the decisions that no request of a member causes.

Their causes are a deadline that has passed, the loading of the group's partition, a time in which
the broker did not run, and the removal of the group.
"""

from __future__ import annotations

from typing import Final

from tarry.group.classic.records import CLASSIC_DECODERS, CLASSIC_NAME, GroupTombstone
from tarry.group.classic.round import COMPLETING_REBALANCE, STABLE, GroupRound, Member
from tarry.group.classic.state import JOIN, SYNC, ClassicGroup
from tarry.group.classic.transitions import Draft
from tarry.group.decision import Decision, HeartbeatWait, Moment
from tarry.group.records import GroupRecord
from tarry.group.state import GroupKind
from tarry.group.views import DescribedGroup, DescribedMember


class ClassicKind(GroupKind[ClassicGroup]):
    """Kind of the groups of Kafka's classic protocol."""

    def new_group(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(self, group_id)

    def tombstones(self, group: ClassicGroup) -> list[GroupRecord]:
        return [GroupTombstone(group.group_id)]

    def described(self, group: ClassicGroup) -> DescribedGroup:
        """Describe the members in the order in which they joined, and the protocol if the group is
        Stable.
        """
        now = group.round
        is_stable = now.phase == STABLE
        return DescribedGroup(
            group.group_id,
            group.state_name(),
            group.protocol_type(),
            (now.protocol_name or "") if is_stable else "",
            tuple(
                DescribedMember(
                    each.member_id,
                    each.instance_id,
                    each.client_id,
                    each.client_host,
                    each.metadata(now.protocol_name) if is_stable else b"",
                    now.assignments.get(each.member_id, b""),
                )
                for each in now.members.values()
            ),
        )

    def decide_load(self, group: ClassicGroup, moment: Moment) -> Decision:
        """Begin the round of a loaded group: every member gets a new session.

        A group larger than `group.max.size` rebalances, and the members that rejoin last are
        refused.
        """
        assert not group.appends
        draft = Draft(group, moment)
        recorded = group.recorded
        now = draft.decision.round = draft.round = GroupRound()
        if recorded is None:
            return draft.finish()
        now.generation_id = recorded.generation_id
        now.protocol_type = recorded.protocol_type or None
        now.state_timestamp_ms = recorded.state_timestamp_ms
        assignments: dict[str, bytes] = {}
        for row in recorded.members:
            member = Member(
                row.member_id,
                row.instance_id,
                row.client_id,
                row.client_host,
                row.rebalance_timeout_ms,
                row.session_timeout_ms,
                ((recorded.protocol_name or "", row.subscription),),
            )
            if member.member_id in now.members:
                continue
            draft.add_member(member, recorded.protocol_type, None)
            assignments[member.member_id] = row.assignment
            draft.hear(member)
        draft.set_assignments(assignments)
        if not now.members:
            return draft.finish()
        now.phase = STABLE
        now.protocol_name = recorded.protocol_name or ""
        if recorded.leader_id in now.members:
            now.leader_id = recorded.leader_id
        if len(now.members) > moment.settings.group_max_size:
            draft.begin_rebalance("the group has more members than group.max.size allows")
        return draft.finish()

    def decide_removal(self, group: ClassicGroup, moment: Moment) -> Decision:
        draft = Draft(group, moment)
        draft.die()
        return draft.finish()

    def decide_revival(self, group: ClassicGroup, moment: Moment) -> Decision:
        draft = Draft(group, moment)
        draft.revive()
        return draft.finish()

    def decide_session_expired(
        self, group: ClassicGroup, member_id: str, moment: Moment
    ) -> Decision:
        """Remove a member whose session has ended, unless it waits for an answer of this broker."""
        now = group.round
        heartbeat = group.heartbeats.get(member_id)
        if (
            heartbeat is None
            or heartbeat.deadline_ms is None
            or moment.now_ms < heartbeat.deadline_ms
        ):
            return Decision(moment.now_ms)
        if member_id in now.pending_members:
            draft = Draft(group, moment)
            draft.remove_pending_member(member_id, "it did not come back with the id it was given")
            draft.maybe_complete_join()
            return draft.finish()
        member = now.members[member_id]
        if not member.is_new and (member_id in now.joins or member_id in now.syncs):
            decision = Decision(moment.now_ms)
            decision.heartbeats.append(HeartbeatWait(member_id, None))
            return decision
        draft = Draft(group, moment)
        reason = "its first join was not answered in time" if member.is_new else "its session ended"
        draft.remove_member(member_id, reason)
        draft.rebalance_or_complete_join(f"member {member_id} was removed: {reason}")
        return draft.finish()

    def decide_phase_expired(self, group: ClassicGroup, phase: str, moment: Moment) -> Decision:
        deadline_ms = group.deadline_ms(phase)
        if deadline_ms is None or moment.now_ms < deadline_ms:
            return Decision(moment.now_ms)
        draft = Draft(group, moment)
        if phase == SYNC:
            _end_sync_phase(draft)
        elif not draft.extend_initial_delay():
            draft.complete_join()
        return draft.finish()

    def decide_fresh_sessions(self, group: ClassicGroup, moment: Moment) -> Decision:
        """Restart every session and the join or sync phase, so that no member is removed because
        the broker did not run.
        """
        draft = Draft(group, moment)
        now = draft.round
        for member_id, heartbeat in group.heartbeats.items():
            if heartbeat.deadline_ms is None:
                continue
            # The broker did not run, so it could not receive a heartbeat before now.
            member = now.members.get(member_id)
            if member is None:
                draft.hear_until(member_id, now.pending_members[member_id])
            else:
                draft.hear(member)
        if now.join_deadline_ms is not None:
            wait_ms = now.initial_delay_ms if now.is_initial else now.rebalance_timeout_ms()
            now.join_deadline_ms = moment.now_ms + wait_ms
        if now.sync_deadline_ms is not None:
            now.sync_deadline_ms = moment.now_ms + now.rebalance_timeout_ms()
        return draft.finish()


def _end_sync_phase(draft: Draft) -> None:
    """Remove the members that sent no SyncGroup, even if they send heartbeats."""
    now = draft.round
    assert now.phase in (COMPLETING_REBALANCE, STABLE)
    removed = list(now.unsynced)
    for member_id in removed:
        draft.remove_member(member_id, "it did not sync within the rebalance time-out")
    draft.begin_rebalance(f"removed because they did not sync: {', '.join(removed)}")


# The phases come in the order in which their operations are renewed after a decision.  JOIN is the
# last, since it may expire at once and lead to the next decision.
CLASSIC: Final = ClassicKind(CLASSIC_NAME, CLASSIC_DECODERS, (SYNC, JOIN))
