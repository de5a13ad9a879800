"""Reader: every read is checked against the frame's end, before anything is allocated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tarry.base.errors import ProtocolViolation
from tarry.base.limits import FRAME_ELEMENTS_MAX
from tarry.wire import MalformedData, Reader, Window, window_of

FIXED: list[tuple[str, bytes, Any]] = [
    ("i8", b"\xff", -1),
    ("i8", b"\x7f", 127),
    ("i16", b"\xff\xfe", -2),
    ("i32", b"\xff\xff\xff\xfd", -3),
    ("i64", b"\x80\x00\x00\x00\x00\x00\x00\x00", -(2**63)),
    ("u16", b"\xff\xff", 65535),
    ("u32", b"\xff\xff\xff\xff", 2**32 - 1),
    ("f64", b"\x3f\xf8\x00\x00\x00\x00\x00\x00", 1.5),
    ("boolean", b"\x01", True),
    ("boolean", b"\x00", False),
    ("uuid", bytes(range(16)), bytes(range(16))),
]
VARIABLE: list[tuple[str, bytes, Any]] = [
    ("string", b"\x00\x02hi", "hi"),
    ("nullable_string", b"\xff\xff", None),
    ("nullable_string", b"\x00\x00", ""),
    ("compact_string", b"\x03hi", "hi"),
    ("compact_nullable_string", b"\x00", None),
    ("compact_nullable_string", b"\x01", ""),
    ("bytes_", b"\x00\x00\x00\x02hi", b"hi"),
    ("nullable_bytes", b"\xff\xff\xff\xff", None),
    ("nullable_bytes", b"\x00\x00\x00\x01x", b"x"),
    ("compact_bytes", b"\x03hi", b"hi"),
    ("compact_nullable_bytes", b"\x00", None),
    ("compact_nullable_bytes", b"\x02x", b"x"),
    ("unsigned_varint", b"\xac\x02", 300),
    ("varint", b"\x01", -1),
    ("varlong", b"\x80\x01", 64),
]


def read(method: str, data: bytes) -> Any:
    return getattr(Reader(data), method)()


@pytest.mark.parametrize(("method", "data", "value"), FIXED + VARIABLE)
def test_a_field_is_read_and_stepped_over(method: str, data: bytes, value: Any) -> None:
    reader = Reader(b"??" + data + b"!", 2)

    assert getattr(reader, method)() == value
    assert reader.remaining() == 1


@pytest.mark.parametrize(("method", "data", "_value"), FIXED + VARIABLE)
def test_a_field_cut_anywhere_is_malformed(method: str, data: bytes, _value: Any) -> None:
    for size in range(len(data)):
        with pytest.raises(MalformedData):
            read(method, data[:size])


@pytest.mark.parametrize(("method", "data", "_value"), FIXED + VARIABLE)
def test_a_field_beyond_the_frames_end_is_malformed_though_bytes_follow(
    method: str, data: bytes, _value: Any
) -> None:
    reader = Reader(data + b"next frame", 0, len(data) - 1)

    with pytest.raises(MalformedData):
        getattr(reader, method)()


@pytest.mark.parametrize(
    ("method", "data"),
    [
        ("string", b"\xff\xff"),
        ("compact_string", b"\x00"),
        ("bytes_", b"\xff\xff\xff\xff"),
        ("compact_bytes", b"\x00"),
    ],
)
def test_null_where_none_may_be_is_malformed(method: str, data: bytes) -> None:
    with pytest.raises(MalformedData, match="null"):
        read(method, data)


def test_text_that_is_not_utf_8_is_malformed() -> None:
    with pytest.raises(MalformedData, match="UTF-8"):
        read("string", b"\x00\x02\xc3\x28")


def test_malformed_data_is_a_violation_of_the_protocol() -> None:
    assert issubclass(MalformedData, ProtocolViolation)


@pytest.mark.parametrize("count", [b"\x7f\xff\xff\xff", b"\x00\x00\x00\x03"])
def test_a_count_that_the_bytes_left_cannot_hold_is_malformed(count: bytes) -> None:
    with pytest.raises(MalformedData, match="claimed"):
        Reader(count + b"12345678").array_length(4)


def test_a_count_that_just_fits_is_taken() -> None:
    assert Reader(b"\x00\x00\x00\x02" + b"12345678").array_length(4) == 2
    assert Reader(b"\x03" + b"12345678").compact_array_length(4) == 2


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\x80\x00\x00\x00"])
def test_a_negative_count_is_null(data: bytes) -> None:
    assert Reader(data).array_length(1) == -1


def test_a_compact_count_of_zero_is_null() -> None:
    assert Reader(b"\x00").compact_array_length(1) == -1


def test_a_frame_holds_a_limited_number_of_elements() -> None:
    half = FRAME_ELEMENTS_MAX // 2 + 1
    reader = Reader(half.to_bytes(4, "big") * 2 + bytes(half))
    reader.array_length(1)

    with pytest.raises(MalformedData, match="elements in one frame"):
        reader.array_length(1)


def test_a_window_shares_the_frames_bytes() -> None:
    frame = b"\x00\x00\x00\x04datarest"

    window = Reader(frame).nullable_window()

    assert window is not None
    assert window.data is frame
    assert (window.start, window.end, window.size) == (4, 8, 4)
    assert window.to_bytes() == b"data"
    assert bytes(window.memoryview()) == b"data"
    assert len(window) == 4


@pytest.mark.parametrize("read_window", [Reader.nullable_window, Reader.compact_nullable_window])
def test_a_null_window_is_none(read_window: Callable[[Reader], Window | None]) -> None:
    data = b"\xff\xff\xff\xff" if read_window is Reader.nullable_window else b"\x00"

    assert read_window(Reader(data)) is None


def test_a_window_of_bytes_covers_them_all() -> None:
    window = window_of(b"abc")

    assert window.to_bytes() == b"abc"


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (2, 1), (0, 4)])
def test_a_window_beyond_its_bytes_is_our_own_mistake(start: int, end: int) -> None:
    with pytest.raises(AssertionError):
        Window(b"abc", start, end)


@pytest.mark.parametrize("view", [bytearray(b"abc"), memoryview(b"abc")])
def test_a_view_is_refused_where_the_compiled_form_wants_bytes(view: Any) -> None:
    # The interpreted form takes it; what both forms must do is not go wrong silently.
    try:
        value = Reader(view).i8()
    except TypeError:
        return

    assert value == ord("a")


def test_tagged_fields_are_skipped_in_ascending_order() -> None:
    reader = Reader(b"\x02\x00\x01x\x05\x02yz!")

    reader.skip_tagged_fields()

    assert reader.remaining() == 1


@pytest.mark.parametrize(
    "data",
    [b"\x02\x05\x00\x05\x00", b"\x02\x05\x00\x04\x00", b"\x01\x00\x02x", b"\x7f\x00\x00"],
    ids=["twice", "descending", "too long", "too many"],
)
def test_tagged_fields_against_the_rules_are_malformed(data: bytes) -> None:
    with pytest.raises(MalformedData):
        Reader(data).skip_tagged_fields()


def test_a_tagged_field_that_is_not_read_to_its_end_is_malformed() -> None:
    reader = Reader(b"\x04abcd")
    end = reader.tagged_field_end()
    reader.i16()

    with pytest.raises(MalformedData):
        reader.expect_position(end)


def test_bytes_after_the_last_field_are_malformed() -> None:
    reader = Reader(b"ab")
    reader.i8()

    with pytest.raises(MalformedData, match="1 bytes after the last field"):
        reader.expect_end()
