"""Plan of the measurement: the headline in interleaved rounds, then every cell.

A library whose rounds would take over two minutes is measured at the largest size that it can do
in that time; the cells of one size have 18 s of CPU, and those that do not fit are left out.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from timer_library import GROWTH, LIBRARIES, LeftOut, Library, TookTooLong, Worker, is_tarry

LONG_MS: Final = 600_000
SHORT_MS: Final = 1_000
SPANS: Final = {"long": LONG_MS, "short": SHORT_MS}

# The order in which a library spends its time on a size: first what the plot shows.
CELLS: Final = tuple((span, percent) for percent in (95, 0, 50, 99) for span in ("long", "short"))

# Who has more time for a size than the others, and who is in the headline alone.
MAIN: Final = ("wheel", "kafka")
HEADLINE_ONLY: Final = ("wheel-lists", "kafka-serial")

# Rounds in which what is only told, not compared, is measured as well.
SIDE_ROUNDS: Final = (0,)

# A cell that takes no longer is measured again, and the best is kept.
REPEATS: Final = 3
REPEAT_SECONDS_MAX: Final = 1.0

TOUCH_BYTES: Final = 3 << 30


class Plan(NamedTuple):
    """Full or quick."""

    pending: int
    rounds: int
    sizes: tuple[int, ...]
    percents: tuple[int, ...]
    spans: tuple[str, ...]
    rounds_seconds_max: float  # for all rounds of a library
    warm_seconds: float  # for a JVM, whose compiler needs them
    size_seconds_max: float  # for one library and size of the cells,
    main_seconds_max: float  # and for the two that are compared


FULL: Final = Plan(
    pending=1_000_000,
    rounds=5,
    sizes=(10_000, 100_000, 1_000_000, 10_000_000),
    percents=(0, 50, 95, 99),
    spans=("long", "short"),
    rounds_seconds_max=120.0,
    warm_seconds=2.5,
    size_seconds_max=18.0,
    main_seconds_max=90.0,
)
QUICK: Final = Plan(
    pending=100_000,
    rounds=2,
    sizes=(),
    percents=(),
    spans=(),
    rounds_seconds_max=5.0,
    warm_seconds=1.0,
    size_seconds_max=0.0,
    main_seconds_max=0.0,
)

Figures = dict[str, float]


def figures_of(answer: dict[str, Any], pending: int) -> Figures:
    """ns an operation of one pass; `life` is all of it for one entry, made before."""
    left, cancelled = answer["left"], answer["cancelled"]
    worker_s = answer.get("worker_s", 0.0)
    # A thread of the library's own does more than expiring: whatever it did is in this figure.
    expire_s = worker_s if worker_s else answer.get("advance_s", 0.0)
    figures = {
        "make": answer["make_s"] / pending * 1e9,
        "add": answer["add_s"] / pending * 1e9,
        "collector": answer.get("collector_s", 0.0) / pending * 1e9,
    }
    if cancelled:
        figures["cancel"] = answer["cancel_s"] / cancelled * 1e9
    if left and "advance_s" in answer:
        figures["expire"] = expire_s / left * 1e9
        figures["run"] = answer.get("run_s", 0.0) / left * 1e9
        figures["pause"] = answer["advance_s"] * 1e9
        figures["life"] = (answer["add_s"] + answer["cancel_s"] + expire_s) / pending * 1e9
    return figures


def seconds_of(answer: dict[str, Any]) -> float:
    """Return the seconds of a pass on an idle machine: its CPU, half as much to set it up."""
    named = ("make_s", "add_s", "cancel_s", "advance_s", "worker_s", "run_s")
    return 1.5 * sum(float(answer.get(name, 0.0)) for name in named)


def keep_best(best: Figures, figures: Figures) -> None:
    for name, figure in figures.items():
        best[name] = min(figure, best.get(name, figure))


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def touch_memory() -> None:
    """Write and free memory: hosts that took it back charge whoever touches it first."""
    code = f"b = bytearray({TOUCH_BYTES}); b[::4096] = b'x' * len(b[::4096])"
    subprocess.run([sys.executable, "-c", code], check=False)


@contextmanager
def worker_of(library: Library, warm_seconds: float) -> Iterator[Worker]:
    """Start a process for the library and let it do small passes before it is measured."""
    worker = Worker(library)
    try:
        worker.ask("warm", 20_000 if library.options else 10_000, LONG_MS, warm_seconds)
        yield worker
    finally:
        worker.close()


class Headline:
    """The rounds of one library at the size of the headline, or the largest it can do."""

    def __init__(self, worker: Worker, plan: Plan) -> None:
        self.worker = worker
        self.plan = plan
        self.pending = 0
        self.best: Figures = {}
        self.is_given_up = False

    def find_size(self) -> None:
        """Find the largest size, ten thousand or more, whose rounds fit into their time."""
        if self.worker.library.options:  # what runs in a JVM has no trouble with either
            self.pending = self.plan.pending
            return
        self.pending = min(10_000, self.plan.pending)
        while self.pending < self.plan.pending:
            taken_s = self._round(self.pending, {})
            if taken_s * GROWTH * self.plan.rounds > self.plan.rounds_seconds_max:
                return
            self.pending *= 10

    def run_round(self, number: int) -> None:
        """Once more; a library that hangs has the figures that it has until then."""
        if self.is_given_up:
            return
        try:
            self._measure(number)
        except (LeftOut, TookTooLong) as reason:
            tell(str(reason))
            self.is_given_up = True

    def _measure(self, number: int) -> None:
        pending, worker = self.pending, self.worker
        self._round(pending, self.best)
        if worker.library.pause and is_tarry(worker.library):
            pauses = worker.ask("pauses", pending, LONG_MS)
            keep_best(
                self.best,
                {
                    "pause_limited": pauses["worst_s"] * 1e9,
                    "expire_limited": pauses["total_s"] / pending * 1e9,
                },
            )
        if number not in SIDE_ROUNDS:
            return
        anywhere = figures_of(worker.ask("pass", pending, LONG_MS, 100, "anywhere"), pending)
        keep_best(self.best, {"cancel_anywhere": anywhere["cancel"]})
        if worker.library.options:
            return  # a JVM's collector cannot be off: its time is told by itself
        collected = figures_of(
            worker.ask("pass", pending, LONG_MS, 0, "oldest", "collected"), pending
        )
        keep_best(self.best, {f"{name}_collected": figure for name, figure in collected.items()})

    def _round(self, pending: int, best: Figures) -> float:
        """Add and cancel all; add and expire all.  How long that takes."""
        cancelled = self.worker.ask("pass", pending, LONG_MS, 100, "oldest")
        expired = self.worker.ask("pass", pending, LONG_MS, 0, "oldest")
        keep_best(best, figures_of(cancelled, pending))
        figures = figures_of(expired, pending)
        # Where time cannot be set the delays of this pass are not the true ones: adding was
        # measured above.
        figures.pop("add")
        keep_best(best, figures)
        return seconds_of(cancelled) + seconds_of(expired)


def measure_headline(plan: Plan, libraries: list[Library], missing: dict[str, str]) -> Any:
    """Measure every library in a process of its own, all alive, one round after the other."""
    lines: dict[str, Headline] = {}
    try:
        for library in libraries:
            try:
                worker = Worker(library)
                worker.ask("warm", 20_000, LONG_MS, plan.warm_seconds)
                line = Headline(worker, plan)
                line.find_size()
            except (LeftOut, TookTooLong) as reason:
                missing[library.key] = str(reason)
                continue
            lines[library.key] = line
        for number in range(plan.rounds):
            for line in lines.values():
                line.run_round(number)
            tell(f"round {number + 1} of {plan.rounds} done")
    finally:
        for line in lines.values():
            line.worker.close()
    for line in lines.values():
        if "expire" in line.best:
            line.best["life"] = line.best["add"] + line.best["expire"]
        line.best["bytes"] = memory_of(line.worker.library, line.pending)
    return {key: {"pending": line.pending, **line.best} for key, line in lines.items()}


def memory_of(library: Library, pending: int) -> float:
    """Measure the memory in a process that has done nothing else."""
    worker = Worker(library)
    try:
        return float(worker.ask("memory", pending, LONG_MS)["bytes"])
    finally:
        worker.close()


def measure_collector(plan: Plan, keys: list[str]) -> Any:
    """Measure Python's garbage collector with all entries pending."""
    found = {}
    for library in LIBRARIES:
        if library.key in keys:
            with worker_of(library, 0) as worker:
                found[library.key] = worker.ask("collector", plan.pending, LONG_MS)
    return found


