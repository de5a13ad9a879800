"""Wishes of a batch's records, as their headers state them: when each is due, and by which id.

A walk reads the records in steps, since a batch may uncompress to much.  It notes a sentence for
each record with an invalid header.  A delay stays a delay until the append: then `decide_places`
turns all times into due times.

In a topic where headers do not, or no longer, say when records are due, they may still name records
that wait: `IdWalk` and `decide_named`.  With `delay.replace=key` the key of a record that is to
wait is its id, unless a header gives another one.  Hot.
"""

from __future__ import annotations

from typing import Final

from tarry.base.errors import INVALID_RECORD, INVALID_TIMESTAMP
from tarry.base.limits import (
    DUE_MS_MAX,
    RECORD_ERRORS_MAX,
    SCHEDULE_HEADERS_MAX,
    SCHEDULE_ID_BYTES_MAX,
    SCHEDULE_PLACES_MAX,
)
from tarry.base.schedule_headers import (
    DELIVER_AFTER,
    DELIVER_AT,
    HEADER_NAMES,
    RECURRENCE_CRON,
    SCHEDULE_CANCEL,
    SCHEDULE_ID,
)
from tarry.log.config import LogConfig
from tarry.records.walk import RecordFields, read_places
from tarry.schedule.cancels import ScheduleIds
from tarry.schedule.places import NOT_RELEASED, RecordPlace
from tarry.schedule.recurring.headers import BadRecurrence, parse_recurrence
from tarry.schedule.recurring.terms import RecurrenceTerms
from tarry.schedule.recurring.times import RecurringTimes
from tarry.schedule.times import (
    BadTime,
    parse_deliver_after,
    parse_deliver_at,
)
from tarry.wire.varint import read_varint

# Only valid value of the header that cancels.
CANCEL: Final = b"1"

_NAMES: Final = {name.encode(): name for name in HEADER_NAMES}

_AT_ONCE: Final = 0
_AT: Final = 1
_AFTER: Final = 2
_RECURRING: Final = 3

# Steps of a record with a cron expression: parsing it takes as long as reading so many records.
_CRON_STEPS: Final = 100
# Headers that count as one step more: reading them takes as long as reading a record.
_HEADERS_PER_STEP: Final = 8


class BadWish(Exception):
    """Headers of a record that are invalid or contradict each other; the sentence says why."""


class Wish:
    """Wish of `count` records from the record `first` of their batch on.

    `time_ms` of records that are not delayed is the latest time in their headers, 0 without any.
    """

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
        """Return whether the batch must be opened for this wish, even if it has no other."""
        return self.is_cancel or self.terms is not None

    def takes(self, other: Wish) -> bool:
        """Return whether the next record's wish, `other`, is the same; one with an id never is."""
        return (
            self.kind == other.kind
            and self.kind != _RECURRING
            and (self.time_ms == other.time_ms or self.kind == _AT_ONCE)
            and not self.schedule_id
            and not other.schedule_id
        )


class RecordHeaders:
    """Headers of a record that scheduling knows; `repeated` is one that occurs twice, or "".

    `has_too_many`: the record has more than `SCHEDULE_HEADERS_MAX`, of which only the first were
    read.
    """

    def __init__(self, data: bytes, end: int, fields: RecordFields) -> None:
        self.values: dict[str, bytes | None] = {}
        self.repeated = ""
        self.has_too_many = fields.header_count > SCHEDULE_HEADERS_MAX
        self.count = min(max(int(fields.header_count), 0), SCHEDULE_HEADERS_MAX)
        position = int(fields.headers)
        for _ in range(self.count):
            size, position = read_varint(data, position, end)
            name = _NAMES.get(data[position : position + size])
            size, position = read_varint(data, position + size, end)
            value = data[position : position + size] if size >= 0 else None
            position += max(size, 0)
            if name is None:
                continue
            if name in self.values:
                self.repeated = self.repeated or name
            self.values[name] = value


