"""State of a classic group: its record, and the round of its members in memory.

`recorded` is durable: the newest generation whose assignment is in the log, or an Empty group.
`round` is volatile: members, waiting requests, deadlines.  A loaded group begins its round from the
record.  Once a group is Stable and no append of it is pending, the round has the members and the
assignment of the record.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.group.classic.records import GroupMetadata
from tarry.group.classic.requests import JoinAnswer, SyncAnswer
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    CONSUMER_PROTOCOL_TYPE,
    DEAD,
    EMPTY,
    PHASE_NAMES,
    PREPARING_REBALANCE,
    STABLE,
    GroupRound,
)
from tarry.group.classic.subscriptions import subscribed_topics
from tarry.group.decision import Decision, HeartbeatWait
from tarry.group.records import NO_TIMESTAMP
from tarry.group.requests import Answer
from tarry.group.state import GroupKind, GroupState

# Phases in which a whole group waits, and the names of their purgatories.
JOIN: Final = "Join"
SYNC: Final = "Sync"


def member_error(now: GroupRound, member_id: str, instance_id: str | None) -> int:
    """Return the error of a request that names this member; NONE if there is such a member."""
    if instance_id is not None:
        known_id = now.static_members.get(instance_id)
        if known_id is None:
            return errors.UNKNOWN_MEMBER_ID
        if known_id != member_id:
            return errors.FENCED_INSTANCE_ID
    return errors.NONE if member_id in now.members else errors.UNKNOWN_MEMBER_ID


class ClassicDecision(Decision):
    """Decision with a new round for a classic group.

    The round's `join_deadline_ms` and `sync_deadline_ms` become the deadlines of the group's join
    and sync operations; None ends the operation.
    """

    def __init__(self, now_ms: int, round_: GroupRound) -> None:
        super().__init__(now_ms)
        self.has_moved = True
        self.round = round_


class ClassicGroup(GroupState):
    """State of a classic group, durable and volatile."""

    def __init__(self, kind: GroupKind[ClassicGroup], group_id: str) -> None:
        super().__init__(kind, group_id)
        self.recorded: GroupMetadata | None = None
        self.round = GroupRound()

    def take(self, decision: Decision) -> None:
        if isinstance(decision, ClassicDecision):
            self.round = decision.round
        super().take(decision)

    def is_vacant(self) -> bool:
        now = self.round
        return self.recorded is None and not now.pending_members and now.phase in (EMPTY, DEAD)

    def is_empty(self) -> bool:
        return self.round.phase == EMPTY

    def is_idle(self) -> bool:
        return self.round.phase == EMPTY and not self.round.pending_members

    def is_dead(self) -> bool:
        return self.round.phase == DEAD

    def state_name(self) -> str:
        return PHASE_NAMES[self.round.phase]

    def protocol_type(self) -> str:
        return self.round.protocol_type or ""

    def members_size(self) -> int:
        return self.round.metadata_size

    def commit_error(self, member_id: str, instance_id: str | None, epoch: int) -> int:
        now = self.round
        if epoch < 0 and member_id == "" and instance_id is None:
            return errors.UNKNOWN_MEMBER_ID
        error_code = member_error(now, member_id, instance_id)
        if error_code != errors.NONE:
            return error_code
        if epoch != now.generation_id:
            return errors.ILLEGAL_GENERATION
        if now.phase == COMPLETING_REBALANCE:
            return errors.REBALANCE_IN_PROGRESS
        return errors.NONE

    def hear_commit(self, member_id: str, decision: Decision) -> None:
        member = self.round.members.get(member_id)
        if member is None or member.is_new:
            return
        if self.round.phase in (STABLE, PREPARING_REBALANCE):
            now_ms = decision.now_ms
            deadline_ms = now_ms + member.session_timeout_ms
            decision.heartbeats.append(HeartbeatWait(member_id, deadline_ms, heard_ms=now_ms))

    def retention(self) -> tuple[dict[str, None] | None, int]:
        now = self.round
        if now.protocol_type is None:
            return {}, NO_TIMESTAMP
        if now.phase == EMPTY:
            return {}, now.state_timestamp_ms
        return (subscribed_topics(now) if now.phase == STABLE else None), NO_TIMESTAMP

    def can_lose_offsets(self) -> bool:
        return self.round.phase == EMPTY or self.round.protocol_type == CONSUMER_PROTOCOL_TYPE

    def topics_in_use(self) -> dict[str, None] | None:
        if self.round.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return {}
        return subscribed_topics(self.round)

    def deadline_ms(self, phase: str) -> int | None:
        return self.round.join_deadline_ms if phase == JOIN else self.round.sync_deadline_ms

    def waiting_answers(self, error_code: int) -> list[Answer]:
        now = self.round
        answers: list[Answer] = [
            JoinAnswer(ticket, error_code, member_id=member_id)
            for member_id, ticket in now.joins.items()
        ]
        return answers + [SyncAnswer(ticket, error_code) for ticket in now.syncs.values()]
