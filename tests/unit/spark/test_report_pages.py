"""Reports as files: one HTML page without a network, whose tables have the numbers.

A browser draws them where one is installed: Chromium, without a window.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zlib
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("altair", reason="altair is not installed: pip install 'tarry[spark]'")
pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")

from tests.support.patience import PATIENCE_S
from tests.support.spark.told_events import NOON_MS, gathered, note, operations, summed

from tarry.broker.events.kinds import VERSION, LagEvent
from tarry.spark.jobs.lag import LagOptions, sum_samples
from tarry.spark.pipeline.progress import BatchProgress, progress_line
from tarry.spark.reports.health_report import health_page, read_health
from tarry.spark.reports.lag_report import lag_page
from tarry.spark.reports.page import ROWS_MAX, Figure, Page, Section, Table
from tarry.spark.reports.plots import length_text, ticks_for, time_text
from tarry.spark.reports.rebalances_report import REBALANCES_MAX, rebalances_page
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


def drawn_of(plot: dict[str, Any]) -> set[str]:
    """Stages that a plot draws."""
    return {row["stage"] for row in plot["data"]["values"]}


LINES: Final = [
    json.dumps(
        {
            "at": f"2026-11-22T12:00:0{place}.000Z",
            "pipeline": "orders",
            "stage": stage,
            "batch": place,
            "records": records,
            "seconds": seconds,
            "lag": lag,
            "rejected": rejected,
            "late": late,
            "new": "a field of a later version",
        }
    )
    for place, (stage, records, seconds, lag, rejected, late) in enumerate(
        [
            ("clean", 1_000, 1.0, 3_000, {}, 0),
            ("clean", 3_000, 3.0, 0, {"decode": 3, "positive": 4}, 0),
            ("revenue", 0, 0.0, None, {}, 7),
        ]
    )
]


def rebalances_of_two() -> Page:
    """The report of a group of two members, of which one died."""
    reason = "its session ended"
    told = {"protocol_name": "range", "leader_id": "a", "member_count": 2}
    return rebalances_page(
        gathered(
            [
                note(NOON_MS, "RebalanceBegan", generation_id=0, reason="member a joined"),
                note(NOON_MS + 10, "RoundChanged", generation_id=0, reason="member b joined"),
                note(NOON_MS + 3_000, "GenerationBegan", generation_id=1, **told),
                note(NOON_MS + 3_000, "BecameStable", generation_id=1, stood_ms=3_000),
                note(NOON_MS + 9_000, "MemberRemoved", member_id="b", client_id="c", reason=reason),
                note(
                    NOON_MS + 9_000,
                    "RebalanceBegan",
                    generation_id=1,
                    reason=f"member b was removed: {reason}",
                ),
                note(NOON_MS + 9_050, "BecameStable", generation_id=2, stood_ms=50),
            ]
        )
    )


def lag_of_one(group: str = "billing") -> Page:
    """The report of one group that catches up."""
    samples = [
        LagEvent(
            v=VERSION,
            at_ms=NOON_MS + place * 10_000,
            broker=1,
            group=group,
            topic="orders",
            partition=0,
            committed=committed,
            end=2_000,
        )
        for place, committed in enumerate([766, 1_996])
    ]
    return lag_page(sum_samples([samples], LagOptions()))


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


def test_rebalances_are_drawn_by_member() -> None:
    page = rebalances_of_two()

    reader = read(page)

    assert len(plots_of(reader)) == 3
    for text in ("a", "b", "died: its session ended", "a member joined", "50 ms", "is there"):
        assert text in reader.cells
    assert "b was removed: its session ended" in " ".join(reader.cells)


def test_a_group_that_never_rests_makes_a_page_that_a_browser_opens() -> None:
    told: list[dict[str, object]] = [note(NOON_MS, "RebalanceBegan", reason="member a joined")]
    told += [
        note(NOON_MS + at_ms, "BecameStable", generation_id=at_ms, stood_ms=1)
        for at_ms in range(1, 5 * REBALANCES_MAX)
    ]

    page = rebalances_page(gathered(told))

    plots = [plot.spec for section in page.sections for plot in section.plots]
    for layer in plots[0]["layer"]:
        assert len(layer["data"]["values"]) <= 2 * REBALANCES_MAX
    assert len(plots[1]["data"]["values"]) == REBALANCES_MAX
    assert "The last 300 of 1,499 rebalances are drawn" in page.sections[1].text


def test_each_member_has_a_row_of_its_own_beside_that_of_the_group() -> None:
    members = ["shop-consumer-zone-a-node-1", "shop-consumer-zone-b-node-1", "the group"]
    members.append("orders-consumer-0b6f5c1e-7c1d-4e55-9d0e-2f1f6a3b9c7d")
    removed = [
        note(NOON_MS + 10, "MemberRemoved", member_id=one, client_id="c", reason="it left")
        for one in members
    ]

    page = rebalances_page(gathered([note(NOON_MS, "BecameStable", stood_ms=1), *removed]))

    timeline = page.sections[1].plots[0].spec
    drawn = {row["member"]: row["row"] for row in timeline["layer"][0]["data"]["values"]}
    assert drawn == {
        **{one: one for one in members[:2]},
        "the group": "member the group",
        members[3]: "orders-cons...3b9c7d",
    }


def test_lag_is_drawn_over_time_and_by_partition() -> None:
    reader = read(lag_of_one())

    assert len(plots_of(reader)) == 2
    for text in ("billing", "orders", "1,234", "4"):
        assert text in reader.cells


def test_the_health_of_a_pipeline_is_read_from_its_lines() -> None:
    lines = [*LINES, "no JSON", '{"at": "yesterday"}']

    found = read_health(lines)
    page = health_page(found)

    clean, revenue = found.stages()
    assert (clean.batches, clean.records, clean.records_per_second) == (2, 4_000, 1_000.0)
    assert (clean.rejected, clean.lag) == ({"decode": 3, "positive": 4}, 0)
    assert (revenue.late, revenue.lag, revenue.records_per_second) == (7, None, 0.0)
    assert found.passed_over == 2
    reader = read(page)
    assert len(plots_of(reader)) == 6
    for text in ("clean", "4,000", "positive", "1,000", "7"):
        assert text in reader.cells
    assert "passed over, since they are no progress: 2" in page.html()


def test_stages_of_one_name_in_two_pipelines_are_two() -> None:
    line = json.loads(LINES[0])
    a = {**line, "pipeline": "a", "records": 5, "lag": 5}
    b = {**line, "pipeline": "b", "records": 7, "lag": 7}

    found = read_health([a, b])

    sums = [(one.pipeline, one.stage, one.records, one.lag) for one in found.stages()]
    assert sums == [("a", "clean", 5, 5), ("b", "clean", 7, 7)]
    reader = read(health_page(found))
    assert {"a · clean", "b · clean"} <= set(reader.cells)
    for plot in plots_of(reader).values():
        assert {"a · clean", "b · clean"} <= drawn_of(plot)


@pytest.mark.parametrize(
    "change",
    [
        {"at": "0001-01-01T00:00:00+23:59"},
        {"at": "9999-12-31T23:59:59-23:59"},
        {"at": "1970-01-01T00:00:00+23:59"},
        {"records": 10**400},
        {"records": -1},
        {"lag": 2**63},
        {"seconds": 1e300},
        {"rejected": {"decode": -1}},
    ],
)
def test_a_line_that_no_pipeline_writes_is_passed_over(change: dict[str, object]) -> None:
    line = json.loads(LINES[0])

    found = read_health([LINES[0], json.dumps({**line, **change}), {**line, **change}])

    assert (len(found.batches), found.passed_over) == (1, 2)


def test_a_time_without_a_zone_is_of_utc_and_a_pace_is_a_number() -> None:
    line = {**json.loads(LINES[0]), "at": "2026-03-29T02:30:00", "seconds": 1e-320}

    found = read_health([line])

    # An hour that some zones do not have.
    assert time_text(found.batches[0].at_ms) == "2026-03-29 02:30:00"
    assert found.stages()[0].records_per_second == 0.0
    assert plots_of(read(health_page(found)))


def test_the_lines_are_those_that_a_pipeline_writes() -> None:
    written = progress_line(
        BatchProgress(
            at="2026-11-22T12:00:00.000Z",
            pipeline="orders",
            stage="clean",
            batch=3,
            records=50,
            bytes=5_000,
            seconds=2.0,
            lag=None,
            seconds_left=None,
            rejected={"decode": 3},
            late=1,
        )
    )

    (one,) = read_health([written]).batches

    assert (one.pipeline, one.stage, one.batch, one.records) == ("orders", "clean", 3, 50)
    assert (one.bytes, one.seconds, one.lag, one.late) == (5_000, 2.0, None, 1)
    assert (one.rejected, time_text(one.at_ms)) == ({"decode": 3}, "2026-11-22 12:00:00")


def test_a_pipeline_without_trouble_says_so() -> None:
    page = health_page(read_health(LINES[:1]))

    assert "No row came too late" in page.html()
    assert "a backfill mends the results of aggregates, and nothing mends a wait" in page.html()
    assert "No micro-batch is told" in health_page(read_health([])).html()


# A name as long as Kafka lets topics be, without a place where a line could end.
LONG: Final = "o" * 249

# Looks at a page in frames, which have a width and a colour scheme of their own, and writes down
# the words that are shown when all plots are drawn.
LOOKING: Final = """<!doctype html><pre id="found"></pre><script>
const frames = VIEWS.map(([scheme, width]) => {
  const frame = document.createElement("iframe");
  frame.style.cssText = `border: 0; height: 900px; width: ${width}px; color-scheme: ${scheme}`;
  frame.srcdoc = PAGE;
  document.body.append(frame);
  return frame;
});
const is_drawn = plot => plot.querySelector("svg") || plot.textContent;
function seen(frame) {
  const page = frame.contentDocument, view = frame.contentWindow;
  const plots = [...page.querySelectorAll(".plot")];
  const is_seen = svg => svg.getBoundingClientRect().width > 200
    && svg.getBoundingClientRect().height > 50;
  const is_cut = text => {
    const inner = text.getBoundingClientRect();
    const outer = text.closest("figure").getBoundingClientRect();
    return inner.left < outer.left - 1 || inner.right > outer.right + 1;
  };
  return {
    width: view.innerWidth, page_width: page.documentElement.scrollWidth,
    plots: plots.filter(one => [...one.querySelectorAll("svg")].some(is_seen)).length,
    failed: plots.map(one => one.textContent).filter(text => text.includes("plot failed")),
    cut: [...page.querySelectorAll("svg text")].filter(is_cut).map(one => one.textContent),
    colours: [view.getComputedStyle(page.body).backgroundColor,
      view.getComputedStyle(page.querySelector("svg text")).fill],
  };
}
function look() {
  const plots = frames.map(frame => [...frame.contentDocument.querySelectorAll(".plot")]);
  if (!plots.every(all => all.length && all.every(is_drawn))) return setTimeout(look, 50);
  document.getElementById("found").textContent = JSON.stringify(frames.map(seen));
}
setTimeout(look, 50);
</script>"""


def all_reports() -> Page:
    """One page of all reports, names as long as they can be among them."""
    told = [
        operations(NOON_MS + place * 10_000, "Produce", topic, [1, 20])
        for place, topic in enumerate(["t", "t", LONG])
    ]
    lines = [line.replace('"revenue"', f'"{LONG}"') for line in LINES]
    pages = [waits_page(summed(told)), rebalances_of_two(), lag_of_one("billing"), lag_of_one(LONG)]
    pages.append(health_page(read_health(lines)))
    figures = [figure for page in pages for figure in page.figures]
    sections = [section for page in pages for section in page.sections]
    return Page(
        f"All reports of {LONG}",
        f"As seen by {LONG}",
        figures=[*figures, Figure(LONG, LONG)],
        remarks=[f"Nothing is known of {LONG}."],
        sections=sections,
    )


def browse(directory: Path, path: Path, *flags: str) -> str:
    """Have a browser open a file; what it says when all is done."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("chromium is not installed")
    done = subprocess.run(
        [
            *(browser, "--headless=new", "--no-sandbox", "--disable-gpu"),
            *("--virtual-time-budget=20000", f"--user-data-dir={directory / 'profile'}"),
            *flags,
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    return done.stdout


@pytest.mark.slow
def test_a_browser_draws_every_plot_narrow_and_wide_in_light_and_in_dark(tmp_path: Path) -> None:
    views = [("light", 390), ("light", 1600), ("dark", 390), ("dark", 1600)]
    page = all_reports()
    text = json.dumps(page.html()).replace("<", "\\u003c")
    path = tmp_path / "looking.html"
    path.write_text(LOOKING.replace("VIEWS", json.dumps(views)).replace("PAGE", text))

    told = re.search('<pre id="found">(.*?)</pre>', browse(tmp_path, path, "--dump-dom"))

    assert told is not None
    found = json.loads(unescape(told[1]))
    count = sum(len(section.plots) for section in page.sections)
    for (_, width), one in zip(views, found, strict=True):
        assert (one["width"], one["plots"], one["failed"], one["cut"]) == (width, count, [], [])
        assert one["page_width"] <= width
    light, wide_light, dark, wide_dark = (one["colours"] for one in found)
    assert (light, dark) == (wide_light, wide_dark)
    assert (light[0], dark[0]) == ("rgb(255, 255, 255)", "rgb(20, 23, 27)")
    assert light[1] != dark[1]


@pytest.mark.slow
def test_what_is_printed_holds_every_plot_on_white(tmp_path: Path) -> None:
    page = all_reports()
    path, printed = tmp_path / "all.html", tmp_path / "all.pdf"
    path.write_text(page.html(), encoding="utf-8")

    # Of one who sees all pages dark.
    dark = "--blink-settings=preferredColorScheme=0"
    browse(tmp_path, path, dark, "--no-pdf-header-footer", f"--print-to-pdf={printed}")

    pdf = printed.read_bytes()
    streams = [
        zlib.decompressobj().decompress(part)
        for part in re.findall(rb"/FlateDecode[^>]*>>\s*stream\r?\n(.*?)endstream", pdf, re.DOTALL)
    ]
    fills = {told for text in streams for told in re.findall(rb"([\d.]+ [\d.]+ [\d.]+) rg", text)}
    # Vega tells of the axes of each plot.
    count = sum(len(section.plots) for section in page.sections)
    assert len(re.findall(rb"/Alt \(X-axis", pdf)) == count
    assert len(re.findall(rb"/Type /Page\b", pdf)) > 1
    assert pdf_colour("#f6f7f9") in fills
    assert pdf_colour("#1d2127") not in fills


def pdf_colour(text: str) -> bytes:
    """A colour as PDF writes it."""
    parts = [int(text[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return " ".join(f"{part:.4f}".strip("0") for part in parts).encode()


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
