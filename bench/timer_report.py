"""Report of the measurement as text: headline, target figures, every cell, the collector."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, NamedTuple

from timer_java import JAVA, java_version
from timer_library import LIBRARIES
from timer_plan import SPANS, Plan, cell_name
from timer_worker import RAISED_THRESHOLD, SETTINGS

TITLE_WIDTH: Final = 27

# Who is cancelled where the cost of cancelling is told, in the tables and in the plot.
CANCEL_PERCENT: Final = 95

MADE_BEFORE: Final = {library.key: library.makes_tasks for library in LIBRARIES}

TOLD_PAUSE: Final = {library.key: library.pause for library in LIBRARIES}

# Columns of the headline: what it is called, which figure, how it is written.
COLUMNS: Final = (
    ("add", "add", "{:.0f}"),
    ("make+add", "make_and_add", "{:.0f}"),
    ("cancel", "cancel", "{:.0f}"),
    ("anywhere", "cancel_anywhere", "{:.0f}"),
    ("expiry", "expire", "{:.0f}"),
    ("run", "run", "{:.0f}"),
    ("add+all", "life", "{:.0f}"),
    ("bytes", "bytes", "{:.0f}"),
    ("pause ms", "pause_ms", "{:.2f}"),
    ("gc:make+add", "make_and_add_collected", "{:.0f}"),
    ("gc:expiry", "expire_collected", "{:.0f}"),
)

WIDTHS: Final = {name: max(len(name) + 2, 10) for name, _, _ in COLUMNS}

LEGEND: Final = """\
ns of CPU, best of the rounds; the collector is off but in the columns gc.  Python's calls are made
by deque(map(...), 0), the cheapest loop it has.  add: an entry or task that was made before;
make+add: with its making.  cancel: all, oldest first; anywhere: all, in any order.  expiry: time
goes to the end of the span in one step; run: calling each entry's task, which is empty, where that
is not in expiry (Kafka's executor runs its tasks, in a thread that is not counted).  add+all: add,
then expiry.  bytes: memory for an entry with a task that holds nothing.  pause: the longest time
that one call holds its caller in that step, CPU.  One call is
{pauses};
SystemTimer, Netty and the JDK have a thread of their own, which expires; all that the latter two's
does is in expiry.  Their clocks and uvloop's cannot be set: Netty runs a hundred times as fast
(ticks of 1 ms for its 100), the other two with delays shrunk to half a second.  Kafka's wheel
begins a span in the past.  JVMs: 3 GB of heap; before anything counts, small passes of all kinds
for {warm} s in the same JVM, so that its compiler is through; gc: with its collector's pauses.
Kafka's first row has the options of Kafka's own start script (G1), and RoundsTimer the shape of
Netty's wheel, 512 buckets of 100 ms."""


class Check(NamedTuple):
    """Target figure and whether it is met."""

    text: str
    keys: tuple[str, ...]
    is_met: Callable[..., bool]
    told: Callable[..., str]


def add_derived(headline: dict[str, dict[str, float]]) -> None:
    """Figures that follow from others."""
    for key, figures in headline.items():
        made_before = MADE_BEFORE[key]
        for suffix in ("", "_collected"):
            if f"add{suffix}" in figures:
                made = figures[f"make{suffix}"] if made_before else 0.0
                figures[f"make_and_add{suffix}"] = made + figures[f"add{suffix}"]
        if "pause_limited" in figures:
            figures["pause_ms"] = figures["pause_limited"] / 1e6
        elif "pause" in figures and TOLD_PAUSE[key]:
            figures["pause_ms"] = figures["pause"] / 1e6
        if "make_and_add_collected" not in figures and "collector" in figures:
            figures["make_and_add_collected"] = figures["make_and_add"] + figures["collector"]


def header() -> list[str]:
    """Machine, date and versions."""
    import tarry

    packages = []
    for name in ("uvloop", "apscheduler"):
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"no {name}")
    pom = (JAVA / "pom.xml").read_text()
    for name in ("kafka", "netty"):
        packages.append(f"{name} {pom.split(f'<{name}.version>')[1].split('<')[0]}")
    return [
        f"{date.today()} · {processor()}, {os.cpu_count()} cores · {platform.platform()}",
        f"Tarry {tarry.__version__} · Python {sys.version.split()[0]} · {java_version()}",
        " · ".join(packages),
    ]


