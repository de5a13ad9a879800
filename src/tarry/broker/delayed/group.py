"""What waits in a group: a join phase, a sync phase, a member's session.

Each is the one operation of its kind that its shard holds; it is over when the shard holds it no
more, and at its deadline the shard decides what that means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from tarry.broker.coordinator.shard import Shard


class DelayedGroupOperation(DelayedOperation):
    """An operation of one group."""

    def __init__(self, shard: Shard, group_id: str, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.shard: Shard | None = shard
        self.group_id = group_id

    def is_awaited(self, shard: Shard) -> bool:
        """Whether the shard still holds this operation."""
        raise NotImplementedError

    def expire_in(self, shard: Shard) -> None:
        """The deadline has come while the shard held it."""
        raise NotImplementedError

    def try_complete(self) -> bool:
        shard = self.shard
        if shard is not None and self.is_awaited(shard):
            return False
        # Completed operations linger under their keys: keep nothing alive (KAFKA-19389).
        self.shard = None
        return self.force_complete()

    def on_complete(self) -> None:
        """Answers nobody: the decision that ended the wait has named the answers."""

    def on_expiration(self) -> None:
        shard = self.shard
        self.shard = None
        assert shard is not None
        self.expire_in(shard)
