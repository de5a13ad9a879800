"""Writer: what it writes the reader reads; chunks stay whole and uncopied."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from tarry.base.doors import FileRegion
from tarry.wire import ChunkList, Reader, Writer, window_of
from tarry.wire.writer import COPY_BYTES_MAX

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i8": st.integers(-(2**7), 2**7 - 1),
    "i16": st.integers(-(2**15), 2**15 - 1),
    "i32": st.integers(-(2**31), 2**31 - 1),
    "i64": st.integers(-(2**63), 2**63 - 1),
    "u16": st.integers(0, 2**16 - 1),
    "u32": st.integers(0, 2**32 - 1),
    "f64": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "uuid": st.binary(min_size=16, max_size=16),
    "unsigned_varint": st.integers(0, 2**32 - 1),
    "varint": st.integers(-(2**31), 2**31 - 1),
    "varlong": st.integers(-(2**63), 2**63 - 1),
    "string": st.text(),
    "nullable_string": st.none() | st.text(),
    "compact_string": st.text(),
    "compact_nullable_string": st.none() | st.text(),
    "bytes_": st.binary(),
    "nullable_bytes": st.none() | st.binary(),
    "compact_bytes": st.binary(),
    "compact_nullable_bytes": st.none() | st.binary(),
}


class MemoryFile:
    """As much of a file as a region needs."""

    path = "segment"
    size = 100


@given(
    st.lists(
        st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), VALUES[name]))
    )
)
def test_the_reader_reads_what_the_writer_wrote(fields: list[tuple[str, Any]]) -> None:
    writer = Writer()
    for name, value in fields:
        getattr(writer, name)(value)
    reader = Reader(writer.finish())

    assert [getattr(reader, name)() for name, _ in fields] == [value for _, value in fields]
    reader.expect_end()


@pytest.mark.parametrize(
    ("method", "value"),
    [
        ("i8", 128),
        ("i16", 2**15),
        ("i32", 2**31),
        ("i64", 2**63),
        ("u16", -1),
        ("u16", 2**16),
        ("u32", 2**32),
        ("unsigned_varint", -1),
        ("unsigned_varint", 2**32),
        ("varint", 2**31),
        ("uuid", b"short"),
        ("string", "x" * 0x8000),
        ("string", "\ud800"),
    ],
)
def test_a_value_out_of_range_is_refused(method: str, value: Any) -> None:
    writer = Writer()

    with pytest.raises((ValueError, OverflowError, TypeError)):
        getattr(writer, method)(value)


def test_a_length_can_be_set_when_it_is_known() -> None:
    writer = Writer()
    writer.i32(0)
    writer.i8(7)

    writer.set_i32(0, 0x01020304)

    assert writer.finish() == b"\x01\x02\x03\x04\x07"


def test_a_negative_number_can_be_set() -> None:
    writer = Writer()
    writer.i32(0)

    writer.set_i32(0, -2)

    assert writer.finish() == b"\xff\xff\xff\xfe"


def test_a_region_of_a_file_stands_between_the_bytes_around_it() -> None:
    region = FileRegion(MemoryFile(), 10, 50)  # type: ignore[arg-type]
    writer = Writer()
    writer.i16(1)

    writer.nullable_records(ChunkList([region], 50))
    writer.i16(2)

    assert writer.chunks() == [b"\x00\x01\x00\x00\x00\x32", region, b"\x00\x02"]
    assert writer.size == 58


def test_chunks_at_both_ends_leave_no_empty_piece() -> None:
    first, second = b"a" * 5000, b"b" * 6000
    writer = Writer()

    writer.chunk(first, 5000)
    writer.chunk(second, 6000)

    assert writer.chunks() == [first, second]
    assert writer.size == 11_000


def test_a_chunk_of_no_bytes_is_left_out() -> None:
    writer = Writer()
    writer.i8(1)

    writer.chunk(b"", 0)

    assert writer.chunks() == [b"\x01"]


def test_a_large_window_is_not_copied() -> None:
    frame = bytes(COPY_BYTES_MAX + 10)
    writer = Writer()

    writer.nullable_records(window_of(frame))
    prefix, chunk = writer.chunks()

    assert prefix == len(frame).to_bytes(4, "big")
    assert isinstance(chunk, memoryview)
    assert chunk.obj is frame


def test_a_small_window_is_written_into_the_bytes() -> None:
    writer = Writer()

    writer.compact_nullable_records(window_of(b"batch"))

    assert writer.finish() == b"\x06batch"


def test_records_of_several_pieces_are_one_field() -> None:
    large = b"x" * 5000
    writer = Writer()

    writer.nullable_records(ChunkList([b"ab", large, b"c"], 5003))

    assert writer.joined() == (5003).to_bytes(4, "big") + b"ab" + large + b"c"


def test_no_records_are_null_and_empty_records_are_not() -> None:
    writer = Writer()

    writer.nullable_records(None)
    writer.nullable_records(ChunkList([], 0))
    writer.compact_nullable_records(None)
    writer.compact_nullable_records(ChunkList([], 0))

    assert writer.finish() == b"\xff\xff\xff\xff" + b"\x00\x00\x00\x00" + b"\x00" + b"\x01"


def test_pieces_that_do_not_add_up_are_our_own_mistake() -> None:
    with pytest.raises(AssertionError):
        Writer().nullable_records(ChunkList([b"abc"], 4))


def test_a_tagged_field_has_its_size_before_it() -> None:
    content = Writer()
    content.i32(9)
    writer = Writer()

    writer.tagged_field(3, content)

    assert writer.finish() == b"\x03\x04\x00\x00\x00\x09"
