"""Membership of this broker in a cluster, as far as the broker knows of it.

What a broker alone never needs is imported by `cluster_start`, not by the broker.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Event

# Entries that a membership has in the broker's timer at most: its life's step; of its store a
# call's deadline, a retry and the watch's alarm; its own next look, the next claim, the end of a
# hand-over, the end of a life's place, the next question to others.
TIMER_ENTRIES_MAX: Final = 9


class ClusterMembership:
    """A broker that shares its metadata with others.  Without a cluster there is none."""

    @property
    def is_serving(self) -> bool:
        """True once the others know that this broker serves."""
        raise NotImplementedError

    @property
    def own_epoch(self) -> int:
        """The life in which this broker may lead, until it is known to be over; -1: there is
        none.
        """
        raise NotImplementedError

    @property
    def ending_epoch(self) -> int:
        """The previous life, while this broker still leads by it; -1 if there is none."""
        raise NotImplementedError

    @property
    def is_alive(self) -> bool:
        """True while nobody can have counted this broker as dead: its own expiry is ahead."""
        raise NotImplementedError

    @property
    def has_lived(self) -> bool:
        """True once there was a life of this process, over or not."""
        raise NotImplementedError

    def is_expected(self, broker_id: int) -> bool:
        """Return whether a broker without a life is expected to begin the next one soon."""
        raise NotImplementedError

    def on_event(self, event: Event) -> None:
        """Take an answer of the shared store."""
        raise NotImplementedError

    def stop(self) -> None:
        """Hand over what this broker leads, then have it stop; asked again: stop at once."""
        raise NotImplementedError

    def leave(self) -> bool:
        """Tell the others that this broker is gone, which does nothing more; true once they can
        know it.
        """
        raise NotImplementedError

    def on_last_event(self, event: Event) -> None:
        """Take what tells that the others know; nothing else is done any more."""
        raise NotImplementedError