class RecordsWalk:
    """Walk over all records of `data`, which were checked before; `wishes` are its findings.

    The walk ends early if it `has_too_many` wishes: each one becomes a place.
    """

    def __init__(self, data: bytes, count: int, config: LogConfig) -> None:
        self.wishes: list[Wish] = []
        self.has_too_many = False
        self.is_named_by_key = config.is_named_by_key
        # Records that are left for the current call of `step`.
        self.steps_left = 0
        self._data = data
        self._count = count
        self._index = 0
        self._position = 0
        self._fields = RecordFields()
        # Headers of the record before, as bytes, and the wish that a record with the same ones has
        # too; None if such a record has a wish of its own.
        self._last_headers = b""
        self._same_wish: Wish | None = None

    def step(self, count_max: int) -> bool:
        """Read `count_max` records at most; return True when the walk is over.

        A record that recurs or has many headers counts as several.
        """
        self.steps_left = count_max
        while self.steps_left > 0 and self._index < self._count:
            self._position = int(
                read_places(self._data, self._position, len(self._data), self._fields)
            )
            self._take(self._index)
            self._index += 1
            self.steps_left -= 1
            if len(self.wishes) > SCHEDULE_PLACES_MAX:
                self.has_too_many = True
                self._end()
                return True
        if self._index < self._count:
            return False
        self._end()
        return True

    def _end(self) -> None:
        """Drop the records: the walk may be kept for long."""
        self._data = self._last_headers = b""

    def _take(self, index: int) -> None:
        header_bytes = self._data[self._fields.headers : self._position]
        if self._same_wish is not None and header_bytes == self._last_headers:
            self._same_wish.count += 1
            return
        headers = RecordHeaders(self._data, self._position, self._fields)
        self.steps_left -= headers.count // _HEADERS_PER_STEP
        self._same_wish = None
        wish = self.wish_of(headers, index)
        if wish is None:
            return
        last = self.wishes[-1] if self.wishes else None
        if last is not None and last.takes(wish):
            last.count += 1
            last.time_ms = max(last.time_ms, wish.time_ms)
        else:
            self.wishes.append(wish)
            last = wish
        if wish.takes(wish) and not self.is_named_by_key:
            self._last_headers, self._same_wish = header_bytes, last

    def wish_of(self, headers: RecordHeaders, index: int) -> Wish | None:
        """Return the wish of a record; None if it has an error, which is then noted."""
        raise NotImplementedError

    def key(self) -> bytes:
        """Return the key of the current record, to be used as its id; b"" if it has none."""
        fields = self._fields
        size = int(fields.key_size)
        return self._data[fields.key : fields.key + size] if size > 0 else b""


class WishWalk(RecordsWalk):
    """Walk in a topic whose records' headers say when they are due; `errors` are refused records.

    A record that is not delayed at `now_wall_ms`, when the batch was received, shares a wish with
    records that have no time.
    """

    def __init__(
        self,
        data: bytes,
        count: int,
        config: LogConfig,
        now_wall_ms: int,
        times: RecurringTimes,
    ) -> None:
        super().__init__(data, count, config)
        self.errors: list[tuple[int, str]] = []
        self._delay_min_ms = config.delay_min_ms
        self._now_wall_ms = now_wall_ms
        self._times = times

    def wish_of(self, headers: RecordHeaders, index: int) -> Wish | None:
        try:
            has_key_as_id = self.is_named_by_key and SCHEDULE_ID not in headers.values
            wish = _wish_from(headers, index, self.key() if has_key_as_id else b"")
            self._take_recurrence(headers.values, wish)
            comes_soon = self._is_soon(wish)
            if has_key_as_id and comes_soon and not wish.is_cancel:
                # A key is the id of a waiting record only, and this record does not wait.
                wish.schedule_id = b""
            elif has_key_as_id:
                check_key(wish.schedule_id)
        except (BadTime, BadWish, BadRecurrence) as error:
            if len(self.errors) < RECORD_ERRORS_MAX:
                self.errors.append((index, str(error)))
            return None
        if comes_soon:
            said_ms = wish.time_ms if wish.kind == _AT else 0
            wish.kind, wish.time_ms = _AT_ONCE, min(said_ms, self._now_wall_ms)
        return wish

    def _take_recurrence(self, found: dict[str, bytes | None], wish: Wish) -> None:
        if RECURRENCE_CRON in found:
            if len(self.errors) == RECORD_ERRORS_MAX:
                # The answer has no room for one more error.
                return
            self.steps_left -= _CRON_STEPS
        first = parse_recurrence(found, self._now_wall_ms, self._times)
        if first is None:
            return
        if wish.kind != _AT_ONCE:
            other = DELIVER_AT if DELIVER_AT in found else DELIVER_AFTER
            raise BadWish(f"{RECURRENCE_CRON} and {other} both say when the record is due")
        if wish.is_cancel:
            raise BadWish(f"a record with {SCHEDULE_CANCEL} is never due")
        wish.kind, wish.time_ms, wish.terms = _RECURRING, first.due_ms, first.terms

    def _is_soon(self, wish: Wish) -> bool:
        if wish.kind == _RECURRING:
            return False
        after_ms = wish.time_ms - (self._now_wall_ms if wish.kind == _AT else 0)
        return is_soon(after_ms, self._delay_min_ms)


