"""Rounds of the groups of a shard: join phases wait for members, sync phases for SyncGroup."""

from __future__ import annotations

from tarry.broker.coordinator.groups.context import GroupContext
from tarry.broker.coordinator.groups.waiting import (
    DecisionCarrier,
    DelayedGroupOperation,
    GroupWaiting,
)
from tarry.group.decision import Decision
from tarry.group.outcomes import decide_join_expired, decide_sync_expired
from tarry.group.state import GroupState


class DelayedJoin(DelayedGroupOperation):
    """Join phase that waits for its members, one operation a round.

    Watched under the group's id.  It is over when the group's round has moved on: everybody has
    joined and no id that was given out is open, or the phase was extended.  At its deadline the
    phase ends with those who came, or goes on: `decide_join_expired` knows.
    """


class DelayedSync(DelayedGroupOperation):
    """Generation that waits until every member has sent SyncGroup.

    Watched under the group's id.  The answers do not wait for it: they go when the leader's
    assignment is recorded.  At its deadline the members without a sync are removed, though they
    may send heartbeats.
    """

    def __init__(
        self, waiting: GroupWaiting, group_id: str, generation_id: int, deadline_ms: int
    ) -> None:
        super().__init__(waiting, group_id, group_id, deadline_ms)
        self.generation_id = generation_id


class JoinPhases(GroupWaiting):
    """Join phases of a shard, by group id."""

    def __init__(self, context: GroupContext, carrier: DecisionCarrier) -> None:
        super().__init__(context.joins, context, carrier)

    def follow(self, group: GroupState) -> None:
        """Begin or end what the group's round says."""
        group_id = group.group_id
        deadline_ms = group.round.join_deadline_ms
        operation = self.operations.get(group_id)
        if operation is not None and deadline_ms != operation.deadline_ms:
            self.end(group_id)
        if deadline_ms is not None and group_id not in self.operations:
            self.begin(DelayedJoin(self, group_id, group_id, deadline_ms))

    def decide_expired(self, group: GroupState, operation: DelayedGroupOperation) -> Decision:
        return decide_join_expired(group, self.context.moment())


class SyncPhases(GroupWaiting):
    """Sync phases of a shard, by group id."""

    def __init__(self, context: GroupContext, carrier: DecisionCarrier) -> None:
        super().__init__(context.syncs, context, carrier)

    def follow(self, group: GroupState) -> None:
        """Begin or end what the group's round says."""
        group_id = group.group_id
        now = group.round
        deadline_ms = now.sync_deadline_ms
        operation = self.operations.get(group_id)
        if operation is not None:
            assert isinstance(operation, DelayedSync)
            if deadline_ms != operation.deadline_ms or now.generation_id != operation.generation_id:
                self.end(group_id)
        if deadline_ms is not None and group_id not in self.operations:
            self.begin(DelayedSync(self, group_id, now.generation_id, deadline_ms))

    def decide_expired(self, group: GroupState, operation: DelayedGroupOperation) -> Decision:
        assert isinstance(operation, DelayedSync)
        return decide_sync_expired(group, operation.generation_id, self.context.moment())
