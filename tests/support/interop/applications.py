"""Applications of others, run as processes of their own beside a broker that is killed.

Each application reads one topic and keeps what it finds in another one.  `Traffic` writes numbered
values into the first, in two halves with a kill of the broker between, and reads the second.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from tests.support.interop.client_face import ClientMissing
from tests.support.interop.foreign_clients import goka_program
from tests.support.interop.group_broker import GroupBroker
from tests.support.interop.kafka_server import POM, KafkaUnavailable, java_command
from tests.support.patience import PATIENCE_S
from tests.support.places import PEERS

from tarry.client import Admin, Consumer, NewTopic, Producer
from tarry.client.settings import PartitionFunction

STREAMS_POM: Final = POM.with_name("streams-pom.xml")
STREAMS_SOURCE: Final = PEERS / "java" / "streams" / "DigitCounts.java"
FASTSTREAM_SOURCE: Final = Path(__file__).with_name("faststream_app.py")

PARTITIONS: Final = 3
KEYS: Final = 20
HALF: Final = 500

# How soon a client of ours tries again to reach a broker that was killed.
RETRY_MS: Final = 200


class Application:
    """A process; most end with their standard input, and so with the test run."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
            )

    def assert_alive(self) -> None:
        code = self.process.poll()
        assert code is None, f"it ended with {code}: {self.log.read_text()[-2000:]}"

    def close(self) -> None:
        """Kill it: what it has done is read from the broker."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()


def streams_command(address: str, source: str, target: str, directory: Path) -> list[str]:
    """The command of a Kafka Streams application that counts last digits."""
    try:
        return java_command(
            str(STREAMS_SOURCE), address, source, target, str(directory), pom=STREAMS_POM
        )
    except KafkaUnavailable as reason:
        raise ClientMissing(str(reason)) from reason


def mirror_command(first: str, second: str, topic: str, directory: Path) -> list[str]:
    """The command of a MirrorMaker 2 that copies a topic both ways between two brokers."""
    ways = ("first->second", "second->first")
    settings = {
        "clusters": "first, second",
        "first.bootstrap.servers": first,
        "second.bootstrap.servers": second,
        **{f"{way}.enabled": "true" for way in ways},
        **{f"{way}.topics": topic for way in ways},
        "replication.factor": "1",
        "checkpoints.topic.replication.factor": "1",
        "heartbeats.topic.replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        "refresh.topics.interval.seconds": "1",
        "offset.flush.interval.ms": "500",
        "scheduled.rebalance.max.delay.ms": "0",
    }
    properties = directory / "mirror.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    try:
        return java_command(
            "org.apache.kafka.connect.mirror.MirrorMaker", str(properties), pom=STREAMS_POM
        )
    except KafkaUnavailable as reason:
        raise ClientMissing(str(reason)) from reason


def goka_command(address: str, source: str, group: str) -> list[str]:
    """The command of a processor of goka, whose table is the topic `GROUP-table`."""
    return [str(goka_program()), address, source, group]


def faststream_command(address: str, source: str, target: str) -> list[str]:
    """The command of a FastStream application that passes records on."""
    return [sys.executable, str(FASTSTREAM_SOURCE), address, source, target]


class Traffic:
    """Numbered values under a few keys, and what an application has made of them."""

    def __init__(
        self,
        broker: GroupBroker,
        *topics: str,
        compacted: Sequence[str] = (),
        partitioner: PartitionFunction | str = "murmur2",
    ) -> None:
        self.broker = broker
        self._partitioner = partitioner
        self.sent = 0
        self.wanted: dict[str, set[str]] = defaultdict(set)
        with Admin(bootstrap_servers=broker.address) as admin:
            for name in topics:
                configs = {"cleanup.policy": "compact"} if name in compacted else {}
                admin.create_topics([NewTopic(name, PARTITIONS, configs=configs)])

    def write(self, topic: str, count: int = HALF) -> None:
        """Write so many more values, acknowledged by the broker."""
        with Producer(
            bootstrap_servers=self.broker.address,
            reconnect_backoff_max_ms=RETRY_MS,
            partitioner=self._partitioner,
        ) as producer:
            receipts = []
            for number in range(self.sent, self.sent + count):
                key, value = f"key-{number % KEYS}", f"{number:06d}"
                self.wanted[key].add(value)
                receipts.append(producer.send(topic, value.encode(), key=key.encode()))
            for receipt in receipts:
                receipt.result(PATIENCE_S)
        self.sent += count

    def is_all_in(self, found: dict[str, list[str]]) -> bool:
        """Whether each value is there, at least once, under its key."""
        return {key: set(values) for key, values in found.items()} == self.wanted

    def kill_broker(self) -> None:
        self.broker.kill()
        self.broker.start()


def partition_of_goka(topic: str, key: bytes | None, partition_count: int) -> int:
    """Return the partition that goka gives a key: that of its table, which has to be the same."""
    # FNV-1a of 32 bits, then the absolute value of the signed remainder.
    digest = 0x811C9DC5
    for byte in key or b"":
        digest = (digest ^ byte) * 0x01000193 & 0xFFFFFFFF
    signed = digest - (1 << 32) if digest >= 1 << 31 else digest
    return abs(signed) % partition_count


def read_until(
    address: str, topic: str, is_enough: Callable[[dict[str, list[str]]], bool], alive: Application
) -> dict[str, list[str]]:
    """Read the topic from its beginning until that is enough: all values by their keys."""
    found: dict[str, list[str]] = defaultdict(list)
    with Consumer(
        bootstrap_servers=address,
        auto_offset_reset="earliest",
        default_api_timeout_ms=PATIENCE_S * 1_000,
        reconnect_backoff_max_ms=RETRY_MS,
    ) as consumer:
        consumer.assign([(topic, index) for index in range(PARTITIONS)])
        while not is_enough(found):
            alive.assert_alive()
            for group in consumer.poll(1.0):
                for record in group.records:
                    found[(record.key or b"").decode()].append((record.value or b"").decode())
    return found
