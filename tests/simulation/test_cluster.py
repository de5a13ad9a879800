"""Three brokers in one simulated world, with their metadata in a simulated etcd."""

from __future__ import annotations

import pytest
from tests.support.cluster.simulated_cluster import PARTITIONS, SimulatedCluster

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


@pytest.mark.parametrize("seed", range(20))
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
