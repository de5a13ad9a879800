"""Three replicas, brokers that are killed and lose power or etcd: nothing that was promised goes.

Afterwards every partition is led, and all replicas are in sync and have the same bytes.
"""

from __future__ import annotations

import pytest
from tests.simulation.test_followers import are_equal, places
from tests.support.cluster.simulated_cluster import SimulatedCluster

from tarry.broker import reads
from tarry.partition.followers import Followers


def are_in_sync(cluster: SimulatedCluster) -> bool:
    return all(
        row.leader_id >= 0 and sorted(row.isr) == sorted(row.replicas)
        for broker in cluster.brokers()
        for topic in broker.cluster.topics.values()
        for row in topic.partitions
    )


def wrongs(seed: int) -> list[str]:
    """Play a seed; return what is wrong at its end."""
    cluster = SimulatedCluster(seed, replication_factor=3)
    cluster.start()
    try:
        cluster.play()
        cluster.run_until(lambda: are_equal(cluster), f"equal copies; {places(cluster)}")
        cluster.run_until(lambda: are_in_sync(cluster), "all in sync")
        # Watches bring the last rows.
        cluster.world.run_for(3_000)
    except AssertionError as error:
        return [str(error)]
    found = [one for node in cluster.nodes for one in node.violations] + cluster.violations()
    # Some brokers are away when the topics are made.
    return [one for one in found if "INVALID_REPLICATION_FACTOR" not in one]


@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_was_promised_is_lost_and_all_are_in_sync_again(seed: int) -> None:
    assert wrongs(seed) == []


@pytest.mark.interpreted
@pytest.mark.parametrize("fault", ["the leader's end alone counts", "divergence is ignored"])
def test_a_leader_that_breaks_a_rule_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    if fault == "divergence is ignored":
        monkeypatch.setattr(reads, "parting", lambda log, asked, reader: None)
    else:
        monkeypatch.setattr(
            Followers, "high_watermark", lambda self, which, end, in_sync, floor: end
        )

    assert any(wrongs(seed) for seed in range(2, 30))
