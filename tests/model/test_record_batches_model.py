"""Batches of every kind go there and back; broken ones raise nothing but what is documented."""

from __future__ import annotations

import contextlib

from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder
from aiokafka.record.memory_records import MemoryRecords as AioRecords
from hypothesis import example, given, settings, strategies as st

from tarry.base import errors
from tarry.base.errors import CorruptData
from tarry.partition.producers import ProducerStates
from tarry.records.batch import (
    ATTRIBUTES,
    CRC,
    LENGTH,
    LENGTH_OVERHEAD,
    BatchHeader,
    batches_in,
    check_batch,
    has_valid_crc,
)
from tarry.records.builder import BatchBuilder
from tarry.records.record import RecordTimes, decode_records, open_records
from tarry.records.record_limits import check_record_limits
from tarry.wire.crc32c import crc32c
from tarry.wire.reader import Window, window_of

SIZE_MAX = 200_000
ACCEPTED_OR_REFUSED = (
    errors.NONE,
    errors.CORRUPT_MESSAGE,
    errors.INVALID_RECORD,
    errors.INVALID_TIMESTAMP,
)

CODECS = st.integers(0, 4)
FIELDS = st.one_of(st.none(), st.binary(max_size=70), st.just(b"x" * 9_000))
HEADERS = st.lists(
    st.tuples(st.text(max_size=8), st.one_of(st.none(), st.binary(max_size=70))), max_size=3
)
TIMES = st.one_of(st.integers(0, 2**45), st.integers(1_700_000_000_000, 1_700_000_000_100))
RECORDS = st.lists(st.tuples(TIMES, FIELDS, FIELDS, HEADERS), min_size=1, max_size=70)
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.one_of(st.integers(0, 255), st.binary(max_size=12))),
    min_size=1,
    max_size=6,
)
WITH_ODD_NAMES = [("000000\U00010000\U00010000", b"\0\0\0")] * 2


def built(records: list, codec: int) -> bytes:
    builder = BatchBuilder()
    for record in records:
        builder.append(*record)
    return builder.build(codec)


