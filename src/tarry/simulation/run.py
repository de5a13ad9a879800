"""Runs of seeds: the outcome of one, and many of them over several processes."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from tarry.simulation.cluster.cluster_run import ClusterRun
from tarry.simulation.cluster.groups.run import ClusterGroupsRun
from tarry.simulation.cluster.scenario import (
    OF_AN_HOUR,
    OF_CHANGES,
    OF_DISKS,
    OF_ISOLATION,
    OF_SHORT_FETCHES,
)
from tarry.simulation.cluster.schedule_run import ClusterScheduleRun
from tarry.simulation.error_lines import unexpected
from tarry.simulation.groups.workload import GroupsWorkload
from tarry.simulation.product.workload import ClientsWorkload, MembersWorkload
from tarry.simulation.records.workload import RecordsWorkload
from tarry.simulation.replicas.run import ReplicaRun
from tarry.simulation.schedule.workload import ScheduleWorkload
from tarry.simulation.trace import Trace
from tarry.simulation.workload_run import WorkloadRun
from tarry.simulation.world import World


class SeedRun(Protocol):
    """Run of one seed in a world of its own."""

    world: World

    @property
    def fault_counts(self) -> dict[str, int]:
        """Return how often each kind of fault has struck, or was planned."""

    def run(self) -> list[str]:
        """Run the seed; return a sentence for each violation."""


# Makers of runs, from a seed and a trace, by the name that `run_seed` takes.
WORKLOADS: Final[dict[str, Callable[[int, Trace], SeedRun]]] = {
    "records": partial(WorkloadRun, RecordsWorkload),
    "schedule": partial(WorkloadRun, ScheduleWorkload),
    "groups": partial(WorkloadRun, GroupsWorkload),
    "clients": partial(WorkloadRun, ClientsWorkload),
    "members": partial(WorkloadRun, MembersWorkload),
    "replicas": ReplicaRun,
    "cluster": ClusterRun,
    "cluster-groups": ClusterGroupsRun,
    "cluster-schedule": ClusterScheduleRun,
}
# Runs of the cluster workloads, each with one kind of fault in all seeds.
SETTINGS: Final[dict[str, Callable[[int, Trace], SeedRun]]] = {
    "cluster-disks": partial(ClusterRun, setting=OF_DISKS),
    "cluster-hour": partial(ClusterRun, setting=OF_AN_HOUR),
    "cluster-short-fetches": partial(ClusterRun, setting=OF_SHORT_FETCHES),
    "cluster-schedule-changes": partial(ClusterScheduleRun, setting=OF_CHANGES),
    "cluster-groups-disks": partial(ClusterGroupsRun, setting=OF_DISKS),
    "cluster-groups-isolated": partial(ClusterGroupsRun, setting=OF_ISOLATION),
}


class SeedOutcome:
    """Result of one seed."""

    def __init__(
        self, seed: int, failure: str, digest: str, lines: list[str], faults: dict[str, int]
    ) -> None:
        self.seed = seed
        # Sentence about the first violation, or "" if there is none.
        self.failure = failure
        self.digest = digest
        self.lines = lines
        # How often each kind of fault has struck, or was planned.
        self.faults = faults


class _TraceHandler(logging.Handler):
    """Handler that writes the broker's log lines to the trace, and keeps the errors among them."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.errors: list[str] = []
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        self._world.trace.remark(self._world.agenda.now_ms, f"log: {line}")
        if record.levelno >= logging.ERROR:
            self.errors.append(line)


def run_seed(seed: int, *, workload: str = "records", keeps_trace: bool = False) -> SeedOutcome:
    """Run one seed to its end, or to the first violation."""
    trace = Trace(keeps_lines=keeps_trace)
    run = {**WORKLOADS, **SETTINGS}[workload](seed, trace)
    logger = logging.getLogger("tarry")
    handler = _TraceHandler(run.world)
    before = (logger.level, logger.propagate)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if keeps_trace else logging.WARNING)
    logger.propagate = False
    try:
        sentences = run.run()
        sentences += unexpected(handler.errors, run.fault_counts)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        sentences = [f"{type(error).__name__} in {place.name}: {error}"]
        trace.lines += traceback.format_exception(error)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]
    trace.lines += [f"wrong: {sentence}\n" for sentence in sentences]
    failure = sentences[0] if sentences else ""
    return SeedOutcome(seed, failure, trace.digest(), trace.lines, run.fault_counts)
