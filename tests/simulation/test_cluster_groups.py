"""Groups whose coordinator dies, stops and moves: nobody loses what was committed."""

from __future__ import annotations

import pytest
from tests.support.cluster.group_run import OFFSETS_TOPIC, GroupRun
from tests.support.cluster.leader_scene import allow_replicas

from tarry.simulation import faults


@pytest.fixture(autouse=True)
def _replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_replicas(monkeypatch)


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
