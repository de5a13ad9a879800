"""Stage of an audited day: one broker, or three with an etcd, each with a disk and a calendar.

Where no small file system can be mounted the disks are those of the machine, and none is filled.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final

import pytest
from tests.support.audit.account import Account, Place
from tests.support.audit.actors import ALL_WAIT, BY_HEADER, BY_TIME, DEFAULT_MS, STAMPED, TOPICS
from tests.support.audit.watching import Leaders
from tests.support.broker_process import BrokerProcess
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.etcd_server import ROOT
from tests.support.cluster.small_disk import SmallDisk

from tarry.client import Admin, NewTopic
from tarry.client.core.topic import Topic
from tarry.client.errors import ClientError

PROGRAM: Final = ROOT / "tests" / "support" / "processes" / "stepped_calendar.py"
DISK_BYTES: Final = 192 << 20
# What takes longer than that to be well again is not.
SETTLED_S: Final = 120.0

SETTINGS: Final = {
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "replica.lag.time.max.ms": "5000",
    "auto.create.topics.enable": "false",
}
DELAYS: Final[dict[str, dict[str, str]]] = {
    BY_TIME: {"delay.source": "timestamp"},
    # A record of a client is an hour ahead where the broker's calendar is an hour behind.
    BY_HEADER: {"delay.source": "header", "message.timestamp.after.max.ms": "86400000"},
    STAMPED: {"delay.source": "header", "message.timestamp.type": "LogAppendTime"},
    ALL_WAIT: {"delay.default.ms": str(DEFAULT_MS), "message.timestamp.after.max.ms": "86400000"},
}


class DayStage:
    """Brokers with a calendar and a disk each; `close` ends them."""

    def __init__(self, directory: Path, size: int, *, has_disks: bool) -> None:
        self.directory = directory
        self.cluster = BrokerCluster(directory, SETTINGS) if size > 1 else None
        if self.cluster is None:
            own = directory / "broker-1"
            own.mkdir()
            self.brokers = {1: BrokerProcess(own)}
        else:
            self.brokers = self.cluster.brokers
        self.disks: dict[int, SmallDisk] = {}
        self.calendar_files: dict[int, Path] = {}
        self.places: list[Place] = []
        self.no_disks = "" if has_disks else "not asked for"
        for broker_id, broker in self.brokers.items():
            file = broker.directory / "calendar"
            file.write_bytes(bytes(8))
            self.calendar_files[broker_id] = file
            broker.program = [sys.executable, str(PROGRAM), str(file)]
            if not self.no_disks:
                try:
                    self.disks[broker_id] = SmallDisk(broker.directory / "data", DISK_BYTES)
                except pytest.skip.Exception as reason:
                    self.no_disks = str(reason)

    @property
    def addresses(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def open(self, partitions: int) -> None:
        """Start all, and make the topics."""
        if self.cluster is None:
            self.start(1)
        else:
            self.cluster.start()
            self.cluster.wait_until_serving(1, sorted(self.brokers))
        topics = [
            NewTopic(
                name,
                partitions,
                len(self.brokers),
                configs={"delay.enable": "true", **DELAYS[name]},
            )
            for name in TOPICS
        ]
        with Admin(bootstrap_servers=self.addresses) as admin:
            assert [each.error for each in admin.create_topics(topics)] == [None] * len(topics)
        self.places = [(name, index) for name in TOPICS for index in range(partitions)]
        self.settle()

    def start(self, broker_id: int) -> None:
        if self.cluster is None:
            self.brokers[broker_id].start({"auto.create.topics.enable": "false"})
        else:
            self.cluster.start_broker(broker_id)

    def freeze_etcd(self) -> None:
        assert self.cluster is not None
        self.cluster.etcd.pause()

    def thaw_etcd(self) -> None:
        assert self.cluster is not None
        self.cluster.etcd.go_on()

    def settle(self) -> None:
        """Wait until each broker tells of a leader and of all replicas in sync everywhere."""
        end_s = time.monotonic() + SETTLED_S
        wanted = sorted(self.brokers)
        told = ""
        for broker_id in wanted:
            while True:
                try:
                    topics = self.topics(broker_id)
                except ClientError as error:
                    told = repr(error)
                else:
                    rows = [row for each in topics.values() for row in each.partitions.values()]
                    told = str([row for row in rows if sorted(row.isr) != wanted])
                    if len(rows) == len(self.places) and told == "[]":
                        break
                assert time.monotonic() < end_s, f"not well after {SETTLED_S:.0f} s: {told}"
                time.sleep(0.1)

    def topics(self, asked: int) -> dict[str, Topic]:
        with Admin(
            bootstrap_servers=self.brokers[asked].address, default_api_timeout_ms=5_000
        ) as admin:
            return admin.find_topics(TOPICS)

    def note_leaders(self, account: Account) -> None:
        """Note who leads now, in which epoch."""
        for name, topic in self.topics(1).items():
            for index, row in topic.partitions.items():
                account.leaders[name, index, row.leader_epoch] = row.leader_id

    def note_history(self, account: Account) -> None:
        """Note the leader of every epoch, and of each record the epoch in which it was appended."""
        topics = self.topics(1)
        if self.cluster is not None:
            leaders = Leaders(self.cluster.etcd.address, "/test/")
            for name, topic in topics.items():
                for index in topic.partitions:
                    for epoch, leader in leaders.of(topic.topic_id, index).items():
                        account.leaders[name, index, epoch] = leader
        with Admin(bootstrap_servers=self.addresses) as admin:
            ends = _epoch_ends(admin, topics)
        for record in account.found:
            known = ends[record.place]
            record.epoch = min(epoch for epoch, end in known.items() if record.offset < end)

    def check_logs(self, account: Account) -> None:
        """Note what brokers say of mistakes of their own."""
        for broker_id, broker in self.brokers.items():
            log = broker.log()
            for words in ("Traceback", "AssertionError"):
                if words in log:
                    account.trouble(f"{log.count(words)} times {words} in {broker.log_path}")
            if broker.process is None or broker.process.poll() is not None:
                account.trouble(f"broker {broker_id} ended by itself: {broker.log_path}")

    def close(self) -> None:
        if self.cluster is not None:
            self.cluster.close()
        for broker in self.brokers.values():
            broker.close()
        for disk in self.disks.values():
            disk.close()


def _epoch_ends(admin: Admin, topics: dict[str, Topic]) -> dict[Place, dict[int, int]]:
    """By place where each leader epoch ends that has records."""
    ends: dict[Place, dict[int, int]] = {}
    rows = {
        (name, index): row.leader_epoch
        for name, topic in topics.items()
        for index, row in topic.partitions.items()
    }
    for epoch in range(max(rows.values()) + 1):
        asked = {place: epoch for place, last in rows.items() if epoch <= last}
        for place, found in admin.epoch_ends(asked).items():
            assert not isinstance(found, ClientError), found
            if found.leader_epoch >= 0:
                ends.setdefault(place, {})[found.leader_epoch] = found.end_offset
    return ends
