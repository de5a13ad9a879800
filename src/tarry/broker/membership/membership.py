"""Membership of this broker in a cluster, as the rest of the broker sees it.

`cluster_start` imports what only a broker in a cluster needs; the broker does not.
"""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Event

# Bound on the entries of a membership in the broker's timer: the life's step; the store's call
# deadline, retry and watch alarm; the member's next look, next claim, end of a hand-over and end of
# the previous life; the next question to peers.
TIMER_ENTRIES_MAX: Final = 9


class ClusterMembership:
    """A broker that shares its metadata with others; a broker that is alone has none."""

    @property
    def is_serving(self) -> bool:
        """True once the other brokers know that this broker serves."""
        raise NotImplementedError

    @property
    def own_epoch(self) -> int:
        """The broker epoch in which this broker may lead, until that life is known to be over; -1
        if there is none.
        """
        raise NotImplementedError

    @property
    def ending_epoch(self) -> int:
        """The epoch of the previous life, while this broker still leads by it; -1 if there is
        none.
        """
        raise NotImplementedError

    @property
    def is_alive(self) -> bool:
        """True while no other broker can count this one as dead: its lease has not expired."""
        raise NotImplementedError

    @property
    def has_lived(self) -> bool:
        """True once this process has had a life, even if that is over."""
        raise NotImplementedError

    def is_expected(self, broker_id: int) -> bool:
        """Return whether a broker without a life is expected to begin the next one soon."""
        raise NotImplementedError

    def on_event(self, event: Event) -> None:
        """Take an answer of the shared store."""
        raise NotImplementedError

    def stop(self) -> None:
        """Hand over what this broker leads, then stop it; at the second call stop it at once."""
        raise NotImplementedError

    def leave(self) -> bool:
        """End this broker's life, after which it changes nothing more; return true once the other
        brokers can know it.
        """
        raise NotImplementedError

    def on_last_event(self, event: Event) -> None:
        """Take the answer that tells that the other brokers know; ignore everything else."""
        raise NotImplementedError
