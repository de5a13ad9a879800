"""The checker of what is served after too few replicas were there, with three brokers."""

from __future__ import annotations

import pytest
from tests.support.cluster.leader_scene import LeaderScene

from tarry.simulation.cluster.too_few import SERVED_AGAIN_MS, TooFew

ABSENT_MS = 10_000


@pytest.fixture
def scene() -> LeaderScene:
    """A topic that needs two replicas in sync."""
    scene = LeaderScene()
    scene.create([[1, 2, 3]], {"min.insync.replicas": "2"})
    return scene


def begun(scene: LeaderScene) -> TooFew:
    too_few = TooFew(
        scene.world, scene.cluster.etcd_node, list(scene.nodes.values()), duration_ms=ABSENT_MS
    )
    too_few.begin()
    return too_few


def test_what_is_served_again_is_not_reported(scene: LeaderScene) -> None:
    too_few = begun(scene)
    scene.pass_ms(ABSENT_MS // 2)
    running = len(scene.cluster.brokers())
    scene.pass_ms(ABSENT_MS // 2 + SERVED_AGAIN_MS)

    assert running == 1
    assert len(scene.cluster.brokers()) == 3
    assert too_few.violations == []


def test_what_still_has_too_few_replicas_is_reported(scene: LeaderScene) -> None:
    too_few = begun(scene)
    for node in scene.nodes.values():
        node.is_cut_off = node.broker is None
    scene.pass_ms(ABSENT_MS + SERVED_AGAIN_MS)

    assert too_few.violations == [
        "t-0 has too few in sync 5000 ms after enough brokers can start again",
        "a broker does not run 5000 ms later",
    ]
