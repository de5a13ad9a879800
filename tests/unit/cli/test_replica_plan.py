"""Plans of moves: every replica has a place, racks differ, little moves."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tarry.cli.replica_plan import Replicas, TooFewBrokers, drained, spread

NO_RACKS = {1: "", 2: "", 3: "", 4: ""}


def of(*replicas: list[int]) -> Replicas:
    return {("t", index): each for index, each in enumerate(replicas)}


def test_who_stays_keeps_its_place_and_who_leaves_is_replaced_by_who_has_least() -> None:
    before = of([1, 2], [2, 3], [3, 1], [4, 1])

    assert drained(before, [3], NO_RACKS) == {("t", 1): [2, 4], ("t", 2): [1, 2]}


@pytest.mark.parametrize(
    ("racks", "expected"),
    [({1: "a", 2: "a", 3: "b", 4: "b"}, [1, 4]), ({1: "a", 2: "a", 3: "b", 4: "a"}, [1, 2])],
)
def test_a_rack_that_a_partition_lacks_comes_first(
    racks: dict[int, str], expected: list[int]
) -> None:
    before = of([1, 3], [4, 2], [4, 2])

    assert drained({("t", 0): before["t", 0]}, [3], racks)["t", 0] == expected


def test_a_dead_broker_is_drained_without_being_one_of_those_that_get_replicas() -> None:
    assert drained(of([3]), [3], {1: "", 2: ""}) == {("t", 0): [1]}


def test_too_few_brokers_are_an_error_or_make_fewer_replicas() -> None:
    racks = {1: "", 2: "", 3: ""}

    with pytest.raises(TooFewBrokers, match=r"t \[0\] has 3 replicas, with 2 brokers for them"):
        drained(of([1, 2, 3]), [3], racks)

    assert drained(of([1, 2, 3]), [3], racks, may_shrink=True) == {("t", 0): [1, 2]}
    with pytest.raises(TooFewBrokers):
        drained(of([3]), [3], {3: ""}, may_shrink=True)


def test_a_new_broker_gets_its_share_of_replicas_and_of_leaders() -> None:
    before = of(*[[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 8)

    after = {**before, **spread(before, NO_RACKS, None)}

    held = Counter(broker_id for replicas in after.values() for broker_id in replicas)
    assert max(held.values()) - min(held.values()) <= 1
    leads = Counter(replicas[0] for replicas in after.values())
    assert max(leads.values()) - min(leads.values()) <= 1
    moved = sum(len(set(after[place]) - set(before[place])) for place in before)
    assert moved == held[4] == 18


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_a_factor_is_reached_from_either_side(factor: int) -> None:
    before = of([1, 2], [2, 3], [3, 4], [4, 1])

    after = {**before, **spread(before, NO_RACKS, factor)}

    assert {len(set(replicas)) for replicas in after.values()} == {factor}


def test_what_is_even_stays_as_it_is() -> None:
    before = of([1, 2], [2, 3], [3, 4], [4, 1])

    assert spread(before, NO_RACKS, 2) == {}


@pytest.mark.parametrize("seed", range(30))
def test_any_plan_has_each_broker_once_in_as_many_racks_as_can_be(seed: int) -> None:
    chance = Random(seed)
    brokers = range(1, 3 + chance.randrange(6))
    racks = {broker_id: "abc"[chance.randrange(3)] for broker_id in brokers}
    factor = 1 + chance.randrange(len(racks))
    before = of(*[chance.sample(list(brokers), 1 + chance.randrange(len(racks)))] * 20)

    after = {**before, **spread(before, racks, factor)}

    for place, replicas in after.items():
        assert len(replicas) == len(set(replicas)) == factor
        assert set(replicas) <= set(racks)
        kept = [each for each in before[place][:factor] if each in replicas]
        used = len({racks[each] for each in replicas})
        assert used >= min(factor, len({racks[each] for each in kept}))
