"""Checker of waits: no operation waits whose answer is known.

When a turn leaves nothing to do, the broker has tried each operation since its condition last
changed.  The checker tries each operation once more, past all watch keys, and each has to go on
waiting.  An operation that completes has missed its wake-up: a produce whose high watermark has
passed, a fetch with enough bytes, a change of metadata that is applied, a request of a broker whose
life has ended.
"""

from __future__ import annotations

from typing import Final

from tarry.broker.broker import Broker
from tarry.broker.replication.leader import REST_LOOK_MS
from tarry.partition.replicated_log import ReplicatedLog
from tarry.purgatory.operation import DelayedOperation
from tarry.timer.view import pending_in

_LOOK_MS: Final = 50
# Time between two looks of a leader whose lease is over, with room for a slow clock.
_REST_MS_MAX: Final = REST_LOOK_MS * 3 // 2


class WaitChecker:
    """Checker that tries the operations that wait in one broker, every 50 ms at most."""

    def __init__(self) -> None:
        self._looked_ms = 0
        # Partitions whose leader may not act, and the time since which the list is the same.
        self._resting: list[ReplicatedLog] = []
        self._resting_ms = 0

    def on_life_begins(self) -> None:
        """Check the new life at its first turn."""
        self._looked_ms = 0
        self._resting = []

    def after_turn(self, broker: Broker, now_ms: int) -> list[str]:
        """Return a sentence for each operation that waits though it could complete."""
        resting = [each for each in broker.topics.partitions() if each.leadership.rests()]
        if resting != self._resting:
            self._resting = resting
            self._resting_ms = now_ms
        is_settled = not resting or now_ms - self._resting_ms > _REST_MS_MAX
        if not is_settled or now_ms - self._looked_ms < _LOOK_MS or broker.has_work_left():
            return []
        self._looked_ms = now_ms
        return [
            f"a {type(entry).__name__} waits, and what it waits for is there"
            for entry in pending_in(broker.timer)
            if isinstance(entry, DelayedOperation) and entry.try_complete()
        ]
