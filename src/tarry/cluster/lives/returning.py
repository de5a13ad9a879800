"""Brokers whose lives have ended together with the life of this broker, and that come back at once.

etcd that was frozen for longer than a session ends every lease when it wakes, before it reads one
renewal.  All brokers run, and each begins another life within some milliseconds.  For that moment
nothing is taken from a broker that is expected, and clients are told of it as before: librdkafka
gives up each broker that is missing in one answer, with the requests that wait for it.
"""

from __future__ import annotations

from typing import Final

from tarry.base.turn import Turn
from tarry.cluster.lives.life import Life

# A broker is expected for so long after its life has ended.  A leader may act for this long after
# its last follower has turned away, so nobody waits for a partition that would be served.
RETURN_MS: Final = 1_500


class Returning:
    """Brokers that are expected, by the end of that; `goes_on` is for this broker itself."""

    def __init__(self, turn: Turn, life: Life) -> None:
        self._turn = turn
        self._life = life
        self._until_ms: dict[int, int] = {}
        # When this process last lost a life, in attended time; -1: never.
        self._lost_ms = -1

    @property
    def goes_on(self) -> bool:
        """True while this broker takes the place of its own life before: it ran all the time."""
        return self._lost_ms >= 0 and self._turn.now_ms - self._lost_ms < RETURN_MS

    def on_own_end(self) -> None:
        """Take note that this broker has lost its life."""
        self._lost_ms = self._turn.now_ms

    def on_ended(self, broker_id: int) -> None:
        """Expect a broker whose life has ended, if this broker has lost its own as well, or may
        have: its lease is over by its own clock.
        """
        life = self._life
        if life.has_lived and (self.goes_on or not life.is_alive):
            self._until_ms[broker_id] = self._turn.now_ms + RETURN_MS

    def on_serving(self, broker_id: int) -> None:
        """Expect a broker no more: it is back."""
        self._until_ms.pop(broker_id, None)

    def left_ms(self, broker_id: int) -> int:
        """Return for how long a broker is expected; 0 or less: it is not."""
        until_ms = self._until_ms.get(broker_id)
        return 0 if until_ms is None else until_ms - self._turn.now_ms

    def is_expected(self, broker_id: int) -> bool:
        """Return whether a broker is expected."""
        return self.left_ms(broker_id) > 0
