"""Formats of `tarry consume`: kcat's letters, JSON, plain values."""

from __future__ import annotations

import json

import pytest

from tarry.cli.formats import BadFormat, PlainRenderer, compile_format, json_renderer
from tarry.records.record import Record

RECORD = Record(7, 1_700_000_000_123, b"key", b"value", [("a", b"1"), ("b", None)])
NULLS = Record(8, -1, None, None, [])


@pytest.mark.parametrize(
    ("layout", "wanted"),
    [
        ("%s", b"value"),
        ("%t [%p] at %o: %k = %s\\n", b"t [3] at 7: key = value\n"),
        ("%K %S %T", b"3 5 1700000000123"),
        ("%R", b"\x00\x00\x00\x05"),
        ("%h", b"a=1,b="),
        ("100%%\\t\\x41\\r\\0\\\\", b"100%\tA\r\0\\"),
        ("", b""),
        ("é%s", "évalue".encode()),
    ],
)
def test_letters_are_kcats(layout: str, wanted: bytes) -> None:
    assert compile_format(layout)("t", 3, RECORD) == wanted


def test_nulls_are_empty_or_what_is_asked_for() -> None:
    assert compile_format("%k|%s|%K|%S|%h")("t", 0, NULLS) == b"||-1|-1|"
    assert compile_format("%k|%s", b"NULL")("t", 0, NULLS) == b"NULL|NULL"
    assert compile_format("%R")("t", 0, NULLS) == b"\xff\xff\xff\xff"


def test_bytes_that_are_no_text_pass_as_they_are() -> None:
    record = Record(0, 0, b"\xff\x00", bytes(range(256)), [])

    assert compile_format("%k%s")("t", 0, record) == b"\xff\x00" + bytes(range(256))


@pytest.mark.parametrize("layout", ["%x", "%", "a\\q", "\\x4", "\\xzz", "\\"])
def test_a_letter_that_means_nothing_is_refused(layout: str) -> None:
    with pytest.raises(BadFormat):
        compile_format(layout)


def test_json_has_one_line_a_record() -> None:
    line = json_renderer("t", 3, RECORD)

    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp": 1_700_000_000_123,
        "key": "key",
        "value": "value",
        "headers": [{"name": "a", "value": "1"}, {"name": "b", "value": None}],
    }


def test_json_has_base64_for_what_is_not_utf8() -> None:
    record = Record(0, 0, b"\xff", None, [("h", b"\xfe")])

    found = json.loads(json_renderer("t", 0, record))

    assert found["key_base64"] == "/w=="
    assert "key" not in found
    assert found["value"] is None
    assert found["headers"] == [{"name": "h", "value_base64": "/g=="}]


def test_plain_values_end_with_the_delimiter() -> None:
    plain = PlainRenderer(b"\n", None)

    assert plain.is_values_only
    assert plain.render_values([RECORD, NULLS, RECORD]) == b"value\n\nvalue\n"


def test_plain_values_without_a_delimiter_are_only_values() -> None:
    assert PlainRenderer(b"", None).render_values([RECORD, RECORD]) == b"valuevalue"


def test_keys_and_offsets_stand_before_the_values() -> None:
    plain = PlainRenderer(b"\n", b":", with_offset=True, null=b"NULL")

    assert plain("t", 0, RECORD) == b"7:key:value\n"
    assert plain("t", 0, NULLS) == b"8:NULL:NULL\n"
