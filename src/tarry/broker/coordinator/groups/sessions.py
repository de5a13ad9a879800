"""Sessions of the members of a shard: one operation a member, whose deadline moves.

A sign of life from a member moves its deadline in place, so a heartbeat makes no new operation.
"""

from __future__ import annotations

from tarry.broker.coordinator.groups.context import GroupContext
from tarry.broker.coordinator.groups.waiting import (
    DecisionCarrier,
    DelayedGroupOperation,
    GroupWaiting,
)
from tarry.group.decision import Decision, HeartbeatWait
from tarry.group.state import GroupState


class DelayedHeartbeat(DelayedGroupOperation):
    """Session of one member, or of a member id that was given out.

    Its watch key is group and member.  It ends when the member has left, was removed or replaced.
    """

    def __init__(
        self, waiting: GroupWaiting, group_id: str, member_id: str, deadline_ms: int
    ) -> None:
        super().__init__(waiting, group_id, (group_id, member_id), deadline_ms)
        self.member_id = member_id


class Sessions(GroupWaiting):
    """Sessions of a shard, by group and member."""

    def __init__(self, context: GroupContext, carrier: DecisionCarrier) -> None:
        super().__init__(context.heartbeats, context, carrier)

    def follow(self, group_id: str, wait: HeartbeatWait) -> None:
        """Begin, move or end a session."""
        if wait.ends or wait.deadline_ms is None:
            self.end((group_id, wait.member_id))
        else:
            self.move(group_id, wait.member_id, wait.deadline_ms)

    def move(self, group_id: str, member_id: str, deadline_ms: int) -> None:
        """Begin a session, or move its end."""
        operation = self.operations.get((group_id, member_id))
        if operation is None:
            self.begin(DelayedHeartbeat(self, group_id, member_id, deadline_ms))
            return
        # A session time-out of 0 would be due at once; the timer takes deadlines of the next turn
        # on.
        due_ms = max(deadline_ms, self.context.turn.now_ms + 1)
        self.context.timer.reschedule(operation, due_ms)

    def expire(self, operation: DelayedGroupOperation) -> None:
        assert isinstance(operation, DelayedHeartbeat)
        super().expire(operation)
        moved = self.carrier.group(operation.group_id).heartbeats.get(operation.member_id)
        if moved is not None and moved.deadline_ms is not None:
            # An expiry before this one in the same turn has restarted the session.
            self.move(operation.group_id, operation.member_id, moved.deadline_ms)

    def decide_expired(self, group: GroupState, operation: DelayedGroupOperation) -> Decision:
        assert isinstance(operation, DelayedHeartbeat)
        moment = self.context.moment()
        return group.kind.decide_session_expired(group, operation.member_id, moment)

    def decide_unheard(self, group: GroupState, operation: DelayedGroupOperation) -> Decision:
        assert isinstance(operation, DelayedHeartbeat)
        now_ms = self.context.turn.now_ms
        moved = group.heartbeats.get(operation.member_id)
        if moved is None or moved.deadline_ms is None or now_ms < moved.deadline_ms:
            # Another session of the group has expired in this turn, which has restarted all of
            # them.
            return Decision(now_ms)
        return super().decide_unheard(group, operation)
