"""Ledger of clients' requests by ids: records that were sent, cancels, moves, and answers.

All clients of a run share it; `judge` compares it with the logs at the end.
"""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.base.schedule_headers import (
    DELIVER_AFTER,
    DELIVER_AT,
    SCHEDULE_CANCEL,
    SCHEDULE_ID,
)
from tarry.base.schedule_outcomes import NO_OUTCOME
from tarry.records.builder import Headers
from tarry.simulation.clients.history import Place

# Value of a time or an offset that a record or a change did not give.
UNSAID: Final = -1

_SECOND_MS: Final = 1_000


class SentWish:
    """Record that was sent, with what its headers ask for."""

    def __init__(self, place: Place, value: bytes, schedule_id: bytes, sent_ms: int) -> None:
        self.place = place
        self.value = value
        self.schedule_id = schedule_id
        self.at_ms = UNSAID
        self.after_ms = UNSAID
        self.is_cancel = False
        self.sent_ms = sent_ms
        # True if all replicas in sync acknowledged the record; and the time of that, if known.
        self.is_promised = False
        self.promised_ms = UNSAID

    def headers(self, form: int) -> Headers:
        """Return its headers; a duration is written in one of two forms."""
        found: Headers = []
        if self.schedule_id:
            found.append((SCHEDULE_ID, self.schedule_id))
        if self.is_cancel:
            found.append((SCHEDULE_CANCEL, b"1"))
        if self.at_ms != UNSAID:
            found.append((DELIVER_AT, b"%d" % self.at_ms))
        elif self.after_ms != UNSAID:
            seconds, rest = divmod(self.after_ms, _SECOND_MS)
            text = b"%ds%dms" % (seconds, rest) if form else b"%d" % self.after_ms
            found.append((DELIVER_AFTER, text))
        return found


class AskedChange:
    """Cancel or move by the API.  It names an id or an s-offset, and has its answer."""

    def __init__(
        self, place: Place, schedule_id: bytes | None, s_offset: int, due_ms: int, sent_ms: int
    ) -> None:
        self.place = place
        self.schedule_id = schedule_id
        self.s_offset = s_offset
        # UNSAID for a cancel.
        self.due_ms = due_ms
        self.sent_ms = sent_ms
        self.answered_ms = UNSAID
        self.outcome = NO_OUTCOME
        # True if the answer says that nothing was changed.  Without it and without an outcome the
        # change may have been made.
        self.is_refused = False
        # s-offset and offset in the answer.
        self.told_s_offset = UNSAID
        self.told_offset = UNSAID

    @property
    def is_unclear(self) -> bool:
        """True if it is not known whether the change was made."""
        return self.outcome == NO_OUTCOME and not self.is_refused

    def __str__(self) -> str:
        name = f"s-offset {self.s_offset}" if self.schedule_id is None else f"{self.schedule_id!r}"
        what = "a cancel" if self.due_ms == UNSAID else f"a move to {self.due_ms}"
        return f"{what} of {name}, sent at {self.sent_ms} and answered at {self.answered_ms},"


class ScheduleLedger:
    """Ledger of one run: how many ids it has, how late records are due, and all that was asked."""

    def __init__(self, random: Random) -> None:
        # With few ids, nearly each record replaces one that waits.
        self.id_count = (3, 12, 60)[random.randrange(3)]
        self.delays_ms: tuple[int, ...] = (0,)
        self.wishes: dict[bytes, SentWish] = {}
        self.changes: list[AskedChange] = []
        # s-offsets of parked entries, the newest last.
        self.parked: dict[Place, list[int]] = {}

    def last_due_ms(self) -> int:
        """Return the latest due time that was asked for; the broker need not have seen the calendar
        that the client counted from.
        """
        due_ms = [wish.at_ms for wish in self.wishes.values()]
        return max([*due_ms, *[asked.due_ms for asked in self.changes]], default=UNSAID)

    def draw_id(self, random: Random) -> bytes:
        """Draw one of the ids."""
        return b"i%d" % random.randrange(self.id_count)

    def draw_wish(
        self, random: Random, place: Place, value: bytes, now_ms: int, now_wall_ms: int
    ) -> SentWish:
        """Draw what a record asks for, and note it."""
        schedule_id = self.draw_id(random) if random.randrange(3) else b""
        wish = SentWish(place, value, schedule_id, now_ms)
        kind = random.randrange(12)
        if kind == 0 and schedule_id:
            wish.is_cancel = True
        elif kind > 1:
            delay_ms = self.delays_ms[random.randrange(len(self.delays_ms))]
            if kind < 7:
                wish.at_ms = now_wall_ms + delay_ms
            else:
                wish.after_ms = delay_ms
        self.wishes[value] = wish
        return wish
