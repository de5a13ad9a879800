"""What keys and values look like: unpacked, safe for a terminal, coloured."""

from __future__ import annotations

import json
import re
import time

import pytest

from tarry.cli.dress import PLAIN, dressed_for_files, dressed_for_terminals, visible
from tarry.cli.formats import JsonRenderer, PlainRenderer, compile_format, time_text
from tarry.cli.packing import parse_form
from tarry.cli.records_csv import CsvWriter
from tarry.cli.rendering import Unprintable, rendered
from tarry.records.record import Record

RECORD = Record(7, 1_700_000_000_123, b"\x00\x00\x00\x07", b"red \x1b[31m\xff", [("h", b"1")])


def test_what_a_terminal_would_obey_is_shown_and_not_done() -> None:
    assert visible(b"a\tb\nc") == b"a\tb\nc"
    assert visible("é".encode()) == "é".encode()
    assert visible(b"\x1b[2J\x00\r") == b"\\x1b[2J\\x00\\x0d"
    assert visible(b"\xff\x1b") == b"\\xff\\x1b"
    # The same as ESC and [ for terminals of eight bits.
    assert visible("\x9b2J".encode()) == b"\\x9b2J"


def test_forms_change_what_is_printed_and_not_the_sizes() -> None:
    dress = dressed_for_files(parse_form("int32"), parse_form("hex"))

    assert compile_format("%k %K %s %S", b"", dress)("t", 0, RECORD) == (
        b"7 4 726564201b5b33316dff 10"
    )
    assert PlainRenderer(b"\n", b":", dress=dress)("t", 0, RECORD).startswith(b"7:7265")
    assert json.loads(JsonRenderer(dress)("t", 0, RECORD))["key"] == "7"
    assert CsvWriter(b"", dress)("t", 0, RECORD) == (
        b"t,0,7,1700000000123,7,726564201b5b33316dff,h=1\n"
    )


def test_null_has_no_form() -> None:
    dress = dressed_for_files(parse_form("int32"), parse_form("int32"))

    record = Record(0, 0, None, None, [])

    assert compile_format("%k|%s", b"NULL", dress)("t", 0, record) == b"NULL|NULL"


def test_a_key_without_the_form_names_its_record() -> None:
    dress = dressed_for_files(parse_form("int64"), None)
    renderer = PlainRenderer(b"\n", b":", dress=dress)

    good = Record(6, 0, bytes(8), b"v", [])

    with pytest.raises(Unprintable, match=r"t \[3\] at offset 7: the key cannot be pr") as refused:
        rendered(renderer, "t", 3, [good, RECORD])

    assert refused.value.before == b"0:v\n"


def test_keys_and_what_was_searched_are_coloured_where_colours_are_wanted() -> None:
    record = Record(0, 0, b"key", b"a pear", [])
    marks = [re.compile(b"pear")]

    def shown(*, has_colours: bool) -> bytes:
        dress = dressed_for_terminals(None, None, marks, has_colours=has_colours)
        return PlainRenderer(b"", b":", dress=dress)("t", 0, record)

    assert shown(has_colours=True) == b"\x1b[36mkey\x1b[0m:a \x1b[1;31mpear\x1b[0m"
    assert shown(has_colours=False) == b"key:a pear"


def test_a_terminal_obeys_no_header() -> None:
    record = Record(0, 0, b"\x1bk", b"\x1bv", [("\x1bn", b"\x07"), ("none", None)])
    dress = dressed_for_terminals(None, None, (), has_colours=False)
    shown = b"\\x1bn=\\x07,none=NULL"

    assert compile_format("%h", b"NULL", dress)("t", 0, record) == shown
    assert CsvWriter(b"NULL", dress)("t", 0, record) == (
        b't,0,0,0,\\x1bk,\\x1bv,"' + shown + b'"\n'
    )
    assert compile_format("%h", b"NULL", PLAIN)("t", 0, record) == b"\x1bn=\x07,none=NULL"


def test_one_part_of_a_record_stands_alone_in_json() -> None:
    line = json.loads(JsonRenderer(only="headers")("t", 3, RECORD))

    assert line == {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp": RECORD.timestamp,
        "headers": [{"name": "h", "value": "1"}],
    }


def test_times_are_readable_in_the_users_own_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        iso = compile_format("%T{iso}")("t", 0, RECORD)
        own = compile_format("%T{%d.%m.%Y %H:%M} %%")("t", 0, RECORD)
    finally:
        monkeypatch.undo()
        time.tzset()

    assert iso == b"2023-11-14T23:13:20.123+01:00"
    assert own == b"14.11.2023 23:13 %"


def test_a_time_that_is_none_or_in_no_calendar_is_printed_all_the_same() -> None:
    assert time_text(-1, "iso") == ""
    assert time_text(2**62, "iso") == str(2**62)
