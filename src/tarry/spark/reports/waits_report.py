"""Report of waits: percentiles and expiries of each purgatory, and of its topics and groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tarry.base.percentiles import Percentile
from tarry.spark.jobs.waits import LongWait, WaitRow, WaitSums
from tarry.spark.reports.installed import load_altair
from tarry.spark.reports.page import Figure, Page, Plot, Section, Table
from tarry.spark.reports.plots import (
    coloured,
    data_of,
    keys,
    length_text,
    over_time,
    over_waits,
    plot,
    time_text,
)

# Topics or groups of a purgatory that are drawn, those with the longest waits.
SUBJECTS_MAX: Final = 15

# What an operation of a purgatory waits for, and what it means that its deadline ended it.
MEANINGS: Final = {
    "Produce": "A produce waits until its records are durable. One that expired was answered with "
    "a time-out, and its producer sends it again.",
    "Fetch": "A fetch waits until there is something to read. One that expired found nothing new: "
    "a consumer that has read all that there is does nothing else.",
    "DeleteRecords": "A deletion of records waits until the new start of the log is durable.",
    "Metadata": "A change of topics or settings waits until it is durable.",
    "Join": "A join waits until all members of a group are there. One that expired began the "
    "generation without those who did not come.",
    "Sync": "A sync waits for the assignment of the group's leader. One that expired threw out "
    "members that did not come for theirs.",
    "Heartbeat": "The session of a member waits as long as the member is in the group. One that "
    "expired is a member that was heard of no more, or one that waited in a rebalance; the report "
    "of rebalances tells them apart.",
    "Commit": "A commit of offsets waits until it is durable.",
}

COLUMNS: Final = ("operations", "expired", "mean", "p50", "p90", "p99", "longest")

ABOUT_PERCENTILES: Final = (
    "A percentile is known between two bounds, since waits are counted in steps of √2; plots show "
    "the upper one, tables show both. Plots show a wait below 1 ms as 1 ms."
)


def waits_page(waits: WaitSums) -> Page:
    """Return the report."""
    tally = waits.tally
    if tally.first_ms is None or tally.last_ms is None or not waits.purgatories:
        return Page("Waits", "The event log tells of no wait in this time.", (), tally.remarks())
    subtitle = (
        f"{time_text(tally.first_ms)} to {time_text(tally.last_ms)} UTC, in intervals of "
        f"{length_text(waits.interval_ms)}. {ABOUT_PERCENTILES}"
    )
    order = {name: place for place, name in enumerate(MEANINGS)}
    ordered = sorted(waits.purgatories, key=lambda row: order.get(row.purgatory, len(order)))
    sections = [_purgatory(waits, row) for row in ordered]
    if waits.longest:
        sections.append(_longest(waits.longest))
    return Page("Waits", subtitle, _figures(waits), tally.remarks(), sections)


def _figures(waits: WaitSums) -> list[Figure]:
    rows = waits.purgatories
    by_name = {row.purgatory: row for row in rows}
    figures = [Figure(f"{sum(row.completed for row in rows):,}", "operations that waited")]
    for name, label in (("Produce", "produces, p99"), ("Join", "joins, p99")):
        if name in by_name:
            figures.append(Figure(f"≤ {length_text(by_name[name].p99.at_most_ms)}", label))
    for name, label in (
        ("Produce", "produces that expired"),
        ("Heartbeat", "sessions of members that expired"),
    ):
        expired = by_name[name].expired if name in by_name else 0
        figures.append(Figure(f"{expired:,}", label, is_bad=expired > 0))
    return figures


def _purgatory(waits: WaitSums, whole: WaitRow) -> Section:
    name = whole.purgatory
    intervals = [row for row in waits.intervals if row.purgatory == name]
    subjects = [row for row in waits.subjects if row.purgatory == name]
    subjects.sort(key=lambda row: (-row.p99.at_most_ms, -row.longest_ms, row.subject))
    plots = [_waits_plot(waits, intervals), _count_plot(waits, intervals)]
    if len(subjects) > 1:
        plots.append(_subjects_plot(subjects))
        plots.append(_subject_counts_plot(subjects))
    return Section(
        title=name,
        text=MEANINGS.get(name, ""),
        plots=plots,
        tables=[
            _table("Topics and groups", ["topic or group"], subjects, lambda row: [row.subject]),
            _table("Intervals", ["begin (UTC)"], intervals, lambda row: [time_text(row.begin_ms)]),
        ],
    )


def _table(caption: str, titles: list[str], rows: Sequence[WaitRow], first: Any) -> Table:
    cells = [
        [
            *(cell or "(several)" for cell in first(row)),
            row.completed,
            row.expired,
            f"{row.mean_ms:,.1f} ms",
            between_text(row.p50),
            between_text(row.p90),
            between_text(row.p99),
            f"{row.longest_ms:,} ms",
        ]
        for row in rows
    ]
    return Table([*titles, *COLUMNS], cells, caption)


def between_text(found: Percentile) -> str:
    """Write a percentile: `5 ms`, or `6-7 ms` where it is not known closer."""
    if found.at_least_ms == found.at_most_ms:
        return f"{found.at_most_ms:,} ms"
    return f"{found.at_least_ms:,}-{found.at_most_ms:,} ms"


def _values(row: WaitRow) -> dict[str, Any]:
    return {
        "p50": max(1, row.p50.at_most_ms),
        "p90": max(1, row.p90.at_most_ms),
        "p99": max(1, row.p99.at_most_ms),
        "longest": max(1, row.longest_ms),
        "p50 is": between_text(row.p50),
        "p90 is": between_text(row.p90),
        "p99 is": between_text(row.p99),
        "longest is": f"{row.longest_ms:,} ms",
        "operations": row.completed,
        "expired": row.expired,
    }


def _tooltip(*first: str) -> list[Any]:
    alt = load_altair()
    named = [alt.Tooltip(f"{name}:N", title=name) for name in first]
    waits = [alt.Tooltip(f"{name} is:N", title=name) for name in ("p50", "p90", "p99", "longest")]
    counts = [alt.Tooltip(f"{name}:Q", title=name, format=",") for name in COLUMNS[:2]]
    return [*named, *waits, *counts]


# What is drawn of a wait: its name in the legend and its colour.
PARTS: Final = {
    "median": "var(--c1)",
    "p50 to p90": "var(--pale)",
    "p90 to p99": "var(--faint)",
    "longest": "var(--c2)",
}
PART_SHAPES: Final = {"longest": "diamond"}


def _parts(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each part of a wait that is drawn."""
    return [
        {**row, "part": "p90 to p99", "low": row["p90"], "high": row["p99"]},
        {**row, "part": "p50 to p90", "low": row["p50"], "high": row["p90"]},
        {**row, "part": "median", "low": row["p50"], "high": row["p50"]},
        {**row, "part": "longest", "low": row["longest"], "high": row["longest"]},
    ]


