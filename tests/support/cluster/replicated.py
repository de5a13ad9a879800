"""Topics with a replica on each of three real brokers: how they stand, and that nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.writer import Writer, take

from tarry.client import Admin, Consumer, NewTopic

EVERY_BROKER: Final = [1, 2, 3]


def create(cluster: BrokerCluster, name: str, partitions: int = 6) -> None:
    """Make a topic of which every broker has a replica in sync."""
    cluster.wait_until_serving(1, EVERY_BROKER)
    with Admin(bootstrap_servers=cluster.addresses) as admin:
        assert [each.error for each in admin.create_topics([NewTopic(name, partitions)])] == [None]
    wait_until_in_sync(cluster, name)


def wait_until_in_sync(cluster: BrokerCluster, name: str) -> None:
    """Wait until every replica of every partition is in sync, as any broker tells."""

    def are_in_sync() -> str:
        for broker_id in cluster.brokers:
            partitions = cluster.topic(broker_id, name).partitions
            if not partitions:
                return ""
            for row in partitions.values():
                if row.leader_id < 0 or sorted(row.isr) != EVERY_BROKER:
                    return ""
        return "yes"

    wait_until(are_in_sync, f"three replicas in sync of each partition of {name}")


def leader_of(cluster: BrokerCluster, asked: int, name: str, index: int = 0) -> int:
    """The leader that this broker tells; -1 without one."""
    with Admin(bootstrap_servers=cluster.brokers[asked].address) as admin:
        topic = admin.find_topics([name]).get(name)
    return (
        -1 if topic is None or index not in topic.partitions else topic.partitions[index].leader_id
    )


def is_led_by_another(cluster: BrokerCluster, asked: int, name: str, old: int) -> str:
    """Whether the first partition has a leader, and another one than before."""
    return "yes" if leader_of(cluster, asked, name) not in (-1, old) else ""


def assert_all_is_there(cluster: BrokerCluster, writer: Writer) -> None:
    """What was written is read once and in its order; each partition from its leader."""
    count = sum(map(len, writer.written))
    found: list[list[bytes]] = [[] for _ in writer.written]
    with Consumer(bootstrap_servers=cluster.addresses, auto_offset_reset="earliest") as consumer:
        consumer.assign([(writer.topic, index) for index in range(len(found))])
        for index, value in take(consumer, count):
            found[index].append(value)
    assert found == writer.written


def assert_replicas_are_alike(cluster: BrokerCluster, name: str) -> None:
    """Every broker has the same bytes; all of them are stopped for it, and started again."""
    wait_until_in_sync(cluster, name)
    for broker in cluster.brokers.values():
        broker.stop_cleanly()
    first, *others = [broker.directory / "data" for broker in cluster.brokers.values()]
    words = [word for other in others for word in ("--against", str(other))]
    verified = subprocess.run(
        [sys.executable, "-m", "tarry", "log", "verify", str(first), *words],
        capture_output=True,
        text=True,
        check=False,
    )
    start_all(cluster)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert len(sorted(first.glob(f"{name}-*"))) == 6


def start_all(cluster: BrokerCluster) -> None:
    """Start every broker that does not run."""
    for broker_id, broker in cluster.brokers.items():
        if broker.process is None:
            cluster.start_broker(broker_id)
