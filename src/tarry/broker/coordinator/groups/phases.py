"""Phases of the groups of a shard: times in which a group waits for all its members."""

from __future__ import annotations

from tarry.broker.coordinator.groups.context import GroupContext
from tarry.broker.coordinator.groups.waiting import (
    DecisionCarrier,
    DelayedGroupOperation,
    GroupWaiting,
)
from tarry.group.decision import Decision
from tarry.group.state import GroupState


class DelayedPhase(DelayedGroupOperation):
    """Phase in which a group waits for its members, such as a join phase or a sync phase.

    The group's id is its watch key.  The phase is over when the group has moved on; the decision
    that moves the group also answers the members.  At the deadline the group's kind decides about
    the members that are missing: `GroupKind.decide_phase_expired`.
    """


class Phases(GroupWaiting):
    """Phases of one name in the groups of a shard, by group id."""

    def __init__(self, name: str, context: GroupContext, carrier: DecisionCarrier) -> None:
        super().__init__(context.phases[name], context, carrier)
        self.name = name

    def follow(self, group: GroupState) -> None:
        """Begin, move or end the group's phase by the deadline that the group has."""
        group_id = group.group_id
        deadline_ms = group.deadline_ms(self.name)
        operation = self.operations.get(group_id)
        if operation is not None and deadline_ms != operation.deadline_ms:
            self.end(group_id)
        if deadline_ms is not None and group_id not in self.operations:
            self.begin(DelayedPhase(self, group_id, group_id, deadline_ms))

    def decide_expired(self, group: GroupState, operation: DelayedGroupOperation) -> Decision:
        return group.kind.decide_phase_expired(group, self.name, self.context.moment())
