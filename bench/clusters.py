"""Three brokers with three replicas beside three nodes of Apache Kafka (KRaft): CPU and gaps.

`make bench-cluster` runs it.  Every topic has its leaders on broker 1 and replicas on all, and
`min.insync.replicas` is 2.  CPU is that of the three brokers together; etcd does nothing for a
record.  Latency is that of one connection with one request under way.  A gap is the longest time
between two acknowledgements of an idempotent producer of librdkafka, with the session time-outs
alike.  Both leave flushing to the page cache; in one more column ours flushes each record.

`--scene` runs what `cluster_scenes` has instead: many partitions, many groups, an idle cluster,
and metadata that stand still for a while.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import brokers
import cluster_scenes
import peers
from acknowledgements import Acknowledgements, longest_gap_s
from cluster_nodes import (
    READY_S_MAX,
    REPLICAS,
    SESSION_MS,
    Cluster,
    is_in_sync,
    kafka_cluster,
    tarry_cluster,
    wait_for,
)
from confluent_kafka import admin as confluent_admin
from peers import tell_progress
from tests.support.interop.kafka_server import KafkaUnavailable

PARTITIONS: Final = 4
ACKS: Final = ("-acks", "-1")


class Work(NamedTuple):
    """Row of the table: wireload's arguments and the figure of its output that counts."""

    name: str
    arguments: tuple[str, ...]
    figure: str
    unit: str


LARGE: Final = ("-mode", "produce", "-n", "1000", "-s", "1000")
SMALL: Final = ("-mode", "produce", "-n", "1", "-s", "100", "-c", "4", "-i", "20")
SINGLE: Final = ("-mode", "pingpong", "-c", "1", "-n", "1", "-s", "100")
WORKS: Final = (
    Work("CPU of all, 1000 x 1000 B", LARGE, "cpu_ms_mb", "ms/MB"),
    Work("CPU of all, 1 x 100 B, 4 x 20 in flight", SMALL, "cpu_us_req", "µs/req"),
    Work("one at a time, p50", SINGLE, "p50_ms", "ms"),
    Work("one at a time, p99", SINGLE, "p99_ms", "ms"),
)


def create_topic(cluster: Cluster, topic: str) -> None:
    """Make a topic that broker 1 leads, with replicas on all three."""
    admin = confluent_admin.AdminClient({"bootstrap.servers": cluster.addresses})
    wait_for(lambda: len(admin.list_topics(timeout=10).brokers) == len(REPLICAS), "three brokers")
    wanted = confluent_admin.NewTopic(topic, PARTITIONS, replica_assignment=[REPLICAS] * PARTITIONS)
    for future in admin.create_topics([wanted]).values():
        future.result(READY_S_MAX)
    wait_for(functools.partial(is_in_sync, cluster, topic), f"replicas of {topic} in sync")


def measure(wireload: Path, cluster: Cluster, work: Work, topic: str, seconds: float) -> float:
    """Run one row against one cluster."""
    brokers.touch_memory()
    command = [str(wireload), "-b", cluster.nodes[0].address, "-t", topic]
    command += ["-parts", str(PARTITIONS), "-d", str(seconds), "-pid", cluster.pids]
    done = subprocess.run(
        [*command, *ACKS, *work.arguments], capture_output=True, text=True, check=True
    )
    figures = json.loads(done.stdout)
    if figures["errors"]:
        raise SystemExit(f"{cluster.name}, {work.name}: {figures['errors']} errors")
    return float(figures[work.figure])


def gap(cluster: Cluster, topic: str, number: signal.Signals, restarts_after_s: float) -> float:
    """Return the longest gap around the end of the leader, which is started again."""
    leader = cluster.nodes[0]
    with Acknowledgements(cluster, topic) as acknowledged:
        time.sleep(2)
        leader.end(number)
        time.sleep(restarts_after_s)
        leader.start()
        time.sleep(5)
    found = longest_gap_s(acknowledged.times)
    wait_for(functools.partial(is_in_sync, cluster, topic), "replicas in sync after a restart")
    return found


GAPS: Final = (
    ("kill -9 of the leader, longest gap", signal.SIGKILL, SESSION_MS / 1000 + 5),
    ("the same, restarted at once", signal.SIGKILL, 0.0),
    ("SIGTERM, longest gap", signal.SIGTERM, 3.0),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--without-kafka", action="store_true", help="only our own figures")
    parser.add_argument(
        "--scene",
        action="append",
        choices=list(cluster_scenes.SCENES),
        help="a scene of many partitions or groups instead of the table; may be given again",
    )
    parser.add_argument("--count", type=int, help="partitions or groups of a scene")
    parser.add_argument("--spread", action="store_true", help="a scene whose leaders are even")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if arguments.scene:
            cluster_scenes.run(
                directory,
                arguments.scene,
                count=arguments.count,
                is_spread=arguments.spread,
                rounds=arguments.rounds,
                with_kafka=not arguments.without_kafka,
            )
            return
        wireload = peers.build_load(directory, "wireload")
        clusters = [
            stack.enter_context(tarry_cluster(directory / policy, policy))
            for policy in ("os", "commit")
        ]
        if not arguments.without_kafka:
            try:
                clusters.append(stack.enter_context(kafka_cluster(directory / "kafka")))
            except KafkaUnavailable as reason:
                print(f"without Apache Kafka: {reason}", file=sys.stderr)
        print_table(run(wireload, clusters, arguments.rounds, arguments.seconds), clusters)


def run(
    wireload: Path, clusters: list[Cluster], rounds: int, seconds: float
) -> dict[tuple[str, str], dict[str, list[float]]]:
    """Run all rows on all clusters, in turn, `rounds` times."""
    results: dict[tuple[str, str], dict[str, list[float]]] = {}
    for number, work in enumerate(WORKS):
        topic = f"bench-{number}"
        for cluster in clusters:
            create_topic(cluster, topic)
            measure(wireload, cluster, work, topic, 1)  # warm up
        row = results.setdefault((work.name, work.unit), {})
        for _ in range(rounds):
            for cluster in clusters:
                found = measure(wireload, cluster, work, topic, seconds)
                row.setdefault(cluster.name, []).append(found)
                tell_progress()
    for number, (name, ending, pause) in enumerate(GAPS):
        row = results.setdefault((name, "s"), {})
        for cluster in clusters:
            topic = f"gap-{number}"
            create_topic(cluster, topic)
            for _ in range(rounds):
                row.setdefault(cluster.name, []).append(gap(cluster, topic, ending, pause))
                tell_progress()
    return results


def print_table(
    results: dict[tuple[str, str], dict[str, list[float]]], clusters: list[Cluster]
) -> None:
    """Print the median of each row, ours beside Kafka's."""
    print(file=sys.stderr)
    print(peers.machine())
    names = [cluster.name for cluster in clusters]
    print("| acks=all, 3 replicas, min.insync.replicas 2 | " + " | ".join(names) + " |")
    print("|---|" + "---|" * len(names))
    for (name, unit), row in results.items():
        cells = " | ".join(f"{statistics.median(row[each]):.3g} {unit}" for each in names)
        print(f"| {name} | {cells} |")


if __name__ == "__main__":
    main()
