"""Events of a group consumer; only a poll or a close calls the user back for them."""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.base.ids import TopicPartition

# Kind of event: the member owns these partitions from now on.
ASSIGNED: Final = 1
# Kind of event: the member gives these partitions up when the callback has returned.
REVOKED: Final = 2
# Kind of event: other members may own these partitions already.
LOST: Final = 3

EVENT_NAMES: Final = {ASSIGNED: "assigned", REVOKED: "revoked", LOST: "lost"}


class GroupEvent(NamedTuple):
    """Event of a rebalance: partitions that were assigned, revoked, or lost."""

    kind: int
    places: list[TopicPartition]

    @property
    def callback(self) -> str:
        """Name of the listener's method for this event."""
        return f"on_{EVENT_NAMES[self.kind]}"

    def tell(self, listener: object, consumer: object) -> object:
        """Call the listener's method, and return its result."""
        return getattr(listener, self.callback)(consumer, list(self.places))
