"""Reports as files: one HTML page without a network, whose tables have the numbers."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any, Final

import pytest

pytest.importorskip("altair", reason="altair is not installed: pip install 'tarry[spark]'")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")

from tests.support.spark.told_events import NOON_MS, operations, summed

from tarry.spark.reports.page import ROWS_MAX, Page, Section, Table
from tarry.spark.reports.plots import length_text, ticks_for
from tarry.spark.reports.waits_report import waits_page

# Elements that end with their begin.
VOID: Final = ("meta", "br", "hr", "img", "link", "input")


class Reader(HTMLParser):
    """Reader of a page: what is open, what it refers to, what its cells and scripts hold."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.references: list[str] = []
        self.cells: list[str] = []
        self.scripts: dict[str, str] = {}
        self.ids: list[str] = []
        self._script = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.references += [told[name] or "" for name in ("src", "href") if name in told]
        if "id" in told:
            self.ids.append(told["id"] or "")
        if tag == "script":
            self._script = told.get("id") or ""
        if tag == "td":
            self.cells.append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data
        if self.open and self.open[-1] == "script":
            self.scripts[self._script] = self.scripts.get(self._script, "") + data


def read(page: Page) -> Reader:
    """The page as a browser reads it: every element is closed, every id is given once."""
    reader = Reader()
    reader.feed(page.html())
    reader.close()

    assert reader.open == []
    assert len(reader.ids) == len(dict.fromkeys(reader.ids))
    return reader


def plots_of(reader: Reader) -> dict[str, Any]:
    plots: dict[str, Any] = json.loads(reader.scripts["plots"])
    assert all(name in reader.ids for name in plots)
    return plots


def test_a_page_needs_no_network_and_forbids_it() -> None:
    page = waits_page(summed([operations(NOON_MS, "Produce", "orders", [1, 2, 30])]))

    reader = read(page)

    assert reader.references == []
    assert "default-src 'none'" in page.html()
    assert "vegaEmbed" in reader.scripts[""]
    assert "url(" not in re.sub(r"<script.*?</script>", "", page.html(), flags=re.DOTALL)


def test_waits_are_drawn_and_their_numbers_stand_below() -> None:
    told = [
        operations(NOON_MS, "Produce", "orders", [6, 7, 30]),
        operations(NOON_MS + 60_000, "Produce", "payments", [5_000], expired=1),
        operations(NOON_MS, "Weather", "", [0]),
    ]

    reader = read(waits_page(summed(told)))

    plots = plots_of(reader)
    assert len(plots) == 6
    assert all(plot["width"] == "container" and "config" in plot for plot in plots.values())
    for text in ("orders", "payments", "(several)", "6-7 ms", "5,000 ms", "3"):
        assert text in reader.cells


def test_what_users_named_is_text_and_never_code() -> None:
    name = "</script><script>alert(1)</script><b>&"

    reader = read(waits_page(summed([operations(NOON_MS, "Produce", name, [1])])))

    assert name in reader.cells
    assert "alert(1)" not in reader.scripts[""]


def test_a_log_without_waits_makes_a_page_that_says_so() -> None:
    page = waits_page(summed([]))

    assert plots_of(read(page)) == {}
    assert "tells of no wait" in page.html()


def test_a_table_is_copied_as_csv_and_ends_somewhere() -> None:
    rows = [[n, 'a "quoted" name, and more'] for n in range(ROWS_MAX + 5)]
    page = Page("Numbers", "", sections=[Section("All", "", tables=[Table(["n", "name"], rows)])])

    reader = read(page)

    copied = json.loads(reader.scripts["csv-0-0"]).splitlines()
    assert copied[:2] == ["n,name", '0,"a ""quoted"" name, and more"']
    assert len(copied) == ROWS_MAX + 1
    assert len(reader.cells) == 2 * ROWS_MAX
    assert "5 more rows" in page.html()


@pytest.mark.parametrize(
    ("waits_ms", "first", "last"),
    [([], 1, 2), ([1], 1, 2), ([3, 700], 2, 1_000), ([5], 5, 10), ([10**12], 604_800_000, 10**12)],
)
def test_ticks_have_room_for_all_waits(waits_ms: list[int], first: int, last: int) -> None:
    ticks = ticks_for(waits_ms)

    assert (ticks[0], ticks[-1]) == (first, last)
    assert ticks == sorted(ticks)


def test_lengths_are_written_for_people() -> None:
    assert [length_text(each) for each in (0, 250, 1_500, 120_000, 5_400_000, 172_800_000)] == [
        "0 ms",
        "250 ms",
        "1.5 s",
        "2 min",
        "1.5 h",
        "2 d",
    ]
