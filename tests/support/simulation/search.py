"""Search for seeds that find planted faults, each in a process that is a copy of this one.

Run as a program: `search.py [--seeds N] WORKLOAD.NAME ..` prints, for each fault, its name, the
seed and the sentence about what is wrong; `-1` if neither the known seed nor one of the first N
finds it (20 without `--seeds`).  The lines come in the order in which the searches end.  What only
one seed of some hundreds finds is lost when the product's times change: then `--seeds 2000` finds
it a new one.  A fault that sets a name that the product does not have is told at once: since the
product has changed it plants nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from tests.support.simulation.planted_client_faults import CLIENTS, MEMBERS
from tests.support.simulation.planted_cluster_faults import (
    CLUSTER,
    CLUSTER_DISKS,
    CLUSTER_HOUR,
)
from tests.support.simulation.planted_faults import RECORDS
from tests.support.simulation.planted_group_faults import GROUPS
from tests.support.simulation.planted_habit_faults import HABITS
from tests.support.simulation.planted_move_faults import (
    CLUSTER_GROUPS,
    CLUSTER_GROUPS_DISKS,
    CLUSTER_GROUPS_ISOLATED,
)
from tests.support.simulation.planted_replica_faults import REPLICAS
from tests.support.simulation.planted_row_faults import ROWS
from tests.support.simulation.planted_schedule_faults import (
    CLUSTER_SCHEDULE,
    CLUSTER_SCHEDULE_CHANGES,
    SCHEDULE,
)

from tarry.simulation.run import run_seed

# By workload: each fault, and a seed that found it.
PLANTED: Final[dict[str, dict[Callable[[], None], int]]] = {
    "records": RECORDS,
    "schedule": SCHEDULE,
    "groups": GROUPS,
    "clients": {**CLIENTS, **HABITS["clients"]},
    "members": {**MEMBERS, **HABITS["members"]},
    "replicas": {**REPLICAS, **HABITS["replicas"]},
    "cluster": {**CLUSTER, **ROWS, **HABITS["cluster"]},
    "cluster-groups": CLUSTER_GROUPS,
    "cluster-schedule": CLUSTER_SCHEDULE,
    "cluster-schedule-changes": CLUSTER_SCHEDULE_CHANGES,
    "cluster-disks": CLUSTER_DISKS,
    "cluster-hour": CLUSTER_HOUR,
    "cluster-groups-disks": CLUSTER_GROUPS_DISKS,
    "cluster-groups-isolated": CLUSTER_GROUPS_ISOLATED,
}


def names() -> list[str]:
    """Return WORKLOAD.NAME of every fault."""
    return [f"{workload}.{plant.__name__}" for workload in PLANTED for plant in PLANTED[workload]]


def _attributes() -> dict[type, set[str]]:
    """Return the names in each class of the product that is loaded."""
    modules = [module for name, module in sys.modules.items() if name.startswith("tarry.")]
    classes = [each for module in modules for each in vars(module).values()]
    return {each: set(dir(each)) for each in classes if isinstance(each, type)}


def search(name: str, seeds: int) -> str:
    """Plant a fault into this process; return the name, a seed that finds it, and its sentence.

    The seed that found it the last time comes first: the others are asked only when something has
    changed.
    """
    workload, _, fault = name.partition(".")
    plant, known = next(
        (plant, seed) for plant, seed in PLANTED[workload].items() if plant.__name__ == fault
    )
    before = _attributes()
    plant()
    for owner, attributes in _attributes().items():
        for stray in attributes - before.get(owner, attributes):
            # A property may stand for an attribute of the instances.
            if not isinstance(getattr(owner, stray), property):
                return f"{name} -1 the product has no {owner.__name__}.{stray}"
    for seed in (known, *range(1, seeds + 1)):
        failure = run_seed(seed, workload=workload).failure
        if failure:
            return f"{name} {seed} {failure}"
    return f"{name} -1"


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seeds", type=int, default=20)
    arguments.add_argument("names", nargs="+")
    asked = arguments.parse_args()
    # Each fault has a process of its own, which ends with it.
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        for line in pool.imap_unordered(partial(search, seeds=asked.seeds), asked.names):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
