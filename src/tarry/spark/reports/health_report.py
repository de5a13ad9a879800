"""Report of a pipeline's health: throughput, rejected records by rule, late rows, lag.

It is made from the lines that a running pipeline writes, one for each micro-batch of a stage.  A
line that is none of these is passed over and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Annotated, Any, Final

import msgspec

from tarry.spark.events.intervals import begin_of, interval_for
from tarry.spark.reports.installed import load_altair
from tarry.spark.reports.page import Figure, Page, Plot, Section, Table
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

# Micro-batches that are drawn, the last ones: a browser takes long over more.
DRAWN_MAX: Final = 2_000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# Up to so many are drawn large.
FEW: Final = 30

COLOURS: Final = ("--c1", "--c2", "--c3", "--c4", "--c5", "--c8", "--c6", "--c7")
SHAPES: Final = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-left",
    "triangle-right",
)


# A stage counts no more, and a micro-batch takes no longer.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]

# In every zone these are times that a date tells.
YEARS: Final = range(1970, 9999)


class _Line(msgspec.Struct, frozen=True):
    """Line of progress, as far as the report reads it."""

    at: str
    stage: str
    batch: Count
    records: Count
    seconds: Seconds
    pipeline: str = ""
    bytes: Count = 0
    lag: Count | None = None
    rejected: dict[str, Count] = {}
    late: Count = 0
    # Ranges, of which only the count is told here.
    lost: list[dict[str, Any]] = []


@dataclass(frozen=True)
class MicroBatch:
    """Micro-batch of a stage.  Times are calendar ms."""

    at_ms: int
    pipeline: str
    stage: str
    batch: int
    records: int
    bytes: int
    seconds: float
    lag: int | None
    rejected: Mapping[str, int]
    late: int
    # Ranges of offsets that were left out.
    lost: int = 0


@dataclass(frozen=True)
class StageHealth:
    """Sums of one stage of one pipeline."""

    # Empty where the lines do not tell it.
    pipeline: str
    stage: str
    batches: int
    records: int
    records_per_second: float
    # By rule.
    rejected: Mapping[str, int]
    late: int
    # Records that are not read yet, at the end; None: not known.
    lag: int | None
    longest_seconds: float
    # Ranges of offsets that were left out.
    lost: int = 0


@dataclass
class PipelineHealth:
    """Micro-batches that were told, in the order of their time."""

    batches: list[MicroBatch] = field(default_factory=list)
    # Lines that are no progress.
    passed_over: int = 0

    def stages(self) -> list[StageHealth]:
        """Return the sums of each stage, in the order in which they were first told of."""
        by_stage: dict[tuple[str, str], list[MicroBatch]] = {}
        for one in self.batches:
            by_stage.setdefault((one.pipeline, one.stage), []).append(one)
        return [_stage_health(*stage, those) for stage, those in by_stage.items()]

    def names(self) -> dict[tuple[str, str], str]:
        """Return what people read for a pipeline and a stage, in the order of `stages`.

        It is the name of the stage, with that of its pipeline where there are several.
        """
        found = dict.fromkeys((one.pipeline, one.stage) for one in self.batches)
        are_several = len({pipeline for pipeline, _ in found}) > 1
        return {
            (pipeline, stage): f"{pipeline} · {stage}" if are_several and pipeline else stage
            for pipeline, stage in found
        }


def _stage_health(pipeline: str, stage: str, those: Sequence[MicroBatch]) -> StageHealth:
    rejected: dict[str, int] = {}
    for one in those:
        for rule, count in one.rejected.items():
            rejected[rule] = rejected.get(rule, 0) + count
    seconds = sum(one.seconds for one in those)
    records = sum(one.records for one in those)
    return StageHealth(
        pipeline=pipeline,
        stage=stage,
        batches=len(those),
        records=records,
        records_per_second=round(records / seconds, 1) if seconds else 0.0,
        rejected=rejected,
        late=sum(one.late for one in those),
        lag=those[-1].lag,
        longest_seconds=max(one.seconds for one in those),
        lost=sum(one.lost for one in those),
    )


def read_health(lines: Iterable[bytes | str | Mapping[str, Any]]) -> PipelineHealth:
    """Read lines of progress, as text or as what their JSON holds."""
    found = PipelineHealth()
    for line in lines:
        one = _batch_of(line)
        if one is None:
            found.passed_over += 1
        else:
            found.batches.append(one)
    found.batches.sort(key=lambda one: one.at_ms)
    return found


def _batch_of(line: bytes | str | Mapping[str, Any]) -> MicroBatch | None:
    try:
        if isinstance(line, Mapping):
            told = msgspec.convert(dict(line), _Line)
        else:
            told = msgspec.json.decode(line, type=_Line)
        at = datetime.fromisoformat(told.at)
    except (msgspec.DecodeError, ValueError):
        return None
    if at.year not in YEARS:
        return None
    # Spark writes its zone, and that is UTC.
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    at_ms = (at - EPOCH) // timedelta(milliseconds=1)
    if at_ms < 0:
        return None
    return MicroBatch(
        at_ms=at_ms,
        pipeline=told.pipeline,
        stage=told.stage,
        batch=told.batch,
        records=told.records,
        bytes=told.bytes,
        # A pace over less than that would be no number.
        seconds=round(told.seconds, 6),
        lag=told.lag,
        rejected=told.rejected,
        late=told.late,
        lost=len(told.lost),
    )


def health_page(found: PipelineHealth) -> Page:
    """Return the report."""
    remarks = []
    if found.passed_over:
        remarks.append(
            f"lines that were passed over, since they are no progress: {found.passed_over:,}"
        )
    lost = sum(one.lost for one in found.batches)
    if lost:
        remarks.append(
            f"ranges of offsets that were left out, since their records were lost: {lost:,}; the "
            "lines of progress name them"
        )
    if not found.batches:
        return Page("Pipeline health", "No micro-batch is told.", (), remarks)
    first_ms, last_ms = found.batches[0].at_ms, found.batches[-1].at_ms
    names = ", ".join(dict.fromkeys(one.pipeline for one in found.batches if one.pipeline))
    return Page(
        f"Pipeline health: {names}" if names else "Pipeline health",
        f"{time_text(first_ms)} to {time_text(last_ms)} UTC, {len(found.batches):,} micro-batches.",
        _figures(found),
        remarks,
        [_throughput(found), _rejected(found), _late_and_lag(found)],
    )


def _figures(found: PipelineHealth) -> list[Figure]:
    stages = found.stages()
    rejected = sum(sum(one.rejected.values()) for one in stages)
    late = sum(one.late for one in stages)
    lags = [one.lag for one in stages if one.lag is not None]
    figures = [
        Figure(f"{sum(one.records for one in stages):,}", "records read by all stages"),
        Figure(f"{rejected:,}", "records rejected", is_bad=rejected > 0),
        Figure(f"{late:,}", "rows dropped as late", is_bad=late > 0),
    ]
    if lags:
        figures.append(Figure(f"{sum(lags):,}", "records not read yet, at the end"))
    return figures


def _drawn(stages: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return a colour and a shape for each stage."""
    colours = {stage: f"var({name})" for stage, name in zip(stages, cycle(COLOURS), strict=False)}
    return colours, dict(zip(stages, cycle(SHAPES), strict=False))


