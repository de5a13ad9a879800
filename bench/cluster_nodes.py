"""Clusters of three nodes under measurement: ours with an etcd, and Apache Kafka (KRaft)."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import peers
from confluent_kafka import admin as confluent_admin
from peers import TARRY
from tests.support.cluster.etcd_server import EtcdServer, free_ports
from tests.support.interop.kafka_server import KafkaServer, free_port

REPLICAS: Final = [1, 2, 3]
SESSION_MS: Final = 6_000
READY_S_MAX: Final = 120


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

    def __init__(
        self, directory: Path, number: int, etcd: str, policy: str, settings: Mapping[str, str]
    ) -> None:
        self._port = free_ports(1)
        given = {
            "node.id": str(number),
            "metadata.store": f"etcd://{etcd}/bench",
            "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
            "log.dirs": str(directory / str(number)),
            "flush.policy": policy,
            "broker.session.timeout.ms": str(SESSION_MS),
            "min.insync.replicas": "2",
            **settings,
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
    """One KRaft node.  `own` holds what is its own: id, roles, listeners."""

    def __init__(
        self,
        directory: Path,
        port: int,
        own: Mapping[str, str],
        voters: str,
        settings: Mapping[str, str],
    ) -> None:
        self._server = KafkaServer(
            directory,
            port,
            heap_megabytes=peers.KAFKA_HEAP_MEGABYTES,
            is_measured=True,
            properties={
                "controller.quorum.voters": voters,
                "broker.session.timeout.ms": str(SESSION_MS),
                "min.insync.replicas": "2",
                "offsets.topic.replication.factor": "3",
                **own,
                **settings,
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
    """Three nodes under one name.

    `etcd` is the address of ours; "" of a cluster without one.  `keepers` are the processes that
    keep nothing but metadata: etcd, or controllers that are no brokers.
    """

    name: str
    nodes: list[Node]
    etcd: str = ""
    keepers: Sequence[int] = ()

    @property
    def addresses(self) -> str:
        return ",".join(node.address for node in self.nodes)

    @property
    def pids(self) -> str:
        return ",".join(str(node.pid) for node in self.nodes)


@contextlib.contextmanager
def tarry_cluster(
    directory: Path, policy: str, settings: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Start an etcd and three brokers with this flush policy."""
    directory.mkdir(parents=True)
    etcd = EtcdServer(directory)
    etcd.start()
    nodes = [
        TarryNode(directory, number, etcd.address, policy, settings or {}) for number in REPLICAS
    ]
    try:
        for node in nodes:
            node.start()
        assert etcd.process is not None
        yield Cluster(f"Tarry ({policy})", list[Node](nodes), etcd.address, (etcd.process.pid,))
    finally:
        for node in nodes:
            if node.process is not None and node.process.poll() is None:
                node.end(signal.SIGKILL)
        etcd.close()


@contextlib.contextmanager
def kafka_cluster(
    directory: Path, settings: Mapping[str, str] | None = None, *, has_keepers: bool = False
) -> Iterator[Cluster]:
    """Start three nodes; `KafkaUnavailable` where they cannot run.

    Each node is broker and controller in one, as Kafka's own quick start has it.  With
    `has_keepers` three more nodes are the controllers, as for production.
    """
    keepers = [free_port() for _ in REPLICAS]
    first = REPLICAS[-1] + 1 if has_keepers else REPLICAS[0]
    voters = ",".join(f"{each}@127.0.0.1:{port}" for each, port in enumerate(keepers, first))
    nodes: list[KafkaNode] = []
    controllers: list[KafkaNode] = []
    for number, keeper in zip(REPLICAS, keepers, strict=True):
        port = free_port()
        listener, control = f"PLAINTEXT://127.0.0.1:{port}", f"CONTROLLER://127.0.0.1:{keeper}"
        own = {"node.id": str(number), "listeners": f"{listener},{control}"}
        if has_keepers:
            own |= {"process.roles": "broker", "listeners": listener}
            of_keeper = {
                "node.id": str(number + len(REPLICAS)),
                "process.roles": "controller",
                "listeners": control,
                "advertised.listeners": control,
            }
            place = directory / f"controller-{number}"
            controllers.append(KafkaNode(place, keeper, of_keeper, voters, {}))
        nodes.append(KafkaNode(directory / str(number), port, own, voters, settings or {}))
    try:
        # At once: one controller alone is no quorum, and its broker gives up waiting for one.
        with ThreadPoolExecutor(len(nodes) + len(controllers)) as pool:
            for started in [pool.submit(node.start) for node in (*controllers, *nodes)]:
                started.result()
        pids = [controller.pid for controller in controllers]
        yield Cluster("Apache Kafka", list[Node](nodes), keepers=pids)
    finally:
        for node in (*nodes, *controllers):
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
