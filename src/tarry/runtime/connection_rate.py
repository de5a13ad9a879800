"""`max.connection.creation.rate`: connections that come faster wait to be accepted.

As in Kafka's broker, a peer that comes too early is not refused: it waits in the listener's
backlog.  Room grows with time, up to one second's.  If there are several listeners, the one between
brokers has no limit, and the others share the room.
"""

from __future__ import annotations

import logging
from typing import Final

from tarry.base.settings import Settings

logger = logging.getLogger("tarry.runtime")

UNLIMITED: Final = 2**31 - 1

# With a rate of 0 one connection is still accepted this often, like Kafka's longest delay of one.
_LONGEST_MS: Final = 10_000

# Shortest time between two lines that say that connections wait.
TOLD_EVERY_MS: Final = 60_000

# Room that one connection takes; room grows by the rate in each millisecond.
_ONE: Final = 1_000


class ConnectionRate:
    """Room for new connections of all listeners, except the one between brokers."""

    def __init__(self, settings: Settings, now_ms: int) -> None:
        self._settings = settings
        self._room = settings.max_connection_creation_rate * _ONE
        self._counted_ms = now_ms
        self._told_ms = now_ms - TOLD_EVERY_MS

    def applies_to(self, listener: str) -> bool:
        """Return true if the connections of a listener may have to wait."""
        settings = self._settings
        if settings.max_connection_creation_rate == UNLIMITED:
            return False
        # A listener may have several sockets, so compare its name.
        is_alone = len(settings.open_listeners) == 1
        return is_alone or listener != settings.inter_broker_listener

    def room(self, now_ms: int) -> int:
        """Return how many connections may be accepted now by all listeners together."""
        rate = self._settings.max_connection_creation_rate
        elapsed_ms = max(now_ms - self._counted_ms, 0)
        grown = elapsed_ms * rate if rate else elapsed_ms * _ONE // _LONGEST_MS
        if grown:
            self._counted_ms = now_ms
            self._room = min(self._room + grown, max(rate, 1) * _ONE)
        return self._room // _ONE

    def spend(self) -> None:
        """Count a connection that was accepted."""
        self._room -= _ONE

    def wait_ms(self, now_ms: int) -> int:
        """Return the time until there is room for one connection; log that connections wait."""
        rate = self._settings.max_connection_creation_rate
        if now_ms - self._told_ms >= TOLD_EVERY_MS:
            self._told_ms = now_ms
            logger.warning(
                "connections come faster than max.connection.creation.rate=%d allows: they wait",
                rate,
            )
        missing = max(_ONE - self._room, 1)
        return -(-missing // rate) if rate else _LONGEST_MS
