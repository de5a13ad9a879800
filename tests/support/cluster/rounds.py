"""Program: faults of a cluster in their full length, under real clients; by hand, for minutes.

python -m tests.support.cluster.rounds [FAULT ...]      all of them if none is named

A line a fault: rounds, records acknowledged by each client, and the longest wait of each.  At its
end everything acknowledged is read once and in order, and replicas are alike.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.client_load import JavaTopic, LibrdkafkaGroup, LibrdkafkaTopic
from tests.support.cluster.readers import Reader
from tests.support.cluster.replicated import (
    EVERY_BROKER,
    assert_replicas_are_alike,
    create,
    leader_of,
    wait_until_in_sync,
)
from tests.support.cluster.writer import take
from tests.support.interop.java_face import JavaProgram

from tarry.client import Consumer

SETTINGS: Final = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1500",
    "replica.lag.time.max.ms": "10000",
}
TOPICS: Final = ["librdkafka", "java"]
TARRY: Final = Path(sys.executable).parent / "tarry"


class FaultRun:
    """A cluster under load, and what is done to it."""

    def __init__(self, directory: Path) -> None:
        self.cluster = BrokerCluster(directory, SETTINGS, has_proxies=True)
        self.cluster.start()
        for name in TOPICS:
            create(self.cluster, name)
        addresses = self.cluster.addresses
        self.program = JavaProgram()
        self.loads = [LibrdkafkaTopic(addresses), JavaTopic(addresses, self.program)]
        self.readers = [Reader(addresses, name) for name in TOPICS]
        self.member = LibrdkafkaGroup(addresses, TOPICS)
        for each in (*self.loads, *self.readers, self.member):
            each.start()
        self.wait_for_more()
        wait_until_in_sync(self.cluster, "__consumer_offsets")

    def wait_for_more(self) -> None:
        """Wait until every client has got on."""
        for load in self.loads:
            load.wait_for_more()
        commits = self.member.commits
        wait_until(
            lambda: "yes" if self.member.errors or self.member.commits > commits else "", "a commit"
        )
        assert not self.member.errors, self.member.errors
        for reader in self.readers:
            reader.wait_for_more()

    def leader(self) -> int:
        """The leader of the first partition, as a broker that serves tells."""
        wait_until_in_sync(self.cluster, TOPICS[0])
        return leader_of(self.cluster, 1, TOPICS[0])

    def settle(self) -> None:
        """Wait until all is well again."""
        self.cluster.wait_until_serving(1, EVERY_BROKER)
        for name in (*TOPICS, "__consumer_offsets"):
            wait_until_in_sync(self.cluster, name)
        self.wait_for_more()

    def check(self) -> str:
        """Compare everything at the end; a line of figures."""
        for load in self.loads:
            load.end()
        for load, reader in zip(self.loads, self.readers, strict=True):
            reader.end(load.written)
            self.member.end(load)
            self._read_again(load.topic, load.written)
        self.member.is_over = True
        self.member.join()
        for name in TOPICS:
            assert_replicas_are_alike(self.cluster, name)
        written = ", ".join(f"{load.topic} {6 * load.rounds}" for load in self.loads)
        return f"acknowledged {written}; read twice by the group {self.member.doubled}"

    def _read_again(self, topic: str, written: list[list[bytes]]) -> None:
        found: list[list[bytes]] = [[] for _ in written]
        addresses = self.cluster.addresses
        with Consumer(bootstrap_servers=addresses, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, index) for index in range(len(found))])
            for index, value in take(consumer, sum(map(len, written))):
                found[index].append(value)
        assert found == written, f"{topic} is not as it was written"

    def close(self) -> None:
        for load in self.loads:
            load.is_over = True
        self.cluster.close()
        self.program.run.kill()


def kill_leader(run: FaultRun) -> None:
    old = run.leader()
    run.cluster.brokers[old].kill()
    run.wait_for_more()
    run.cluster.start_broker(old)


def stop_leader(run: FaultRun) -> None:
    sleeper = run.cluster.brokers[run.leader()]
    sleeper.send_signal(signal.SIGSTOP)
    time.sleep(15)
    sleeper.send_signal(signal.SIGCONT)


def cut_off(run: FaultRun) -> None:
    """Nothing comes to the leader or from it, but from its clients."""
    old = run.leader()
    cluster = run.cluster
    for proxy in (cluster.peers[old], cluster.stores[old]):
        proxy.cut()
    for broker_id, proxy in cluster.peers.items():
        if broker_id != old:
            proxy.cut(of=b"broker-%d-replica" % old)
    time.sleep(20)
    _heal(run)


def cut_off_from_etcd(run: FaultRun) -> None:
    run.cluster.stores[run.leader()].cut()
    time.sleep(20)
    _heal(run)


def cut_requests(run: FaultRun) -> None:
    run.cluster.peers[run.leader()].cut(answers=False)
    time.sleep(20)
    _heal(run)


def cut_answers(run: FaultRun) -> None:
    run.cluster.peers[run.leader()].cut(requests=False)
    time.sleep(20)
    _heal(run)


def etcd_away(run: FaultRun) -> None:
    with run.cluster.etcd.away():
        end = time.monotonic() + 60
        while time.monotonic() < end:
            run.wait_for_more()


def etcd_away_and_death(run: FaultRun) -> None:
    old = run.leader()
    with run.cluster.etcd.away():
        run.wait_for_more()
        run.cluster.brokers[old].kill()
        time.sleep(15)
    run.wait_for_more()
    run.cluster.start_broker(old)


def roll(run: FaultRun) -> None:
    for broker_id, broker in run.cluster.brokers.items():
        broker.stop_cleanly()
        run.cluster.start_broker(broker_id)
        subprocess.run(
            [TARRY, "cluster", "wait", "--quiet", "-b", run.cluster.addresses], check=True
        )
        run.wait_for_more()


def _heal(run: FaultRun) -> None:
    for proxy in [*run.cluster.peers.values(), *run.cluster.stores.values()]:
        proxy.heal()


# Faults, and how often each is done.
FAULTS: Final[dict[str, tuple[Callable[[FaultRun], None], int]]] = {
    "kill": (kill_leader, 20),
    "stop": (stop_leader, 3),
    "cut-off": (cut_off, 3),
    "cut-etcd": (cut_off_from_etcd, 3),
    "cut-requests": (cut_requests, 3),
    "cut-answers": (cut_answers, 3),
    "etcd-away": (etcd_away, 1),
    "etcd-away-death": (etcd_away_and_death, 2),
    "roll": (roll, 3),
}


def play(name: str) -> None:
    """Play all rounds of a fault, on a cluster of its own."""
    do, rounds = FAULTS[name]
    directory = Path(tempfile.mkdtemp(prefix=f"rounds-{name}-"))
    run = FaultRun(directory)
    began = time.monotonic()
    longest: dict[str, list[str]] = {load.topic: [] for load in run.loads}
    try:
        for load in run.loads:
            load.take_longest_s()
        for _ in range(rounds):
            do(run)
            run.settle()
            for load in run.loads:
                longest[load.topic].append(f"{load.take_longest_s():.2f}")
        took_s = time.monotonic() - began
        figures = run.check()
        waits = "; ".join(f"{topic} {' '.join(each)}" for topic, each in longest.items())
        sys.stdout.write(
            f"{name}: {rounds} rounds, {took_s:.0f} s; {figures}; longest s: {waits}\n"
        )
        sys.stdout.flush()
    finally:
        run.close()


def main() -> None:
    for name in sys.argv[1:] or FAULTS:
        play(name)


if __name__ == "__main__":
    main()
