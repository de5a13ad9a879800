"""The walk over the lists of a purgatory: parts of it, while lists come and go."""

from __future__ import annotations

import random

from tarry.purgatory.watchers import Sweep, Watchers


def lists_of(sweep: Sweep, count: int) -> list[Watchers]:
    made = [Watchers(number) for number in range(count)]
    for watchers in made:
        sweep.add(watchers)
    return made


def walk_to_the_end(sweep: Sweep) -> list[object]:
    keys: list[object] = []
    while (watchers := sweep.next()) is not None:
        keys.append(watchers.key)
    return keys


def test_a_walk_comes_past_every_list_once_and_the_next_one_again() -> None:
    sweep = Sweep()
    lists_of(sweep, 5)

    walks = [walk_to_the_end(sweep) for _ in range(2)]

    assert walks == [list(range(5))] * 2


def test_a_walk_misses_no_list_whatever_is_removed_meanwhile() -> None:
    chance = random.Random(1)
    for _ in range(300):
        sweep = Sweep()
        there = lists_of(sweep, 12)
        walked: list[object] = []
        while (watchers := sweep.next()) is not None:
            walked.append(watchers.key)
            for _ in range(chance.randrange(3)):
                if there:
                    sweep.remove(there.pop(chance.randrange(len(there))))

        assert {watchers.key for watchers in there} <= set(walked)
        assert len(walked) == len(set(walked))
        assert [sweep.lists[watchers.place] for watchers in there] == there
        assert len(sweep.lists) == len(there)


def test_a_list_that_is_not_there_is_removed_from_nowhere() -> None:
    sweep = Sweep()
    made = lists_of(sweep, 3)
    sweep.clear()
    others = lists_of(sweep, 3)

    sweep.remove(made[1])
    sweep.remove(made[1])

    assert walk_to_the_end(sweep) == [watchers.key for watchers in others]
