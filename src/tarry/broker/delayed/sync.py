"""DelayedSync: a generation that waits until every member has sent SyncGroup.

Watched under group and generation.  The answers do not wait for it: they go when the leader's
assignment is recorded.  At its deadline the members without a sync are removed, though they may
send heartbeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from tarry.broker.coordinator.shard import Shard


class DelayedSync(DelayedOperation):
    """The sync phase of one generation."""

    def __init__(self, shard: Shard, group_id: str, generation_id: int, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.shard: Shard | None = shard
        self.group_id = group_id
        self.generation_id = generation_id

    def try_complete(self) -> bool:
        shard = self.shard
        if shard is not None and shard.waits_for_sync(self):
            return False
        return self.force_complete()

    def on_complete(self) -> None:
        # Completed operations linger under their keys: keep nothing alive (KAFKA-19389).
        shard = self.shard
        if shard is not None and not shard.waits_for_sync(self):
            self.shard = None

    def on_expiration(self) -> None:
        shard = self.shard
        self.shard = None
        if shard is not None:
            shard.expire_sync(self)
