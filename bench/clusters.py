"""Three brokers with three replicas beside three nodes of Apache Kafka (KRaft): CPU and gaps.

`make bench-cluster` runs it.  Every topic has its leaders on broker 1 and replicas on all, and
`min.insync.replicas` is 2.  CPU is that of the three brokers together; etcd does nothing for a
record.  Latency is that of one connection with one request under way.  A gap is the longest time
between two acknowledgements of an idempotent producer of librdkafka, with the session time-outs
alike.  Both leave flushing to the page cache; in one more column ours flushes each record.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, Protocol, Self

import brokers
import peers
from confluent_kafka import KafkaError, Message, Producer, admin as confluent_admin
from peers import TARRY, tell_progress
from tests.support.cluster.etcd_server import EtcdServer, free_ports
from tests.support.interop.kafka_server import KafkaServer, KafkaUnavailable, free_port

REPLICAS: Final = [1, 2, 3]
PARTITIONS: Final = 4
SESSION_MS: Final = 6_000
READY_S_MAX: Final = 120
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


class Node(Protocol):
    """One of three processes."""

    @property
    def address(self) -> str: ...

    @property
    def pid(self) -> int: ...

    def start(self) -> None: ...

    def end(self, number: signal.Signals) -> None: ...


class TarryNode:
    """One `tarry serve` of a cluster; the same port after a restart."""

    def __init__(self, directory: Path, number: int, etcd: str, policy: str) -> None:
        self._port = free_ports(1)
        given = {
            "node.id": str(number),
            "metadata.store": f"etcd://{etcd}/bench",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "log.dirs": str(directory / str(number)),
            "flush.policy": policy,
            "broker.session.timeout.ms": str(SESSION_MS),
            "min.insync.replicas": "2",
        }
        self._words = [f"--set={key}={value}" for key, value in given.items()]
        self._log = directory / f"{number}.log"
        self.process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                [str(TARRY), "serve", *self._words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise SystemExit(f"a broker did not start: {self._log.read_text()[-500:]}")

    def end(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(READY_S_MAX)
        assert self.process.stdout is not None
        self.process.stdout.close()


class KafkaNode:
    """One KRaft node, broker and controller in one as Kafka's own quick start has it."""

    def __init__(self, directory: Path, number: int, controllers: list[int]) -> None:
        port = free_port()
        voters = ",".join(
            f"{each}@127.0.0.1:{controller}" for each, controller in enumerate(controllers, 1)
        )
        own = controllers[number - 1]
        self._server = KafkaServer(
            directory / str(number),
            port,
            heap_megabytes=peers.KAFKA_HEAP_MEGABYTES,
            is_measured=True,
            properties={
                "node.id": str(number),
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{own}",
                "broker.session.timeout.ms": str(SESSION_MS),
                "min.insync.replicas": "2",
                "offsets.topic.replication.factor": "3",
            },
        )

    @property
    def address(self) -> str:
        return self._server.address

    @property
    def pid(self) -> int:
        assert self._server.process is not None
        return self._server.process.pid

    def start(self) -> None:
        self._server.start()

    def end(self, number: signal.Signals) -> None:
        process = self._server.process
        assert process is not None
        process.send_signal(number)
        process.wait(READY_S_MAX)
        self._server.process = None


class Cluster(NamedTuple):
    """Three nodes under one name."""

    name: str
    nodes: list[Node]

    @property
    def addresses(self) -> str:
        return ",".join(node.address for node in self.nodes)

    @property
    def pids(self) -> str:
        return ",".join(str(node.pid) for node in self.nodes)


@contextlib.contextmanager
def tarry_cluster(directory: Path, policy: str) -> Iterator[Cluster]:
    """Start an etcd and three brokers with this flush policy."""
    directory.mkdir(parents=True)
    etcd = EtcdServer(directory)
    etcd.start()
    nodes = [TarryNode(directory, number, etcd.address, policy) for number in REPLICAS]
    try:
        for node in nodes:
            node.start()
        yield Cluster(f"Tarry ({policy})", list[Node](nodes))
    finally:
        for node in nodes:
            if node.process is not None and node.process.poll() is None:
                node.end(signal.SIGKILL)
        etcd.close()


@contextlib.contextmanager
def kafka_cluster(directory: Path) -> Iterator[Cluster]:
    """Start three nodes; `KafkaUnavailable` where they cannot run."""
    controllers = [free_port() for _ in REPLICAS]
    nodes = [KafkaNode(directory, number, controllers) for number in REPLICAS]
    try:
        # At once: one controller alone is no quorum, and its broker gives up waiting for one.
        with ThreadPoolExecutor(len(nodes)) as pool:
            for started in [pool.submit(node.start) for node in nodes]:
                started.result()
        yield Cluster("Apache Kafka", list[Node](nodes))
    finally:
        for node in nodes:
            with contextlib.suppress(AssertionError):
                node.end(signal.SIGKILL)


def wait_for(look: Callable[[], bool], what: str) -> None:
    """Wait until `look` is true."""
    end = time.monotonic() + READY_S_MAX
    while not look():
        if time.monotonic() > end:
            raise SystemExit(f"did not come: {what}")
        time.sleep(0.05)


def is_in_sync(cluster: Cluster, topic: str) -> bool:
    """Return whether every partition has a leader and three replicas in sync."""
    try:
        found = confluent_admin.AdminClient({"bootstrap.servers": cluster.addresses}).list_topics(
            topic, 5
        )
    except Exception:
        return False
    partitions = found.topics[topic].partitions.values()
    return len(partitions) > 0 and all(
        each.leader > 0 and len(each.isrs) == len(REPLICAS) for each in partitions
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


class Acknowledgements:
    """Times at which an idempotent producer was told that a record is kept.

    Inside the block a thread of its own writes a record a millisecond, whatever is done to brokers.
    """

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.times: list[float] = []
        self._topic = topic
        self._must_end = threading.Event()
        self._writer = threading.Thread(target=self._write)
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.addresses,
                "enable.idempotence": True,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "topic.metadata.refresh.fast.interval.ms": 20,
            }
        )

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.times.append(time.monotonic())

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._must_end.set()
        self._writer.join()
        self._producer.flush(READY_S_MAX)

    def _write(self) -> None:
        while not self._must_end.is_set():
            with contextlib.suppress(BufferError):
                self._producer.produce(
                    self._topic, b"x", partition=0, on_delivery=self._on_delivery
                )
            self._producer.poll(0.001)

    def longest_gap_s(self) -> float:
        """Return the longest time between two acknowledgements, in s."""
        times = sorted(self.times)
        return max(after - before for before, after in itertools.pairwise(times))


def gap(cluster: Cluster, topic: str, number: signal.Signals, restarts_after_s: float) -> float:
    """Return the longest gap around the end of the leader, which is started again."""
    leader = cluster.nodes[0]
    with Acknowledgements(cluster, topic) as acknowledged:
        time.sleep(2)
        leader.end(number)
        time.sleep(restarts_after_s)
        leader.start()
        time.sleep(5)
    found = acknowledged.longest_gap_s()
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
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        wireload = brokers.build_wireload(directory)
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
