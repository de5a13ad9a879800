"""Plans of which brokers get which partitions: pure, and with few moves.

A replica stays where it is if it may.  New replicas go to the brokers with the fewest ones, in a
rack that the partition does not have yet if there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.cli.tables import count_of

Replicas = dict[TopicPartition, list[int]]

# Rounds over all partitions, at most: after a few nothing moves any more.
_ROUNDS_MAX: Final = 8


class TooFewBrokers(Exception):
    """A partition wants more replicas than there are brokers for it."""


def drained(
    partitions: Mapping[TopicPartition, list[int]],
    leaving: Iterable[int],
    racks: Mapping[int, str],
    *,
    may_shrink: bool = False,
) -> Replicas:
    """Return the new replicas of each partition that has some on a broker that leaves.

    `racks` are those of the brokers that may get replicas.  A replica that stays keeps its place in
    the order, so that only the leaders on leaving brokers move.
    """
    gone = dict.fromkeys(leaving)
    counts = {broker_id: 0 for broker_id in racks if broker_id not in gone}
    for replicas in partitions.values():
        for broker_id in replicas:
            if broker_id in counts:
                counts[broker_id] += 1
    plan: Replicas = {}
    for place, replicas in partitions.items():
        target = [each for each in replicas if each not in gone]
        if len(target) < len(replicas):
            plan[place] = _filled(place, target, len(replicas), counts, racks, may_shrink)
    return plan


def spread(
    partitions: Mapping[TopicPartition, list[int]], racks: Mapping[int, str], factor: int | None
) -> Replicas:
    """Return the new replicas of each partition that changes when all are spread evenly over the
    brokers of `racks`, each with `factor` replicas, or as many as it has.
    """
    counts = dict.fromkeys(sorted(racks), 0)
    plan: Replicas = {}
    for place, replicas in partitions.items():
        wanted = factor or len(replicas)
        plan[place] = [each for each in replicas if each in counts][:wanted]
        for broker_id in plan[place]:
            counts[broker_id] += 1
    for place, replicas in partitions.items():
        plan[place] = _filled(
            place, plan[place], factor or len(replicas), counts, racks, may_shrink=False
        )
    _level(plan, counts, racks)
    _level_leaders(plan)
    return {place: target for place, target in plan.items() if target != partitions[place]}


def _filled(
    place: TopicPartition,
    target: list[int],
    wanted: int,
    counts: dict[int, int],
    racks: Mapping[int, str],
    may_shrink: bool,
) -> list[int]:
    """Return the target with brokers added until there are as many as wanted."""
    target = [*target]
    while len(target) < wanted:
        free = [broker_id for broker_id in counts if broker_id not in target]
        if not free and target and may_shrink:
            break
        if not free:
            raise TooFewBrokers(
                f"{place[0]} [{place[1]}] has {count_of(wanted, 'replica')}, with "
                f"{count_of(len(counts), 'broker')} for them"
            )
        used = dict.fromkeys(racks.get(each, "") for each in target)
        best = min(free, key=lambda each: (racks[each] in used, counts[each], each))
        target.append(best)
        counts[best] += 1
    return target


def _level(plan: Replicas, counts: dict[int, int], racks: Mapping[int, str]) -> None:
    """Move replicas from brokers that have more to those that have less."""
    for _ in range(_ROUNDS_MAX):
        has_moved = False
        for target in plan.values():
            for position, broker_id in enumerate(target):
                others = [each for each in target if each != broker_id]
                best = _better(broker_id, others, counts, racks)
                if best is not None:
                    target[position] = best
                    counts[broker_id] -= 1
                    counts[best] += 1
                    has_moved = True
        if not has_moved:
            return


def _better(
    broker_id: int, others: list[int], counts: dict[int, int], racks: Mapping[int, str]
) -> int | None:
    """Return a broker with less that can take a replica over, without fewer racks for it."""
    used = dict.fromkeys(racks[each] for each in others)
    is_alone = racks[broker_id] not in used
    found = [
        each
        for each in counts
        if each not in others
        and counts[each] < counts[broker_id] - 1
        and not (is_alone and racks[each] in used)
    ]
    return min(found, key=lambda each: (counts[each], each)) if found else None


def _level_leaders(plan: Replicas) -> None:
    """Level out for how many partitions each broker is the first replica."""
    leads: dict[int, int] = {}
    for target in plan.values():
        for broker_id in target:
            leads.setdefault(broker_id, 0)
        leads[target[0]] += 1
    for _ in range(_ROUNDS_MAX):
        has_moved = False
        for target in plan.values():
            best = min(target, key=lambda each: leads[each])
            if leads[best] < leads[target[0]] - 1:
                leads[target[0]] -= 1
                leads[best] += 1
                position = target.index(best)
                target[0], target[position] = best, target[0]
                has_moved = True
        if not has_moved:
            return
