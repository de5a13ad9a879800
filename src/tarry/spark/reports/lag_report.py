"""Report of lag: how far each group is behind over time, and in which partitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tarry.spark.jobs.lag import GroupLag, LagSums, PartitionLag
from tarry.spark.reports.installed import load_altair
from tarry.spark.reports.page import Figure, Key, Page, Plot, Section, Table
from tarry.spark.reports.plots import (
    coloured,
    data_of,
    keys,
    length_text,
    over_time,
    plot,
    shaped,
    time_text,
)

# Groups that are drawn, those that are furthest behind.
GROUPS_MAX: Final = 20
# Topics and partitions of a group that are drawn.
TOPICS_MAX: Final = 6
PARTITIONS_MAX: Final = 24

COLOURS: Final = ("--c1", "--c2", "--c3", "--c4", "--c5", "--c8")
SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")

LAGS: Final = {"now": "var(--pale)", "highest": "var(--c2)"}
LAG_SHAPES: Final = {"highest": "diamond"}


def lag_page(found: LagSums) -> Page:
    """Return the report."""
    tally = found.tally
    if tally.first_ms is None or tally.last_ms is None or not found.partitions:
        nothing = "Nothing is told of a group that has committed in this time."
        return Page("Lag", nothing, (), tally.remarks())
    subtitle = (
        f"{time_text(tally.first_ms)} to {time_text(tally.last_ms)} UTC, in intervals of "
        f"{length_text(found.interval_ms)}. Lag is how many offsets lie between what a group has "
        "committed and the end of the partition."
    )
    by_group: dict[str, list[PartitionLag]] = {}
    for one in found.partitions:
        by_group.setdefault(one.group, []).append(one)
    drawn = sorted(
        by_group, key=lambda group: (-max(one.highest for one in by_group[group]), group)
    )
    sections = [_overview(found.partitions)]
    sections += [_group(found, group, by_group[group]) for group in drawn[:GROUPS_MAX]]
    return Page("Lag", subtitle, _figures(found, by_group), tally.remarks(), sections)


def _figures(found: LagSums, by_group: dict[str, list[PartitionLag]]) -> list[Figure]:
    return [
        Figure(f"{len(by_group):,}", "groups"),
        Figure(f"{sum(one.lag for one in found.partitions):,}", "offsets behind at the end"),
        Figure(f"{max(one.highest for one in found.partitions):,}", "highest lag of a partition"),
    ]


def _overview(partitions: Sequence[PartitionLag]) -> Section:
    by_topic: dict[tuple[str, str], list[PartitionLag]] = {}
    for one in partitions:
        by_topic.setdefault((one.group, one.topic), []).append(one)
    rows = [
        [
            group,
            topic,
            len(those),
            sum(one.lag for one in those),
            max(one.highest for one in those),
            time_text(max(one.at_ms for one in those)),
        ]
        for (group, topic), those in by_topic.items()
    ]
    titles = ["group", "topic", "partitions", "lag", "highest of a partition", "last told (UTC)"]
    return Section(
        "Groups and topics",
        "A group that commits no more keeps the lag of its last commit: look at when it was told.",
        tables=[Table(titles, rows, "Groups and topics", is_open=len(rows) <= 20)],
    )


def _group(found: LagSums, group: str, partitions: Sequence[PartitionLag]) -> Section:
    intervals = [one for one in found.intervals if one.group == group]
    rows = [
        [
            one.topic,
            one.partition,
            one.committed,
            one.end,
            one.lag,
            one.highest,
            time_text(one.at_ms),
        ]
        for one in partitions
    ]
    titles = ["topic", "partition", "committed", "end", "lag", "highest", "last told (UTC)"]
    over_intervals = [
        [time_text(one.begin_ms), one.topic, one.partitions, one.lag] for one in intervals
    ]
    height = max(200, 40 + 18 * min(len(partitions), PARTITIONS_MAX))
    return Section(
        f"Group {group}",
        "",
        plots=[_lines(found, intervals, height), _bars(partitions, height)],
        tables=[
            Table(titles, rows, "Partitions"),
            Table(["begin (UTC)", "topic", "partitions", "lag"], over_intervals, "Intervals"),
        ],
    )


def _lines(found: LagSums, intervals: Sequence[GroupLag], height: int) -> Plot:
    alt = load_altair()
    assert found.tally.first_ms is not None
    assert found.tally.last_ms is not None
    highest: dict[str, int] = {}
    for one in intervals:
        highest[one.topic] = max(highest.get(one.topic, 0), one.lag)
    topics = sorted(highest, key=lambda topic: (-highest[topic], topic))[:TOPICS_MAX]
    colours = {topic: f"var({COLOURS[place]})" for place, topic in enumerate(topics)}
    shapes = {topic: SHAPES[place] for place, topic in enumerate(topics)}
    rows = [
        {
            "at": min(one.begin_ms + found.interval_ms, found.tally.last_ms),
            "from": time_text(one.begin_ms),
            "topic": one.topic,
            "lag": one.lag,
        }
        for one in intervals
        if one.topic in colours
    ]
    base = alt.Chart(data_of(rows)).encode(
        x=over_time("at", found.tally.last_ms - found.tally.first_ms),
        y=alt.Y("lag:Q", axis=alt.Axis(title="Lag (offsets)", format="~s", tickMinStep=1)),
        color=coloured("topic", colours),
        tooltip=[
            alt.Tooltip("topic:N"),
            alt.Tooltip("from:N"),
            alt.Tooltip("lag:Q", format=","),
        ],
    )
    line = base.mark_line(interpolate="step-before", strokeWidth=2)
    points = base.mark_point(filled=True, size=28, opacity=1).encode(shape=shaped("topic", shapes))
    text = "All partitions of a topic together, at the end of each interval."
    if len(highest) > len(topics):
        text += f" The {TOPICS_MAX} topics that were furthest behind are drawn."
    legend: list[Key] = keys(colours, shapes)
    return plot(line + points, "Lag over time", text, height, legend)


def _bars(partitions: Sequence[PartitionLag], height: int) -> Plot:
    alt = load_altair()
    drawn = sorted(partitions, key=lambda one: (-one.highest, one.topic, one.partition))
    drawn = drawn[:PARTITIONS_MAX]
    rows: list[dict[str, Any]] = [
        {
            "place": f"{one.topic} [{one.partition}]",
            "kind": kind,
            "offsets": offsets,
            "told": time_text(one.at_ms),
        }
        for one in drawn
        for kind, offsets in (("now", one.lag), ("highest", one.highest))
    ]
    base = alt.Chart(data_of(rows)).encode(
        y=alt.Y("place:N", sort=None, axis=alt.Axis(title=None, labelLimit=150, ticks=False)),
        x=alt.X("offsets:Q", axis=alt.Axis(title="Lag (offsets)", format="~s", tickMinStep=1)),
        color=coloured("kind", LAGS),
        tooltip=[
            alt.Tooltip("place:N"),
            alt.Tooltip("kind:N"),
            alt.Tooltip("offsets:Q", format=","),
            alt.Tooltip("told:N"),
        ],
    )
    bars = base.transform_filter("datum.kind == 'now'").mark_bar(height={"band": 0.6})
    highest = base.transform_filter("datum.kind == 'highest'").mark_point(
        filled=True, size=45, shape="diamond", opacity=1
    )
    text = "At the end, and the highest."
    if len(partitions) > len(drawn):
        text = f"At the end, and the highest: {len(drawn)} of {len(partitions):,} partitions."
    return plot(bars + highest, "Lag by partition", text, height, keys(LAGS, LAG_SHAPES))