def _waits_plot(waits: WaitSums, intervals: Sequence[WaitRow]) -> Plot:
    alt = load_altair()
    rows = [
        part
        for row in intervals
        for part in _parts(
            {
                **_values(row),
                "begin": row.begin_ms,
                "end": row.begin_ms + waits.interval_ms,
                "middle": row.begin_ms + waits.interval_ms // 2,
                "from": time_text(row.begin_ms),
            }
        )
    ]
    base = alt.Chart(data_of(rows)).encode(color=coloured("part", PARTS), tooltip=_tooltip("from"))
    span_ms = _span_ms(waits)
    height = over_waits(alt.Y, "low", [part[name] for part in rows for name in ("low", "high")])
    begin = over_time("begin", span_ms)
    bars = (
        base.transform_filter("datum.low < datum.high")
        .mark_bar(strokeWidth=0)
        .encode(x=begin, x2="end:T", y=height, y2="high:Q")
    )
    median = (
        base.transform_filter("datum.part == 'median'")
        .mark_rule(strokeWidth=2)
        .encode(x=begin, x2="end:T", y=height)
    )
    longest = (
        base.transform_filter("datum.part == 'longest'")
        .mark_point(filled=True, size=22, shape="diamond", opacity=1)
        .encode(x=over_time("middle", span_ms), y=height)
    )
    return plot(
        bars + median + longest,
        "How long operations waited",
        "Bars reach from the median of an interval to its 99th percentile",
        260,
        keys(PARTS, PART_SHAPES),
    )


def _count_plot(waits: WaitSums, intervals: Sequence[WaitRow]) -> Plot:
    rows = [
        {
            "begin": row.begin_ms,
            "end": row.begin_ms + waits.interval_ms,
            "from": time_text(row.begin_ms),
            "how": how,
            "low": low,
            "high": high,
            "operations": high - low,
        }
        for row in intervals
        for how, low, high in (
            ("expired", 0, row.expired),
            ("completed in time", row.expired, row.completed),
        )
        if high > low
    ]
    return plot(
        _stacked(rows, _span_ms(waits)),
        "How many ended",
        f"Operations in each interval of {length_text(waits.interval_ms)}",
        260,
        keys(ENDS),
    )