def processor() -> str:
    """Linux tells it here, other systems by platform."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def headline_table(headline: dict[str, dict[str, float]], plan: Plan) -> Iterator[str]:
    names = "".join(f"{name:>{WIDTHS[name]}}" for name, _, _ in COLUMNS)
    yield f"{plan.pending:,} pending, due within 10 minutes; ns an operation, best of {plan.rounds}"
    yield f"{'':{TITLE_WIDTH}}{names}"
    most = f"{plan.rounds_seconds_max:.0f} s"
    for library in LIBRARIES:
        figures = headline.get(library.key)
        if figures is None:
            continue
        cells = [
            form.format(figures[figure]) if figures.get(figure) else "-"
            for _, figure, form in COLUMNS
        ]
        smaller = figures["pending"] < plan.pending
        note = (
            f"  with {int(figures['pending']):,}: all rounds of more take over {most}"
            if smaller
            else ""
        )
        line = "".join(
            f"{cell:>{WIDTHS[name]}}" for cell, (name, _, _) in zip(cells, COLUMNS, strict=True)
        )
        yield f"{library.title:{TITLE_WIDTH}}{line}{note}"
    yield ""
    calls: dict[str, list[str]] = {}
    for library in LIBRARIES:
        if library.pause:
            calls.setdefault(library.pause, []).append(library.title)
    pauses = ";\n".join(f"    {call}: {', '.join(titles)}" for call, titles in calls.items())
    yield LEGEND.format(pauses=pauses, warm=plan.warm_seconds)


CHECKS: Final = (
    Check(
        "compiled add below Kafka's, with either collector",
        ("wheel", "kafka", "kafka-serial"),
        lambda ours, *theirs: ours["add"] < min(each["add"] for each in theirs),
        lambda ours, *theirs: below("add", ours, *theirs),
    ),
    Check(
        "compiled add with the making of the entry below Kafka's, with either collector",
        ("wheel", "kafka", "kafka-serial"),
        lambda ours, *theirs: ours["make_and_add"] < min(each["make_and_add"] for each in theirs),
        lambda ours, *theirs: below("make_and_add", ours, *theirs),
    ),
    Check(
        "the same by add_all",
        ("wheel-lists", "kafka", "kafka-serial"),
        lambda ours, *theirs: ours["make_and_add"] < min(each["make_and_add"] for each in theirs),
        lambda ours, *theirs: below("make_and_add", ours, *theirs),
    ),
    Check(
        "compiled cancel below Kafka's, with either collector",
        ("wheel", "kafka", "kafka-serial"),
        lambda ours, *theirs: ours["cancel"] < min(each["cancel"] for each in theirs),
        lambda ours, *theirs: below("cancel", ours, *theirs),
    ),
    Check(
        "compiled add at least 7 x cheaper than asyncio's",
        ("wheel", "asyncio"),
        lambda ours, theirs: theirs["add"] >= 7 * ours["add"],
        lambda ours, theirs: times("add", ours, theirs),
    ),
    Check(
        "compiled cancel at least 3.5 x cheaper than asyncio's",
        ("wheel", "asyncio"),
        lambda ours, theirs: theirs["cancel"] >= 3.5 * ours["cancel"],
        lambda ours, theirs: times("cancel", ours, theirs),
    ),
    Check(
        "add, then advance to the end: below Kafka's, with either collector",
        ("wheel", "kafka", "kafka-serial"),
        lambda ours, *theirs: ours["life"] < min(each["life"] for each in theirs),
        lambda ours, *theirs: below("life", ours, *theirs),
    ),
    Check(
        "interpreted add at least 1.5 x cheaper than asyncio's",
        ("wheel-interpreted", "asyncio"),
        lambda ours, theirs: theirs["add"] >= 1.5 * ours["add"],
        lambda ours, theirs: times("add", ours, theirs),
    ),
    Check(
        "at most 88 bytes an entry, compiled",
        ("wheel",),
        lambda ours: ours["bytes"] <= 88,
        lambda ours: f"{ours['bytes']:.1f}",
    ),
    Check(
        "worst pause of advance(now, limit=1000) below 1 ms",
        ("wheel",),
        lambda ours: ours["pause_ms"] < 1,
        lambda ours: f"{ours['pause_ms']:.3f} ms",
    ),
)


def below(figure: str, ours: dict[str, float], *theirs: dict[str, float]) -> str:
    return f"{ours[figure]:.0f} ns, Kafka " + " and ".join(f"{t[figure]:.0f}" for t in theirs)


def times(figure: str, ours: dict[str, float], theirs: dict[str, float]) -> str:
    ratio = theirs[figure] / ours[figure]
    return f"{ratio:.1f} x: {ours[figure]:.0f} and {theirs[figure]:.0f} ns"


def checks(headline: dict[str, dict[str, float]]) -> Iterator[str]:
    """Tell for each target figure if it is met."""
    yield "The figures that are to be met:"
    for check in CHECKS:
        figures = [headline.get(key) for key in check.keys]
        if any(each is None or "life" not in each for each in figures):
            yield f"    not measured  {check.text}"
            continue
        verdict = "met" if check.is_met(*figures) else "not met"
        yield f"    {verdict:<12}  {check.text}: {check.told(*figures)}"


def cell_tables(cells: dict[str, dict[str, dict[str, float]]], plan: Plan) -> Iterator[str]:
    """Write for each span add and cancel by size, and the whole life by size and share."""
    yield f"A library has {plan.size_seconds_max:.0f} s for all that is measured of one size, the"
    yield f"compiled wheel and Kafka {plan.main_seconds_max:.0f} s; the rest is left out (-)."
    yield ""
    for span in plan.spans:
        yield from span_tables(cells, plan, span)


def span_tables(
    cells: dict[str, dict[str, dict[str, float]]], plan: Plan, span: str
) -> Iterator[str]:
    """Write the tables of one span."""
    limit = f"{SPANS[span] // 1000:,} s"
    shares = plan.percents
    yield f"Due within {limit}, ns an operation, by entries pending; -: takes too long, see above"
    sizes = "".join(f"{pending:>12,}" for pending in plan.sizes)
    for figure, percent in (("add", CANCEL_PERCENT), ("cancel", CANCEL_PERCENT), ("expire", 0)):
        told = figure + (f", {percent} % of them" if figure == "cancel" else "")
        yield f"{told:{TITLE_WIDTH}}{sizes}"
        yield from rows(cells, plan, [(span, percent, figure)], 12)
        yield ""
    yield f"add, cancel a share, advance to the end; due within {limit}, ns an entry that was added"
    width = 7 * len(shares)
    groups = "".join(f"{pending:>{width},}  " for pending in plan.sizes)
    yield f"{'':{TITLE_WIDTH}}{groups}".rstrip()
    group = "".join(f"{f'{share} %':>7}" for share in shares) + "  "
    yield f"{'':{TITLE_WIDTH}}{group * len(plan.sizes)}".rstrip()
    yield from rows(cells, plan, [(span, share, "life") for share in shares], 7, "  ")
    yield ""


def rows(
    cells: dict[str, dict[str, dict[str, float]]],
    plan: Plan,
    wanted: list[tuple[str, int, str]],
    width: int,
    gap: str = "",
) -> Iterator[str]:
    """Write a line for each library that was measured."""
    for library in LIBRARIES:
        if library.key not in cells:
            continue
        line = f"{library.title:{TITLE_WIDTH}}"
        for pending in plan.sizes:
            for span, percent, figure in wanted:
                found = cells[library.key].get(cell_name(pending, span, percent), {}).get(figure)
                line += f"{'-' if found is None else f'{found:.0f}':>{width}}"
            line += gap
        yield line.rstrip()


def collector_table(found: dict[str, dict[str, Any]], plan: Plan) -> Iterator[str]:
    """Python's garbage collector beside a full timer."""
    titles = {library.key: library.title for library in LIBRARIES}
    yield f"Python's collector with {plan.pending:,} pending"
    names = ("full ms", "frozen ms", "empty ms")
    yield f"{'gc.collect()':{TITLE_WIDTH}}" + "".join(f"{name:>12}" for name in names)
    for key, figures in found.items():
        cells = [figures[name] * 1e3 for name in ("full_s", "frozen_s", "empty_s")]
        yield f"{titles[key]:{TITLE_WIDTH}}" + "".join(f"{cell:>12.2f}" for cell in cells)
    yield ""
    yield "full: with all pending; frozen: the same after gc.freeze(); empty: with none."
    yield f"Beside them {plan.pending:,} more are made, added, cancelled; the collector is set as"
    names = ("make+add ns", "cancel ns", "longest ms", "in all ms")
    yield f"{'':{TITLE_WIDTH + 14}}" + "".join(f"{name:>14}" for name in names)
    for key, figures in found.items():
        for setting in SETTINGS:
            told = figures[setting]
            cells = [told["add"], told["cancel"], told["longest_s"] * 1e3, told["total_s"] * 1e3]
            yield f"{titles[key]:{TITLE_WIDTH}}{setting:<14}" + "".join(
                f"{cell:>14.1f}" for cell in cells
            )
    yield "longest, in all: pauses it makes.  default: as Python starts; frozen:"
    yield f"gc.freeze() with the first there; raised: a threshold of {RAISED_THRESHOLD}"
