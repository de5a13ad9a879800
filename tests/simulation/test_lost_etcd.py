"""A broker that alone has lost etcd sends its clients to those that serve."""

from __future__ import annotations

from tests.support.cluster.cluster_user import ClusterUser
from tests.support.cluster.leader_scene import LeaderScene

from tarry.broker.membership.other_views import ASK_MS, CERTAIN_MS
from tarry.protocol import api_keys
from tarry.protocol.messages.metadata import MetadataRequest
from tarry.simulation.cluster.cluster_node import SESSION_MS

ALL = [1, 2, 3]
# The lease, late by half a second at most, and two questions.
SENT_AWAY_MS = SESSION_MS + 500 + 2 * ASK_MS + CERTAIN_MS


def sends_away(scene: LeaderScene, broker_id: int) -> bool:
    broker = scene.nodes[broker_id].broker
    assert broker is not None
    return broker.neighbours.must_send_away()


def connections(scene: LeaderScene, broker_id: int) -> int:
    broker = scene.nodes[broker_id].broker
    assert broker is not None
    return len(broker.answers.connections)


def test_clients_of_a_broker_that_lost_etcd_are_sent_away_until_it_serves_again() -> None:
    scene = LeaderScene()
    scene.create([ALL])
    scene.until(lambda: scene.leads(1), "a leader")
    user = ClusterUser(scene.cluster, 1)
    user.call(api_keys.METADATA, 12, MetadataRequest([]))
    assert connections(scene, 1) > 0

    scene.nodes[1].cut_off()
    scene.until(lambda: sends_away(scene, 1), "clients sent away", SENT_AWAY_MS)
    assert connections(scene, 1) == 0
    user.begin(api_keys.METADATA, 12, MetadataRequest([]))
    scene.pass_ms(3_000)
    # Each attempt has met a closed connection.
    assert not any(user.answers)
    user.answers.clear()

    scene.nodes[1].reconnect()
    scene.until(lambda: not sends_away(scene, 1), "a broker that serves again", 3_000)
    assert user.call(api_keys.METADATA, 12, MetadataRequest([])) is not None
    assert scene.violations() == []


def test_what_another_cluster_says_sends_nobody_away() -> None:
    """While etcd is away an address that is known may have become a stranger's."""
    scene = LeaderScene()
    scene.create([ALL])
    scene.until(lambda: scene.leads(1), "a leader")
    for broker_id in (2, 3):
        broker = scene.nodes[broker_id].broker
        assert broker is not None
        broker.cluster._cluster_id = "of strangers"

    scene.nodes[1].cut_off()
    scene.pass_ms(2 * SENT_AWAY_MS)

    assert not sends_away(scene, 1)


def test_as_long_as_etcd_is_away_for_all_clients_stay() -> None:
    scene = LeaderScene()
    scene.create([ALL])
    scene.until(lambda: scene.leads(1), "a leader")
    for node in scene.nodes.values():
        node.cut_off()

    for _ in range(20):
        scene.pass_ms(1_000)
        assert [sends_away(scene, each) for each in ALL] == [False] * 3

    assert scene.leads(1)
