"""Three brokers in one simulated world, with their metadata in a simulated etcd."""

from __future__ import annotations

import pytest
from tests.support.cluster.cluster_user import ClusterUser
from tests.support.cluster.simulated_cluster import PARTITIONS, SimulatedCluster

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.simulation.trace import Trace


def test_partitions_are_spread_and_every_broker_knows_all() -> None:
    cluster = SimulatedCluster(1)
    cluster.start()
    cluster.world.run_for(2_000)

    hosted = [len(broker.topics.replicas()) for broker in cluster.brokers()]
    assert sum(hosted) == 2 * PARTITIONS
    assert min(hosted) >= 2
    for store in cluster.stores():
        assert sorted(store.state.topics) == ["t0", "t1"]
        assert store.state.placeable_ids == [1, 2, 3]


@pytest.mark.parametrize("seed", range(10))
def test_nothing_acknowledged_is_lost_doubled_or_reordered(seed: int) -> None:
    cluster = SimulatedCluster(seed)
    cluster.start()
    cluster.play()

    assert cluster.violations() == []
    assert sum(map(len, cluster.history.promised.values())) > 0


def test_a_seed_gives_the_same_run_again() -> None:
    traces = []
    for _ in range(2):
        trace = Trace()
        cluster = SimulatedCluster(5, trace)
        cluster.start()
        cluster.play()
        traces.append(trace.digest())

    assert traces[0] == traces[1]


def test_who_asks_while_another_change_waits_for_etcd_is_told_of_each_of_its_topics() -> None:
    cluster = SimulatedCluster(1)
    cluster.start()
    user = ClusterUser(cluster)
    cluster.nodes[0].cut_off()

    for name in ("waits-for-etcd", "waits-for-the-other"):
        request = CreateTopicsRequest([CreatableTopic(name, 1, 1)], timeout_ms=300)
        answer = user.call(api_keys.CREATE_TOPICS, 7, request)
        assert isinstance(answer, CreateTopicsResponse)
        told = [(each.name, each.error_code) for each in answer.topics]
        assert told == [(name, errors.REQUEST_TIMED_OUT)]
