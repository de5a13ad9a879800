"""Listener: what a user of a group wants to be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tarry.client.sync.consumer import Consumer

Place = tuple[str, int]


class Listener:
    """Subclass it and give it as `listener=`.  Called inside `poll` (or the iteration, which
    polls) and nowhere else; what it raises comes out of the poll.  It may seek, pause, commit and
    look at positions, but not poll."""

    def on_assigned(self, consumer: Consumer, places: list[Place]) -> None:
        """These came in addition to what is owned already; none if a rebalance brought nothing."""

    def on_revoked(self, consumer: Consumer, places: list[Place]) -> None:
        """These are still owned, and given up when this returns: commit here."""

    def on_lost(self, consumer: Consumer, places: list[Place]) -> None:
        """These are someone else's already: a commit would be refused."""
