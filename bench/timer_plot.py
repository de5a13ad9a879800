"""The plot: what adding and cancelling cost, against how much is pending.

The same figures give the same file, byte for byte.  Text and axes are of a grey that reads on
white and on black, and nothing is painted behind them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

from timer_library import LIBRARIES
from timer_plan import FULL, cell_name
from timer_report import CANCEL_PERCENT

GREY: Final = "#808890"

# By library: colour and width.  Ours are blue and green, what runs in a JVM is warm, the rest grey.
STYLES: Final = {
    "wheel": ("#1f7fe0", 3.2, "-"),
    "wheel-interpreted": ("#1f7fe0", 1.6, "--"),
    "system": ("#18a0a8", 1.6, "-"),
    "asyncio-timer": ("#2ca05a", 1.6, "-"),
    "kafka": ("#e0662a", 2.2, "-"),
    "netty": ("#c99a1a", 1.4, "-"),
    "jdk": ("#c0504d", 1.4, "-"),
    "asyncio": ("#9467bd", 2.2, "-"),
    "uvloop": ("#c774b0", 1.4, "-"),
    "sched": ("#8c7b6b", 1.2, "-"),
    "apscheduler": ("#8a8f98", 1.2, ":"),
}

PANELS: Final = (("add", 0, "ns to add one"), ("cancel", CANCEL_PERCENT, "ns to cancel one"))

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
    figure, panels = pyplot.subplots(1, 2, figsize=(11.5, 5.2), sharey=True)
    for panel, (name, percent, title) in zip(panels, PANELS, strict=True):
        draw_panel(panel, cells, name, percent, title)
    figure.subplots_adjust(left=0.06, right=0.87, bottom=0.11, top=0.92, wspace=0.42)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    # The library leaves blanks at the ends of lines.
    text = "".join(f"{line.rstrip()}\n" for line in path.read_text().splitlines())
    path.write_text(text)


def draw_panel(
    panel: Any, cells: dict[str, dict[str, dict[str, float]]], name: str, percent: int, title: str
) -> None:
    """One kind of work; each line is named at its right end."""
    ends: list[tuple[float, str, str]] = []
    for library in LIBRARIES:
        if library.key not in STYLES or library.key not in cells:
            continue
        points = [
            (pending, cells[library.key].get(cell_name(pending, "long", percent), {}).get(name))
            for pending in FULL.sizes
        ]
        known = [(pending, figure) for pending, figure in points if figure]
        if not known:
            continue
        colour, width, dashes = STYLES[library.key]
        panel.plot(
            *zip(*known, strict=True),
            color=colour, linewidth=width, linestyle=dashes, marker="o", markersize=width + 1.5,
        )  # fmt: skip
        ends.append((known[-1][1], library.title, colour))
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_ylim(10, 100_000)
    panel.set_xlim(FULL.sizes[0] / 1.4, FULL.sizes[-1] * 1.4)
    panel.set_title(title, color=GREY, loc="left", fontweight="bold")
    panel.set_xlabel("pending")
    panel.grid(visible=True, which="major", color=GREY, alpha=0.25, linewidth=0.6)
    panel.minorticks_off()
    panel.tick_params(labelleft=True)
    panel.set_yticks([10, 100, 1000, 10_000, 100_000], ["10", "100", "1 µs", "10 µs", "100 µs"])
    panel.set_xticks(
        FULL.sizes, ["10 000", "100 000", "1 million", "10 million"][: len(FULL.sizes)]
    )
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)
    for height, (_, label, colour) in zip(label_heights(ends), sorted(ends), strict=True):
        panel.text(
            1.02, height, label, transform=panel.transAxes,
            color=colour, va="center", fontsize=9.5,
            fontweight="bold" if label.startswith("TimingWheel, c") else "normal",
        )  # fmt: skip


def label_heights(ends: list[tuple[float, str, str]]) -> list[float]:
    """Where the labels go, from the lowest up: beside their lines, moved so that all fit."""
    heights = [(math.log10(figure) - 1) / 4 for figure, _, _ in sorted(ends)]
    for place in range(1, len(heights)):
        heights[place] = max(heights[place], heights[place - 1] + LABEL_GAP)
    if heights and heights[-1] > 1:
        heights[-1] = 1.0
        for place in range(len(heights) - 2, -1, -1):
            heights[place] = min(heights[place], heights[place + 1] - LABEL_GAP)
    return heights
