"""DelayedSync: a generation that waits until every member has sent SyncGroup.

Watched under group and generation.  The answers do not wait for it: they go when the leader's
assignment is recorded.  At its deadline the members without a sync are removed, though they may
send heartbeats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.broker.delayed.group import DelayedGroupOperation

if TYPE_CHECKING:
    from tarry.broker.coordinator.shard import Shard


class DelayedSync(DelayedGroupOperation):
    """The sync phase of one generation."""

    def __init__(self, shard: Shard, group_id: str, generation_id: int, deadline_ms: int) -> None:
        super().__init__(shard, group_id, deadline_ms)
        self.generation_id = generation_id

    def is_awaited(self, shard: Shard) -> bool:
        return shard.waits_for_sync(self)

    def expire_in(self, shard: Shard) -> None:
        shard.expire_sync(self)
