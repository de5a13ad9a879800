"""Notes of a companion log: when bodies are due, what is cancelled, and what was released.

A note is a control batch of one record in Kafka's form: the key is a version and a type, both of 16
bits, and Kafka's tools show types that they do not know as such.  The value is a version, fields,
and tagged fields (KIP-482); a release of Tarry skips those that it does not know.  A note that is
damaged or of a newer release is read as an `UnreadableNote` with a sentence.  Hot.

    100 scheduled    due; the body follows right behind: the next batch.  Version 1 has places, each
                     with a due time and an id, and whose bodies wait no more (s-offsets); version 2
                     has the terms of places that recur; tag 0: when those bodies were due
    101 cancelled    s-offset of the body; tag 0: it recurred, has ended and came before that;
                     tag 1: when it was due
    103 checkpoint   c, epoch of c - 1, watermarks W, exceptions E; tag 0: recurring bodies
    104 gap          nothing; for consumers, in no log (`records/gap`)
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64, mypyc_attr

from tarry.base.errors import CorruptData
from tarry.base.limits import (
    CHECKPOINT_EXCEPTIONS_MAX,
    CHECKPOINT_RECURRING_MAX,
    CHECKPOINT_WATERMARKS_MAX,
    SCHEDULE_NOTE_BYTES_MAX,
)
from tarry.records.batch import CONTROL_BIT, BatchHeader
from tarry.records.builder import BatchBuilder
from tarry.records.record import open_records
from tarry.schedule.places import RecordPlace
from tarry.schedule.recurring.terms import NotedRecurrence, RecurrenceTerms, read_terms
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.varint import write_unsigned_varint

SCHEDULED: Final = 100
CANCELLED: Final = 101
CHECKPOINT: Final = 103
GAP: Final = 104
# Type of a note that could not be read.
UNREADABLE: Final = -1

# Due time of a batch whose records are each due at a time of their own.
EACH_ITS_OWN: Final = -(2**63)

# Due time noted for a cancelled body that recurs or whose due time is not known: no watermark
# reaches it.
NEVER_DONE: Final = 2**63 - 1

# Offset behind all others: a watermark with this `before_offset` speaks of all bodies before its
# note.
ANY_OFFSET: Final = 2**63 - 1

# Kafka's version of a control record's key.
_KEY_VERSION: Final = 0
_KEY_SIZE: Final = 4
_VALUE_VERSION: Final = 0
# Version of a note with places.  A release of Tarry that does not know ids cannot read the note,
# and does not release the bodies.
_PLACES_VERSION: Final = 1
# Version of a note with recurring places.  A release of Tarry that does not know them cannot read
# the note, and does not release the bodies once.
_RECURRING_VERSION: Final = 2

_PLACE_SIZE_MIN: Final = 14
_WATERMARK_SIZE: Final = 24
_OFFSET_SIZE: Final = 8
_RECURRENCE_SIZE: Final = 24

# Tagged field of a checkpoint: its recurring bodies.  A release of Tarry that does not know the
# field skips it, and releases no recurring bodies.
_RECURRENCES_TAG: Final = 0
# Tagged fields of a cancel: an empty one for `has_come`, and the body's due time.
_HAS_COME_TAG: Final = 0
_CANCELLED_DUE_TAG: Final = 1
# Tagged field of a scheduled note: due times of the bodies that it cancels.
_CANCELLED_DUES_TAG: Final = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class ScheduleNote:
    """Note of a companion log; `type` is the number of its type."""

    def __init__(self, type_: int) -> None:
        self.type = type_
        self.version = _VALUE_VERSION

    def encode(self, now_wall_ms: i64) -> bytes:
        """Encode the note as a batch; the log sets its offset and leader epoch."""
        builder = BatchBuilder()
        builder.append(now_wall_ms, self.key(), self.value())
        return builder.build(attributes=CONTROL_BIT)

    def key(self) -> bytes:
        """Return the key of the note's record."""
        key = BytesWriter()
        write_i16_be(key, _KEY_VERSION)
        write_i16_be(key, i16(self.type))
        return key.getvalue()

    def value(self) -> bytes:
        """Return the value of the note's record."""
        value = BytesWriter()
        write_i16_be(value, i16(self.version))
        self.write(value)
        self.write_tagged(value)
        return value.getvalue()

    def write(self, value: BytesWriter) -> None:
        """Write the fields of the note's type."""
        raise NotImplementedError

    def write_tagged(self, value: BytesWriter) -> None:
        """Write the note's tagged fields; most types have none."""
        value.append(0)


