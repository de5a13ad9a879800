"""Groups whose coordinator dies, stops and moves: nobody loses what was committed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from tests.support.cluster.group_run import OFFSETS_TOPIC, GroupRun

from tarry.broker.coordinator.coordinators import Coordinators
from tarry.broker.coordinator.runtime import ShardRuntime
from tarry.cluster.claims import ClaimPartitions
from tarry.cluster.records import PartitionRow
from tarry.cluster.row_changes import RowsChange
from tarry.cluster.state import ClusterState, TopicState
from tarry.partition.role import Role
from tarry.partition.state import Partition
from tarry.simulation import faults


def test_the_topic_of_groups_has_the_replicas_that_are_asked_for() -> None:
    run = GroupRun(1)
    run.settle_first()

    topic = run.cluster.brokers()[0].cluster.topics[OFFSETS_TOPIC]
    assert [len(row.replicas) for row in topic.partitions] == [3, 3]


@pytest.mark.parametrize("end", ["clean", faults.KILL, faults.POWER])
def test_a_group_goes_on_where_its_coordinator_went(end: str) -> None:
    run = GroupRun(2)
    run.settle_first()
    (coordinator,) = run.coordinators()
    node = next(each for each in run.cluster.nodes if each.broker is coordinator)
    if end == "clean":
        node.request_stop(faults.CLEAN)
        run.cluster.run_until(lambda: node.broker is None, "a stop")
    else:
        node.lose(end)
    node.is_cut_off = True
    run.cluster.run_until(lambda: len(run.coordinators()) == 1, "another coordinator")
    assert run.coordinators() != [coordinator]
    run.cluster.world.run_for(3_000)
    node.reconnect()
    run.calm_down()

    assert run.violations() == []


@pytest.mark.parametrize("seed", range(12))
def test_no_commit_is_lost_and_no_record_skipped(seed: int) -> None:
    run = GroupRun(seed)
    run.cluster.play()
    run.settle()

    assert run.violations() == []


# --- Planted faults: the checks find each of them, with the seed that found it first.


def finds_something(seed: int) -> bool:
    run = GroupRun(seed)
    run.cluster.play()
    try:
        run.settle()
        return run.violations() != []
    except AssertionError:
        return True


def keeps_what_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shard that was given up answers on, and is there when the partition comes back."""

    def on_role(self: Coordinators, partition: Partition, before: Role | None, after: Role) -> None:
        coordinator = next((one for one in self.all if one.topic == partition.topic), None)
        if coordinator is None or before is None or not after.is_leader:
            return
        if partition.index not in coordinator.shards:
            coordinator.load(partition)

    monkeypatch.setattr(Coordinators, "on_role", on_role)


def loads_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the earlier leader committed is not below the high watermark yet."""
    monkeypatch.setattr(ShardRuntime, "can_be_loaded", lambda _: True)


def claims_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any replica leads that finds nobody leading."""
    claimed = ClaimPartitions.changed

    def changed(
        self: ClaimPartitions, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        after = claimed(self, view, topic, index, replace(row, isr=list(row.replicas)))
        return None if after is None else replace(after, isr=[after.leader_id])

    monkeypatch.setattr(ClaimPartitions, "changed", changed)
    # Places of everybody, not only of those in the isr.
    monkeypatch.setattr(ClaimPartitions, "places", RowsChange.places)


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("plant", "seed"), [(keeps_what_moved, 14), (loads_too_early, 2), (claims_from_outside, 1)]
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None], seed: int
) -> None:
    plant(monkeypatch)

    assert any(finds_something(each) for each in (seed, *range(40)))
