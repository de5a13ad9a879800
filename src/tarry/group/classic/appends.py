"""Appends of a classic group, and the decisions when they are recorded or have failed."""

from __future__ import annotations

from tarry.base import errors
from tarry.group.classic.notes import BecameStable
from tarry.group.classic.requests import JoinAnswer
from tarry.group.classic.round import COMPLETING_REBALANCE, STABLE, GroupRound, Member
from tarry.group.classic.state import ClassicGroup
from tarry.group.classic.transitions import Draft
from tarry.group.decision import Append, Decision, Moment
from tarry.group.records import GroupRecord


class AssignmentAppend(Append[ClassicGroup]):
    """Append of the leader's assignment: the group becomes Stable if its round has not changed."""

    what = "the assignment"

    def __init__(
        self, records: list[GroupRecord], generation_id: int, assignments: dict[str, bytes]
    ) -> None:
        super().__init__(records)
        self.generation_id = generation_id
        self.assignments = assignments

    def is_of(self, now: GroupRound) -> bool:
        """Return False if the group has left this round while the assignment was written."""
        return now.phase == COMPLETING_REBALANCE and self.generation_id == now.generation_id

    def recorded(self, group: ClassicGroup, moment: Moment) -> Decision:
        draft = Draft(group, moment)
        now = draft.round
        if self.is_of(now):
            draft.enter_stable(self.assignments)
            for member_id, ticket in list(now.syncs.items()):
                draft.decision.answers.append(draft.synced(ticket, member_id))
                draft.restart_session(now.members[member_id])
            now.syncs = {}
            stood_ms = moment.now_ms - now.stands_since_ms
            draft.decision.notes.append(BecameStable(now.generation_id, stood_ms))
        return draft.finish()

    def failed(self, group: ClassicGroup, error_code: int, moment: Moment) -> Decision:
        draft = Draft(group, moment)
        now = draft.round
        if self.is_of(now):
            for member_id in list(now.syncs):
                draft.fail_sync(member_id, error_code)
                draft.restart_session(now.members[member_id])
            name = errors.error_name(error_code)
            draft.begin_rebalance(f"the assignment could not be stored: {name}")
        return draft.finish()


class StaticAppend(Append[ClassicGroup]):
    """Append for a static member that came back under a new id and needs no rebalance.

    `joined` is its answer, with the new id; `previous` is the member as it was before.
    `origin` is the append of the previous id, if that one was under way itself.
    """

    what = "the new id of a static member"

    def __init__(
        self,
        records: list[GroupRecord],
        joined: JoinAnswer,
        previous: Member,
        leader_id: str,
        origin: StaticAppend | None,
    ) -> None:
        super().__init__(records)
        self.joined = joined
        self.previous = previous
        # The leader before the change: older clients get it in the answer.
        self.leader_id = leader_id
        self.origin = origin

    def is_waited_for(self, now: GroupRound) -> bool:
        """Return True if the member's join still waits for this record, and not for the end of a
        join phase.
        """
        joined = self.joined
        return now.phase == STABLE and now.joins.get(joined.member_id) == joined.ticket

    def recorded(self, group: ClassicGroup, moment: Moment) -> Decision:
        draft = Draft(group, moment)
        now = draft.round
        if self.is_waited_for(now):
            del now.joins[self.joined.member_id]
            draft.decision.answers.append(self.joined)
            draft.restart_session(now.members[self.joined.member_id])
        return draft.finish()

    def failed(self, group: ClassicGroup, error_code: int, moment: Moment) -> Decision:
        draft = Draft(group, moment)
        now = draft.round
        joined = self.joined
        is_same_round = now.phase == STABLE and now.generation_id == joined.generation_id
        if not is_same_round or joined.member_id not in now.members:
            # A rebalance has begun meanwhile: it continues with the new id, and its end answers the
            # join.  Or a later member has replaced this one; if its append fails too, it goes back
            # to the member before this one.
            return draft.finish()
        is_waited_for = self.is_waited_for(now)
        now.joins.pop(joined.member_id, None)
        previous = self.member_to_go_back_to()
        draft.replace_member(joined.member_id, previous)
        draft.restart_session(previous)
        if is_waited_for:
            draft.decision.answers.append(
                JoinAnswer(
                    joined.ticket,
                    error_code,
                    member_id="",
                    generation_id=now.generation_id,
                    protocol_type=now.protocol_type,
                    protocol_name=now.protocol_name,
                    leader_id=self.leader_id,
                )
            )
        return draft.finish()

    def member_to_go_back_to(self) -> Member:
        """Return the newest member before this one whose id is, or may yet become, durable."""
        append = self
        while append.origin is not None and append.origin.has_failed:
            append = append.origin
        return append.previous