def _span_ms(found: PipelineHealth) -> int:
    return found.batches[-1].at_ms - found.batches[0].at_ms


def _throughput(found: PipelineHealth) -> Section:
    names = found.names()
    rows = [
        [
            names[one.pipeline, one.stage],
            one.batches,
            one.records,
            round(one.records_per_second),
            sum(one.rejected.values()),
            one.late,
            length_text(1_000 * one.longest_seconds),
        ]
        for one in found.stages()
    ]
    titles = [
        "stage",
        "micro-batches",
        "records",
        "records a second",
        "rejected",
        "late",
        "longest micro-batch",
    ]
    points = [
        {
            "at": one.at_ms,
            "when": time_text(one.at_ms),
            "stage": names[one.pipeline, one.stage],
            "batch": one.batch,
            "records": one.records,
            "pace": round(one.records / one.seconds, 1) if one.seconds else 0,
            "seconds": one.seconds,
        }
        for one in found.batches
        if one.records
    ]
    return Section(
        "Throughput",
        "Records of a micro-batch over the time that it took. Those without records are left out.",
        plots=[
            _points(found, points, "pace", "Records a second", "Pace of each micro-batch"),
            _points(found, points, "seconds", "Seconds", "How long each micro-batch took"),
        ],
        tables=[Table(titles, rows, "Stages", is_open=True), _batch_table(found)],
    )


def _batch_table(found: PipelineHealth) -> Table:
    names = found.names()
    rows = [
        [
            time_text(one.at_ms),
            names[one.pipeline, one.stage],
            one.batch,
            one.records,
            one.seconds,
            "-" if one.lag is None else one.lag,
            sum(one.rejected.values()),
            one.late,
        ]
        for one in found.batches
    ]
    titles = ["at (UTC)", "stage", "micro-batch", "records", "seconds", "lag", "rejected", "late"]
    return Table(titles, rows, "Micro-batches")


def _points(
    found: PipelineHealth, rows: Sequence[dict[str, Any]], field_: str, axis: str, title: str
) -> Plot:
    alt = load_altair()
    colours, shapes = _drawn(list(found.names().values()))
    base = alt.Chart(data_of(rows[-DRAWN_MAX:])).encode(
        x=over_time("at", _span_ms(found)),
        y=alt.Y(f"{field_}:Q", axis=alt.Axis(title=axis, format="~s")),
        color=coloured("stage", colours),
        tooltip=[
            *(alt.Tooltip(f"{name}:N") for name in ("stage", "when", "batch")),
            *(alt.Tooltip(f"{name}:Q", format=",") for name in (field_, "records")),
        ],
    )
    left = len(rows) - DRAWN_MAX
    text = "A mark is a micro-batch."
    if left > 0:
        text += f" The last {DRAWN_MAX:,} are drawn."
    line = base.mark_line(strokeWidth=1.5)
    # The report of a first run has two marks, which are to be seen.
    size = 36 if len(rows) > FEW else 110
    points = base.mark_point(filled=True, size=size, opacity=1).encode(
        shape=shaped("stage", shapes)
    )
    return plot(line + points, title, text, 240, keys(colours, shapes))


