"""Columns and record objects against a plain reader: the same rows, whatever the bytes are."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st
from librt.strings import BytesWriter
from tests.support.plain_records import FlawedBytes, PlainRecord, read_batch

from tarry.base.errors import CorruptData
from tarry.records.batch import (
    ATTRIBUTES,
    CRC,
    HEADER_SIZE,
    LENGTH,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_BIT,
    NO_TIMESTAMP,
    RECORD_COUNT,
    TIMESTAMP_MAX,
    decode_batch_header,
)
from tarry.records.open_batch import OpenBatch
from tarry.records.rebuild import RebuiltBatch, empty_batch
from tarry.records.record import decode_records, take_records
from tarry.wire.compression import compress, decompress
from tarry.wire.crc32c import crc32c
from tarry.wire.varint import write_varint, write_varlong

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'tarry[arrow]'")

from tarry.client.arrow.tables import COLUMNS, Choice  # noqa: E402
from tarry.client.core.consumer.column_taker import RowRun  # noqa: E402

# Each makes tables of pyarrow, which costs milliseconds.
EXAMPLES = 40
SIZE_MAX = 1_000_000
OFFSET_MAX = 2**63 - 1


class Row(NamedTuple):
    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]


def write_bytes(writer: BytesWriter, value: bytes | None) -> None:
    write_varint(writer, -1 if value is None else len(value))
    writer.write(value or b"")


def encode_row(row: Row) -> bytes:
    body = BytesWriter()
    body.append(0)
    write_varlong(body, row.timestamp_delta)
    write_varint(body, row.offset_delta)
    write_bytes(body, row.key)
    write_bytes(body, row.value)
    write_varint(body, len(row.headers))
    for name, value in row.headers:
        write_bytes(body, name)
        write_bytes(body, value)
    whole = BytesWriter()
    write_bytes(whole, body.getvalue())
    return whole.getvalue()


def encode_batch(
    rows: list[Row], codec: int, base_offset: int, last_delta: int, attributes: int = 0
) -> bytes:
    """A batch with gaps, as a broker keeps one that was compacted."""
    frame = bytearray(HEADER_SIZE)
    frame[0:8] = base_offset.to_bytes(8, "big")
    frame[8:12] = (HEADER_SIZE - LENGTH_OVERHEAD).to_bytes(4, "big")
    frame[12:16] = (5).to_bytes(4, "big")
    frame[16] = 2
    frame[23:27] = last_delta.to_bytes(4, "big")
    header = decode_batch_header(bytes(frame), 0)
    rebuilt = RebuiltBatch(header)
    rebuilt.attributes = attributes | codec
    rebuilt.base_timestamp = 1_000
    rebuilt.max_timestamp = 9_000
    rebuilt.record_count = len(rows)
    content = b"".join(map(encode_row, rows))
    rebuilt.content = compress(codec, content) if codec and content else content
    return rebuilt.encode() if rows else empty_batch(header)


def reseal(data: bytes) -> bytes:
    batch = bytearray(data)
    batch[LENGTH : LENGTH + 4] = (len(batch) - LENGTH_OVERHEAD).to_bytes(4, "big")
    batch[CRC : CRC + 4] = crc32c(bytes(batch[ATTRIBUTES:])).to_bytes(4, "big")
    return bytes(batch)


short = st.binary(max_size=16) | st.binary(min_size=60, max_size=140)
names = st.text(max_size=4).map(str.encode) | st.binary(max_size=3)
row_lists = st.lists(
    st.tuples(
        st.integers(1, 70),
        st.integers(-200, 2**40) | st.just(0),
        st.none() | short,
        st.none() | short,
        st.lists(st.tuples(names, st.none() | short), max_size=3),
    ),
    max_size=40,
)


@st.composite
def batches(draw: Any) -> list[bytes]:
    made = []
    offset = draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(1, 3))):
        rows: list[Row] = []
        delta = -1
        for step, *fields in draw(row_lists):
            delta += step
            rows.append(Row(delta, *fields))
        last_delta = max(delta, 0) + draw(st.integers(0, 3))
        kind = draw(st.sampled_from([0, 0, LOG_APPEND_TIME_BIT]))
        made.append(encode_batch(rows, draw(st.integers(0, 4)), offset, last_delta, kind))
        offset += last_delta + 1 + draw(st.integers(0, 5))
    return made


def expected(batch: bytes) -> list[dict[str, Any]]:
    header = decode_batch_header(batch, 0)
    return [
        {
            "topic": "orders",
            "partition": 7,
            "offset": one.offset,
            "timestamp": one.timestamp,
            "timestamp_type": 1 if header.is_log_append_time else 0,
            "key": one.key,
            "value": one.value,
            "headers": [{"key": name, "value": value} for name, value in one.headers],
            "leader_epoch": header.leader_epoch,
        }
        for one in read_batch(batch, SIZE_MAX)
    ]


def objects(batch: bytes) -> list[PlainRecord]:
    return [
        PlainRecord(one.offset, one.timestamp, one.key, one.value, one.headers)
        for one in decode_records(batch, size_max=SIZE_MAX)
    ]


def walk(
    data: list[bytes], rows_max: int, *, views: bool, first: int = 0, end: int = OFFSET_MAX
) -> list[dict[str, Any]]:
    """Rows of batches, in Arrow batches of so many rows; each is validated to its last bit."""
    choice = Choice(None, views=views)
    rows: list[dict[str, Any]] = []
    taker = choice.taker(rows_max)

    def settle() -> None:
        nonlocal taker
        count = taker.buffers.row_count
        if count:
            taker.runs.append(RowRun("orders", 7, count, 0, 0))
            made = choice.batch(taker)
            made.validate(full=True)
            assert made.column_names == list(COLUMNS)
            number = made.column_names.index("timestamp")
            plain = made.set_column(number, "timestamp", made["timestamp"].cast(pa.int64()))
            rows.extend(plain.to_pylist())
        taker = choice.taker(rows_max)

    try:
        for one in data:
            batch = OpenBatch(one, 0)
            batch.unfold(SIZE_MAX)
            while not batch.is_done:
                if taker.is_full:
                    settle()
                room = rows_max - taker.buffers.row_count
                taker.buffers.take(batch, first, end, room)
    finally:
        settle()
    return rows


@given(batches(), st.data())
def test_record_objects_hold_what_the_bytes_say(data: list[bytes], more: Any):
    for one in data:
        records = read_batch(one, SIZE_MAX)
        header = decode_batch_header(one, 0)
        first = more.draw(st.integers(header.base_offset, header.last_offset + 1))
        batch = OpenBatch(b"before" + one + b"behind", 6)
        batch.unfold(SIZE_MAX)
        taken = take_records(batch, first)

        assert objects(one) == records
        assert [record.offset for record in taken] == [
            record.offset for record in records if record.offset >= first
        ]
        assert batch.next_offset == header.last_offset + 1


@given(batches(), st.integers(1, 50), st.booleans())
def test_columns_hold_what_the_bytes_say(data: list[bytes], rows_max: int, views: bool):
    assert walk(data, rows_max, views=views) == [row for one in data for row in expected(one)]


@settings(max_examples=EXAMPLES)
@given(batches(), st.integers(1, 50), st.data())
def test_what_lies_outside_the_range_is_left_out(data: list[bytes], rows_max: int, more: Any):
    rows = [row for one in data for row in expected(one)]
    last = decode_batch_header(data[-1], 0).last_offset
    base = decode_batch_header(data[0], 0).base_offset
    first, end = sorted(more.draw(st.tuples(*[st.integers(base, last + 1)] * 2)))

    found = walk(data, rows_max, views=False, first=first, end=end)

    assert found == [row for row in rows if first <= row["offset"] < end]


@settings(max_examples=EXAMPLES)
@given(batches(), st.lists(st.sampled_from(list(COLUMNS)), min_size=1, unique=True))
def test_chosen_columns_are_those_of_all(data: list[bytes], chosen: list[str]):
    made = []
    for choice in (Choice(None, views=False), Choice(chosen, views=False)):
        taker = choice.taker(1_000)
        for one in data:
            batch = OpenBatch(one, 0)
            batch.unfold(SIZE_MAX)
            taker.buffers.take(batch, 0, OFFSET_MAX, 1_000)
        if taker.buffers.row_count == 0:
            return
        taker.runs.append(RowRun("orders", 7, taker.buffers.row_count, 0, 0))
        made.append(choice.batch(taker))

    assert made[1].equals(made[0].select(chosen))


@settings(max_examples=EXAMPLES)
@given(batches(), st.data())
def test_damaged_bytes_are_refused_by_all(data: list[bytes], more: Any):
    whole = bytearray(data[0])
    codec = whole[ATTRIBUTES + 1] & 7
    content = bytearray(whole[HEADER_SIZE:])
    if codec and content:
        content = bytearray(decompress(codec, bytes(content), SIZE_MAX))
    places = st.integers(-4, max(len(content) - 1, 0))
    for place, byte in more.draw(st.lists(st.tuples(places, st.integers(0, 255)), max_size=3)):
        if place < 0:
            whole[RECORD_COUNT + 3] = byte
        elif place < len(content):
            content[place] = byte
    cut = more.draw(st.integers(0, 3))
    body = bytes(content[: len(content) - cut])
    whole[HEADER_SIZE:] = compress(codec, body) if codec and body else body
    batch = reseal(bytes(whole))

    try:
        rows = expected(batch)
    except FlawedBytes:
        with pytest.raises(CorruptData):
            decode_records(batch, size_max=SIZE_MAX)
        with pytest.raises(CorruptData):
            walk([batch], 1_000, views=False)
    else:
        assert walk([batch], 1_000, views=False) == rows
        assert objects(batch) == read_batch(batch, SIZE_MAX)


@settings(max_examples=EXAMPLES)
@given(st.binary(max_size=200), st.integers(0, 4))
def test_any_content_ends_in_rows_or_in_an_error(content: bytes, codec: int):
    batch = bytearray(encode_batch([Row(0, 0, None, None, [])], 0, 10, 50, codec))
    batch[HEADER_SIZE:] = content

    try:
        walk([reseal(bytes(batch))], 7, views=True)
    except CorruptData as error:
        assert str(error)


def test_a_time_that_does_not_fit_is_refused():
    batch = encode_batch([Row(0, TIMESTAMP_MAX, None, None, [])], 0, 0, 0)

    with pytest.raises(CorruptData, match="does not fit 64 bits"):
        walk([batch], 10, views=False)


def test_no_time_stays_no_time():
    batch = encode_batch([Row(0, NO_TIMESTAMP - 1_000, None, None, [])], 0, 0, 0)

    assert walk([batch], 10, views=False)[0]["timestamp"] == NO_TIMESTAMP


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_is_not_unfolded(codec: int):
    batch = encode_batch([Row(0, 0, None, bytes(3_000_000), [])], codec, 0, 0)

    with pytest.raises(CorruptData):
        walk([batch], 10, views=False)


def test_a_wrong_crc_is_refused():
    batch = encode_batch([Row(0, 0, None, b"value", [])], 0, 0, 0)

    with pytest.raises(CorruptData, match="CRC"):
        walk([batch[:-1] + b"\x01"], 10, views=False)


def test_a_view_keeps_the_bytes_that_it_names():
    value = b"longer than twelve bytes"
    choice = Choice(["value"], views=True)
    taker = choice.taker(10)
    batch = OpenBatch(bytes(bytearray(encode_batch([Row(0, 0, None, value, [])], 0, 0, 0))), 0)
    batch.unfold(SIZE_MAX)
    taker.buffers.take(batch, 0, OFFSET_MAX, 10)
    taker.runs.append(RowRun("orders", 7, 1, 0, 1))
    made = choice.batch(taker)
    del taker, batch

    assert made["value"].to_pylist() == [value]
    assert made.schema.field("value").type == pa.binary_view()
