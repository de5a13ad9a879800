"""Calendars of the leaders that this broker copies from, compared with its own.

Due times are by the calendar of the leading broker, so after a fail-over records come early or late
by as much as two calendars are apart.  A leader tells its calendar with an answer now and then
(`CALENDAR_INTERVAL_MS`).  The answer is under way for a moment, so it seems to be behind by that;
the largest of the last comparisons counts, which was under way for the shortest time.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Final, NamedTuple

import msgspec

from tarry.base.limits import CALENDARS_APART_MS_MAX
from tarry.base.turn import Turn

logger = logging.getLogger("tarry.cluster")

# Between two answers of a session in which a leader tells its calendar.
CALENDAR_INTERVAL_MS: Final = 30_000
# Key by which a broker is asked for them; nobody else is told.
CALENDARS_KEY: Final = "tarry.calendars"
CALENDAR_KEY: Final = "tarry.calendar."

_SENTENCE: Final = (
    "Calendar of another broker, as JSON: by how many ms it is ahead of this broker's, and when "
    "that was seen."
)

# Comparisons that count: a calendar that was set is seen after so many.
_COMPARED: Final = 3


class SeenCalendar(NamedTuple):
    """Calendar of another broker: by how much it is ahead of this one, and when that was seen."""

    broker_id: int
    # Negative if it is behind.
    ahead_ms: int
    at_ms: int


class Calendars:
    """Comparisons of one broker with each of its leaders."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._compared: dict[int, deque[int]] = {}
        self._at_ms: dict[int, int] = {}
        self._far_apart: set[int] = set()

    def compare(self, broker_id: int, calendar_ms: int) -> None:
        """Take the calendar that a broker has just told, and write a line when it is far from this
        one, and when it is not any more.
        """
        now_wall_ms = self._turn.now_wall_ms
        compared = self._compared.get(broker_id)
        if compared is None:
            compared = self._compared[broker_id] = deque(maxlen=_COMPARED)
        compared.append(calendar_ms - now_wall_ms)
        self._at_ms[broker_id] = now_wall_ms
        ahead_ms = max(compared)
        is_far = abs(ahead_ms) > CALENDARS_APART_MS_MAX
        if is_far == (broker_id in self._far_apart):
            return
        if is_far:
            self._far_apart.add(broker_id)
            logger.warning(
                "the calendar of broker %d is %d ms %s this broker's: scheduled records come early "
                "or late by as much when the one takes over from the other",
                broker_id,
                abs(ahead_ms),
                "ahead of" if ahead_ms > 0 else "behind",
            )
        else:
            self._far_apart.remove(broker_id)
            logger.info("the calendar of broker %d agrees with this broker's again", broker_id)

    def forget(self, broker_id: int) -> None:
        """Forget a broker whose life is over."""
        self._compared.pop(broker_id, None)
        self._at_ms.pop(broker_id, None)
        self._far_apart.discard(broker_id)

    def seen(self) -> list[SeenCalendar]:
        """Return all of them, by broker id."""
        return [
            SeenCalendar(broker_id, max(compared), self._at_ms[broker_id])
            for broker_id, compared in sorted(self._compared.items())
        ]


def calendar_entries(calendars: Calendars) -> list[tuple[str, str, str]]:
    """Return them as read-only settings of this broker: key, value and sentence.

    Kafka has no API for it.  Like the notes of a group they are settings that any client can ask
    for, and that a broker which does not know them lacks.
    """
    return [
        (
            f"{CALENDAR_KEY}{each.broker_id}",
            msgspec.json.encode({"ahead_ms": each.ahead_ms, "at_ms": each.at_ms}).decode(),
            _SENTENCE,
        )
        for each in calendars.seen()
    ]
