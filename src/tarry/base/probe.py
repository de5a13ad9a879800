"""Probe, by which the core reports events to metrics, event logs and tests.

It costs one call if nothing listens.  A listener subclasses `Probe` and is handed to the
broker when it is made.  Times are milliseconds of the monotonic clock.
"""

from __future__ import annotations


class Probe:
    """Probe that ignores all events; a listener overrides the methods that it needs."""

    def on_turn(self, events: int, now_ms: int) -> None:
        """React to the begin of a turn, with its number of events."""

    def on_flush(self, logs: int, error: str) -> None:
        """React to the end of a flush round; `error` is empty if all of it is durable."""

    def on_member_removed(self, group_id: str, member_id: str, reason: str, silent_ms: int) -> None:
        """React to the removal of a member, or of an id that was given out; `silent_ms` is the time
        since its last sign of life.
        """

    def on_connection_closed(self, peer: str, reason: str) -> None:
        """React when the broker has closed a connection for its peer's action, or lack of one."""
