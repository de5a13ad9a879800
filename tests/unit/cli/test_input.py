"""Input of `tarry produce`: bytes cut into records."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, strategies as some

from tarry.cli import input as cli_input
from tarry.cli.formats import json_renderer
from tarry.cli.input import BadInput, Shape, read_pieces
from tarry.cli.records_json import record_of_json
from tarry.records.record import Record


def pieces_of(data: bytes, delimiter: bytes = b"\n") -> list[bytes]:
    return [piece for pieces in read_pieces(io.BytesIO(data), delimiter) for piece in pieces]


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\nb", [b"a", b"b"]),
        (b"\n\n", [b"", b""]),
        (b"a\r\nb\n", [b"a\r", b"b"]),
        (b"\x00\xff\n\xfe", [b"\x00\xff", b"\xfe"]),
    ],
)
def test_lines_are_records_and_nothing_is_lost(data: bytes, wanted: list[bytes]) -> None:
    assert pieces_of(data) == wanted


@given(
    data=some.binary(max_size=200).map(lambda data: data.replace(b"\x00", b"ab")),
    delimiter=some.sampled_from([b"a", b"ab", b"aba", b"\n"]),
    size=some.integers(1, 9),
)
def test_the_cut_of_the_stream_does_not_matter(data: bytes, delimiter: bytes, size: int) -> None:
    class Trickle(io.BytesIO):
        def read1(self, count: int | None = -1) -> bytes:
            return self.read(size)

    found = [piece for pieces in read_pieces(Trickle(data), delimiter) for piece in pieces]

    expected = data.split(delimiter)
    if expected[-1] == b"":
        expected.pop()
    assert found == expected


def test_keys_are_cut_off_at_the_first_delimiter() -> None:
    shape = Shape(key_delimiter=b":", key=b"default")

    assert shape.split(b"k:v:w") == (b"k", b"v:w")
    assert shape.split(b"no key") == (b"default", b"no key")
    assert shape.split(b":v") == (b"", b"v")


def test_empty_keys_and_values_become_null_on_request() -> None:
    shape = Shape(key_delimiter=b":", empty_is_null=True)

    assert shape.split(b":") == (None, None)
    assert shape.split(b"k:") == (b"k", None)
    assert shape.split(b"") == (None, None)


@pytest.mark.parametrize(
    "record",
    [
        Record(1, 17, b"k", b"v", [("h", b"1"), ("h", None)]),
        Record(1, 17, None, None, []),
        Record(1, 17, b"", b"", [("", b"")]),
        Record(1, 17, b"\xff", bytes(range(256)), [("b", b"\xfe")]),
        Record(1, 17, "é".encode(), b'"\\\n', []),
    ],
)
def test_what_consume_prints_as_json_comes_back_as_the_same_record(record: Record) -> None:
    found = record_of_json(json_renderer("t", 0, record), "line 1")

    assert (found.key, found.value, found.timestamp) == (record.key, record.value, 17)
    assert found.headers == record.headers


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b'{"value": 5}', b'{"value_base64": "%%%"}', b"\xff", b'{"headers": {}}'],
)
def test_a_line_that_is_no_record_is_named(line: bytes) -> None:
    with pytest.raises(BadInput, match="line 12"):
        record_of_json(line, "line 12")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"vlaue": "v"}', "vlaue"),
        (b'{"value": "v", "kye": "k"}', "kye"),
        (b'{"key": "k"}', "needs a value"),
        (b"{}", "null is written null"),
        (b'{"value": "v", "value_base64": "dg=="}', "exclude each other"),
        (b'{"value": "v", "key_base64": "%%%"}', "key_base64 is not base64"),
        (b'{"value": "v", "headers": [{"name": "h"}]}', "header 'h' needs a value"),
        (b'{"value": "v", "headers": [{"name": "h", "vlaue": "1"}]}', "vlaue"),
    ],
)
def test_a_misspelt_or_missing_field_is_refused_and_named(line: bytes, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        record_of_json(line, "line 1")


def test_null_is_written_as_null() -> None:
    assert record_of_json(b'{"key": "k", "value": null}', "line 1").value is None


def test_where_a_record_came_from_is_left_alone() -> None:
    line = json.dumps({"value": "v", "topic": "a", "partition": 1, "offset": 7}).encode()

    assert record_of_json(line, "line 1").value == b"v"


def test_reads_are_bounded() -> None:
    assert cli_input.READ_BYTES <= 1 << 20


def test_input_without_a_delimiter_is_refused_before_it_fills_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cli_input, "PIECE_BYTES_MAX", 1000)
    monkeypatch.setattr(cli_input, "READ_BYTES", 100)

    assert pieces_of(b"a" * 1000) == [b"a" * 1000]
    with pytest.raises(BadInput, match="no delimiter"):
        pieces_of(b"a\n" + b"b" * 2000)
