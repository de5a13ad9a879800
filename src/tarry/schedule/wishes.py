"""Wishes of a batch's records, as their headers say them: when each is due, and by which id.

The records are gone through in steps, since a batch may unfold to much.  What a header cannot mean
is noted with a sentence for each record.  Times that count from the append are kept as they were
said until then: `decide_places` makes due times of all of them.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import INVALID_RECORD, INVALID_TIMESTAMP
from tarry.base.limits import RECORD_ERRORS_MAX, SCHEDULE_ID_BYTES_MAX, SCHEDULE_PLACES_MAX
from tarry.log.config import INT64_MAX, LogConfig
from tarry.records.walk import RecordFields, read_record
from tarry.schedule.places import NOT_RELEASED, RecordPlace
from tarry.schedule.recurring.headers import BadRecurrence, parse_recurrence
from tarry.schedule.recurring.terms import CRON, RECURRING_HEADERS, RecurrenceTerms
from tarry.schedule.recurring.times import RecurringTimes
from tarry.schedule.times import (
    DELIVER_AFTER,
    DELIVER_AT,
    BadTime,
    parse_deliver_after,
    parse_deliver_at,
)
from tarry.wire.varint import read_varint

SCHEDULE_ID: Final = "x-sched-id"
SCHEDULE_CANCEL: Final = "x-sched-cancel"

_NAMES: Final = {
    name.encode(): name
    for name in (DELIVER_AT, DELIVER_AFTER, SCHEDULE_ID, SCHEDULE_CANCEL, *RECURRING_HEADERS)
}

_AT_ONCE: Final = 0
_AT: Final = 1
_AFTER: Final = 2
_RECURRING: Final = 3

# Records that can be gone through while a cron expression is read and its first time found.
_CRON_STEPS: Final = 100


class BadWish(Exception):
    """Headers of a record that cannot be meant; the sentence tells why."""


class Wish:
    """Wish of `count` records from `first` on, counted in their batch."""

    def __init__(self, first: int, kind: int, time_ms: int, schedule_id: bytes) -> None:
        self.first = first
        self.count = 1
        self.kind = kind
        self.time_ms = time_ms
        self.schedule_id = schedule_id
        self.is_cancel = False
        self.terms: RecurrenceTerms | None = None

    @property
    def has_own_place(self) -> bool:
        """Return whether the batch has to be opened for it, even if it is the only one."""
        return self.is_cancel or self.terms is not None

    def takes(self, other: Wish) -> bool:
        """Return whether the next record asks for the same; one with an id stands alone."""
        return (
            self.kind == other.kind
            and self.kind != _RECURRING
            and self.time_ms == other.time_ms
            and not self.schedule_id
            and not other.schedule_id
        )


class WishWalk:
    """Walk over all records of `data`; `wishes` and `errors` are what it found.

    What is not delayed at `now_wall_ms`, when the batch has come, is not told apart from what has
    no time.  The walk ends where `has_too_many`.
    """

    def __init__(
        self,
        data: bytes,
        count: int,
        config: LogConfig,
        now_wall_ms: int,
        times: RecurringTimes,
    ) -> None:
        self.wishes: list[Wish] = []
        self.errors: list[tuple[int, str]] = []
        # Of due times and ids: each wish that is kept becomes a place.
        self.has_too_many = False
        self._delay_min_ms = config.delay_min_ms
        self._now_wall_ms = now_wall_ms
        self._times = times
        # Records that this step still goes through.
        self._left = 0
        self._data = data
        self._count = count
        self._index = 0
        self._position = 0
        self._fields = RecordFields()

    def step(self, count_max: int) -> bool:
        """Go through so many records at most; True when all is done.

        One that recurs counts for many.
        """
        self._left = count_max
        while self._left > 0 and self._index < self._count:
            self._position = int(
                read_record(self._data, self._position, len(self._data), self._fields)
            )
            self._take(self._index)
            self._index += 1
            self._left -= 1
            if len(self.wishes) > SCHEDULE_PLACES_MAX:
                self.has_too_many = True
                return True
        return self._index == self._count

    def _take(self, index: int) -> None:
        try:
            found = _headers_of(self._data, self._position, self._fields)
            wish = _wish_from(found, index)
            self._take_recurrence(found, wish)
        except (BadTime, BadWish, BadRecurrence) as error:
            if len(self.errors) < RECORD_ERRORS_MAX:
                self.errors.append((index, str(error)))
            return
        if self._is_soon(wish):
            wish.kind, wish.time_ms = _AT_ONCE, 0
        if self.wishes and self.wishes[-1].takes(wish):
            self.wishes[-1].count += 1
        else:
            self.wishes.append(wish)

    def _take_recurrence(self, found: dict[str, bytes | None], wish: Wish) -> None:
        if CRON in found:
            if len(self.errors) == RECORD_ERRORS_MAX:
                # One more would not be told.
                return
            self._left -= _CRON_STEPS
        first = parse_recurrence(found, self._now_wall_ms, self._times)
        if first is None:
            return
        if wish.kind != _AT_ONCE:
            other = DELIVER_AT if DELIVER_AT in found else DELIVER_AFTER
            raise BadWish(f"{CRON} and {other} both say when the record is due")
        if wish.is_cancel:
            raise BadWish(f"a record with {SCHEDULE_CANCEL} is never due")
        wish.kind, wish.time_ms, wish.terms = _RECURRING, first.due_ms, first.terms

    def _is_soon(self, wish: Wish) -> bool:
        if wish.kind == _RECURRING:
            return False
        after_ms = wish.time_ms - (self._now_wall_ms if wish.kind == _AT else 0)
        return is_soon(after_ms, self._delay_min_ms)


def is_soon(after_ms: int, delay_min_ms: int) -> bool:
    """Return whether a record that is due so much later is not delayed at all."""
    return after_ms <= 0 or after_ms < delay_min_ms


def _headers_of(data: bytes, end: int, fields: RecordFields) -> dict[str, bytes | None]:
    """Return the headers of a record that say something about scheduling."""
    found: dict[str, bytes | None] = {}
    if fields.header_count > 0:
        position = int(fields.headers)
        while position < end:
            size, position = read_varint(data, position, end)
            name = _NAMES.get(data[position : position + size])
            size, position = read_varint(data, position + size, end)
            value = data[position : position + size] if size >= 0 else None
            position += max(size, 0)
            if name is not None:
                if name in found:
                    raise BadWish(f"{name} stands twice")
                found[name] = value
    return found


def _wish_from(found: dict[str, bytes | None], index: int) -> Wish:
    if DELIVER_AT in found and DELIVER_AFTER in found:
        raise BadWish(f"{DELIVER_AT} and {DELIVER_AFTER} both say when the record is due")
    schedule_id = b""
    if SCHEDULE_ID in found:
        schedule_id = found[SCHEDULE_ID] or b""
        if not schedule_id:
            raise BadWish(f"{SCHEDULE_ID} is empty")
        if len(schedule_id) > SCHEDULE_ID_BYTES_MAX:
            raise BadWish(
                f"{SCHEDULE_ID} has {len(schedule_id)} bytes, {SCHEDULE_ID_BYTES_MAX} are the most"
            )
    kind, time_ms = _AT_ONCE, 0
    if DELIVER_AT in found:
        kind, time_ms = _AT, parse_deliver_at(found[DELIVER_AT])
    elif DELIVER_AFTER in found:
        kind, time_ms = _AFTER, parse_deliver_after(found[DELIVER_AFTER])
    wish = Wish(index, kind, time_ms, schedule_id)
    if SCHEDULE_CANCEL in found:
        if found[SCHEDULE_CANCEL] != b"1":
            raise BadWish(f"{SCHEDULE_CANCEL} must be 1")
        if not schedule_id:
            raise BadWish(f"{SCHEDULE_CANCEL} needs {SCHEDULE_ID}")
        if kind != _AT_ONCE:
            raise BadWish(f"a record with {SCHEDULE_CANCEL} is never due")
        wish.is_cancel = True
    return wish


class PlacesDecision:
    """Decision about a batch: places in its order, or an error and the records that cause it."""

    def __init__(self, now_wall_ms: int) -> None:
        self.now_wall_ms = now_wall_ms
        self.error_code = 0
        self.record_errors: list[tuple[int, str]] = []
        self.places: list[RecordPlace] = []

    @property
    def is_parked(self) -> bool:
        """Return whether the batch is to wait: a record is due later, names an id, or recurs."""
        return any(
            place.schedule_id or place.terms is not None or place.due_ms > self.now_wall_ms
            for place in self.places
        )

    @property
    def recurring(self) -> list[int]:
        """Return which records recur."""
        return [place.first for place in self.places if place.terms is not None]


def decide_places(walk: WishWalk, config: LogConfig, now_wall_ms: int) -> PlacesDecision:
    """Decide when each record of a batch is released, if it is appended now."""
    decision = PlacesDecision(now_wall_ms)
    if walk.errors:
        decision.error_code = INVALID_RECORD
        decision.record_errors = walk.errors
        return decision
    by_id: dict[bytes, RecordPlace] = {}
    for wish in walk.wishes:
        due_ms = _due_ms(wish, now_wall_ms)
        if due_ms - now_wall_ms > config.delay_max_ms:
            _refuse_late(decision, wish, due_ms, config.delay_max_ms)
            continue
        if wish.kind != _RECURRING and is_soon(due_ms - now_wall_ms, config.delay_min_ms):
            due_ms = now_wall_ms
        if wish.is_cancel:
            due_ms = NOT_RELEASED
        place = RecordPlace(wish.first, wish.count, due_ms, wish.schedule_id, wish.terms)
        if wish.schedule_id:
            earlier = by_id.get(wish.schedule_id)
            if earlier is not None:
                # A batch may name an id twice: only the later record is released.
                earlier.due_ms = NOT_RELEASED
            by_id[wish.schedule_id] = place
        last = decision.places[-1] if decision.places else None
        if last is not None and last.takes(place):
            last.count += place.count
        else:
            decision.places.append(place)
    return decision


def _due_ms(wish: Wish, now_wall_ms: int) -> int:
    if wish.kind in (_AT, _RECURRING):
        return wish.time_ms
    if wish.kind == _AFTER:
        return min(now_wall_ms + wish.time_ms, INT64_MAX)
    return now_wall_ms


def _refuse_late(decision: PlacesDecision, wish: Wish, due_ms: int, max_ms: int) -> None:
    decision.error_code = INVALID_TIMESTAMP
    index = wish.first
    while index < wish.first + wish.count and len(decision.record_errors) < RECORD_ERRORS_MAX:
        decision.record_errors.append(
            (index, f"the record is due at {due_ms}, and delay.max.ms is {max_ms}")
        )
        index += 1
