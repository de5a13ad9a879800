"""Tarry's timers beside those of Kafka, Netty, the JDK, asyncio, uvloop, `sched`, APScheduler.

`make bench-timer` runs it: a headline with a million pending in interleaved rounds, a million and
less and more with shares cancelled before their time, Python's garbage collector, and a check of
the figures that the project holds itself to.  `--quick` is for a busy machine, under a minute.
Results go to build/timer.json; a full run draws docs/explanation/img/timers.svg from them.  A
library that cannot be measured here is left out with a line that says why.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import timer_plot
from timer_library import LIBRARIES
from timer_plan import FULL, QUICK, measure_cells, measure_collector, measure_headline, tell
from timer_report import add_derived, cell_tables, checks, collector_table, header, headline_table

ROOT: Final = Path(__file__).resolve().parent.parent
RESULTS: Final = ROOT / "build" / "timer.json"
PLOT: Final = ROOT / "docs" / "explanation" / "img" / "timers.svg"

COLLECTED: Final = ("wheel", "wheel-interpreted", "asyncio")


def arguments_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="100,000 pending, two rounds, no other sizes"
    )
    parser.add_argument("--only", metavar="NAMES", help=", ".join(each.key for each in LIBRARIES))
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    parser.add_argument(
        "--plot", nargs="?", type=Path, const=PLOT, metavar="FILE",
        help="measure nothing, draw the results there are",
    )  # fmt: skip
    return parser.parse_args()


def draw(results: dict[str, Any], path: Path) -> None:
    try:
        timer_plot.draw(results["cells"], path)
    except ImportError:
        tell("no plot: matplotlib is not installed; `make bench-timer` installs it")
        return
    print(f"plot: {path}")


def keep(results: dict[str, Any], path: Path) -> None:
    """After every part: who stops a long run has what was measured."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1))


def tell_all(lines: Iterable[str]) -> None:
    print("\n".join(lines), end="\n\n", flush=True)


def main() -> None:
    arguments = arguments_of()
    if arguments.plot:
        draw(json.loads(arguments.results.read_text()), arguments.plot)
        return
    started = time.monotonic()
    plan = QUICK if arguments.quick else FULL
    wanted = arguments.only.split(",") if arguments.only else [each.key for each in LIBRARIES]
    libraries = [library for library in LIBRARIES if library.key in wanted]
    results: dict[str, Any] = {"header": header(), "headline": {}, "collector": {}, "cells": {}}
    tell_all(results["header"])
    missing: dict[str, str] = {}
    headline = measure_headline(plan, libraries, missing)
    add_derived(headline)
    for library in libraries:
        if library.key in missing:
            print(f"left out: {library.title}: {missing[library.key]}")
    tell_all(headline_table(headline, plan))
    if plan is QUICK:
        print("A quick run: what is to be met is meant for the full one.")
    tell_all(checks(headline))
    results["headline"], results["missing"] = headline, missing
    keep(results, arguments.results)
    results["collector"] = measure_collector(plan, [key for key in COLLECTED if key in headline])
    keep(results, arguments.results)
    tell_all(collector_table(results["collector"], plan))
    if plan.sizes:
        results["cells"] = measure_cells(plan, list(headline))
        keep(results, arguments.results)
        tell_all(cell_tables(results["cells"], plan))
    print(f"took {time.monotonic() - started:.0f} s; results: {arguments.results}")
    if plan is FULL and libraries == list(LIBRARIES) and not missing:
        draw(results, PLOT)


if __name__ == "__main__":
    main()
