"""Membership of this broker in a cluster, as far as the broker knows of it.

What a broker alone never needs is imported by `cluster_start`, not by the broker.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Event

# Entries that a membership has in the broker's timer at most: its life's step; of its store a
# call's deadline, a retry and the watch's alarm; its own next look, the next claim, the end of a
# hand-over.
TIMER_ENTRIES_MAX: Final = 7


class ClusterMembership:
    """A broker that shares its metadata with others.  Without a cluster there is none."""

    @property
    def is_serving(self) -> bool:
        """True once the others know that this broker serves."""
        raise NotImplementedError

    @property
    def own_epoch(self) -> int:
        """The life in which this broker may lead: the last one, until the watch tells that it is
        over; -1 if there is none.
        """
        raise NotImplementedError

    @property
    def is_alive(self) -> bool:
        """True while nobody can have counted this broker as dead: its own expiry is ahead."""
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


class PeerConnections:
    """Connections that this broker has made to others.  Without a cluster there are none."""

    def on_event(self, event: Event) -> bool:
        """Take an event of the transport; false if it concerns none of these connections."""
        raise NotImplementedError
