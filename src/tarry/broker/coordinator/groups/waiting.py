"""Waiting operations of the groups of a shard: phases of groups, sessions of members.

There is one operation for each key.  An operation that is not held here any more is over.  At its
deadline the group decides.
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
    """Carrier of the decisions about the groups of one shard."""

    def group(self, group_id: str) -> GroupState:
        """Return the group, or one that does not exist yet."""
        raise NotImplementedError

    def carry_out(self, group: GroupState, decision: Decision) -> None:
        """Put a decision into effect."""
        raise NotImplementedError

    def hears_members(self) -> bool:
        """Return whether members were heard: a leader that may not act sends them away."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class DelayedGroupOperation(PayloadOperation["GroupWaiting"]):
    """Operation of one group.  It answers nobody: the decision that ends it has the answers."""

    def __init__(
        self, waiting: GroupWaiting, group_id: str, key: Hashable, deadline_ms: int
    ) -> None:
        super().__init__(deadline_ms, waiting)
        self.group_id = group_id
        self.key = key

    def complete_with(self, payload: GroupWaiting) -> None:
        if payload.operations.get(self.key) is self:
            # Nobody has ended it: this is the deadline.
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
        """Wait; an operation that is due already expires here."""
        self.operations[operation.key] = operation
        self.purgatory.watch(operation, [operation.key])

    def end(self, key: Hashable) -> None:
        """Wait no longer for the operation under this key."""
        operation = self.operations.pop(key, None)
        if operation is not None:
            operation.force_complete()
            self.purgatory.cancel(operation)

    def end_all(self) -> None:
        """End all operations without a decision."""
        for key in list(self.operations):
            self.end(key)

    def expire(self, operation: DelayedGroupOperation) -> None:
        """Carry out what the deadline means; where no member is heard it begins anew."""
        del self.operations[operation.key]
        group = self.carrier.group(operation.group_id)
        if self.carrier.hears_members():
            decision = self.decide_expired(group, operation)
        else:
            decision = self.decide_unheard(group, operation)
        self.carrier.carry_out(group, decision)
        # What has expired is not to linger under its key until a purge: the group may be gone.
        self.purgatory.cancel(operation)

    def decide_expired(self, group: GroupState, operation: DelayedGroupOperation) -> Decision:
        """Decide what the deadline means."""
        raise NotImplementedError

    def decide_unheard(self, group: GroupState, operation: DelayedGroupOperation) -> Decision:
        """Decide what the deadline means where nobody was heard: nobody is removed for that."""
        return group.kind.decide_fresh_sessions(group, self.context.moment())
