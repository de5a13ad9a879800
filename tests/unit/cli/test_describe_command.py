"""`tarry describe`: how far apart the calendars of brokers are."""

from __future__ import annotations

from tarry.cli.describe import _apart_text
from tarry.client import ComparedCalendar

NOW_MS = 1_800_000_000_000


def test_the_two_that_are_furthest_apart_are_named() -> None:
    calendars = [
        ComparedCalendar(1, 2, 3, NOW_MS),
        ComparedCalendar(3, 1, -700, NOW_MS),
        ComparedCalendar(2, 3, 40, NOW_MS),
    ]

    text = _apart_text(calendars)

    assert text == "calendars   apart by 700 ms at most: broker 3 is behind broker 1"
