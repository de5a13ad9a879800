"""`tarry simulate`: run the broker in a simulated world, seed by seed, and tell what goes wrong.

One line a failure, with its seed; `--replay` prints the whole trace of one seed.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import click

from tarry.cli.tables import count_of

EXAMPLES = """\b
Examples:
  tarry simulate --seeds 1..200
  tarry simulate --seeds 1..1000 --jobs 4
  tarry simulate --replay 17
  tarry simulate --workload groups --seeds 1..300
  tarry simulate --workload cluster --seeds 1..20000 --jobs 2
  tarry simulate --workload cluster-groups --seeds 1..300 --jobs 2
"""

# Keys of SETTINGS and WORKLOADS in tarry.simulation.run, repeated here: that module is imported
# only when a run begins.
_OF_ONE_TROUBLE = (
    "cluster-disks",
    "cluster-hour",
    "cluster-short-fetches",
    "cluster-schedule-changes",
    "cluster-groups-disks",
    "cluster-groups-isolated",
)
WORKLOADS = (
    "records",
    "schedule",
    "groups",
    "clients",
    "members",
    "replicas",
    "cluster",
    "cluster-groups",
    "cluster-schedule",
    *_OF_ONE_TROUBLE,
)

# Seed, the failure that it found, and how often each kind of fault happened.
_Outcome = tuple[int, str, dict[str, int]]


class SeedRange(click.ParamType[range]):
    """`A..B`, both included, or one number."""

    name = "A..B"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        if isinstance(value, range):
            return value
        first, separator, last = str(value).partition("..")
        try:
            start = int(first)
            stop = int(last) if separator else start
        except ValueError:
            self.fail(f"{value!r} is not a range of seeds; write for example 1..200", param, ctx)
        if start < 0 or stop < start:
            self.fail(f"{value!r} holds no seed; write the smaller number first", param, ctx)
        return range(start, stop + 1)


@click.command("simulate", epilog=EXAMPLES)
@click.option(
    "--seeds", type=SeedRange(), default="1..200", show_default=True, help="Seeds to run."
)
@click.option("--replay", type=int, metavar="SEED", help="Run one seed and print its trace.")
@click.option(
    "--workload",
    type=click.Choice(WORKLOADS),
    metavar="NAME",
    default="records",
    show_default=True,
    help="Clients written for the test: records, schedule, groups. Tarry's own: clients, members "
    "of groups, readers of transactions beside replicas. Three brokers and an etcd: cluster with "
    "records, cluster-schedule with records that wait, cluster-groups with groups whose "
    f"coordinators move; with one kind of trouble each: {', '.join(_OF_ONE_TROUBLE)}.",
)
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
def simulate(seeds: range, replay: int | None, workload: str, jobs: int) -> None:
    """Run the broker in a simulated world, with crashes, and check its promises.

    Disk, network and time are simulated.  A seed decides everything that happens, so a failure is
    found again by its seed.  At the end a line says how often each kind of fault came.
    """
    if replay is not None:
        _replay(replay, workload)
        return
    started = time.monotonic()
    failures = 0
    faults: dict[str, int] = {}
    for seed, failure, counts in _outcomes(seeds, workload, jobs):
        for kind, count in counts.items():
            faults[kind] = faults.get(kind, 0) + count
        if failure:
            failures += 1
            click.echo(f"seed {seed}: {failure}")
    took = time.monotonic() - started
    click.echo(
        f"{count_of(len(seeds), 'seed')}, {count_of(failures, 'failure')}, {took:.1f} s "
        f"({1000 * took / len(seeds):.0f} ms a seed)"
    )
    if faults:
        told = [f"{kind} {faults[kind]}" for kind in sorted(faults)]
        click.echo(f"faults: {', '.join(told)}")
    if failures:
        choice = "" if workload == WORKLOADS[0] else f"--workload {workload} "
        click.echo(f"replay one with: tarry simulate {choice}--replay SEED")
        raise SystemExit(1)


def _replay(seed: int, workload: str) -> None:
    from tarry.simulation.run import run_seed

    outcome = run_seed(seed, workload=workload, keeps_trace=True)
    click.echo("".join(outcome.lines), nl=False)
    click.echo(f"seed {seed}: digest {outcome.digest}: {outcome.failure or 'nothing is wrong'}")
    if outcome.failure:
        raise SystemExit(1)


def _outcomes(seeds: range, workload: str, jobs: int) -> Iterable[_Outcome]:
    run_one = partial(_run_one, workload)
    if jobs == 1:
        yield from map(run_one, seeds)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from pool.map(run_one, seeds, chunksize=max(1, min(20, len(seeds) // jobs)))


def _run_one(workload: str, seed: int) -> _Outcome:
    from tarry.simulation.run import run_seed

    outcome = run_seed(seed, workload=workload)
    return seed, outcome.failure, outcome.faults
