"""The reference page of headers says what the broker reads and writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tarry.base.schedule_headers import HEADER_NAMES, SCHEDULE_DUE, SCHEDULE_INSTANCE_OF
from tarry.schedule.times import BadTime, parse_deliver_after, parse_deliver_at

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "schedule-headers.md"
EXAMPLE = re.compile(r"^\| `(x-deliver-\w+): (\S+)` \| (\d+|refused)", re.MULTILINE)
PARSERS = {"x-deliver-at": parse_deliver_at, "x-deliver-after": parse_deliver_after}


def test_the_page_has_each_header() -> None:
    text = PAGE.read_text()

    for name in (*HEADER_NAMES, SCHEDULE_DUE, SCHEDULE_INSTANCE_OF):
        assert f"\n| `{name}` |" in text


@pytest.mark.parametrize(("header", "value", "meant"), EXAMPLE.findall(PAGE.read_text()))
def test_an_example_is_read_as_the_page_says(header: str, value: str, meant: str) -> None:
    parse = PARSERS[header]

    if meant == "refused":
        with pytest.raises(BadTime):
            parse(value.encode())
    else:
        assert parse(value.encode()) == int(meant)
