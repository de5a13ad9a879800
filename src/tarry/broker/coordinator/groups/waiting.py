"""Waiting operations in the groups of a shard: join phases, sync phases, sessions of members.

Each kind has one operation under a key, which is over when it is held here no more.  At its
deadline a decision about the group says what comes of it.
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
        self.purgatory.try_complete_else_watch(operation, [operation.key])

    def end(self, key: Hashable) -> None:
        """Wait no longer for the operation under this key."""
        operation = self.operations.pop(key, None)
        if operation is not None:
            operation.force_complete()
            self.purgatory.cancel(operation)

    def expire(self, operation: DelayedGroupOperation) -> None:
        """Carry out what the deadline means."""
        del self.operations[operation.key]
        group = self.carrier.group(operation.group_id)
        self.carrier.carry_out(group, self.decide_expired(group, operation))
        # What has expired is not to linger under its key until a purge: the group may be gone.
        self.purgatory.cancel(operation)

    def decide_expired(self, group: GroupState, operation: DelayedGroupOperation) -> Decision:
        """Decide what the deadline means."""
        raise NotImplementedError
