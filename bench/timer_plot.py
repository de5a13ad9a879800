"""The plot: what adding and cancelling cost, against how much is pending.

The same figures give the same file, byte for byte.  Text and axes are of a grey that reads on
white and on black, and nothing is painted behind them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

from timer_plan import FULL, cell_name
from timer_report import CANCEL_PERCENT

GREY: Final = "#808890"

# By library: name, colour, width and dashes.  Ours are blue and green, what runs in a JVM is warm.
STYLES: Final = {
    "wheel": ("Tarry's wheel", "#1f7fe0", 3.2, "-"),
    "wheel-interpreted": ("Tarry's wheel, interpreted", "#1f7fe0", 1.6, "--"),
    "system": ("Tarry's SystemTimer", "#18a0a8", 1.6, "-"),
    "asyncio-timer": ("Tarry's AsyncioTimer", "#2ca05a", 1.6, "-"),
    "kafka": ("Kafka", "#e0662a", 2.2, "-"),
    "netty": ("Netty, queued only", "#c99a1a", 1.4, "-"),
    "jdk": ("JDK", "#c0504d", 1.4, "-"),
    "asyncio": ("asyncio", "#9467bd", 2.2, "-"),
    "uvloop": ("uvloop", "#c774b0", 1.4, "-"),
    "sched": ("sched", "#8c7b6b", 1.2, "-"),
    "apscheduler": ("APScheduler", "#8a8f98", 1.2, ":"),
}

# The range of the time axis, ns.
LOWEST: Final = 5
HIGHEST: Final = 100_000

PANELS: Final = (
    ("add", CANCEL_PERCENT, "CPU time to add one"),
    ("cancel", CANCEL_PERCENT, "CPU time to cancel one"),
)

# From the fewest pending to the most.
RANGE: Final = FULL.sizes[-1] / FULL.sizes[0]

# Least distance of two labels at the right edge, as a part of the height.
LABEL_GAP: Final = 0.052


def draw(cells: dict[str, dict[str, dict[str, float]]], path: Path) -> None:
    """Write the SVG."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    mpl.rcParams.update(
        {
            "svg.hashsalt": "tarry",
            "svg.fonttype": "none",
            "font.family": "sans-serif",
            "font.size": 10,
            "text.color": GREY,
            "axes.edgecolor": GREY,
            "axes.labelcolor": GREY,
            "xtick.color": GREY,
            "ytick.color": GREY,
        }
    )
    figure, panels = pyplot.subplots(1, 2, figsize=(12, 5.2), sharey=True)
    for panel, (name, percent, title) in zip(panels, PANELS, strict=True):
        draw_panel(panel, cells, name, percent, title)
    figure.subplots_adjust(left=0.055, right=0.845, bottom=0.11, top=0.92, wspace=0.6)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    # The library leaves blanks at the ends of lines.
    text = "".join(f"{line.rstrip()}\n" for line in path.read_text().splitlines())
    path.write_text(text)


def draw_panel(
    panel: Any, cells: dict[str, dict[str, dict[str, float]]], name: str, percent: int, title: str
) -> None:
    """Draw one kind of work; each line is named at its right end."""
    ends: list[tuple[float, float, str, str]] = []
    for key, (label, colour, width, dashes) in STYLES.items():
        points = [
            (pending, cells.get(key, {}).get(cell_name(pending, "long", percent), {}).get(name))
            for pending in FULL.sizes
        ]
        known = [(pending, figure) for pending, figure in points if figure]
        if not known:
            continue
        panel.plot(
            *zip(*known, strict=True),
            color=colour, linewidth=width, linestyle=dashes, marker="o", markersize=width + 1.5,
        )  # fmt: skip
        pending, figure = known[-1]
        told = f"{label}: {figure / 1000:.0f} µs" if figure > HIGHEST else label
        place = math.log(pending * 1.4 / FULL.sizes[0]) / math.log(1.96 * RANGE)
        ends.append((height_of(figure), place, told, colour))
    set_axes(panel, title)
    ends.sort()
    for height, (own, place, label, colour) in zip(label_heights(ends), ends, strict=True):
        panel.plot(
            [place, 1.0, 1.03], [own, own, height], transform=panel.transAxes,
            color=colour, linewidth=0.6, alpha=0.6, clip_on=False,
        )  # fmt: skip
        weight = "bold" if label == STYLES["wheel"][0] else "normal"
        panel.text(
            1.04, height, label, transform=panel.transAxes,
            color=colour, va="center", fontsize=9.5, fontweight=weight,
        )  # fmt: skip


def set_axes(panel: Any, title: str) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlim(FULL.sizes[0] / 1.4, FULL.sizes[-1] * 1.4)
    panel.set_ylim(LOWEST, HIGHEST)
    panel.set_title(title, color=GREY, loc="left", fontweight="bold")
    panel.set_xlabel("pending")
    panel.grid(visible=True, which="major", color=GREY, alpha=0.25, linewidth=0.6)
    panel.minorticks_off()
    panel.tick_params(labelleft=True)
    panel.set_yticks(
        [10, 100, 1000, 10_000, 100_000], ["10 ns", "100 ns", "1 µs", "10 µs", "100 µs"]
    )
    panel.set_xticks(FULL.sizes, ["10 000", "100 000", "1 million", "10 million"])
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def height_of(figure: float) -> float:
    """Return the height of a time on its axis, from 0 to 1."""
    height = math.log(figure / LOWEST) / math.log(HIGHEST / LOWEST)
    return min(max(height, 0.0), 1.0)


def label_heights(ends: list[tuple[float, float, str, str]]) -> list[float]:
    """Return the labels' heights, the lowest first: beside their lines, groups spread evenly."""
    groups: list[list[float]] = []
    for own, *_ in ends:
        groups.append([own])
        while len(groups) > 1 and bottom_of(groups[-1]) < top_of(groups[-2]) + LABEL_GAP:
            upper = groups.pop()
            groups[-1] += upper
    return [bottom_of(group) + place * LABEL_GAP for group in groups for place in range(len(group))]


def bottom_of(group: list[float]) -> float:
    """Return the lowest label of a group that stands around the middle of its lines."""
    half = (len(group) - 1) * LABEL_GAP / 2
    return max(sum(group) / len(group) - half, 0.0)


def top_of(group: list[float]) -> float:
    return bottom_of(group) + (len(group) - 1) * LABEL_GAP