class ScheduledNote(ScheduleNote):
    """Note that the next batch is a body, due at `due_ms`, or each place of it at its own time.

    A body that is due as a whole has one place at most, which says its id.  `cancelled` are the
    s-offsets of the bodies that this batch cancels or replaces, `cancelled_dues` their due times:
    once a checkpoint says that these bodies are done, the note is not needed for them.
    """

    def __init__(
        self,
        due_ms: int,
        places: list[RecordPlace] | None = None,
        cancelled: list[int] | None = None,
        cancelled_dues: list[int] | None = None,
    ) -> None:
        super().__init__(SCHEDULED)
        self.due_ms = due_ms
        self.places = [] if places is None else places
        self.cancelled = [] if cancelled is None else cancelled
        self.cancelled_dues = [NEVER_DONE] * len(self.cancelled)
        if cancelled_dues is not None:
            assert len(cancelled_dues) == len(self.cancelled)
            self.cancelled_dues = cancelled_dues
        if self.places or self.cancelled:
            self.version = _PLACES_VERSION
        for place in self.places:
            if place.terms is not None:
                self.version = _RECURRING_VERSION

    @property
    def size(self) -> int:
        """Size of the note's fields in bytes."""
        size = sum([_PLACE_SIZE_MIN + len(place.schedule_id) for place in self.places])
        for place in self.places:
            size += 1 if place.terms is None else 1 + place.terms.size
        return size + _OFFSET_SIZE * (2 * len(self.cancelled) + 2)

    def write(self, value: BytesWriter) -> None:
        write_i64_be(value, self.due_ms)
        if self.version == _VALUE_VERSION:
            return
        write_i32_be(value, i32(len(self.places)))
        for place in self.places:
            write_i32_be(value, i32(place.count))
            write_i64_be(value, place.due_ms)
            write_i16_be(value, i16(len(place.schedule_id)))
            value.write(place.schedule_id)
            if self.version == _RECURRING_VERSION:
                value.append(0 if place.terms is None else 1)
                if place.terms is not None:
                    place.terms.write(value)
        write_i32_be(value, i32(len(self.cancelled)))
        for s_offset in self.cancelled:
            write_i64_be(value, s_offset)

    def write_tagged(self, value: BytesWriter) -> None:
        if self.cancelled_dues.count(NEVER_DONE) == len(self.cancelled_dues):
            value.append(0)
            return
        value.append(1)
        write_unsigned_varint(value, _CANCELLED_DUES_TAG)
        write_unsigned_varint(value, _OFFSET_SIZE * len(self.cancelled_dues))
        for due_ms in self.cancelled_dues:
            write_i64_be(value, due_ms)


class CancelledNote(ScheduleNote):
    """Note that the body at `s_offset`, which was due at `due_ms`, is not to be released.

    `has_come`: the body was a recurring one and has ended by itself; nobody has cancelled it.
    """

    def __init__(self, s_offset: int, *, has_come: bool = False, due_ms: int = NEVER_DONE) -> None:
        super().__init__(CANCELLED)
        self.s_offset = s_offset
        self.has_come = has_come
        self.due_ms = due_ms

    def write(self, value: BytesWriter) -> None:
        write_i64_be(value, self.s_offset)

    def write_tagged(self, value: BytesWriter) -> None:
        value.append(int(self.has_come) + int(self.due_ms != NEVER_DONE))
        if self.has_come:
            write_unsigned_varint(value, _HAS_COME_TAG)
            write_unsigned_varint(value, 0)
        if self.due_ms != NEVER_DONE:
            write_unsigned_varint(value, _CANCELLED_DUE_TAG)
            write_unsigned_varint(value, _OFFSET_SIZE)
            write_i64_be(value, self.due_ms)


class Watermark:
    """Largest (due, s-offset) of a released body among the bodies before `before_offset`."""

    def __init__(self, before_offset: int, due_ms: int, s_offset: int) -> None:
        self.before_offset = before_offset
        self.due_ms = due_ms
        self.s_offset = s_offset

    def covers(self, due_ms: int, s_offset: int) -> bool:
        """Return whether a body with this place in the order is at or below the watermark."""
        return (due_ms, s_offset) <= (self.due_ms, self.s_offset)


