"""Scheduled messages: the figures that were set as goals, and what this machine reaches.

`make bench-schedule` runs it; ARGS=--quick takes some minutes and tells less.  Load is made by
requests that were finished before, so that the figures are the broker's; each row has the median of
the rounds, the least and the most.  Nothing is asserted: the goals stand beside the figures.

    cost      CPU of parking and releasing beside producing and fetching, in pairs
    lateness  single records due at a steady rate, on one broker
    cluster   the same with three replicas; needs an etcd, and confluent-kafka
    burst     500,000 records due in one second, and other produces meanwhile
    batches   much that waits: memory, idle CPU, a start after kill -9
    ids       the same with an id for each record, and cancels
    overdue   a start with much that is overdue, and other produces meanwhile
    takeover  CPU of a follower that becomes the leader of much that waits, until the first release
    ordinary  produce to a topic that delays nothing, beside the checkout of --beside
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import peers
from schedule_cost import measure_costs, measure_ordinary
from schedule_late import measure_burst, measure_lateness
from schedule_load import environment
from schedule_overdue import measure_overdue
from schedule_pending import BATCHES, IDS, measure_pending
from schedule_rows import HEAD, Options, Row
from schedule_takeover import measure_takeover

RATES: Final = (2_000, 5_000, 10_000, 20_000)
RATES_QUICK: Final = (2_000, 10_000)
PENDING: Final = 1_000_000
PENDING_QUICK: Final = 100_000
ROUNDS: Final = 5


def measure_cluster(options: Options) -> list[Row]:
    # Needs confluent-kafka and pytest, which the other scenes do without.
    from schedule_cluster import measure_replicated

    return measure_replicated(options)


SCENES: Final[dict[str, Callable[[Options], list[Row]]]] = {
    "cost": measure_costs,
    "lateness": measure_lateness,
    "cluster": measure_cluster,
    "burst": measure_burst,
    "batches": partial(measure_pending, kind=BATCHES),
    "ids": partial(measure_pending, kind=IDS),
    "overdue": measure_overdue,
    "takeover": measure_takeover,
    "ordinary": measure_ordinary,
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one round with less of everything")
    parser.add_argument("--rounds", type=int, help="how often each row is measured")
    parser.add_argument(
        "--scene", action="append", choices=list(SCENES), help="only this one; may be given again"
    )
    parser.add_argument("--rate", type=int, action="append", help="records due a second")
    parser.add_argument("--pending", type=int, help="records that wait, up to 10,000,000")
    parser.add_argument("--beside", type=Path, help="another checkout, for the scene ordinary")
    parser.add_argument(
        "--profile", type=Path, help="run brokers under cProfile, which writes into this directory"
    )
    return parser.parse_args()


def options_of(arguments: argparse.Namespace, directory: Path) -> Options:
    is_quick = arguments.quick
    if arguments.profile is not None:
        arguments.profile.mkdir(parents=True, exist_ok=True)
    return Options(
        directory=directory,
        rounds=arguments.rounds or (1 if is_quick else ROUNDS),
        is_quick=is_quick,
        rates=tuple(arguments.rate or (RATES_QUICK if is_quick else RATES)),
        pending=arguments.pending or (PENDING_QUICK if is_quick else PENDING),
        beside=arguments.beside and arguments.beside.resolve(),
        profiles=arguments.profile and arguments.profile.resolve(),
    )


def form_of(tree: Path) -> str:
    """Return version and form of a checkout."""
    command = [sys.executable, "-m", "tarry", "version"]
    told = subprocess.run(
        command, env=environment(tree), capture_output=True, text=True, check=True
    )
    return told.stdout.splitlines()[0]


def main() -> None:
    arguments = parse()
    names = list(dict.fromkeys(arguments.scene or SCENES))
    if arguments.beside is None and "ordinary" in names:
        names.remove("ordinary")
        print("without the scene ordinary: it needs --beside with another checkout")
    if arguments.profile is not None:
        print("brokers run under cProfile: figures are too large, and kill -9 leaves no profile")
    print(peers.machine())
    print(f"brokers: {form_of(peers.ROOT)}")
    if arguments.beside is not None:
        print(f"beside: {form_of(arguments.beside.resolve())}")
    started_s = time.monotonic()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        options = options_of(arguments, directory)
        for name in names:
            rows = SCENES[name](options)
            print(file=sys.stderr)
            print("\n".join(["", f"**{name}**", "", *HEAD, *(row.line() for row in rows)]))
            sys.stdout.flush()
    print(f"\nmedian of {options.rounds}, {time.monotonic() - started_s:.0f} s")


if __name__ == "__main__":
    main()