def measure_cells(plan: Plan, keys: list[str]) -> Any:
    """Measure every size, span and share, library by library: `{key: {cell: figures}}`."""
    found: dict[str, dict[str, Figures]] = {}
    for library in LIBRARIES:
        if library.key in keys and library.key not in HEADLINE_ONLY:
            try:
                touch_memory()
                with worker_of(library, plan.warm_seconds) as worker:
                    found[library.key] = cells_of(worker, plan)
            except (LeftOut, TookTooLong) as reason:
                tell(f"{library.title}: {reason}")
            tell(f"{library.title}: cells done")
    return found


def cell_name(pending: int, span: str, percent: int) -> str:
    return f"{pending}/{span}/{percent}"


def cells_of(worker: Worker, plan: Plan) -> dict[str, Figures]:
    """Measure the cells of one library that fit into the time of their size."""
    found: dict[str, Figures] = {}
    took_s: dict[tuple[str, int], float] = {}
    for pending in plan.sizes:
        is_main = worker.library.key in MAIN
        left_s = plan.main_seconds_max if is_main else plan.size_seconds_max
        for span, percent in CELLS:
            if span not in plan.spans or percent not in plan.percents:
                continue
            growth = worker.library.cancel_growth if percent else GROWTH
            expected_s = took_s.get((span, percent), 0.0) * growth
            if expected_s > left_s:
                took_s[span, percent] = expected_s
                continue
            best: Figures = {}
            try:
                for _ in range(REPEATS):
                    answer = worker.ask("pass", pending, SPANS[span], percent, "oldest")
                    keep_best(best, figures_of(answer, pending))
                    took_s[span, percent] = seconds_of(answer)
                    left_s -= seconds_of(answer)
                    if answer["wall_s"] > REPEAT_SECONDS_MAX:
                        break
            except (LeftOut, TookTooLong) as reason:
                tell(f"{worker.library.title}: {reason}")
                return found
            found[cell_name(pending, span, percent)] = best
    return found
