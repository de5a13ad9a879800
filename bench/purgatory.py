"""The purgatory beside Apache Kafka's, in the manner of its TestPurgatoryPerformance.

`make bench-purgatory` runs it; ARGS='--short' is the form for a busy machine.  All sides read the
same drawn requests, each in a process of its own, one after the other in every round; each figure
is the best of the rounds.  A request completes when its drawn latency is over (in Kafka's current
version of that test it completes at the time-out, by mistake), or expires.

Kafka's side is its `DelayedOperationPurgatory` over its `SystemTimer`; ours are the pure
`Purgatory` in a loop and the `ThreadedPurgatory` over our `SystemTimer`, compiled and interpreted.
The first is left out, with a line that says why, where Java or Maven is missing.  CPU is that of
the whole process; "the load alone" is the same run without a purgatory.  Any of --num, --rate,
--timeout, --pct50, --pct75, --keys and --key-space-size asks for that one load.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

from purgatory_samples import Load, draw, write
from timer_java import JavaUnavailable, java_classes

HERE: Final = Path(__file__).resolve().parent

# G1 as Kafka's own scripts have it; for the figures of single calls a heap that is not collected.
JAVA_LOAD: Final = ("java", "-Xms512m", "-Xmx512m", "-XX:+UseG1GC")
JAVA_MICRO: Final = ("java", "-Xms1g", "-Xmx1g", "-Xmn768m", "-XX:+UseSerialGC")

# What a run may take beside its requests: the start, the warm-up and a machine that is busy.
SPARE_SECONDS_MAX: Final = 300

Figures = dict[str, float | str | None]


class Form(NamedTuple):
    """Form of the run: its loads, rounds and sizes."""

    loads: tuple[Load, ...]
    rounds: int
    micro_operations: int
    micro_repeats: int
    with_bare: bool


SHORT: Final = Form(
    loads=(
        Load(num=1_000, rate=1_000),
        Load(num=40_000, rate=1_000_000),
        Load(num=1_000, rate=1_000, by_key=True),
    ),
    rounds=1,
    micro_operations=50_000,
    micro_repeats=3,
    with_bare=False,
)
FULL: Final = Form(
    loads=(
        Load(num=1_500, rate=1_000),
        Load(num=15_000, rate=10_000),
        Load(num=100_000, rate=1_000_000),
        Load(num=1_500, rate=1_000, by_key=True),
        Load(num=15_000, rate=10_000, by_key=True),
    ),
    rounds=3,
    micro_operations=100_000,
    micro_repeats=4,
    with_bare=True,
)


class Side(NamedTuple):
    """A column: how it is driven, and in which form of the hot modules (None: Kafka)."""

    name: str
    driver: str
    form: str | None


SIDES: Final = (
    Side("Kafka", "threads", None),
    Side("loop, compiled", "loop", "compiled"),
    Side("threads, compiled", "threads", "compiled"),
    Side("loop, interpreted", "loop", "interpreted"),
    Side("threads, interpreted", "threads", "interpreted"),
)


class Row(NamedTuple):
    """A row of a load's table: its field and which of the rounds is the best."""

    name: str
    field: str
    best: Callable[[list[float]], float] = min


ROWS: Final = (
    Row("rate reached, /s", "rate", max),
    Row("CPU, µs a request", "cpu_us"),
    Row("of these the load alone", "bare_cpu_us"),
    Row("completed late, p50 µs", "completed_late_p50_us"),
    Row("completed late, p99 µs", "completed_late_p99_us"),
    Row("completed late, max µs", "completed_late_max_us"),
    Row("expired late, p50 µs", "expired_late_p50_us"),
    Row("expired late, p99 µs", "expired_late_p99_us"),
    Row("expired late, max µs", "expired_late_max_us"),
    Row("collections", "collections"),
    Row("collections, ms", "collections_ms"),
    Row("completed", "completed", max),
    Row("expired", "expired"),
)


