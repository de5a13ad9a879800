"""Seeds with the client's own members: nothing is skipped, taken back or read by two."""

from __future__ import annotations

import pytest
from tests.support.simulation.group_client_laws import offences
from tests.support.simulation.group_client_world import Member, World

from tarry.client.core.consumer.lookup import LATEST
from tarry.client.core.group.consumer import GroupConsumerCore

# A planted mistake is to be found within so many seeds.
SEEDS_MAX = 30


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_group_of_our_members_stands_what_goes_wrong(seed: int) -> None:
    world = World(seed)

    world.run()

    assert offences(world) == []
    assert world.handed_out
    assert world.damages


class Doubtless(Member):
    """Hands out what it has, whatever the coordinator may think of it meanwhile."""

    def make_core(self) -> GroupConsumerCore:
        core = super().make_core()
        vars(core.membership)["may_hand_out"] = lambda now_ms: True
        return core


class Forgetful(Member):
    """Begins at the end, wherever the group stands."""

    def make_core(self) -> GroupConsumerCore:
        core = super().make_core()
        vars(core)["begin_at"] = lambda place, position: core.seek_to(place, LATEST)
        return core


class Hasty(Member):
    """Counts as finished what was only fetched."""

    def make_core(self) -> GroupConsumerCore:
        core = super().make_core()

        def finish() -> None:
            for position in core.fetcher.positions.values():
                position.finished = position.fetch_offset

        vars(core)["finish_handed_out"] = finish
        return core


class Careless(Member):
    """Begins anew at every assignment."""

    def make_core(self) -> GroupConsumerCore:
        core = super().make_core()
        vars(core)["begin_at"] = core.reset
        return core


@pytest.mark.parametrize("mistake", [Doubtless, Forgetful, Hasty, Careless])
def test_a_planted_mistake_is_found(mistake: type[Member]) -> None:
    for seed in range(1, SEEDS_MAX):
        world = World(seed, mistake)
        world.run()
        if offences(world):
            return
    pytest.fail(f"{mistake.__name__} was not found")