class IdWalk(RecordsWalk):
    """Walk in a topic whose records' headers do not say when they are due, but may name an id.

    `waiting` are the ids of waiting bodies; None while they are not known: then `has_unclear` says
    whether a record has an id.  No header is refused.  `is_delayed`: the batch is due later.  Keys
    that are too long for an id are `errors`.
    """

    def __init__(
        self,
        data: bytes,
        count: int,
        config: LogConfig,
        waiting: ScheduleIds | None,
        *,
        is_delayed: bool,
    ) -> None:
        super().__init__(data, count, config)
        self.errors: list[tuple[int, str]] = []
        self.has_unclear = False
        self.is_delayed = is_delayed
        self._has_delay = config.has_delay
        self._waiting = waiting

    def wish_of(self, headers: RecordHeaders, index: int) -> Wish:
        wish = Wish(index, _AT_ONCE, 0, b"")
        if headers.repeated:
            return wish
        is_cancel = headers.values.get(SCHEDULE_CANCEL) == CANCEL
        schedule_id = headers.values.get(SCHEDULE_ID)
        is_new = False
        if not schedule_id and self.is_named_by_key and (is_cancel or self.is_delayed):
            schedule_id = self._key_at(index)
            # The record waits, or it cancels: in both cases it does not appear at once.
            is_new = self._has_delay
        if not schedule_id:
            return wish
        if self._waiting is None:
            self.has_unclear = True
        elif is_new or self._waiting.offset_of(schedule_id) is not None:
            wish.schedule_id = schedule_id
            wish.is_cancel = is_cancel
        return wish

    @property
    def names_what_waits(self) -> bool:
        """Return whether the keys of the batch's records are ids, since the records are to wait."""
        return self.is_named_by_key and self.is_delayed

    def _key_at(self, index: int) -> bytes:
        try:
            key = self.key()
            check_key(key)
            return key
        except BadWish as error:
            if len(self.errors) < RECORD_ERRORS_MAX:
                self.errors.append((index, str(error)))
            return b""


def check_key(key: bytes) -> None:
    """Raise `BadWish` if a key is too long for an id."""
    if len(key) > SCHEDULE_ID_BYTES_MAX:
        raise BadWish(
            f"a key of {len(key)} bytes, {SCHEDULE_ID_BYTES_MAX} are the most with "
            "delay.replace=key"
        )


def is_soon(after_ms: int, delay_min_ms: int) -> bool:
    """Return whether a record that is due after `after_ms` is appended at once, without delay."""
    return after_ms <= 0 or after_ms < delay_min_ms


