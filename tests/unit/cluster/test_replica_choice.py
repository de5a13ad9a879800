"""Placement: racks, even leaders, growth, assignments of clients, numbers of replicas."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.cluster.decisions.partition_decisions import GrowthWanted, decide_create_partitions
from tarry.cluster.decisions.replica_choice import spread_replicas
from tarry.cluster.decisions.topic_decisions import (
    TopicIds,
    TopicResult,
    TopicWanted,
    decide_create_topics,
)
from tarry.cluster.state.records import (
    BrokerDescribed,
    BrokerRegistered,
    LifeChanged,
    PartitionsAdded,
    TopicCreated,
)
from tarry.cluster.state.state import ClusterState


def cluster(*racks: str, phases: dict[int, str] | None = None) -> ClusterState:
    """Brokers 1, 2, … in these racks; `phases` of those that do not serve, "" for no life."""
    state = ClusterState()
    for broker_id, rack in enumerate(racks, start=1):
        state.apply(BrokerRegistered(broker_id=broker_id))
        state.apply(BrokerDescribed(broker_id=broker_id, directory_id="d", rack=rack, endpoints={}))
        phase = (phases or {}).get(broker_id, "serving")
        if phase:
            state.apply(LifeChanged(broker_id=broker_id, broker_epoch=10 + broker_id, phase=phase))
    return state


def create(
    state: ClusterState, wanted: TopicWanted, settings: dict[str, str] | None = None
) -> TopicResult:
    decision = decide_create_topics(
        state, [wanted], Settings(settings or {}), TopicIds(random.Random(1))
    )
    for record in decision.records:
        state.apply(record)
    (outcome,) = decision.outcomes
    return outcome


def rows(outcome: TopicResult) -> list[PartitionRow]:
    assert isinstance(outcome.created, TopicCreated), outcome.message
    return outcome.created.partitions


@pytest.mark.parametrize(
    ("racks", "factor"),
    [
        (["", "", ""], 3),
        (["a", "b", "c"], 3),
        (["a", "a", "b", "b"], 2),
        (["a", "a", "a", "b", "b", "b"], 2),
        (["a", "b", "c", "a", "b", "c"], 3),
        (["a", "a", "b", "c"], 3),
        (["a", "a", "b"], 3),
        (["a", "b"], 1),
    ],
)
def test_replicas_lie_in_different_racks_and_leaders_are_even(
    racks: list[str], factor: int
) -> None:
    spread = spread_replicas(cluster(*racks), 12 * len(racks), factor)

    for replicas in spread:
        assert len(set(replicas)) == len(replicas) == factor
        used = Counter(racks[broker_id - 1] for broker_id in replicas)
        assert len(used) == min(factor, len(set(racks)))
    leaders = Counter(replicas[0] for replicas in spread)
    assert set(leaders.values()) == {12}


@pytest.mark.parametrize(
    ("racks", "factor"),
    [([""], 1), (["", "", ""], 3), (["a", "a", "b", "b"], 2), (["a", "a", "b", "c", "d"], 3)],
)
def test_a_partition_has_the_same_replicas_however_many_are_chosen_with_it(
    racks: list[str], factor: int
) -> None:
    view, count = cluster(*racks), 5 * len(racks) ** 2

    spread = spread_replicas(view, count, factor, 7)

    alone = [spread_replicas(view, 1, factor, 7 + number) for number in range(count)]
    assert [[replicas] for replicas in spread] == alone
    # Each partition has a list of its own.
    assert len({id(replicas) for replicas in spread}) == count


def test_what_a_dead_broker_led_goes_to_all_of_the_others() -> None:
    spread = spread_replicas(cluster("", "", "", ""), 12, 3)

    seconds = Counter(replicas[1] for replicas in spread if replicas[0] == 1)
    assert seconds == {2: 1, 3: 1, 4: 1}


def test_small_topics_have_even_leaders_too() -> None:
    state = cluster("", "", "")

    leaders = [rows(create(state, TopicWanted(f"t{n}", 1, 2)))[0].leader_id for n in range(6)]

    assert leaders == [1, 2, 3, 1, 2, 3]


def test_growth_continues_the_spread() -> None:
    state = cluster("a", "b", "c")
    create(state, TopicWanted("orders", 2, 2))

    decision = decide_create_partitions(state, [GrowthWanted("orders", 6)])

    (added,) = decision.records
    assert isinstance(added, PartitionsAdded)
    assert [row.leader_id for row in added.partitions] == [3, 1, 2, 3]
    assert all(len(row.replicas) == len(row.isr) == 2 for row in added.partitions)


def test_growth_with_too_few_brokers_is_refused() -> None:
    state = cluster("", "", "")
    create(state, TopicWanted("orders", 1, 3))
    state.apply(LifeChanged(broker_id=3, broker_epoch=40, phase="starting"))

    (outcome,) = decide_create_partitions(state, [GrowthWanted("orders", 2)]).outcomes

    assert outcome.error_code == errors.INVALID_REPLICATION_FACTOR
    assert "factor 3 is above the number of brokers that serve, 2" in (outcome.message or "")


def test_in_sync_are_the_replicas_that_serve_and_the_first_of_them_leads() -> None:
    state = cluster("", "", "", phases={1: "", 3: "starting"})

    (row,) = rows(create(state, TopicWanted("n", -1, -1, [(0, [1, 3, 2])])))

    assert (row.leader_id, row.replicas, row.isr) == (2, [1, 3, 2], [2])


@pytest.mark.parametrize(
    ("assignments", "sentence"),
    [
        ([(0, [1, 9])], "names broker 9, which is not registered"),
        ([(0, [1, 2, 1])], "names broker 1 twice"),
        ([(0, [])], "no replicas"),
        ([(0, [3])], "none serves now"),
        ([(0, [1, 2]), (1, [1])], "partition 1 has 1 replicas and those before it 2"),
    ],
)
def test_assignments_that_cannot_be_are_refused(
    assignments: list[tuple[int, list[int]]], sentence: str
) -> None:
    outcome = create(cluster("", "", "", phases={3: ""}), TopicWanted("n", -1, -1, assignments))

    assert outcome.error_code == errors.INVALID_REPLICA_ASSIGNMENT
    assert sentence in (outcome.message or "")


@pytest.mark.parametrize(("factor", "default", "count"), [(-1, 3, 2), (-1, 1, 1), (2, 1, 2)])
def test_the_default_is_cut_to_the_brokers_that_serve(
    factor: int, default: int, count: int
) -> None:
    state = cluster("", "", "", phases={3: ""})

    made = create(state, TopicWanted("n", 1, factor), {"default.replication.factor": str(default)})

    assert [len(row.replicas) for row in rows(made)] == [count]


def test_a_factor_above_the_brokers_that_serve_is_refused() -> None:
    outcome = create(cluster("", "", "", phases={3: "leaving"}), TopicWanted("n", 1, 3))

    assert outcome.error_code == errors.INVALID_REPLICATION_FACTOR
    assert "3 is above the number of brokers that serve, 2: ask for 2" in (outcome.message or "")
