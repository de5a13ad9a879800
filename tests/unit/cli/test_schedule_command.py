"""`tarry schedule`: spans and bars of the histogram, lines of a file, and wrong usage."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from click.testing import CliRunner

from tarry.cli.main import tarry
from tarry.cli.schedule_histogram import bar_of, edges_of, lines_of
from tarry.cli.schedule_lines import LoadedLine, csv_lines, json_lines
from tarry.client import ScheduleBucket

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


# --- The histogram


@pytest.mark.parametrize(
    ("begin_ms", "end_ms", "count"),
    [(0, 1, 20), (NOW_MS + 7, NOW_MS + 8, 1), (5, 10**13, 20), (NOW_MS, NOW_MS + HOUR_MS, 60)],
)
def test_spans_cover_the_range_and_are_no_more_than_asked_for(
    begin_ms: int, end_ms: int, count: int
) -> None:
    edges = edges_of(begin_ms, end_ms, count)

    assert edges[0] <= begin_ms
    assert edges[-1] >= end_ms
    assert len(edges) - 1 <= count
    assert len({right - left for left, right in pairwise(edges)}) == 1


def test_spans_begin_at_times_that_people_read_well() -> None:
    edges = edges_of(NOW_MS + 17, NOW_MS + HOUR_MS, 50)

    assert edges[1] - edges[0] == 120_000
    assert edges[0] == NOW_MS


def test_bars_are_as_long_as_their_share_and_what_is_there_is_seen() -> None:
    assert [bar_of(count, 1_000, 10) for count in (1_000, 500, 1, 0)] == [
        "█" * 10,
        "█" * 5,
        "▏",
        "",
    ]


def test_no_line_is_wider_than_the_terminal() -> None:
    buckets = [ScheduleBucket(NOW_MS, NOW_MS + 1, count, 10**9) for count in (0, 1, 10**9)]

    for columns in (80, 200):
        assert max(len(line) for line in lines_of(buckets, columns)) <= columns


# --- Lines of a file


def read_json(text: str) -> list[LoadedLine]:
    return list(json_lines(io.BytesIO(text.encode()), NOW_MS))


def read_csv(text: str) -> list[LoadedLine]:
    return list(csv_lines(io.BytesIO(text.encode()), NOW_MS))


def test_an_object_is_a_record_with_the_headers_that_let_it_wait() -> None:
    (line,) = read_json('{"due": "+1h", "id": "a", "key": "k", "value": "v", "partition": 2}\n')

    record = line.record
    assert record is not None
    assert (record.key, record.value, record.partition) == (b"k", b"v", 2)
    due = b"%d" % (NOW_MS + HOUR_MS)
    assert record.headers == [("x-deliver-at", due), ("x-sched-id", b"a")]


def test_a_row_is_a_record_and_an_empty_id_is_none() -> None:
    text = '\ufeffdue,id,key,value\n1800000000001,ä,k,"a, b"\n2027-03-01T09:30:00+01:00,,k,v\n'

    named, other = read_csv(text)

    assert named.record is not None and other.record is not None
    assert named.record.value == b"a, b"
    assert named.record.headers[1:] == [("x-sched-id", "ä".encode())]
    assert [name for name, _ in other.record.headers] == ["x-deliver-at"]
    assert other.number == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"value": "v"}', "due is missing"),
        ('{"due": true, "value": "v"}', "due is missing"),
        ('{"due": 1.5, "value": "v"}', "due is missing"),
        ('{"due": "soon", "value": "v"}', "due: invalid time 'soon'"),
        ('{"due": 999999999999999, "value": "v"}', "behind the year 9999"),
        ('{"due": 5}', "a record needs a value"),
        ('{"due": 5, "value": "v", "id": 7}', "id is no text"),
        ('{"due": 5, "value": "v", "id": ""}', "id has 0 bytes"),
        ('{"due": 5, "value": "v", "id": "' + "a" * 1_025 + '"}', "id has 1025 bytes"),
        ('{"due": 5, "value": 7}', "only text or null"),
        ('{"due": 5, "value": "v", "when": 1}', "unknown field 'when'"),
        (
            '{"due": 5, "value": "v", "headers": [{"name": "x-deliver-at", "value": "1"}]}',
            "the header x-deliver-at is set",
        ),
        (
            '{"due": 5, "value": "v", "headers": [{"name": "x-sched-cron", "value": "@daily"}]}',
            "the header x-sched-cron cannot stand beside the field due",
        ),
        ('{"due": 5, "value": "v", "every": 1}', "the fields are due, id, value"),
        ('{"dua": 5, "due": 5, "value": "v"}', "did you mean due?"),
        ("[1]", "write an object"),
        ('{"due": 5, "value": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"due": "' + "9" * 100_000 + '", "value": "v"}', "due: invalid time"),
        ("{", "not valid JSON"),
    ],
)
def test_a_bad_line_is_named_and_the_next_one_is_read(text: str, reason: str) -> None:
    good = '{"due": "+1h", "value": "v"}'
    lines = read_json(f"{good}\n{text}\n" + ("" if text == "{" else good))

    assert lines[1].record is None
    assert lines[1].number == 2
    assert reason in lines[1].reason
    assert len(lines[1].reason) < 400
    assert [line.record is not None for line in lines[2:]] == ([] if text == "{" else [True])


@pytest.mark.parametrize(
    ("text", "number", "reason"),
    [
        ("id,value\na,b\n", 1, "no column 'due'"),
        ("due\n5\n", 1, "no column beside"),
        ("due,value\n5\n", 2, "1 columns"),
        ("due,value\nsoon,x\n", 2, "invalid time 'soon'"),
        ("due,value\n,x\n", 2, "invalid time ''"),
        ("due,value,partition\n5,x,y\n", 2, "partition"),
        ('due,value\n5,"x\n', 2, "not valid CSV"),
    ],
)
def test_a_bad_row_is_named(text: str, number: int, reason: str) -> None:
    (line,) = read_csv(text)

    assert (line.record, line.number) == (None, number)
    assert reason in line.reason


# --- Usage


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("cancel t", "name what is meant"),
        ("cancel t --at 5", "write PARTITION:S_OFFSET"),
        ("cancel t --at 0:x", "write PARTITION:S_OFFSET"),
        ("move t a", "--to"),
        ("move t a --to soon", "invalid time 'soon'"),
        ("list t --from soon", "--from: invalid time"),
        ("list t --limit many", "invalid number"),
        ("list t --limit 0", "must be at least 1"),
        ("histogram t -n 0", "0"),
    ],
)
def test_what_cannot_be_meant_is_wrong_usage(line: str, sentence: str) -> None:
    result = CliRunner().invoke(tarry, ["schedule", *line.split()], prog_name="tarry")

    assert result.exit_code == 2
    assert sentence in result.output