def edited(data: bytes, edits: list, is_resealed: bool) -> bytes:
    """Change bytes (a number) or put some in (bytes); with a right CRC the flaw lies deeper."""
    for where, what in edits:
        at = int(where * len(data))
        if isinstance(what, int):
            data = data[:at] + bytes([what]) + data[at + 1 :]
        else:
            data = data[:at] + what + data[at + len(what) // 2 :]
    if is_resealed and len(data) >= ATTRIBUTES:
        length = (len(data) - LENGTH_OVERHEAD).to_bytes(4, "big")
        crc = crc32c(data[ATTRIBUTES:]).to_bytes(4, "big")
        data = (
            bytes(LENGTH)
            + length
            + data[LENGTH_OVERHEAD : CRC - 1]
            + b"\x02"
            + crc
            + data[ATTRIBUTES:]
        )
    return data


@given(records=RECORDS, codec=CODECS)
@settings(max_examples=150, deadline=None)
def test_records_go_there_and_back(records, codec):
    data = built(records, codec)

    check = check_batch(window_of(data))

    assert check.error_code == errors.NONE
    assert check.window.to_bytes() == data
    assert [
        (one.offset, one.timestamp, one.key, one.value, one.headers)
        for one in decode_records(data, size_max=2_000_000)
    ] == [(offset, *record) for offset, record in enumerate(records)]


@given(records=RECORDS, codec=CODECS)
@settings(max_examples=60, deadline=None)
def test_what_aiokafka_writes_is_accepted_and_read(records, codec):
    builder = AioBuilder(2, codec, 0, 7, 1, 5, 10**7)
    for offset, (timestamp, key, value, headers) in enumerate(records):
        builder.append(offset, timestamp=timestamp, key=key, value=value, headers=headers)
    data = bytes(builder.build())

    check = check_batch(window_of(data))

    assert check.error_code == errors.NONE
    assert (check.header.producer_id, check.header.base_sequence) == (7, 5)
    assert [
        (one.timestamp, one.key, one.value, one.headers)
        for one in decode_records(data, size_max=2_000_000)
    ] == records


@given(records=RECORDS, codec=CODECS)
@settings(max_examples=60, deadline=None)
def test_aiokafka_reads_what_is_built(records, codec):
    batch = AioRecords(built(records, codec)).next_batch()

    assert batch.validate_crc()
    assert [(one.timestamp, one.key, one.value, list(one.headers)) for one in batch] == records


@given(
    records=RECORDS,
    codec=CODECS,
    timestamp_min=st.one_of(st.just(-(2**63)), TIMES),
    timestamp_max=st.one_of(st.just(2**63 - 1), TIMES),
    is_key_required=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_limits_agree_with_looking_at_every_record(
    records, codec, timestamp_min, timestamp_max, is_key_required
):
    check = check_batch(window_of(built(records, codec)))

    check_record_limits(check, timestamp_min, timestamp_max, is_key_required, 2_000_000)

    bad = [
        index
        for index, (timestamp, key, _, _) in enumerate(records)
        if (is_key_required and key is None) or not timestamp_min <= timestamp <= timestamp_max
    ]
    assert [index for index, _ in check.record_errors or []] == bad
    assert (check.error_code != errors.NONE) == bool(bad)


# The edit makes a record's attributes more than seven bits: Java reads a byte, aiokafka a varint.
@example(
    records=[(0, None, None, [("001000\U00010000\U00010000", b"\0\0"), *WITH_ODD_NAMES])],
    codec=0,
    edits=[(0.5, 128)],
    is_resealed=True,
)
@given(records=RECORDS, codec=CODECS, edits=EDITS, is_resealed=st.booleans())
@settings(max_examples=600, deadline=None)
def test_a_broken_batch_is_refused_or_read_and_nothing_else(records, codec, edits, is_resealed):
    data = edited(built(records[:10], codec), edits, is_resealed)
    frame = b"\x01\x02" + data + b"\x03"

    check = check_batch(Window(frame, 2, 2 + len(data)))
    was_accepted = check.error_code == errors.NONE
    if was_accepted:
        check_record_limits(check, 0, 2**62, True, SIZE_MAX)

    assert check.error_code in ACCEPTED_OR_REFUSED
    assert (check.message is None) == (check.error_code == errors.NONE)
    if was_accepted and codec_of(check) == 0:
        # Every reader can read a batch that the walk lets through.
        window = check.window
        assert has_valid_crc(window.data, window.start, check.header)
        read = decode_records(window.data, size_max=SIZE_MAX, position=window.start)
        assert [one.offset for one in read] == list(range(check.header.record_count))
        assert max(-1, *(one.timestamp for one in read)) == check.header.max_timestamp
        # The names of headers are the client's: brokers do not look whether they are UTF-8, and
        # this reader raises where they are not.
        if all(byte < 0x80 for byte in attributes_of_records(check)):
            with contextlib.suppress(UnicodeDecodeError):
                assert len(list(AioRecords(window.to_bytes()).next_batch())) == len(read)


def read_times(data: bytes) -> None:
    header = BatchHeader(data, 0)
    times = RecordTimes(open_records(data, 0, header, SIZE_MAX), header)
    while times.advance():
        pass


def codec_of(check) -> int:
    return check.header.codec


def attributes_of_records(check) -> list[int]:
    """The byte of each record that says nothing."""
    window = check.window
    cursor = open_records(window.data, window.start, check.header, SIZE_MAX)
    found = []
    for _ in range(check.header.record_count):
        end = cursor.enter_record(window.end)
        found.append(cursor.data[cursor.position - 1])
        cursor.position = end
    return found


@given(records=RECORDS, codec=CODECS, edits=EDITS, is_resealed=st.booleans())
@settings(max_examples=400, deadline=None)
def test_readers_of_a_broken_batch_find_it_corrupt_or_read_it(records, codec, edits, is_resealed):
    data = edited(built(records[:10], codec), edits, is_resealed)

    for read in (
        lambda: batches_in(window_of(data)),
        lambda: decode_records(data, size_max=SIZE_MAX),
        lambda: read_times(data),
    ):
        try:
            read()
        except CorruptData as error:
            assert str(error)


@given(data=st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_rubbish_is_refused_everywhere(data):
    check = check_batch(window_of(data))
    states = ProducerStates(1000)

    assert check.error_code in ACCEPTED_OR_REFUSED[1:]
    assert not states.load_snapshot(data)
    for read in (
        lambda: batches_in(window_of(data)),
        lambda: decode_records(data, size_max=SIZE_MAX),
    ):
        try:
            assert read() == []
        except CorruptData as error:
            assert str(error)
