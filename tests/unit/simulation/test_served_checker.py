"""The checker of service, with three brokers of which one disk refuses a directory."""

from __future__ import annotations

from tests.support.cluster.leader_scene import LeaderScene

from tarry.simulation.cluster.replica_checker import ReplicaChecker
from tarry.simulation.cluster.served_checker import SERVED_MS_MAX, ServedChecker


def watched(scene: LeaderScene) -> ServedChecker:
    """A checker that looks each 100 ms from now on, for some seconds."""
    replicas = ReplicaChecker(scene.cluster.etcd_node)
    checker = ServedChecker(replicas, list(scene.nodes.values()))
    for _ in range(2 * SERVED_MS_MAX // 100):
        scene.pass_ms(100)
        for node in scene.nodes.values():
            replicas.after_turn(node)
            checker.after_turn(node)
    return checker


def test_a_partition_that_another_broker_takes_over_is_served() -> None:
    scene = LeaderScene()
    scene.node(1).disk.refuse_directory("t-0")
    scene.create([[1, 2, 3]])

    assert watched(scene).violations == []


def test_a_leader_without_its_log_that_keeps_its_partition_is_reported() -> None:
    scene = LeaderScene()
    scene.node(1).disk.refuse_directory("t-0")
    broker = scene.node(1).broker
    assert broker is not None
    # The broker behaves as one that does not know that it has no log.
    broker.neighbours.membership._elections._unmade = list  # type: ignore[union-attr, attr-defined]
    scene.create([[1, 2, 3]])

    found = watched(scene).violations

    assert found
    assert "t-0 is not served for" in found[0]
    assert "b1 is to lead it, and [2, 3] could" in found[0]