def _span_ms(waits: WaitSums) -> int:
    assert waits.tally.first_ms is not None
    assert waits.tally.last_ms is not None
    return waits.tally.last_ms - waits.tally.first_ms


ENDS: Final = {"completed in time": "var(--pale)", "expired": "var(--c2)"}


def _stacked(rows: Sequence[dict[str, object]], span_ms: int) -> Any:
    alt = load_altair()
    count = alt.Axis(title="Operations", format="~s", tickMinStep=1)
    return (
        alt.Chart(data_of(rows))
        .mark_bar(strokeWidth=0)
        .encode(
            x=over_time("begin", span_ms),
            x2="end:T",
            y=alt.Y("low:Q", axis=count, stack=None),
            y2="high:Q",
            color=coloured("how", ENDS),
            tooltip=[
                alt.Tooltip("from:N"),
                alt.Tooltip("how:N"),
                alt.Tooltip("operations:Q", format=","),
            ],
        )
    )


def _subject_axis() -> Any:
    alt = load_altair()
    # In the order of the data: the longest waits stand above.
    return alt.Y("subject:N", sort=None, axis=alt.Axis(title=None, labelLimit=140, ticks=False))


def _subjects_plot(subjects: Sequence[WaitRow]) -> Plot:
    alt = load_altair()
    drawn = subjects[:SUBJECTS_MAX]
    rows = [
        part
        for row in drawn
        for part in _parts({**_values(row), "subject": row.subject or "(several)"})
    ]
    base = alt.Chart(data_of(rows)).encode(
        y=_subject_axis(), color=coloured("part", PARTS), tooltip=_tooltip("subject")
    )
    across = over_waits(alt.X, "low", [part[name] for part in rows for name in ("low", "high")])
    bars = (
        base.transform_filter("datum.low < datum.high")
        .mark_bar(height={"band": 0.6}, minBandSize=2)
        .encode(x=across, x2="high:Q")
    )
    median = (
        base.transform_filter("datum.part == 'median'")
        .mark_tick(thickness=3, opacity=1)
        .encode(x=across)
    )
    longest = (
        base.transform_filter("datum.part == 'longest'")
        .mark_point(filled=True, size=40, shape="diamond", opacity=1)
        .encode(x=across)
    )
    return plot(
        bars + median + longest,
        "By topic or group",
        _drawn(subjects),
        _height(drawn),
        keys(PARTS, PART_SHAPES),
    )


def _subject_counts_plot(subjects: Sequence[WaitRow]) -> Plot:
    alt = load_altair()
    drawn = subjects[:SUBJECTS_MAX]
    rows = [
        {
            "subject": row.subject or "(several)",
            "how": how,
            "low": low,
            "high": high,
            "operations": high - low,
        }
        for row in drawn
        for how, low, high in (
            ("expired", 0, row.expired),
            ("completed in time", row.expired, row.completed),
        )
    ]
    chart = (
        alt.Chart(data_of(rows))
        .mark_bar(height={"band": 0.6})
        .encode(
            y=_subject_axis(),
            x=alt.X("low:Q", axis=alt.Axis(title="Operations", format="~s"), stack=None),
            x2="high:Q",
            color=coloured("how", ENDS),
            tooltip=[
                alt.Tooltip("subject:N"),
                alt.Tooltip("how:N"),
                alt.Tooltip("operations:Q", format=","),
            ],
        )
    )
    return plot(
        chart, "How many ended, by topic or group", _drawn(subjects), _height(drawn), keys(ENDS)
    )


def _drawn(subjects: Sequence[WaitRow]) -> str:
    if len(subjects) <= SUBJECTS_MAX:
        return "Those with the longest waits first"
    return f"The {SUBJECTS_MAX} of {len(subjects):,} with the longest waits; the table has all"


def _height(drawn: Sequence[WaitRow]) -> int:
    return 40 + 24 * len(drawn)


def _longest(longest: Sequence[LongWait]) -> Section:
    rows = [
        [
            time_text(one.at_ms),
            one.purgatory,
            one.key,
            f"{one.waited_ms:,} ms",
            "expired" if one.expired else "completed",
        ]
        for one in longest
    ]
    titles = ["told at (UTC)", "purgatory", "waited for", "waited", "how it ended"]
    return Section(
        "The longest waits",
        "Single operations: the longest of each interval, and some of those that expired.",
        tables=[Table(titles, rows, "Operations", is_open=len(rows) <= 20)],
    )
