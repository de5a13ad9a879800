"""Followers in one simulated world: they have what their leaders have, byte for byte."""

from __future__ import annotations

import pytest
from tests.support.cluster.simulated_cluster import PARTITIONS, SimulatedCluster

from tarry.broker.replication.followed import STANDING
from tarry.broker.replication.placement import Placement
from tarry.partition.replicated_log import ReplicatedLog


def content(partition: ReplicatedLog) -> bytes:
    log = partition.log
    parts: list[bytes] = []
    offset: int = log.log_start_offset
    while offset < log.written_end_offset:
        region = log.read(offset, log.end_position(), 1 << 20, True)
        assert region is not None
        parts.append(region.file.read(region.position, region.size))
        offset = log.written_end_offset if region.size == 0 else _end(parts[-1])
    return b"".join(parts)


def _end(data: bytes) -> int:
    position = 0
    while position < len(data):
        base = int.from_bytes(data[position : position + 8], "big")
        last = base + int.from_bytes(data[position + 23 : position + 27], "big")
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return last + 1


def copies(cluster: SimulatedCluster, name: str, index: int) -> list[bytes]:
    found = [broker.topics.replica(name, index) for broker in cluster.brokers()]
    return [content(one) for one in found if one is not None]


def are_equal(cluster: SimulatedCluster) -> bool:
    return all(
        len(set(copies(cluster, topic.name, index))) == 1
        and len(copies(cluster, topic.name, index)) == cluster.replication_factor
        for topic in cluster.context.topics
        for index in range(PARTITIONS)
    )


def are_in_sync(cluster: SimulatedCluster) -> bool:
    return all(
        len(row.isr) == cluster.replication_factor
        for topic in cluster.brokers()[0].store.state.topics.values()
        for row in topic.partitions
    )


def started(seed: int, factor: int = 3) -> SimulatedCluster:
    cluster = SimulatedCluster(seed, replication_factor=factor)
    cluster.start()
    return cluster


def settle(cluster: SimulatedCluster) -> None:
    cluster.context.is_quiet = True
    for node in cluster.nodes:
        node.heal()
        node.reconnect()
    cluster.run_until(cluster.is_settled, f"an end; {cluster.unsettled()}")
    cluster.run_until(lambda: are_equal(cluster), "equal copies")


@pytest.mark.parametrize("factor", [2, 3])
def test_what_is_produced_is_on_every_replica_with_the_same_bytes(factor: int) -> None:
    cluster = started(1, factor)
    cluster.world.run_for(3_000)

    settle(cluster)

    assert sum(map(len, cluster.history.promised.values())) > 50
    for topic in cluster.context.topics:
        for index in range(PARTITIONS):
            assert copies(cluster, topic.name, index)[0]


@pytest.mark.parametrize("seed", range(4))
def test_copies_are_equal_after_kills_losses_of_power_and_cuts(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = started(seed)

    cluster.play()
    cluster.run_until(lambda: are_equal(cluster), f"equal copies; {places(cluster)}")
    cluster.run_until(lambda: are_in_sync(cluster), f"replicas in sync; {places(cluster)}")
    # Rows that the watches have still to bring.
    cluster.world.run_for(1_000)

    assert STANDING not in places(cluster)
    assert cluster.violations() == []
    assert [one.getMessage() for one in caplog.records if one.levelname == "ERROR"] == []


def places(cluster: SimulatedCluster) -> str:
    """Where each broker stands with what it follows."""
    found: list[str] = []
    for broker in cluster.brokers():
        assert isinstance(broker.neighbours.following, Placement)
        for one in broker.neighbours.following.followed.values():
            end = one.partition.log.log_end_offset
            found.append(f"{broker.broker_id}: {one.partition.name} {one.state} at {end}")
    return "; ".join(found)


def test_a_link_that_is_cut_in_one_direction_only_delays_copies() -> None:
    cluster = started(4)
    first, second, third = (node.network for node in cluster.nodes)
    first.deaf_to.add(second)
    third.deaf_to.add(first)

    cluster.world.run_for(8_000)
    first.deaf_to.clear()
    third.deaf_to.clear()
    settle(cluster)
    cluster.run_until(lambda: are_in_sync(cluster), f"replicas in sync; {places(cluster)}")

    assert cluster.context.history.violations == []
    assert sum(map(len, cluster.history.promised.values())) > 0
