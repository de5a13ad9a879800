"""How many seeds of each workload `make test` runs, from 1 on."""

from __future__ import annotations

from typing import Final

SEEDS: Final = {
    "records": 200,
    "schedule": 300,
    "groups": 300,
    "clients": 100,
    "members": 100,
    "replicas": 80,
    "cluster": 300,
    "cluster-groups": 60,
    "cluster-schedule": 300,
    "cluster-disks": 10,
    "cluster-hour": 2,
    "cluster-short-fetches": 10,
    "cluster-schedule-changes": 10,
    "cluster-groups-disks": 10,
    "cluster-groups-isolated": 10,
}
