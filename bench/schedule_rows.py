"""Rows of bench/schedule.py's tables: a figure, its goal, and what each round has found."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import NamedTuple

HEAD = ("| figure | goal | median | least | most |", "|---|---|--:|--:|--:|")


class Options(NamedTuple):
    """Options of a run; `directory` is one for what brokers write."""

    directory: Path
    rounds: int
    is_quick: bool
    rates: tuple[int, ...]
    pending: int
    beside: Path | None
    profiles: Path | None


class Row(NamedTuple):
    """Row of a table; an empty goal says that there is none."""

    figure: str
    unit: str
    values: list[float]
    goal: str = ""

    def line(self) -> str:
        if not self.values:
            return f"| {self.figure} | {self.goal} | - | - | - |"
        middle, least, most = statistics.median(self.values), min(self.values), max(self.values)
        unit = f" {self.unit}" if self.unit else ""
        cells = [f"{shown(middle)}{unit}", shown(least), shown(most)]
        return f"| {self.figure} | {self.goal} | {' | '.join(cells)} |"


def shown(value: float) -> str:
    """Return three digits of a figure, and all of those before the point."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def columns(rows: list[tuple[float, ...]]) -> list[list[float]]:
    """Return what all rounds have found, by figure."""
    return [list(column) for column in zip(*rows, strict=True)]


def rows_beside(calm: list[float], busy: list[float], goal: str) -> list[Row]:
    """Return the rows of other produces: their p99 in ms before and beside releases."""
    ratios = [more / less for less, more in zip(calm, busy, strict=True)]
    return [
        Row("other produce: p99 before", "ms", calm),
        Row("other produce: p99 meanwhile", "ms", busy),
        Row("other produce: p99 meanwhile / before", "", ratios, goal),
    ]
