"""Notes of a companion log: written and read, and what cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from librt.strings import BytesWriter, write_i16_be

from tarry.base.limits import (
    CHECKPOINT_EXCEPTIONS_MAX,
    CHECKPOINT_RECURRING_MAX,
    CHECKPOINT_WATERMARKS_MAX,
)
from tarry.records.aborted import marker_type
from tarry.records.batch import CONTROL_BIT, checked_header, decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.schedule.notes import (
    ANY_OFFSET,
    CHECKPOINT,
    EACH_ITS_OWN,
    SCHEDULED,
    CancelledNote,
    CheckpointNote,
    ScheduledNote,
    ScheduleNote,
    UnreadableNote,
    Watermark,
    read_note,
)
from tarry.schedule.places import RecordPlace
from tarry.schedule.recurring.terms import MISFIRES, NotedRecurrence, RecurrenceTerms

OFFSETS = st.integers(0, 2**62)
TIMES = st.integers(-(2**63), 2**63 - 1)


def read(batch: bytes) -> ScheduleNote:
    return read_note(batch, 0, checked_header(batch, 0))


def batch_of(key: bytes | None, value: bytes | None, records: int = 1) -> bytes:
    builder = BatchBuilder()
    for _ in range(records):
        builder.append(7, key, value)
    return builder.build(attributes=CONTROL_BIT)


def value_of(note: ScheduleNote) -> bytes:
    writer = BytesWriter()
    write_i16_be(writer, 0)
    note.write(writer)
    return writer.getvalue()


def facts(note: ScheduleNote) -> tuple[object, ...]:
    assert isinstance(note, CheckpointNote)
    watermarks = [(w.before_offset, w.due_ms, w.s_offset) for w in note.watermarks]
    return note.c, note.c_epoch, watermarks, note.exceptions


@given(TIMES)
def test_a_scheduled_note_is_read_as_it_was_written(due_ms: int) -> None:
    note = read(ScheduledNote(due_ms).encode(5))

    assert isinstance(note, ScheduledNote)
    assert note.due_ms == due_ms


@given(
    TIMES,
    st.lists(st.tuples(st.integers(1, 2**20), TIMES, st.binary(max_size=1_024)), max_size=5),
    st.lists(OFFSETS, max_size=5),
)
def test_places_and_what_they_cancel_are_read_as_they_were_written(
    due_ms: int, terms: list[tuple[int, int, bytes]], cancelled: list[int]
) -> None:
    places: list[RecordPlace] = []
    first = 0
    for count, place_due_ms, schedule_id in terms:
        places.append(RecordPlace(first, count, place_due_ms, schedule_id))
        first += count

    note = read(ScheduledNote(due_ms, places, cancelled).encode(5))

    assert isinstance(note, ScheduledNote)
    assert (note.due_ms, note.places, note.cancelled) == (due_ms, places, cancelled)


@given(
    st.text(max_size=300),
    st.text(max_size=100),
    st.tuples(TIMES, TIMES, OFFSETS),
    st.sampled_from(MISFIRES),
)
def test_the_terms_of_places_that_recur_are_read_as_they_were_written(
    cron: str, zone: str, numbers: tuple[int, int, int], misfire: str
) -> None:
    since_ms, end_ms, count = numbers
    terms = RecurrenceTerms(cron, zone, since_ms, end_ms=end_ms, count=count, misfire=misfire)
    places = [RecordPlace(0, 1, 5, b"id", terms), RecordPlace(1, 7, 9)]
    written = ScheduledNote(EACH_ITS_OWN, places, [3])

    note = read(written.encode(5))

    assert isinstance(note, ScheduledNote)
    assert (note.version, note.places, note.cancelled) == (2, places, [3])
    assert len(written.encode(5)) < written.size + 128


@given(
    st.lists(st.tuples(OFFSETS, TIMES, OFFSETS), max_size=20, unique_by=lambda each: each[0]),
)
def test_a_checkpoint_says_how_far_recurring_bodies_came(terms: list[tuple[int, int, int]]) -> None:
    recurrences = [NotedRecurrence(*each) for each in sorted(terms)]
    checkpoint = CheckpointNote(9, 2, [Watermark(ANY_OFFSET, 5, 3)], [1], recurrences)

    note = read(checkpoint.encode(77))

    assert isinstance(note, CheckpointNote)
    assert facts(note) == facts(checkpoint)
    assert [(each.s_offset, each.last_ms, each.count) for each in note.recurrences] == sorted(terms)
    assert note.noted_ms == 77


def test_a_release_that_knows_no_recurring_bodies_reads_the_rest_of_a_checkpoint() -> None:
    recurrences = [NotedRecurrence(7, 1_000, 3)]
    checkpoint = CheckpointNote(9, 2, [Watermark(ANY_OFFSET, 5, 3)], [1], recurrences)
    data = checkpoint.encode(77)

    # Nothing but a tagged field is added, and no version.
    plain = CheckpointNote(9, 2, [Watermark(ANY_OFFSET, 5, 3)], [1])
    assert value_of(checkpoint) == value_of(plain)
    assert value_of(plain)[:-1] in data


@given(OFFSETS, st.booleans())
def test_a_cancelled_note_is_read_as_it_was_written(s_offset: int, has_come: bool) -> None:
    note = read(CancelledNote(s_offset, has_come=has_come).encode(5))

    assert isinstance(note, CancelledNote)
    assert (note.s_offset, note.has_come) == (s_offset, has_come)


@given(
    OFFSETS,
    st.integers(-1, 2**31 - 1),
    st.lists(st.tuples(OFFSETS, TIMES, OFFSETS), max_size=5, unique_by=lambda each: each[0]),
    st.lists(OFFSETS, max_size=20, unique=True),
)
def test_a_checkpoint_is_read_as_it_was_written(
    c: int, epoch: int, watermarks: list[tuple[int, int, int]], exceptions: list[int]
) -> None:
    kept = [Watermark(*each) for each in sorted(watermarks)]
    checkpoint = CheckpointNote(c, epoch, kept, sorted(exceptions))

    note = read(checkpoint.encode(5))

    assert facts(note) == facts(checkpoint)


def test_the_largest_checkpoint_can_be_read() -> None:
    watermarks = [Watermark(each, 1, 1) for each in range(CHECKPOINT_WATERMARKS_MAX)]
    recurrences = [NotedRecurrence(each, 1, 1) for each in range(CHECKPOINT_RECURRING_MAX)]
    exceptions = list(range(CHECKPOINT_EXCEPTIONS_MAX))
    checkpoint = CheckpointNote(1, 0, watermarks, exceptions, recurrences)

    note = read(checkpoint.encode(5))

    assert facts(note) == facts(checkpoint)
    assert isinstance(note, CheckpointNote)
    assert len(note.recurrences) == CHECKPOINT_RECURRING_MAX


def test_a_note_is_a_control_batch_with_a_type_in_kafkas_form() -> None:
    batch = ScheduledNote(EACH_ITS_OWN).encode(1_700_000_000_000)
    header = checked_header(batch, 0)

    assert header.is_control
    assert header.record_count == 1
    assert header.max_timestamp == 1_700_000_000_000
    assert not header.has_producer_id
    assert marker_type(batch, 0, header) == SCHEDULED


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        (batch_of(None, b"\0\0"), "a key of -1 bytes"),
        (batch_of(b"\0\0\0", b"\0\0"), "a key of 3 bytes"),
        (batch_of(b"\0\0\0\x64", None), "a note without a value"),
        (batch_of(b"\0\0\0\x64", b""), "2 bytes wanted"),
        (batch_of(b"\0\0\0\x64", b"\0\0\0\0\0\0"), "8 bytes wanted"),
        (batch_of(b"\0\0\0\x64", value_of(ScheduledNote(1)) + b"\0\0"), "1 bytes after the last"),
        (batch_of(b"\0\0\0\x64", value_of(ScheduledNote(1)), records=2), "2 records"),
        (batch_of(b"\0\0\0\x64", bytes(5_000_000)), "a note of 5000012 bytes"),
        (
            batch_of(b"\0\0\0\x64", b"\0\x01" + bytes(11) + b"\x01" + bytes(14)),
            "a place of 0 records",
        ),
        (batch_of(b"\0\0\0\x64", b"\0\x01" + bytes(16) + b"\0"), "a note of no places"),
    ],
)
def test_a_damaged_note_says_what_is_wrong(batch: bytes, sentence: str) -> None:
    note = read(batch)

    assert isinstance(note, UnreadableNote)
    assert not note.is_newer
    assert sentence in note.sentence


@pytest.mark.parametrize(
    "checkpoint",
    [
        CheckpointNote(-1, 0, [], []),
        CheckpointNote(1, -2, [], []),
        CheckpointNote(1, 0, [Watermark(5, 1, 1), Watermark(5, 1, 1)], []),
        CheckpointNote(1, 0, [], [4, 4]),
        CheckpointNote(1, 0, [], [4, 3]),
        CheckpointNote(1, 0, [], [], [NotedRecurrence(4, 1, 1), NotedRecurrence(4, 1, 1)]),
    ],
)
def test_a_checkpoint_that_cannot_be_is_not_taken(checkpoint: CheckpointNote) -> None:
    assert isinstance(read(checkpoint.encode(5)), UnreadableNote)


def test_more_exceptions_than_allowed_are_refused_before_they_are_read() -> None:
    checkpoint = CheckpointNote(1, 0, [], [])
    checkpoint.exceptions = list(range(CHECKPOINT_EXCEPTIONS_MAX + 1))

    note = read(checkpoint.encode(5))

    assert isinstance(note, UnreadableNote)
    assert "10001 exceptions, 10000 are the most" in note.sentence


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0\x01\0\x64", value_of(ScheduledNote(1)) + b"\0"),
        (b"\0\0\0\x64", b"\0\x03" + bytes(9)),
        (b"\0\0\0\x66", value_of(ScheduledNote(1)) + b"\0"),
        (b"\0\0\x01\x00", b"\0\0\0"),
    ],
)
def test_a_note_of_a_newer_release_is_told_from_a_damaged_one(key: bytes, value: bytes) -> None:
    note = read(batch_of(key, value))

    assert isinstance(note, UnreadableNote)
    assert note.is_newer
    assert "a newer release has written it" in note.sentence


def test_fields_that_a_newer_release_added_are_skipped() -> None:
    # One tagged field, tag 3, two bytes.
    note = read(batch_of(b"\0\0\0\x64", value_of(ScheduledNote(77)) + b"\x01\x03\x02ab"))

    assert isinstance(note, ScheduledNote)
    assert note.due_ms == 77


@given(st.binary(max_size=80), st.sampled_from([100, 101, 103]))
def test_no_value_makes_a_reader_of_notes_fail(value: bytes, type_: int) -> None:
    batch = batch_of(bytes([0, 0, 0, type_]), value)

    assert read_note(batch, 0, decode_batch_header(batch, 0)).type in (-1, type_)


@given(st.data())
def test_no_flipped_byte_makes_a_reader_of_notes_fail(data: st.DataObject) -> None:
    batch = bytearray(CheckpointNote(9, 2, [Watermark(ANY_OFFSET, 5, 3)], [1, 2]).encode(5))
    place = data.draw(st.integers(61, len(batch) - 1))
    batch[place] ^= data.draw(st.integers(1, 255))

    # Its CRC is not asked for here: a log has checked it.
    note = read_note(bytes(batch), 0, decode_batch_header(bytes(batch), 0))

    assert note.type in (-1, 100, 101, CHECKPOINT)


def test_more_recurring_bodies_than_allowed_are_refused_before_they_are_read() -> None:
    checkpoint = CheckpointNote(1, 0, [], [])
    checkpoint.recurrences = [
        NotedRecurrence(each, 1, 1) for each in range(CHECKPOINT_RECURRING_MAX + 1)
    ]

    note = read(checkpoint.encode(5))

    assert isinstance(note, UnreadableNote)
    assert "20001 recurring bodies, 20000 are the most" in note.sentence


@given(st.data())
def test_no_flipped_byte_in_terms_makes_a_reader_of_notes_fail(data: st.DataObject) -> None:
    terms = RecurrenceTerms("* * * * *", "UTC", 5, end_ms=-1, count=-1, misfire="once")
    note = ScheduledNote(EACH_ITS_OWN, [RecordPlace(0, 1, 5, b"id", terms)])
    batch = bytearray(note.encode(5))
    place = data.draw(st.integers(61, len(batch) - 1))
    batch[place] ^= data.draw(st.integers(1, 255))

    assert read_note(bytes(batch), 0, decode_batch_header(bytes(batch), 0)).type in (-1, 100, 101)