def _rejected(found: PipelineHealth) -> Section:
    totals: dict[str, int] = {}
    for one in found.batches:
        for rule, count in one.rejected.items():
            totals[rule] = totals.get(rule, 0) + count
    ordered = sorted(totals, key=lambda rule: (-totals[rule], rule))
    table = Table(["rule", "records"], [[rule, totals[rule]] for rule in ordered], "Rules")
    if not ordered:
        return Section("Rejected records", "No record was rejected.")
    colours, _ = _drawn(ordered)
    return Section(
        "Rejected records",
        "Each of them lies in the topic of rejected records as it came, with its rule in a header.",
        plots=[_rules_plot(ordered, totals, colours), _rejects_plot(found, colours)],
        tables=[table],
    )


def _rules_plot(ordered: list[str], totals: dict[str, int], colours: dict[str, str]) -> Plot:
    alt = load_altair()
    rows = [{"rule": rule, "records": totals[rule]} for rule in ordered]
    chart = (
        alt.Chart(data_of(rows))
        .mark_bar(height={"band": 0.6})
        .encode(
            y=alt.Y("rule:N", sort=None, axis=alt.Axis(title=None, labelLimit=150, ticks=False)),
            x=alt.X("records:Q", axis=alt.Axis(title="Records", format="~s", tickMinStep=1)),
            color=coloured("rule", colours),
            tooltip=[alt.Tooltip("rule:N"), alt.Tooltip("records:Q", format=",")],
        )
    )
    return plot(chart, "By rule", "Over all the time.", max(120, 40 + 26 * len(rows)))


def _rejects_plot(found: PipelineHealth, colours: dict[str, str]) -> Plot:
    alt = load_altair()
    interval_ms = interval_for(found.batches[0].at_ms, found.batches[-1].at_ms)
    counted: dict[tuple[int, str], int] = {}
    for one in found.batches:
        for rule, count in one.rejected.items():
            key = begin_of(one.at_ms, interval_ms), rule
            counted[key] = counted.get(key, 0) + count
    rows: list[dict[str, Any]] = []
    heights: dict[int, int] = {}
    for begin_ms, rule in sorted(counted, key=lambda key: (key[0], list(colours).index(key[1]))):
        low = heights.get(begin_ms, 0)
        heights[begin_ms] = high = low + counted[begin_ms, rule]
        rows.append(
            {
                "begin": begin_ms,
                "end": begin_ms + interval_ms,
                "from": time_text(begin_ms),
                "rule": rule,
                "low": low,
                "high": high,
                "records": high - low,
            }
        )
    chart = (
        alt.Chart(data_of(rows))
        .mark_bar(strokeWidth=0)
        .encode(
            x=over_time("begin", max(interval_ms, _span_ms(found))),
            x2="end:T",
            y=alt.Y("low:Q", stack=None, axis=alt.Axis(title="Records", format="~s")),
            y2="high:Q",
            color=coloured("rule", colours),
            tooltip=[
                alt.Tooltip("rule:N"),
                alt.Tooltip("from:N"),
                alt.Tooltip("records:Q", format=","),
            ],
        )
    )
    text = f"Records in each interval of {length_text(interval_ms)}."
    return plot(chart, "Over time", text, max(120, 40 + 26 * len(colours)), keys(colours))


def _late_and_lag(found: PipelineHealth) -> Section:
    names = found.names()
    common = [
        {
            "at": one.at_ms,
            "when": time_text(one.at_ms),
            "stage": names[one.pipeline, one.stage],
            "batch": one.batch,
            "records": one.records,
            "late": one.late,
            "lag": one.lag,
        }
        for one in found.batches
    ]
    lag = [row for row in common if row["lag"] is not None]
    plots = []
    if any(row["late"] for row in common):
        plots.append(_points(found, common, "late", "Rows", "Rows dropped as late"))
    if lag:
        plots.append(_points(found, lag, "lag", "Records", "Records not read yet"))
    late = (
        "What comes behind the watermark is not in any result: a backfill mends the results of "
        "aggregates, and nothing mends a wait. Spark counts it by event for a wait, and for an "
        "aggregate by what a task has summed up of each window and group: only zero or not says "
        "something of events there."
    )
    nothing = "" if any(row["late"] for row in common) else " No row came too late."
    return Section("Late rows and lag", f"{late}{nothing}", plots=plots)
