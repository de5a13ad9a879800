"""Events that the user of a group consumer is told, inside a poll and nowhere else."""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.base.ids import TopicPartition

# Ours from now on.
ASSIGNED: Final = 1
# Still ours until this was said.
REVOKED: Final = 2
# Already someone else's.
LOST: Final = 3

EVENT_NAMES: Final = {ASSIGNED: "assigned", REVOKED: "revoked", LOST: "lost"}


class GroupEvent(NamedTuple):
    """Event of a rebalance: partitions that were assigned, revoked, or lost."""

    kind: int
    places: list[TopicPartition]

    @property
    def callback(self) -> str:
        """Name of the listener's method that is called with it."""
        return f"on_{EVENT_NAMES[self.kind]}"

    def tell(self, listener: object, consumer: object) -> object:
        """Call the listener's method; returns what it returned."""
        return getattr(listener, self.callback)(consumer, list(self.places))