class Runner:
    """Starts sides and remembers which cannot run here."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.class_path = ""
        self.peer = ""
        self.missing: dict[str, str] = {}
        for side in SIDES:
            reason = self._why_missing(side)
            if reason is not None:
                self.missing[side.name] = reason
                print(f"without {side.name}: {reason}", file=sys.stderr)
        self.sides = [side for side in SIDES if side.name not in self.missing]

    def load(self, side: Side, samples: Path, load: Load, is_bare: bool) -> Figures:
        """Run a load on a side, once."""
        how = "keys" if load.by_key else "force"
        seconds_max = load.num / load.rate + load.timeout_ms / 1000 + SPARE_SECONDS_MAX
        if side.form is None:
            bare = "true" if is_bare else "false"
            return self._java(JAVA_LOAD, seconds_max, "load", str(samples), how, bare)
        arguments = (str(samples), side.driver, how, "bare" if is_bare else "whole")
        return self._python(side, "purgatory_load.py", seconds_max, *arguments)

    def micro(self, side: Side, operations: int, repeats: int) -> Figures:
        """Measure the single calls of a side."""
        if side.form is None:
            # Java's compiler comes in only after some of the repeats.
            sizes = (str(operations), str(repeats * 2))
            return self._java(JAVA_MICRO, SPARE_SECONDS_MAX, "micro", *sizes)
        arguments = (str(operations), str(repeats), side.driver)
        return self._python(side, "purgatory_micro.py", SPARE_SECONDS_MAX, *arguments)

    def _why_missing(self, side: Side) -> str | None:
        if side.form is None:
            try:
                self.class_path = java_classes("purgatory")
            except JavaUnavailable as reason:
                return str(reason)
            return None
        code = "import tarry; print(tarry.FORM)"
        if side.driver == "threads":
            code += "; from tarry.timer import SystemTimer"
            code += "; from tarry.purgatory import ThreadedPurgatory"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(side),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            return done.stderr.strip().splitlines()[-1]
        if done.stdout.strip() != side.form:
            return "the hot modules are not compiled; `make setup` compiles them"
        return None

    def _java(self, java: tuple[str, ...], seconds_max: float, *arguments: str) -> Figures:
        command = [*java, "-cp", self.class_path, "PurgatoryBench", *arguments]
        figures = figures_of(command, None, seconds_max)
        self.peer = str(figures.pop("version"))
        return figures

    def _python(self, side: Side, script: str, seconds_max: float, *arguments: str) -> Figures:
        command = [sys.executable, str(HERE / script), *arguments]
        return figures_of(command, environment(side), seconds_max)


def environment(side: Side) -> dict[str, str]:
    """Return the environment that chooses the form of the hot modules at import."""
    return os.environ | {"TARRY_PURE": "1" if side.form == "interpreted" else "0"}


def figures_of(command: list[str], variables: dict[str, str] | None, seconds_max: float) -> Figures:
    """Return the figures that a side printed in its last line."""
    try:
        done = subprocess.run(
            command,
            env=variables,
            capture_output=True,
            text=True,
            timeout=seconds_max,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SystemExit(f"{' '.join(command[-6:])} did not end in {seconds_max:.0f} s") from None
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command[-6:])} failed: {done.stderr[-2000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def run_load(runner: Runner, load: Load, rounds: int, with_bare: bool) -> dict[str, list[Figures]]:
    """Run the rounds of each side, interleaved."""
    samples = runner.directory / "samples"
    write(draw(load), samples)
    results: dict[str, list[Figures]] = {side.name: [] for side in runner.sides}
    for _ in range(rounds):
        for side in runner.sides:
            results[side.name].append(runner.load(side, samples, load, is_bare=False))
            tell_progress()
    if with_bare and not load.by_key:
        for side in runner.sides:
            bare = runner.load(side, samples, load, is_bare=True)
            results[side.name][0]["bare_cpu_us"] = bare["cpu_us"]
            tell_progress()
    return results


def run_micro(runner: Runner, form: Form) -> dict[str, list[Figures]]:
    """Measure the single calls, interleaved like the loads."""
    results: dict[str, list[Figures]] = {side.name: [] for side in runner.sides}
    for _ in range(form.rounds):
        for side in runner.sides:
            figures = runner.micro(side, form.micro_operations, form.micro_repeats)
            results[side.name].append(figures)
            tell_progress()
    return results


def tell_progress() -> None:
    print(".", end="", flush=True, file=sys.stderr)


def best_of(
    rounds: list[Figures], field: str, best: Callable[[list[float]], float]
) -> float | None:
    """Return the best of the rounds; None where no round has the figure."""
    found = [figure for each in rounds if isinstance(figure := each.get(field), int | float)]
    return best(found) if found else None


def table(title: str, results: dict[str, list[Figures]], rows: tuple[Row, ...]) -> list[str]:
    """Markdown; a row that no side has is left out."""
    lines = [f"| {title} | {' | '.join(results)} |", "|---|" + "--:|" * len(results)]
    for row in rows:
        figures = [best_of(rounds, row.field, row.best) for rounds in results.values()]
        if any(figure is not None for figure in figures):
            lines.append(f"| {row.name} | {' | '.join(map(shown, figures))} |")
    return lines


def shown(figure: float | None) -> str:
    if figure is None:
        return "-"
    return f"{figure:,.0f}" if abs(figure) >= 10 or figure == int(figure) else f"{figure:.1f}"


def machine() -> str:
    """Describe the machine on which the figures were measured."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
    )
    load_average = os.getloadavg()[0]
    return (
        f"{date.today()} · {os.cpu_count()} cores, load {load_average:.1f} before · "
        f"{platform.platform()} · Python {platform.python_version()} · "
        f"Tarry at {commit.stdout.strip() or 'no commit'}"
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--short", action="store_true", help="under a minute, one round")
    parser.add_argument("--rounds", type=int, help="how often each side runs")
    parser.add_argument("--only", choices=("force", "keys", "micro"), help="one of the parts")
    parser.add_argument("--json", type=Path, help="write every round to this file")
    load = parser.add_argument_group("one load of your own, with the options of Kafka's test")
    load.add_argument("--num", type=int, help="requests")
    load.add_argument("--rate", type=float, help="requests per second")
    load.add_argument("--timeout", type=int, help="ms until a request expires")
    load.add_argument("--pct50", type=float, help="50th percentile of the latency in ms")
    load.add_argument("--pct75", type=float, help="75th percentile of the latency in ms")
    load.add_argument("--keys", type=int, help="keys of a request")
    load.add_argument("--key-space-size", type=int, help="keys there are")
    return parser.parse_args()


def chosen(arguments: argparse.Namespace, form: Form) -> tuple[Load, ...]:
    """Return the loads of the form, or the one that was asked for, by force and by key."""
    options = {
        "num": arguments.num,
        "rate": arguments.rate,
        "timeout_ms": arguments.timeout,
        "pct50_ms": arguments.pct50,
        "pct75_ms": arguments.pct75,
        "keys": arguments.keys,
        "key_space_size": arguments.key_space_size,
    }
    given = {name: value for name, value in options.items() if value is not None}
    loads = form.loads
    if given:
        load = loads[0]._replace(**given)
        if load.pct75_ms < load.pct50_ms or min(load[:7]) <= 0:
            raise SystemExit("every option is above 0, and --pct75 is not below --pct50")
        loads = (load, load._replace(by_key=True))
    if arguments.only is None:
        return loads
    return tuple(load for load in loads if arguments.only == ("keys" if load.by_key else "force"))


def main() -> None:
    arguments = parse()
    form = SHORT if arguments.short else FULL
    if arguments.rounds is not None:
        form = form._replace(rounds=max(arguments.rounds, 1))
    loads = chosen(arguments, form)
    head, started = machine(), time.monotonic()
    report: dict[str, object] = {"machine": head, "rounds": form.rounds}
    lines = [head]
    with tempfile.TemporaryDirectory() as directory:
        runner = Runner(Path(directory))
        report["missing"] = runner.missing
        for load in loads:
            results = run_load(runner, load, form.rounds, form.with_bare)
            report[load.name] = results
            lines += ["", *table(load.name, results, ROWS)]
        if arguments.only == "micro" or (arguments.only is None and loads == form.loads):
            results = run_micro(runner, form)
            report["micro"] = results
            names = {name: None for rounds in results.values() for name in rounds[0]}
            rows = tuple(Row(name, name) for name in names)
            lines += ["", *table("one call, ns of CPU", results, rows)]
    print(file=sys.stderr)
    report["peer"] = runner.peer
    lines += [
        "",
        runner.peer or "no peer",
        f"best of {form.rounds}, {time.monotonic() - started:.0f} s",
    ]
    lines += [f"without {name}: {reason}" for name, reason in runner.missing.items()]
    print("\n".join(lines))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
