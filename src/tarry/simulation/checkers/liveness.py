"""Checker of liveness during the run: no answer is late, and no fetch waits for known data.

After each turn it looks at the oldest unanswered request of each connection; the requests behind
that one come later.  Time during which the broker's process was stopped does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tarry.simulation.clients.history import RunHistory, place_name
from tarry.simulation.exchange import ObservedExchange


class Asking(Protocol):
    """Connection, as far as this checker looks at it."""

    connection_id: int
    has_surplus_answer: bool

    def head(self) -> ObservedExchange | None: ...


class LivenessChecker:
    """Checker that remembers since when each connection's oldest request waits."""

    def __init__(self, history: RunHistory) -> None:
        self._history = history
        self._heads: dict[int, tuple[ObservedExchange, int]] = {}
        self._stalls = 0

    def after_turn(self, sockets: Sequence[Asking], alive_ms: int, stalls: int = 0) -> None:
        """Check each connection.  `alive_ms` passes only while the broker runs.

        `stalls` is how often its process was stopped.
        """
        was_stalled = stalls != self._stalls
        self._stalls = stalls
        heads: dict[int, tuple[ObservedExchange, int]] = {}
        for socket in sockets:
            if socket.has_surplus_answer:
                self._history.violate("a connection got more answers than it has asked queries")
                socket.has_surplus_answer = False
            head = socket.head()
            if head is None or head.delivered_ms < 0:
                continue
            known = self._heads.get(socket.connection_id)
            is_new = known is None or known[0] is not head
            is_forgiven = was_stalled and head.is_stall_forgiven
            since_ms = alive_ms if known is None or is_new or is_forgiven else known[1]
            heads[socket.connection_id] = (head, since_ms)
            self._check(head, alive_ms - since_ms)
        self._heads = heads

    def _check(self, head: ObservedExchange, waited_ms: int) -> None:
        if waited_ms > head.wait_ms + head.slack_ms:
            self._history.violate(
                f"a request with API key {head.api_key} may wait {head.wait_ms} ms and has waited "
                f"{waited_ms} ms without an answer"
            )
            return
        for topic_id, index, offset in head.waits_for:
            place = (topic_id, index)
            if self._history.acknowledged_ends.get(place, 0) > offset:
                self._history.violate(
                    f"a fetch waits at offset {offset} of {place_name(place)}, and records up to "
                    f"{self._history.acknowledged_ends[place]} are acknowledged: a lost wake-up"
                )
                return
