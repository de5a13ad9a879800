"""Records in lines of JSON, rows of CSV, and lines that a template takes apart."""

from __future__ import annotations

import io

import pytest

from tarry.cli.formats import BadFormat, compile_format
from tarry.cli.input import BadInput, InputRecord, InputSource
from tarry.cli.record_input import RecordReader, csv_reader, json_reader, template_reader
from tarry.cli.records_csv import CsvWriter
from tarry.cli.records_json import record_of_json
from tarry.records.record import Record


def read(reader: RecordReader, data: bytes) -> list[InputRecord]:
    source = InputSource("in.txt")
    source._stream = io.BytesIO(data)
    return list(reader(source, lambda: None))


# --- JSON


def test_objects_of_kcat_are_taken() -> None:
    line = (
        b'{"topic":"t","partition":1,"offset":9,"tstype":"create","ts":17,"broker":1,'
        b'"headers":["a","1","b",null],"key":"k","payload":"v"}'
    )

    record = record_of_json(line, "line 1")

    assert record == InputRecord(b"v", b"k", [("a", b"1"), ("b", None)], 17, "t", 1)


def test_objects_of_rpk_are_taken_over_several_lines() -> None:
    text = b"""{
  "topic": "t",
  "key": "k",
  "value": "{\\n}",
  "headers": [
    {
      "key": "h",
      "value": "1"
    }
  ],
  "timestamp": 17,
  "partition": 0,
  "offset": 3
}
{"value":"next"}
"""

    first, second = read(json_reader(), text)

    assert first == InputRecord(b"{\n}", b"k", [("h", b"1")], 17, "t", 0)
    assert second.value == b"next"


def test_a_time_that_a_record_does_not_have_is_left_to_the_broker() -> None:
    assert record_of_json(b'{"value": "v", "timestamp": -1}', "line 1").timestamp is None
    assert record_of_json(b'{"payload": "v", "ts": -1}', "line 1").timestamp is None


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"value": "v"', "line 3: not valid JSON"),
        (b'{"value": "v", }', "not valid JSON at byte 15"),
        (b'"text"', "text is not a record"),
        (b"7", "a number is not a record"),
        (b'{"value": "\xff"}', "JSON"),
        (b'{"value": 5}', "value is a number, and only text or null"),
        (b'{"value": {"a": 1}}', "value is an object"),
        (b'{"value": "a", "payload": "b"}', "value and payload exclude each other"),
        (b'{"value": "a", "timestamp": "now"}', "timestamp is text"),
        (b'{"value": "a", "timestamp": 9223372036854775808}', "out of range"),
        (b'{"value": "a", "partition": -1}', "partition -1 is out of range"),
        (b'{"value": "a", "partition": 2147483648}', "partition 2147483648 is out of range"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"value": "a", "headers": {"h": "1"}}', "headers is an object"),
        (b'{"value": "a", "headers": ["h"]}', "one is missing"),
        (b'{"value": "a", "headers": [5]}', "a header is a number"),
        (b'{"value": "a", "headers": [{"value": "1"}]}', "needs one name"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_in_our_own_words(line: bytes, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence) as refused:
        read(json_reader(), b'{"value": "good"}\n\n' + line + b"\n")

    assert str(refused.value).startswith("in.txt line 3: ")


# --- CSV

RECORD = Record(7, 17, b"k,1", b'say "hi"\nbye', [("a", b"1"), ("b", b"2")])


def test_what_is_written_as_csv_comes_back() -> None:
    writer = CsvWriter()
    binary = Record(8, 18, bytes(range(256)), b"\xff\x00", [])

    data = writer.head + writer("t", 3, RECORD) + writer("t", 4, binary)
    first, second = read(csv_reader(None), data)

    assert first == InputRecord(RECORD.value, RECORD.key, RECORD.headers, 17, "t", 3)
    assert (second.key, second.value) == (binary.key, binary.value)


def test_a_value_of_csv_may_be_as_large_as_a_record() -> None:
    (record,) = read(csv_reader(None), b"value\n" + b"v" * 200_000 + b"\n")

    assert len(record.value or b"") == 200_000


def test_columns_may_be_few_and_in_any_order() -> None:
    assert read(csv_reader(None), b"value,key\r\nv,k\r\n,\r\n") == [
        InputRecord(b"v", b"k", []),
        InputRecord(b"", b"", []),
    ]


def test_rows_without_a_value_column_become_objects() -> None:
    rows = "\ufeffid,name\n7,Ärger\n".encode()

    (record,) = read(csv_reader("id"), rows)

    assert record == InputRecord('{"id":"7","name":"Ärger"}'.encode(), b"7")


@pytest.mark.parametrize(
    ("data", "key_column", "sentence"),
    [
        (b"a,b\n1\n", None, "in.txt line 2: 1 columns, and the header row has 2"),
        (b"a,a\n", None, "line 1: the header row has the column 'a' twice"),
        (b"value,kye\n", None, "unknown column 'kye'"),
        (b"a,b\n", "c", "no column 'c'; there are a, b"),
        (b"value\n", "value", "--key-column is for rows"),
        (b"value,timestamp\nv,noon\n", None, "line 2: timestamp 'noon' is not a whole number"),
        (b"value,timestamp\nv,9223372036854775808\n", None, "timestamp '9223372036854775808'"),
        (b"value,partition\nv,2147483648\n", None, "line 2: partition '2147483648'"),
        (b"value,headers\nv,h\n", None, "line 2: write headers as"),
        (b'value\n"a"b\n', None, "line 2: not valid CSV"),
        (b'value\n"a\nb\n', None, "line 2: not valid CSV"),
        (b"a\n\xff\n", None, "line 2: '.' is not valid UTF-8"),
    ],
)
def test_rows_that_are_no_records_are_named(
    data: bytes, key_column: str | None, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        read(csv_reader(key_column), data)


# --- Templates


def test_a_template_takes_a_line_apart() -> None:
    reader = template_reader("%t [%p] %T: %k=%s", b"\n")

    (record,) = read(reader, b"orders [3] 17: 7=a=b\n")

    assert record == InputRecord(b"a=b", b"7", None, 17, "orders", 3)


def test_what_a_format_printed_the_same_format_reads() -> None:
    layout = "%T %h %k: %s (%o)\\n"
    printed = compile_format(layout)("t", 0, Record(7, 17, b"k", b"v", [("a", b"1")]))

    (record,) = read(template_reader(layout, b"\n"), printed)

    assert record == InputRecord(b"v", b"k", [("a", b"1")], 17)


def test_times_in_a_template_are_those_of_the_options() -> None:
    (record,) = read(template_reader("%T|%s", b"\n"), b"1970-01-01T00:00:01Z|v\n")

    assert record.timestamp == 1_000


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"no mark", "line 1: the line does not have the form '%T|%p|%s'"),
        (b"noon|1|v", "invalid time 'noon'"),
        (b"|x|v", "'x' is not a partition"),
        (b"|2147483648|v", "'2147483648' is not a partition"),
        (b"9223372036854775808|1|v", "invalid time '9223372036854775808'"),
    ],
)
def test_a_line_of_another_form_is_named(line: bytes, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence.replace("|", r"\|")):
        read(template_reader("%T|%p|%s", b"\n"), line)


def test_a_template_needs_something_to_send() -> None:
    with pytest.raises(BadFormat):
        template_reader("%p", b"\n")
