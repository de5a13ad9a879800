"""One disk of three is full: its broker hands over and leaves, and the others go on without it.

Real disks are filled in `tests/processes/test_cluster_disks.py`.
"""

from __future__ import annotations

import pytest
from tests.support.cluster.leader_scene import LeaderScene
from tests.support.cluster.simulated_cluster import SimulatedCluster

from tarry.base.etcd import Row
from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.rows import Keys, decode_row

# The disk refuses for a second before its broker gives anything away; who has handed over may come
# in sync once more, until there is news.  By lag it would leave after 30 s.
GIVEN_UP_MS = 6_000
ALL = [1, 2, 3]


def written_isrs(cluster: SimulatedCluster, topic_id: bytes, index: int = 0) -> list[list[int]]:
    """Every isr that was written for the partition, in order."""
    key = Keys("/simulated/").part(topic_id, index)
    found: list[list[int]] = []
    for _, changes in cluster.etcd_node.etcd.changes_from(1):
        for change in changes:
            if isinstance(change, Row) and change.key == key:
                row = decode_row("parts", key, change.value)
                assert isinstance(row, PartitionRow)
                if not found or found[-1] != sorted(row.isr):
                    found.append(sorted(row.isr))
    return found


@pytest.mark.parametrize("full", [1, 3])
def test_the_others_go_on_without_a_full_disk_until_it_has_room(full: int) -> None:
    cluster = SimulatedCluster(
        7, replication_factor=3, configs={"min.insync.replicas": "2", "retention.ms": "-1"}
    )
    cluster.start()
    world = cluster.world
    node = cluster.nodes[full - 1]
    topic = cluster.context.topics[0]
    world.run_for(1_000)
    node.disk.capacity_bytes = node.disk.used_bytes()
    world.run_for(GIVEN_UP_MS)
    rows = cluster.brokers()[0].cluster.topics[topic.name].partitions
    away = [(full in row.isr, row.leader_id == full) for row in rows]
    promised = len(cluster.history.promised[topic.topic_id, 0])
    changes = len(written_isrs(cluster, topic.topic_id))
    world.run_for(5_000)
    promised_later = len(cluster.history.promised[topic.topic_id, 0])
    changes_later = len(written_isrs(cluster, topic.topic_id))
    node.disk.capacity_bytes = None
    cluster.run_until(
        lambda: all(
            sorted(each.isr) == ALL
            for each in cluster.brokers()[0].cluster.topics[topic.name].partitions
        ),
        "all in sync",
    )
    cluster.context.is_quiet = True
    cluster.run_until(cluster.is_settled, "an end")
    world.run_for(1_000)

    assert away == [(False, False)] * len(rows)
    assert promised_later > promised
    # It stays away: nothing is written to etcd again and again.
    assert changes_later == changes
    assert cluster.violations() == []


def test_who_has_handed_over_for_its_disk_stays_in_sync_while_nothing_comes() -> None:
    scene = LeaderScene()
    scene.create([ALL])
    scene.until(lambda: scene.leads(1), "a leader")
    broker = scene.node(1).broker
    assert broker is not None
    partition = broker.topics.replica("t", 0)
    assert partition is not None
    broker.flushes.refused[partition] = None
    scene.until(lambda: scene.leaders() == [2], "another leader")
    scene.until(lambda: sorted(scene.row().isr) == ALL, "all in sync")
    before = len(scene.isrs())
    scene.pass_ms(10_000)

    assert len(scene.isrs()) == before
    assert scene.violations() == []
