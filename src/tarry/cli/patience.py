"""Patience of `tarry produce`: when nothing is acknowledged it says why, in the end it gives up."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from tarry.cli.tables import complain
from tarry.client.errors import DeliveryTimedOut

# Time without acknowledgements after which the trouble is reported.
QUIET_SECONDS: Final = 0.5


class Patience:
    """Patience with a cluster: looks repeatedly whether records are acknowledged."""

    def __init__(self, seconds_max: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds_max = seconds_max
        self.clock = clock
        self._settled = 0
        self._since = clock()
        self._is_told = False

    def look(
        self,
        settled: int,
        *,
        is_waiting: bool,
        trouble: str,
        before: Callable[[], None] = lambda: None,
    ) -> bool:
        """Report the trouble once while records wait and `settled` does not grow; return whether
        there is trouble.  `before` is called before the report.  Raises DeliveryTimedOut after
        `seconds_max` of it."""
        now = self.clock()
        if settled != self._settled or not is_waiting:
            self._settled = settled
            self._since = now
            self._is_told = False
            return False
        waited = now - self._since
        if waited >= self.seconds_max:
            because = f"; the last trouble: {trouble}" if trouble else ""
            raise DeliveryTimedOut(
                f"gave up: no record was acknowledged for {self.seconds_max:g} s{because}; records "
                "without an acknowledgement may be in the log or not"
            )
        if trouble and not self._is_told and waited >= min(QUIET_SECONDS, self.seconds_max / 2):
            self._is_told = True
            before()
            complain(f"waiting: {trouble}")
        return self._is_told
