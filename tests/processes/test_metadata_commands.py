"""`tarry metadata`: a single broker with data becomes the first of a cluster with a real etcd."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.cluster.etcd_server import EtcdServer
from tests.support.cluster.writer import take
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, Consumer, NewTopic, Producer

TARRY = Path(sys.executable).parent / "tarry"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "several-brokers.md"
SETTINGS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
}


class Move:
    """A single broker that is to become broker 1, two more, and an etcd."""

    def __init__(self, directory: Path) -> None:
        self.etcd = EtcdServer(directory)
        self.brokers: dict[int, BrokerProcess] = {}
        for broker_id in (1, 2, 3):
            own = directory / f"broker-{broker_id}"
            own.mkdir()
            self.brokers[broker_id] = BrokerProcess(own)
        self.single = self.brokers[1]

    @property
    def store(self) -> str:
        return f"etcd://{self.etcd.address}/moved"

    @property
    def directory(self) -> str:
        return self.single.texts["log.dirs"]

    def start_member(self, broker_id: int) -> None:
        texts = {**SETTINGS, "node.id": str(broker_id), "metadata.store": self.store}
        self.brokers[broker_id].start(texts)

    @property
    def addresses(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def living(self) -> list[int]:
        with Admin(bootstrap_servers=self.single.address) as admin:
            told = admin.describe_cluster()
            return sorted({each.broker_id for each in told.brokers} - set(told.fenced_ids))

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.close()
        self.etcd.close()


@pytest.fixture
def move(tmp_path: Path) -> Iterator[Move]:
    made = Move(tmp_path)
    made.etcd.start()
    yield made
    made.close()


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TARRY, "metadata", *words],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )


def checked(move: Move) -> dict[str, object]:
    done = run("check", "--store", move.store, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, object] = json.loads(done.stdout)
    return told


def send(producer: Producer, first: int, end: int) -> None:
    """Numbers in a row over the three partitions of `orders`."""
    for number in range(first, end):
        producer.send("orders", b"%d" % number, partition=number % 3)
    producer.flush()


def read_as_group(address: str, count: int) -> list[int]:
    with Consumer(
        bootstrap_servers=address, group_id="billing", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe(["orders"])
        found = sorted(int(value) for _, value in take(consumer, count))
        consumer.commit()
        return found


def sequences(admin: Admin) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Of each partition of `orders`: producer ids and their last sequence numbers."""
    told = admin.describe_producers([("orders", index) for index in range(3)])
    return {
        place: [(each.producer_id, each.last_sequence) for each in states]
        for place, states in told.items()
        if isinstance(states, list)
    }


def test_a_single_broker_becomes_the_first_of_three(move: Move) -> None:
    single = move.single
    single.start({**SETTINGS, "node.id": "1"})
    with Admin(bootstrap_servers=single.address) as admin:
        topic = NewTopic("orders", 3, configs={"retention.ms": "123456789"})
        assert [each.error for each in admin.create_topics([topic])] == [None]
    with Producer(bootstrap_servers=single.address, enable_idempotence=True) as producer:
        send(producer, 0, 60)
        assert read_as_group(single.address, 60) == list(range(60))
        send(producer, 60, 90)
        with Admin(bootstrap_servers=single.address) as admin:
            before = sequences(admin)
            epochs = epochs_of(admin)
        running = run("migrate", move.directory, "--store", move.store)
        single.stop_cleanly()
        assert "tarry metadata migrate /var/lib/tarry --store etcd://" in PAGE.read_text()
        moved = run("migrate", move.directory, "--store", move.store)
        assert moved.returncode == 0, moved.stderr
        assert checked(move)["is_sound"]
        move.start_member(1)
        wait_until(lambda: "yes" if move.living() == [1] else "", "broker 1")

        with Admin(bootstrap_servers=single.address) as admin:
            wait_until(lambda: "yes" if len(sequences(admin)) == 3 else "", "leaders")
            assert sequences(admin) == before
            assert all(after > epochs[index] for index, after in epochs_of(admin).items())
        # The same producer, with the sequence numbers that follow.
        send(producer, 90, 120)
    assert read_as_group(single.address, 60) == list(range(60, 120))
    assert running.returncode == 1
    assert "stop it" in running.stderr
    assert "start it as broker 1 of cluster" in moved.stdout

    move.start_member(2)
    move.start_member(3)
    wait_until(lambda: "yes" if move.living() == [1, 2, 3] else "", "three brokers")
    with Admin(bootstrap_servers=single.address) as admin:
        made = admin.create_topics([NewTopic("threefold", 2, 3)])
        assert [each.error for each in made] == [None]
        description = admin.find_topics(["threefold"])["threefold"]
    assert [sorted(each.replicas) for each in description.partitions.values()] == [[1, 2, 3]] * 2
    with Producer(bootstrap_servers=single.address, acks="all") as producer:
        producer.send("threefold", b"x", partition=0).result(PATIENCE_S)
    # The page promises that every topic gets its replicas.
    as_the_page_says(move, "topics reassign '*' --internal -r 3 --wait")
    as_the_page_says(move, "cluster wait")
    with Admin(bootstrap_servers=single.address) as admin:
        partitions = admin.find_topics(["__consumer_offsets"])["__consumer_offsets"].partitions
        assert [sorted(each.isr) for each in partitions.values()] == [[1, 2, 3]] * 3
    send_and_read_without(move)
    told = checked(move)
    assert (told["brokers"], told["living_brokers"], told["topics"]) == (3, 3, 3)
    assert told["problems"] == []


def as_the_page_says(move: Move, line: str) -> None:
    """Run a command of the page, which has to stand there, to its end."""
    assert f"tarry {line}" in PAGE.read_text(encoding="utf-8"), line
    done = subprocess.run(
        [TARRY, *line.replace("'", "").split(), "-b", move.addresses],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def send_and_read_without(move: Move) -> None:
    """The group goes on when the broker that had everything is gone."""
    with Producer(bootstrap_servers=move.addresses) as producer:
        send(producer, 120, 150)
        move.single.kill()
        send(producer, 150, 180)
    assert read_as_group(move.addresses, 60) == list(range(120, 180))
    move.start_member(1)
    as_the_page_says(move, "cluster wait")


def epochs_of(admin: Admin) -> dict[int, int]:
    partitions = admin.find_topics(["orders"])["orders"].partitions
    return {index: each.leader_epoch for index, each in partitions.items()}


def test_a_directory_is_moved_once_and_only_into_an_empty_prefix(move: Move) -> None:
    single, other = move.single, move.brokers[2]
    for broker in (single, other):
        broker.start({"node.id": "1"})
        broker.stop_cleanly()
    empty = run("check", "--store", move.store)
    first = run("migrate", move.directory, "--store", move.store, "--node-id", "4", "--json")
    again = run("migrate", move.directory, "--store", move.store)
    second = run("migrate", other.texts["log.dirs"], "--store", move.store)
    alone = subprocess.run(
        single.command(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )

    assert empty.returncode == 1
    assert "there is no row below this prefix" in empty.stdout
    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["node_id"] == 4
    assert again.returncode == second.returncode == 1
    assert "belongs to broker 4 of cluster" in again.stderr
    assert f"etcdctl --endpoints {move.etcd.address} del --prefix /moved/" in second.stderr
    assert alone.returncode == 3
    assert "name it in metadata.store" in alone.stderr