class CheckpointNote(ScheduleNote):
    """Note of what was released below the offset `c` of the partition.

    It counts only where the partition has c in this epoch: `c_epoch` is that of the record at
    c - 1, or -1 while c is 0.  Each body before the note belongs to the first watermark that lies
    behind it; one at or below its watermark is done, but for the `exceptions`, s-offsets in their
    order that were pending.  There is one watermark, and one more for each time that a clock was
    set back and has not caught up since.  `recurrences` are all recurring bodies that are alive, in
    the order of their s-offsets: no watermark speaks of them.
    """

    def __init__(
        self,
        c: int,
        c_epoch: int,
        watermarks: list[Watermark],
        exceptions: list[int],
        recurrences: list[NotedRecurrence] | None = None,
    ) -> None:
        super().__init__(CHECKPOINT)
        assert len(watermarks) <= CHECKPOINT_WATERMARKS_MAX
        assert len(exceptions) <= CHECKPOINT_EXCEPTIONS_MAX
        self.c = c
        self.c_epoch = c_epoch
        self.watermarks = watermarks
        self.exceptions = exceptions
        self.recurrences = [] if recurrences is None else recurrences
        assert len(self.recurrences) <= CHECKPOINT_RECURRING_MAX
        # When the checkpoint was written, in ms since 1970; -1 if it was not read from a batch.
        self.noted_ms = -1

    def write(self, value: BytesWriter) -> None:
        write_i64_be(value, self.c)
        write_i32_be(value, i32(self.c_epoch))
        write_i32_be(value, i32(len(self.watermarks)))
        for watermark in self.watermarks:
            write_i64_be(value, watermark.before_offset)
            write_i64_be(value, watermark.due_ms)
            write_i64_be(value, watermark.s_offset)
        write_i32_be(value, i32(len(self.exceptions)))
        for s_offset in self.exceptions:
            write_i64_be(value, s_offset)

    def write_tagged(self, value: BytesWriter) -> None:
        if not self.recurrences:
            value.append(0)
            return
        field = BytesWriter()
        write_i32_be(field, i32(len(self.recurrences)))
        for each in self.recurrences:
            write_i64_be(field, each.s_offset)
            write_i64_be(field, each.last_ms)
            write_i64_be(field, each.count)
        content = field.getvalue()
        value.append(1)
        write_unsigned_varint(value, _RECURRENCES_TAG)
        write_unsigned_varint(value, len(content))
        value.write(content)

    def watermark_of(self, s_offset: int) -> Watermark | None:
        """Return the watermark to which a body before the note belongs."""
        for watermark in self.watermarks:
            if s_offset < watermark.before_offset:
                return watermark
        return None


class GapNote(ScheduleNote):
    """Note that consumers get in place of batches that wait no more."""

    def __init__(self) -> None:
        super().__init__(GAP)

    def write(self, value: BytesWriter) -> None:
        pass


class UnreadableNote(ScheduleNote):
    """Note that this release cannot read; `sentence` says why."""

    def __init__(self, sentence: str, is_newer: bool) -> None:
        super().__init__(UNREADABLE)
        self.sentence = sentence
        self.is_newer = is_newer


def read_note(data: bytes, position: i64, header: BatchHeader) -> ScheduleNote:
    """Read the note in the control batch at `position`; its CRC must hold."""
    try:
        return _read_note(data, position, header)
    except (MalformedData, CorruptData) as error:
        return UnreadableNote(f"the note at offset {header.base_offset}: {error}", is_newer=False)


def _read_note(data: bytes, position: i64, header: BatchHeader) -> ScheduleNote:
    if header.record_count != 1:
        raise CorruptData(f"{header.record_count} records where one is a note")
    cursor = open_records(data, position, header, SCHEDULE_NOTE_BYTES_MAX)
    record_end: i64 = cursor.enter_record(cursor.end)
    if record_end - cursor.position > SCHEDULE_NOTE_BYTES_MAX:
        raise CorruptData(f"a note of {record_end - cursor.position} bytes")
    cursor.varlong()
    cursor.varint()
    key_size: i64 = cursor.size_of("key of a note")
    if key_size < _KEY_SIZE:
        raise CorruptData(f"a key of {key_size} bytes")
    key_end: i64 = cursor.position + key_size
    key_version: i64 = cursor.i16()
    type_: i64 = cursor.i16()
    cursor.position = key_end
    value_size: i64 = cursor.size_of("value of a note")
    if value_size < 0:
        raise CorruptData("a note without a value")
    value = Reader(cursor.data, cursor.position, cursor.position + value_size)
    version: i64 = value.i16()
    version_max: i64 = _RECURRING_VERSION if type_ == SCHEDULED else _VALUE_VERSION
    if key_version != _KEY_VERSION or version < 0 or version > version_max:
        return UnreadableNote(
            f"the note at offset {header.base_offset} has the versions {key_version} and "
            f"{version}: a newer release has written it",
            is_newer=True,
        )
    note = _read_fields(type_, version, value)
    if note is None:
        return UnreadableNote(
            f"the note at offset {header.base_offset} has the type {type_}: a newer release has "
            "written it",
            is_newer=True,
        )
    if isinstance(note, CheckpointNote):
        note.noted_ms = int(header.max_timestamp)
    _read_tagged(note, value)
    value.expect_end()
    return note


