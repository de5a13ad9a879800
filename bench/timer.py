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


def report(results: dict[str, Any], plan: Any) -> None:
    """Everything that was measured, as text."""
    print("\n".join(results["header"]), end="\n\n")
    for reason, titles in results["missing"].items():
        print(f"left out: {', '.join(titles)}: {reason}")
    print("\n".join(headline_table(results["headline"], plan)), end="\n\n")
    if plan is QUICK:
        print("A quick run: what is to be met is meant for the full one.")
    print("\n".join(checks(results["headline"])), end="\n\n")
    print("\n".join(collector_table(results["collector"], plan)), end="\n\n")
    print("\n".join(cell_tables(results["cells"], plan)))


def main() -> None:
    arguments = arguments_of()
    if arguments.plot:
        draw(json.loads(arguments.results.read_text()), arguments.plot)
        return
    started = time.monotonic()
    plan = QUICK if arguments.quick else FULL
    wanted = arguments.only.split(",") if arguments.only else [each.key for each in LIBRARIES]
    libraries = [library for library in LIBRARIES if library.key in wanted]
    missing: dict[str, str] = {}
    headline = measure_headline(plan, libraries, missing)
    add_derived(headline)
    titles: dict[str, list[str]] = {}
    for library in libraries:
        if library.key in missing:
            titles.setdefault(missing[library.key], []).append(library.title)
    results: dict[str, Any] = {"header": header(), "missing": titles, "headline": headline}
    results["collector"] = measure_collector(plan, [key for key in COLLECTED if key in headline])
    results["cells"] = measure_cells(plan, list(headline)) if plan.sizes else {}
    arguments.results.parent.mkdir(exist_ok=True)
    arguments.results.write_text(json.dumps(results, indent=1))
    report(results, plan)
    print(f"took {time.monotonic() - started:.0f} s; results: {arguments.results}")
    is_whole = libraries == list(LIBRARIES)
    if plan is FULL and is_whole and not missing:
        draw(results, PLOT)


if __name__ == "__main__":
    main()
