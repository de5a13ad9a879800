"""Groups whose coordinator dies, stops and moves: nobody loses what was committed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tarry.simulation import faults
from tarry.simulation.cluster.groups.run import ClusterGroupsRun
from tarry.simulation.cluster.groups.scenario import OFFSETS_TOPIC

_PATIENCE_MS = 60_000


def reading_group(seed: int) -> ClusterGroupsRun:
    run = ClusterGroupsRun(seed)
    assert run.start()
    until(run, lambda: any(member.owned for member in run.living_members()), "a group that reads")
    return run


def until(run: ClusterGroupsRun, is_so: Callable[[], bool], what: str) -> None:
    world = run.world
    world.run_until(world.agenda.now_ms + _PATIENCE_MS, is_so)
    assert is_so(), f"did not come: {what}"


def test_the_topic_of_groups_has_the_replicas_that_are_asked_for() -> None:
    run = reading_group(1)

    topic = run.brokers()[0].cluster.topics[OFFSETS_TOPIC]
    assert [len(row.replicas) for row in topic.partitions] == [3] * len(topic.partitions)


@pytest.mark.parametrize("end", ["clean", faults.KILL, faults.POWER])
def test_a_group_goes_on_where_its_coordinator_went(end: str) -> None:
    run = reading_group(2)
    (coordinator,) = run.coordinators()
    node = next(each for each in run.nodes if each.broker is coordinator)
    if end == "clean":
        node.request_stop(faults.CLEAN)
        until(run, lambda: node.broker is None, "a stop")
    else:
        node.lose(end)
    node.is_cut_off = True
    until(run, lambda: len(run.coordinators()) == 1, "another coordinator")
    assert run.coordinators() != [coordinator]
    run.world.run_for(3_000)
    node.reconnect()

    assert run.finish() == []
    assert run.moves.moves >= 2


def test_what_a_run_has_seen_was_enough_to_tell() -> None:
    """Over these seeds commits were read by others, and rounds had several members."""
    runs = [ClusterGroupsRun(seed) for seed in range(1, 5)]

    assert [run.run() for run in runs] == [[]] * len(runs)
    assert all(run.moves.moves for run in runs)
    assert sum(run.offset.compared for run in runs) > 100
    assert sum(run.group.compared for run in runs) > 0
