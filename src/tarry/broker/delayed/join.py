"""DelayedJoin: a join phase that waits for its members, one operation a round.

Watched under the group's id.  It is over when the group's round has moved on: everybody has
joined and no id that was given out is open, or the phase was extended.  At its deadline the phase
ends with those who came, or goes on: `decide_join_expired` knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from tarry.broker.coordinator.shard import Shard


class DelayedJoin(DelayedOperation):
    """The join phase of one group."""

    def __init__(self, shard: Shard, group_id: str, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.shard: Shard | None = shard
        self.group_id = group_id

    def try_complete(self) -> bool:
        shard = self.shard
        if shard is not None and shard.waits_for_join(self):
            return False
        return self.force_complete()

    def on_complete(self) -> None:
        # Completed operations linger under their keys: keep nothing alive (KAFKA-19389).
        shard = self.shard
        if shard is not None and not shard.waits_for_join(self):
            self.shard = None

    def on_expiration(self) -> None:
        shard = self.shard
        self.shard = None
        if shard is not None:
            shard.expire_join(self)
