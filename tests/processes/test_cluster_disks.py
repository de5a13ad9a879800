"""Three real brokers, one of which has a disk that is full, or that fails a flush.

The broker is hit as a leader first; when it is back others lead, and it is hit as a follower.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.etcd_server import ROOT
from tests.support.cluster.replicated import (
    EVERY_BROKER,
    assert_all_is_there,
    assert_replicas_are_alike,
    create,
    wait_until_in_sync,
)
from tests.support.cluster.small_disk import SmallDisk
from tests.support.cluster.writer import Writer

SETTINGS = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    # Nobody leaves by lag here.
    "replica.lag.time.max.ms": "300000",
}
# The broker with the disk.
HIT = 3
DISK_BYTES = 32 << 20
PROGRAM = ROOT / "tests" / "support" / "processes" / "failing_flushes.py"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[BrokerCluster]:
    """A cluster that is not started yet."""
    made = BrokerCluster(tmp_path, SETTINGS)
    yield made
    made.close()


@pytest.fixture
def disk(made: BrokerCluster) -> Iterator[SmallDisk]:
    disk = SmallDisk(made.brokers[HIT].directory / "data", DISK_BYTES)
    yield disk
    made.brokers[HIT].close()
    disk.close()


def writer_of(cluster: BrokerCluster, name: str) -> Writer:
    cluster.start()
    create(cluster, name)
    writer = Writer(cluster.addresses, name)
    writer.start()
    writer.wait_for_more()
    return writer


def led(cluster: BrokerCluster, name: str, broker_id: int) -> int:
    """How many partitions this broker leads, as another one tells."""
    partitions = cluster.topic(1, name).partitions.values()
    return sum(row.leader_id == broker_id for row in partitions)


def wait_until_away(cluster: BrokerCluster, name: str, broker_id: int) -> None:
    """Wait until a broker leads nothing, and nobody waits for it."""

    def is_away() -> str:
        partitions = cluster.topic(1, name).partitions.values()
        is_in = any(broker_id in (row.leader_id, *row.isr) for row in partitions)
        return "" if is_in or not partitions else "yes"

    wait_until(is_away, f"all partitions of {name} without broker {broker_id}")


def end(cluster: BrokerCluster, writer: Writer) -> None:
    """After everything is well again: nothing is lost, replicas are alike."""
    writer.wait_for_more()
    writer.end()
    assert_all_is_there(cluster, writer)
    assert_replicas_are_alike(cluster, writer.topic)


def test_a_broker_whose_disk_is_full_steps_aside_until_there_is_room(
    made: BrokerCluster, disk: SmallDisk
) -> None:
    writer = writer_of(made, "full")
    led_before = led(made, "full", HIT)
    disk.fill()
    wait_until_away(made, "full", HIT)
    writer.wait_for_more()
    disk.free()
    # It need not be started again.
    wait_until_in_sync(made, "full")
    led_then = led(made, "full", HIT)
    disk.fill()
    wait_until_away(made, "full", HIT)
    writer.wait_for_more()
    made.brokers[HIT].kill()
    disk.free()
    made.start_broker(HIT)
    wait_until_in_sync(made, "full")

    assert (led_before, led_then) == (2, 0)
    log = made.brokers[HIT].log()
    assert "disk full" in log
    assert "other brokers lead them from now on" in log
    assert "this broker leaves their replicas in sync" in log
    end(made, writer)


def test_a_broker_whose_flush_fails_ends_and_comes_back_with_all_that_counts(
    made: BrokerCluster, tmp_path: Path
) -> None:
    marker = tmp_path / "fail"
    hit = made.brokers[HIT]
    hit.program = [sys.executable, str(PROGRAM), str(marker)]
    writer = writer_of(made, "unflushed")
    led_before = [led(made, "unflushed", HIT)]
    codes: list[int] = []
    for _ in range(2):
        marker.touch()
        # Nothing that it has not flushed may count, and a second try would prove nothing.
        codes.append(hit.wait())
        wait_until_away(made, "unflushed", HIT)
        writer.wait_for_more()
        marker.unlink()
        made.start_broker(HIT)
        made.wait_until_serving(1, EVERY_BROKER)
        wait_until_in_sync(made, "unflushed")
        led_before.append(led(made, "unflushed", HIT))

    assert led_before == [2, 0, 0]
    assert codes == [1, 1]
    assert "a flush failed" in hit.log()
    end(made, writer)
