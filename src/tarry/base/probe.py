"""Probe by which the core tells metrics, event logs and tests what happened.

It costs one call where nobody listens.  A listener subclasses `Probe` and is handed to the
broker when it is made.  Times are milliseconds of the monotonic clock.
"""

from __future__ import annotations


class Probe:
    """Is told and does nothing; overridden by who wants to know."""

    def on_turn(self, events: int, now_ms: int) -> None:
        """Hear that a turn began with so many events."""

    def on_flush(self, logs: int, error: str) -> None:
        """Hear that a flush round ended; `error` is empty when all of it is durable."""

    def on_member_removed(self, group_id: str, member_id: str, reason: str, silent_ms: int) -> None:
        """Hear that a member, or an id that was given out, is gone, and since when nothing was
        heard of it.
        """

    def on_connection_closed(self, peer: str, reason: str) -> None:
        """Hear that the broker closed a connection because of what its peer did, or did not do."""