def _wish_from(headers: RecordHeaders, index: int, key: bytes) -> Wish:
    """Return what the headers of a record ask for; its id is `key` if they name none."""
    found = headers.values
    if headers.has_too_many:
        raise BadWish(f"a record with more than {SCHEDULE_HEADERS_MAX} headers")
    if headers.repeated:
        raise BadWish(f"{headers.repeated} stands twice")
    if DELIVER_AT in found and DELIVER_AFTER in found:
        raise BadWish(f"{DELIVER_AT} and {DELIVER_AFTER} both say when the record is due")
    schedule_id = key
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
        if found[SCHEDULE_CANCEL] != CANCEL:
            raise BadWish(f"{SCHEDULE_CANCEL} must be 1")
        if not schedule_id:
            raise BadWish(f"{SCHEDULE_CANCEL} needs {SCHEDULE_ID}, or a key with delay.replace=key")
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
        self._by_id: dict[bytes, RecordPlace] = {}

    @property
    def is_parked(self) -> bool:
        """Return whether the batch is to wait: a record is due later, names an id, or recurs."""
        return any(
            place.schedule_id or place.terms is not None or place.due_ms > self.now_wall_ms
            for place in self.places
        )

    @property
    def recurring(self) -> list[int]:
        """Return the numbers, in the batch, of the records that recur."""
        return [place.first for place in self.places if place.terms is not None]

    def add(self, wish: Wish, due_ms: int) -> None:
        """Add the place of a wish, due at `due_ms`, or never released if the wish is a cancel."""
        if wish.is_cancel:
            due_ms = NOT_RELEASED
        place = RecordPlace(wish.first, wish.count, due_ms, wish.schedule_id, wish.terms)
        if wish.schedule_id:
            earlier = self._by_id.get(wish.schedule_id)
            if earlier is not None:
                # A batch may name an id twice: only the later record is released.
                earlier.due_ms = NOT_RELEASED
            self._by_id[wish.schedule_id] = place
        last = self.places[-1] if self.places else None
        if last is not None and last.takes(place):
            last.count += place.count
        else:
            self.places.append(place)


def decide_places(walk: WishWalk, config: LogConfig, now_wall_ms: int) -> PlacesDecision:
    """Decide when each record of a batch is released, if it is appended now."""
    decision = PlacesDecision(now_wall_ms)
    if walk.errors:
        decision.error_code = INVALID_RECORD
        decision.record_errors = walk.errors
        return decision
    for wish in walk.wishes:
        due_ms = _due_ms(wish, now_wall_ms)
        if due_ms - now_wall_ms > config.delay_max_ms:
            _refuse_late(decision, wish, due_ms, config.delay_max_ms)
            continue
        if wish.kind != _RECURRING and is_soon(due_ms - now_wall_ms, config.delay_min_ms):
            # Keep a due time of the past: the clock may be ahead now, and be set back before the
            # record is released.
            due_ms = min(due_ms, now_wall_ms)
        decision.add(wish, due_ms)
    return decision


def decide_named(walk: IdWalk, due_ms: int, now_wall_ms: int) -> PlacesDecision:
    """Decide about a batch that is due as a whole, some of whose records name what waits."""
    decision = PlacesDecision(now_wall_ms)
    for wish in walk.wishes:
        decision.add(wish, due_ms)
    return decision


def _due_ms(wish: Wish, now_wall_ms: int) -> int:
    if wish.kind in (_AT, _RECURRING):
        return wish.time_ms
    if wish.kind == _AFTER:
        return min(now_wall_ms + wish.time_ms, DUE_MS_MAX)
    return wish.time_ms or now_wall_ms


def _refuse_late(decision: PlacesDecision, wish: Wish, due_ms: int, max_ms: int) -> None:
    decision.error_code = INVALID_TIMESTAMP
    index = wish.first
    while index < wish.first + wish.count and len(decision.record_errors) < RECORD_ERRORS_MAX:
        decision.record_errors.append(
            (index, f"the record is due at {due_ms}, and delay.max.ms is {max_ms}")
        )
        index += 1
