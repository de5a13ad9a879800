"""Replicas under faults from a seed: nothing committed is lost, and all comes in sync again.

Producers with acks=all and acks=1 write to three replicas, while brokers are killed, lose power,
stand still, stop cleanly, are cut off from etcd or from each other, in one direction or in both.
"""

from __future__ import annotations

import pytest
from tests.support.cluster.replica_run import ReplicaRun

SEEDS = 6


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_committed_stays_through_any_fault(seed: int) -> None:
    run = ReplicaRun(seed)

    run.play()

    assert run.violations() == []
    assert run.compared > 100
