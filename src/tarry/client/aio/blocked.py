"""BlockedLoop: warns if the event loop was blocked for so long that a session is in danger."""

from __future__ import annotations

import logging
from typing import Final

log = logging.getLogger("tarry.client")

# Interval in ms in which at most one warning is written.
PAUSE_MS: Final = 60_000


class BlockedLoop:
    """Watch over one member's event loop; without a session, `session_timeout_ms` 0, it never
    warns."""

    def __init__(self, session_timeout_ms: int) -> None:
        self._session_timeout_ms = session_timeout_ms
        # Longest interval in ms between two looks, so that little of a blockage is missed; None
        # without a session.
        self.look_ms = session_timeout_ms // 12 or None
        self._told_ms: int | None = None

    def look(self, late_ms: int, now_ms: int) -> None:
        """Warn if a turn came so late that a third of the session time-out is over."""
        session_ms = self._session_timeout_ms
        if session_ms == 0 or 3 * late_ms <= session_ms:
            return
        if self._told_ms is not None and now_ms - self._told_ms < PAUSE_MS:
            return
        self._told_ms = now_ms
        log.warning(
            "the event loop was blocked for %.1f s: no heartbeat left meanwhile, and after %.1f s "
            "(session.timeout.ms) the group removes this member; run what blocks in "
            "asyncio.to_thread",
            late_ms / 1000,
            session_ms / 1000,
        )
