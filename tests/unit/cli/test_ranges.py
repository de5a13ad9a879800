"""Ranges of offsets, and which records of a range are printed."""

from __future__ import annotations

import pytest

from tarry.cli.places import BEGINNING, END, FROM_END, OFFSET, TIME, BadPlace, Place
from tarry.cli.ranges import Range, parse_range, parse_ranges
from tarry.cli.reading import Chosen, chosen_records
from tarry.cli.search import BadPattern, Search
from tarry.records.record import Record

NOW_MS = 1_763_740_800_000

RECORDS = [
    Record(offset, 0, b"k%d" % offset, value, [])
    for offset, value in enumerate([b"apples", b"pears", None, b"\xff apples", b"plums"])
]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("end", Range(Place(END))),
        ("100", Range(Place(OFFSET, 100))),
        ("100..200", Range(Place(OFFSET, 100), Place(OFFSET, 200))),
        ("..200", Range(Place(BEGINNING), Place(OFFSET, 200))),
        ("-10..", Range(Place(FROM_END, 10))),
        ("-10..-5", Range(Place(FROM_END, 10), Place(FROM_END, 5))),
        ("s@1970-01-01T00:00Z..s@5", Range(Place(TIME, 0), Place(TIME, 5))),
    ],
)
def test_a_range_is_one_place_or_two(text: str, wanted: Range) -> None:
    assert parse_range(text, NOW_MS) == wanted


def test_partitions_may_have_ranges_of_their_own() -> None:
    found = parse_ranges("0=100..200, 2=-5", NOW_MS)

    assert found.single == {
        0: Range(Place(OFFSET, 100), Place(OFFSET, 200)),
        2: Range(Place(FROM_END, 5)),
    }
    assert parse_ranges("7", NOW_MS).single == {}


@pytest.mark.parametrize("text", ["..", "1..x", "x..1", "0=..", "0=1,2", "²=1", "0=1..2..3"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(BadPlace):
        parse_ranges(text, NOW_MS)


def offsets(chosen: Chosen) -> list[int]:
    return [record.offset for record in chosen.records]


def test_a_bound_and_a_count_end_what_is_chosen() -> None:
    assert offsets(chosen_records(RECORDS, 3, None, None)) == [0, 1, 2]
    assert chosen_records(RECORDS, 3, None, None).next_offset == 3
    assert offsets(chosen_records(RECORDS, None, 2, None)) == [0, 1]
    assert chosen_records(RECORDS, None, 2, None).next_offset == 2
    assert chosen_records(RECORDS, 0, None, None) == Chosen([], 0, -1)
    assert chosen_records(RECORDS, None, 0, None) == Chosen([], 0, -1)


def test_a_search_counts_what_it_saw_and_goes_on_behind_it() -> None:
    search = Search("apples", None)

    everything = chosen_records(RECORDS, None, None, search)
    first = chosen_records(RECORDS, None, 1, search)
    nothing = chosen_records(RECORDS[1:3], None, 1, search)

    assert (offsets(everything), everything.seen, everything.next_offset) == ([0, 3], 5, 5)
    assert (offsets(first), first.seen, first.next_offset) == ([0], 1, 1)
    assert (offsets(nothing), nothing.seen, nothing.next_offset) == ([], 2, 3)


def test_a_search_is_in_keys_and_values_or_in_keys_alone() -> None:
    def found(anywhere: str | None, key: str | None) -> list[int]:
        return [record.offset for record in Search(anywhere, key).found(RECORDS)]

    assert found("k[12]", None) == [1, 2]
    assert found("apples", "k3") == [3]
    assert found(None, "[04]") == [0, 4]
    assert found("\udcff", None) == [3]
    assert Search("x", None).found([Record(0, 0, None, None, [])]) == []


def test_a_pattern_that_is_none_is_refused() -> None:
    with pytest.raises(BadPattern, match="invalid pattern"):
        Search("(", None)
