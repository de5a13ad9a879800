"""Choice of the brokers for new partitions: as a client assigns them, or spread over all.

Spread partitions are led by the brokers in turn, with alternating racks.  The replicas of a
partition lie in different racks while there are enough.  Each round through the brokers shifts the
followers by one, so that the partitions of a dead leader are taken over by all other brokers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.cluster.state.state import ClusterState

# Bound on the replicas of one partition; no cluster needs more copies.
REPLICAS_MAX: Final[int] = 1_000

TOO_MANY: Final = f"a partition has at most {REPLICAS_MAX} replicas"

NONE_SERVES: Final = "no broker of the cluster serves at this moment: ask again in some seconds"


class Refusal(Exception):
    """Refusal of new partitions; caught where the topic's outcome is made."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


def check_replicas(
    view: ClusterState, index: int, replicas: list[int], factor: int | None = None
) -> None:
    """Raise `Refusal` unless these brokers can have a new partition, of `factor` replicas."""
    fault = replicas_fault(view, index, replicas)
    serving = view.placeable_ids
    if not fault and not any(broker_id in serving for broker_id in replicas):
        fault = (
            f"of the replicas of partition {index}, {_listed(replicas)}, none serves now: name "
            "at least one broker that does"
        )
    if not fault and factor is not None and len(replicas) != factor:
        fault = (
            f"partition {index} has {len(replicas)} replicas and those before it {factor}: give "
            "each partition of a topic the same number"
        )
    if fault:
        raise Refusal(errors.INVALID_REPLICA_ASSIGNMENT, fault)


def replicas_fault(view: ClusterState, index: int, replicas: list[int]) -> str:
    """Return why these brokers, serving or not, cannot have a partition; "" if they can."""
    if not replicas:
        return f"partition {index} has no replicas"
    seen: dict[int, None] = {}
    for broker_id in replicas:
        if broker_id not in view.broker_ids:
            return f"partition {index} names broker {broker_id}, which is not registered"
        if broker_id in seen:
            return f"partition {index} names broker {broker_id} twice"
        seen[broker_id] = None
    return TOO_MANY if len(replicas) > REPLICAS_MAX else ""


def check_factor(view: ClusterState, factor: int) -> None:
    """Raise `Refusal` unless new partitions can have so many replicas at this moment."""
    brokers = len(placeable(view))
    if factor > REPLICAS_MAX:
        if brokers >= factor:
            raise Refusal(errors.INVALID_REPLICATION_FACTOR, TOO_MANY)
        brokers = min(brokers, REPLICAS_MAX)
    if factor > brokers:
        raise Refusal(
            errors.INVALID_REPLICATION_FACTOR,
            f"the replication factor {factor} is above the number of brokers that serve, "
            f"{brokers}: ask for {brokers}, or for -1, the broker's default",
        )


def default_factor(view: ClusterState, wanted: int) -> int:
    """Return the number of replicas that partitions get by default, if the settings want `wanted`.

    It is lower if fewer brokers serve: one configuration file suits three brokers and one.
    """
    return min(wanted, len(placeable(view)), REPLICAS_MAX)


def placeable(view: ClusterState) -> list[int]:
    """Return the brokers that can take a new partition, sorted; `Refusal` if there is none.

    There is no such broker when the metadata store was away for longer than lives last: all lives
    end at once, and brokers serve again a moment later.  The error makes clients ask again.
    """
    brokers = view.placeable_ids
    if not brokers:
        raise Refusal(errors.NOT_CONTROLLER, NONE_SERVES)
    return brokers


def rows_as_made(view: ClusterState, assignment: Sequence[list[int]]) -> list[PartitionRow]:
    """Return the rows of new partitions.  The replicas that serve are in sync, since there are no
    records to catch up with, and the first of them leads.
    """
    serving = dict.fromkeys(view.placeable_ids)
    rows = []
    for replicas in assignment:
        isr = [broker_id for broker_id in replicas if broker_id in serving]
        rows.append(PartitionRow(isr[0], 0, -1, 0, replicas, isr))
    return rows


def spread_replicas(view: ClusterState, count: int, factor: int, first: int = 0) -> list[list[int]]:
    """Spread the replicas of `count` partitions over the brokers that serve.  `first` is the number
    of partitions that were spread before them.  Raises `Refusal` if there are too few brokers.
    """
    brokers = placeable(view)
    if factor > len(brokers):
        check_factor(view, factor)
    racks = {
        broker_id: view.brokers[broker_id].rack if broker_id in view.brokers else ""
        for broker_id in brokers
    }
    order = _alternating(brokers, racks)
    # The choice repeats after this number: then each broker has led with each shift of the others.
    period = len(order) * max(len(order) - 1, 1)
    chosen = [
        _replicas(order, racks, number, factor)
        for number in range(first, first + min(count, period))
    ]
    return [list(chosen[number % period]) for number in range(count)]


def spread_before(view: ClusterState, replicas_of_last: list[int]) -> int:
    """Return the number of partitions that count as spread before the first new one of a topic that
    grows, so that its leader is the broker behind the leader of the topic's last partition.
    """
    brokers = placeable(view)
    racks = {
        broker_id: view.brokers[broker_id].rack if broker_id in view.brokers else ""
        for broker_id in brokers
    }
    order = _alternating(brokers, racks)
    last = replicas_of_last[0] if replicas_of_last else -1
    return order.index(last) + 1 if last in order else 0


def _alternating(brokers: list[int], racks: dict[int, str]) -> list[int]:
    """Order brokers so that neighbours lie in different racks as far as can be."""
    by_rack: dict[str, list[int]] = {}
    for broker_id in brokers:
        by_rack.setdefault(racks[broker_id], []).append(broker_id)
    rows = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(map(len, rows))
    return [row[turn] for turn in range(longest) for row in rows if turn < len(row)]


def _replicas(order: list[int], racks: dict[int, str], number: int, factor: int) -> list[int]:
    """Return the replicas of one partition, the leader first."""
    size = len(order)
    position = number % size
    chosen = [order[position]]
    in_rack = {racks[chosen[0]]: 1}
    shift = number // size
    others = [
        order[(position + 1 + (shift + step) % (size - 1)) % size] for step in range(size - 1)
    ]
    while len(chosen) < factor:
        # The first of the brokers whose rack has the fewest replicas of the partition.
        best = min(others, key=lambda broker_id: in_rack.get(racks[broker_id], 0))
        others.remove(best)
        chosen.append(best)
        in_rack[racks[best]] = in_rack.get(racks[best], 0) + 1
    return chosen


def _listed(brokers: list[int]) -> str:
    return ", ".join(map(str, brokers))