def _read_fields(type_: i64, version: i64, value: Reader) -> ScheduleNote | None:
    """Read the fields of a note of this type; None if there is no such type yet."""
    if type_ == SCHEDULED:
        due_ms = int(value.i64())
        return ScheduledNote(due_ms) if version == 0 else _read_places(due_ms, version, value)
    if type_ == CANCELLED:
        return CancelledNote(int(value.i64()))
    if type_ == CHECKPOINT:
        return _read_checkpoint(value)
    return None


def _read_places(due_ms: int, version: i64, value: Reader) -> ScheduledNote:
    count: i64 = value.array_length(_PLACE_SIZE_MIN)
    places: list[RecordPlace] = []
    first = 0
    while len(places) < count:
        records = int(value.i32())
        place_due_ms = int(value.i64())
        id_size: i64 = value.i16()
        if records <= 0 or id_size < 0 or id_size > value.end - value.position:
            raise CorruptData(f"a place of {records} records with an id of {id_size} bytes")
        schedule_id = value.data[value.position : value.position + id_size]
        value.position += id_size
        terms: RecurrenceTerms | None = None
        if version == _RECURRING_VERSION and value.boolean():
            terms = read_terms(value)
        places.append(RecordPlace(first, records, place_due_ms, schedule_id, terms))
        first += records
    count = value.array_length(_OFFSET_SIZE)
    cancelled: list[int] = []
    while len(cancelled) < count:
        cancelled.append(int(value.i64()))
    if not places and not cancelled:
        raise CorruptData("a note of no places")
    return ScheduledNote(due_ms, places, cancelled)


def _read_checkpoint(value: Reader) -> CheckpointNote:
    c = int(value.i64())
    c_epoch = int(value.i32())
    if c < 0 or c_epoch < -1:
        raise CorruptData(f"a checkpoint at the offset {c} in the epoch {c_epoch}")
    count = _count(value, _WATERMARK_SIZE, CHECKPOINT_WATERMARKS_MAX, "watermarks")
    watermarks: list[Watermark] = []
    before_offset = -1
    while len(watermarks) < count:
        watermark = Watermark(int(value.i64()), int(value.i64()), int(value.i64()))
        if watermark.before_offset <= before_offset:
            raise CorruptData(f"a watermark before {watermark.before_offset} behind one before it")
        before_offset = watermark.before_offset
        watermarks.append(watermark)
    count = _count(value, _OFFSET_SIZE, CHECKPOINT_EXCEPTIONS_MAX, "exceptions")
    exceptions: list[int] = []
    previous = -1
    while len(exceptions) < count:
        s_offset = int(value.i64())
        if s_offset <= previous:
            raise CorruptData(f"the exception {s_offset} after {previous}")
        previous = s_offset
        exceptions.append(s_offset)
    return CheckpointNote(c, c_epoch, watermarks, exceptions)


def _read_tagged(note: ScheduleNote, value: Reader) -> None:
    count: i64 = value.tagged_field_count()
    tag: i64 = -1
    while count > 0:
        count -= 1
        tag = value.tag_after(tag)
        end: i64 = value.tagged_field_end()
        if tag == _RECURRENCES_TAG and isinstance(note, CheckpointNote):
            _read_recurrences(note, value)
        elif tag == _HAS_COME_TAG and isinstance(note, CancelledNote):
            note.has_come = True
        elif tag == _CANCELLED_DUE_TAG and isinstance(note, CancelledNote):
            note.due_ms = int(value.i64())
        elif tag == _CANCELLED_DUES_TAG and isinstance(note, ScheduledNote):
            if end - value.position != _OFFSET_SIZE * len(note.cancelled):
                raise CorruptData("another number of due times than of what is cancelled")
            note.cancelled_dues = [int(value.i64()) for _ in note.cancelled]
        else:
            value.position = end
        value.expect_position(end)


def _read_recurrences(note: CheckpointNote, value: Reader) -> None:
    count = _count(value, _RECURRENCE_SIZE, CHECKPOINT_RECURRING_MAX, "recurring bodies")
    previous = -1
    while len(note.recurrences) < count:
        each = NotedRecurrence(int(value.i64()), int(value.i64()), int(value.i64()))
        if each.s_offset <= previous:
            raise CorruptData(f"the recurring body {each.s_offset} after {previous}")
        previous = each.s_offset
        note.recurrences.append(each)


def _count(value: Reader, element_size: i64, count_max: i64, what: str) -> i64:
    """Read the number of elements that follow; `CorruptData` if it is larger than allowed."""
    count: i64 = value.array_length(element_size)
    if count < 0 or count > count_max:
        raise CorruptData(f"{count} {what}, {count_max} are the most")
    return count
