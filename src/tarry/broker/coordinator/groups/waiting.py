"""Waiting operations of the groups of a shard: phases of groups, sessions of members.

There is one operation for each key.  An operation that this object no longer holds is over.  At the
deadline of an operation the group decides.
"""

from __future__ import annotations

from collections.abc import Hashable

from mypy_extensions import mypyc_attr, trait

from tarry.broker.coordinator.groups.context import GroupContext
from tarry.group.decision import Decision
from tarry.group.state import GroupState
from tarry.purgatory.operation import PayloadOperation
from tarry.purgatory.purgatory import Purgatory


@trait
class DecisionCarrier:
    """Object that carries out the decisions about the groups of one shard."""

    def group(self, group_id: str) -> GroupState:
        """Return the group with this id; a new one if none exists."""
        raise NotImplementedError

    def carry_out(self, group: GroupState, decision: Decision) -> None:
        """Put a decision into effect."""
        raise NotImplementedError

    def hears_members(self) -> bool:
        """Return whether members' heartbeats could arrive: not at a leader that may not act."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedGroupOperation(PayloadOperation["GroupWaiting"]):
    """Operation of one group.  It answers no request: the decision that ends it has the answers."""

    def __init__(
        self, waiting: GroupWaiting, group_id: str, key: Hashable, deadline_ms: int
    ) -> None:
        super().__init__(deadline_ms, waiting)
        self.group_id = group_id
        self.key = key

    def complete_with(self, payload: GroupWaiting) -> None:
        if payload.operations.get(self.key) is self:
            # The operation was not ended before, so it completes because of its deadline.
            payload.expire(self)


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupWaiting:
    """Operations of one kind, by key."""

    def __init__(
        self, purgatory: Purgatory, context: GroupContext, carrier: DecisionCarrier
    ) -> None:
        self.purgatory = purgatory
        self.context = context
        self.carrier = carrier
        self.operations: dict[Hashable, DelayedGroupOperation] = {}

    def begin(self, operation: DelayedGroupOperation) -> None:
        """Begin to wait; an operation that is due already expires here."""
        self.operations[operation.key] = operation
        self.purgatory.watch(operation, [operation.key])

    def end(self, key: Hashable) -> None:
        """End the operation with this key."""
        operation = self.operations.pop(key, None)
        if operation is not None:
            operation.force_complete()
            self.purgatory.cancel(operation)

    def end_all(self) -> None:
        """End all operations without a decision."""
        for key in list(self.operations):
            self.end(key)

    def expire(self, operation: DelayedGroupOperation) -> None:
        """Carry out the group's decision at the deadline; it restarts if heartbeats could not
        arrive.
        """
        del self.operations[operation.key]
        group = self.carrier.group(operation.group_id)
        if self.carrier.hears_members():
            decision = self.decide_expired(group, operation)
        else:
            decision = self.decide_unheard(group, operation)
        self.carrier.carry_out(group, decision)
        # An expired operation must not stay under its key until a purge: the group may be gone.
        self.purgatory.cancel(operation)

    def decide_expired(self, group: GroupState, operation: DelayedGroupOperation) -> Decision:
        """Return the group's decision at the deadline."""
        raise NotImplementedError

    def decide_unheard(self, group: GroupState, operation: DelayedGroupOperation) -> Decision:
        """Return the decision at a deadline before which heartbeats could not arrive: none is
        removed.
        """
        return group.kind.decide_fresh_sessions(group, self.context.moment())
