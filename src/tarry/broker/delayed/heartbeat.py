"""DelayedHeartbeat: a member's session, one operation a member whose deadline moves.

Watched under group and member.  Whoever hears of the member moves the deadline in place, so a
heartbeat makes no object.  It is over when the member has left, was removed or replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from tarry.broker.coordinator.shard import Shard


class DelayedHeartbeat(DelayedOperation):
    """The session of one member, or of an id that was given out."""

    def __init__(self, shard: Shard, group_id: str, member_id: str, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.shard: Shard | None = shard
        self.group_id = group_id
        self.member_id = member_id

    def try_complete(self) -> bool:
        shard = self.shard
        if shard is not None and shard.waits_for_heartbeat(self):
            return False
        return self.force_complete()

    def on_complete(self) -> None:
        # Completed operations linger under their keys: keep nothing alive (KAFKA-19389).
        shard = self.shard
        if shard is not None and not shard.waits_for_heartbeat(self):
            self.shard = None

    def on_expiration(self) -> None:
        shard = self.shard
        self.shard = None
        if shard is not None:
            shard.expire_session(self)
