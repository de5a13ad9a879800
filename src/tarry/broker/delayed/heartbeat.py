"""DelayedHeartbeat: a member's session, one operation a member whose deadline moves.

Watched under group and member.  Whoever hears of the member moves the deadline in place, so a
heartbeat makes no object.  It is over when the member has left, was removed or replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.broker.delayed.group import DelayedGroupOperation

if TYPE_CHECKING:
    from tarry.broker.coordinator.shard import Shard


class DelayedHeartbeat(DelayedGroupOperation):
    """The session of one member, or of an id that was given out."""

    def __init__(self, shard: Shard, group_id: str, member_id: str, deadline_ms: int) -> None:
        super().__init__(shard, group_id, deadline_ms)
        self.member_id = member_id

    def is_awaited(self, shard: Shard) -> bool:
        return shard.waits_for_heartbeat(self)

    def expire_in(self, shard: Shard) -> None:
        shard.expire_session(self)
