"""Brokers whose lives have ended together with the life of this broker, and that come back at once.

etcd that was frozen for longer than a session ends every lease when it wakes, before it reads one
renewal.  All brokers run on, and each begins another life within some milliseconds.  During that
time nobody takes partitions from a broker that is expected to return, and clients are told of it as
before: librdkafka drops each broker that one answer lacks, with the requests that wait for it.
"""

from __future__ import annotations

from typing import Final

from tarry.base.turn import Turn
from tarry.cluster.lives.life import Life

# A broker is expected for so long after its life has ended.  A leader may act for this long after
# its last follower has turned away, so no client waits for a partition that would be served.
RETURN_MS: Final = 1_500


class Returning:
    """Brokers that are expected to return, each with the time until which it is expected."""

    def __init__(self, turn: Turn, life: Life) -> None:
        self._turn = turn
        self._life = life
        self._until_ms: dict[int, int] = {}
        # Attended time at which this process last lost a life, in ms; -1 if it never lost one.
        self._lost_ms = -1

    @property
    def goes_on(self) -> bool:
        """True for a while after this broker has lost a life: its next life continues the lost
        one.
        """
        return self._lost_ms >= 0 and self._turn.now_ms - self._lost_ms < RETURN_MS

    def on_own_end(self) -> None:
        """Take note that this broker has lost its life."""
        self._lost_ms = self._turn.now_ms

    def on_ended(self, broker_id: int) -> None:
        """Expect the return of a broker whose life has ended, if this broker has lost its own life
        too, or may have lost it: its lease is over by its own clock.
        """
        life = self._life
        if life.has_lived and (self.goes_on or not life.is_alive):
            self._until_ms[broker_id] = self._turn.now_ms + RETURN_MS

    def on_serving(self, broker_id: int) -> None:
        """Stop expecting a broker, because it serves again."""
        self._until_ms.pop(broker_id, None)

    def left_ms(self, broker_id: int) -> int:
        """Return for how many ms a broker is still expected; 0 or less if it is not expected."""
        until_ms = self._until_ms.get(broker_id)
        return 0 if until_ms is None else until_ms - self._turn.now_ms

    def is_expected(self, broker_id: int) -> bool:
        """Return whether a broker is expected."""
        return self.left_ms(broker_id) > 0
