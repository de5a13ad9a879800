"""Lateness with three replicas, for bench/schedule.py: one broker leads all partitions."""

from __future__ import annotations

import functools

from cluster_nodes import REPLICAS, is_in_sync, tarry_cluster, wait_for
from peers import tell_progress
from schedule_late import SECONDS, SECONDS_QUICK, Parker, run_steady, steady_rows
from schedule_load import cpu_s
from schedule_rows import Options, Row

from tarry.client import Admin


def measure_replicated(options: Options) -> list[Row]:
    """Measure single records at each rate; CPU is that of the three brokers together."""
    rows: list[Row] = []
    seconds = SECONDS_QUICK if options.is_quick else SECONDS
    with tarry_cluster(options.directory / "cluster", "os") as cluster:
        address = cluster.nodes[0].address
        wait_for(lambda: count_brokers(address) == len(REPLICAS), "three brokers")

        def spent_s() -> float:
            return sum(cpu_s(node.pid) for node in cluster.nodes)

        def wait_for_replicas(topic: str) -> None:
            wait_for(functools.partial(is_in_sync, cluster, topic), f"replicas of {topic} in sync")

        parker = Parker(address, REPLICAS, wait_for_replicas)
        for rate in options.rates:
            runs: list[tuple[float, ...]] = []
            for _ in range(options.rounds):
                runs.append(run_steady(address, parker, spent_s, rate, seconds))
                tell_progress()
            rows += steady_rows(f"three replicas, {rate:,}/s due", ("≤ 50 ms", ""), runs)
    return rows


def count_brokers(address: str) -> int:
    with Admin(bootstrap_servers=address) as admin:
        return len(admin.describe_cluster().brokers)
