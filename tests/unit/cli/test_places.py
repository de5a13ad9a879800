"""Offsets, times and partitions as the command line writes them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tarry.cli.escapes import BadEscape, unescape
from tarry.cli.places import (
    BEGINNING,
    END,
    FROM_END,
    OFFSET,
    TIME,
    BadPlace,
    Place,
    parse_partitions,
    parse_place,
    parse_places,
    parse_time_ms,
)

NOW_MS = 1_763_740_800_000


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("beginning", Place(BEGINNING)),
        ("earliest", Place(BEGINNING)),
        ("end", Place(END)),
        ("latest", Place(END)),
        ("0", Place(OFFSET, 0)),
        ("1000", Place(OFFSET, 1000)),
        ("-10", Place(FROM_END, 10)),
        ("s@1690000000000", Place(TIME, 1690000000000)),
        ("@1690000000000", Place(TIME, 1690000000000)),
        ("s@-10m", Place(TIME, NOW_MS - 600_000)),
        ("s@+10m", Place(TIME, NOW_MS + 600_000)),
    ],
)
def test_a_place_is_a_word_a_number_or_a_time(text: str, wanted: Place) -> None:
    assert parse_place(text, NOW_MS) == wanted


@pytest.mark.parametrize(
    "text", ["", "middle", "1.5", "s@", "s@yesterday", "--1", "1-2", f"s@{2**63}", "9" * 5000]
)
def test_what_names_no_place_is_refused(text: str) -> None:
    with pytest.raises(BadPlace):
        parse_place(text, NOW_MS)


def test_partitions_may_have_places_of_their_own() -> None:
    assert parse_places("end", NOW_MS) == (Place(END), {})
    assert parse_places("0=100, 2=-5,3=end", NOW_MS)[1] == {
        0: Place(OFFSET, 100),
        2: Place(FROM_END, 5),
        3: Place(END),
    }


@pytest.mark.parametrize("text", ["0=1,2", "x=1", "=1", "0=", "²=1", f"{2**31}=1"])
def test_a_place_without_its_partition_is_refused(text: str) -> None:
    with pytest.raises(BadPlace):
        parse_places(text, NOW_MS)


def test_partitions_are_numbers_and_ranges() -> None:
    assert parse_partitions("0,2-4, 3,9") == [0, 2, 3, 4, 9]


@pytest.mark.parametrize("text", ["", "a", "1-", "-1", "1-x", "3-1", "²", f"{2**31}", "0-99999999"])
def test_what_is_no_partition_is_refused(text: str) -> None:
    with pytest.raises(BadPlace):
        parse_partitions(text)


def test_times_are_iso_epoch_or_ago() -> None:
    wanted = int(datetime(2026, 11, 21, 8, 0, tzinfo=UTC).timestamp() * 1000)
    local = int(datetime(2026, 11, 21, 8, 0).timestamp() * 1000)

    assert parse_time_ms("2026-11-21T08:00Z", NOW_MS) == wanted
    assert parse_time_ms("2026-11-21T10:00+02:00", NOW_MS) == wanted
    assert parse_time_ms("2026-11-21T08:00", NOW_MS) == local
    assert parse_time_ms("1690000000000", NOW_MS) == 1_690_000_000_000
    assert parse_time_ms("-2h", NOW_MS) == NOW_MS - 7_200_000


@pytest.mark.parametrize(
    "text", ["", "noon", "²", f"{2**63}", "9" * 5000, f"-{'9' * 5000}d", "-99999999d", "1969-01-01"]
)
def test_a_time_that_no_record_can_have_is_refused(text: str) -> None:
    with pytest.raises(BadPlace, match="invalid time"):
        parse_time_ms(text, NOW_MS)


def test_delimiters_have_escapes() -> None:
    assert unescape("\\n") == b"\n"
    assert unescape("a\\t\\x1e\\0\\\\b") == b"a\t\x1e\0\\b"
    assert unescape("ä") == "ä".encode()


@pytest.mark.parametrize("text", ["\\q", "\\x1", "\\"])
def test_an_escape_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadEscape):
        unescape(text)
