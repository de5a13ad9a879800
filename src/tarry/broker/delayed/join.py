"""DelayedJoin: a join phase that waits for its members, one operation a round.

Watched under the group's id.  It is over when the group's round has moved on: everybody has
joined and no id that was given out is open, or the phase was extended.  At its deadline the phase
ends with those who came, or goes on: `decide_join_expired` knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.broker.delayed.group import DelayedGroupOperation

if TYPE_CHECKING:
    from tarry.broker.coordinator.shard import Shard


class DelayedJoin(DelayedGroupOperation):
    """The join phase of one group."""

    def is_awaited(self, shard: Shard) -> bool:
        return shard.waits_for_join(self)

    def expire_in(self, shard: Shard) -> None:
        shard.expire_join(self)
