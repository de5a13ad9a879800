"""Choice of the brokers for a new partition: as a client assigns them, or spread over all."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.cluster.state import ClusterState

# Brokers do not follow each other yet.
REPLICAS_MAX: Final = 1

NO_REPLICATION: Final = "brokers do not replicate yet: ask for 1 replica of each partition"

NONE_SERVES: Final = "no broker of the cluster serves at this moment: ask again in some seconds"


class Refusal(Exception):
    """Partitions cannot be made so; caught where the topic's outcome is made."""

    def __init__(self, error_code: int, message: str) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


def check_replicas(view: ClusterState, index: int, replicas: list[int]) -> None:
    """`Refusal` unless these brokers can have the partition."""
    fault = ""
    if not replicas:
        fault = f"partition {index} has no replicas"
    for position, broker_id in enumerate(replicas):
        if broker_id not in view.broker_ids:
            fault = f"partition {index} names broker {broker_id}, which is not registered"
            break
        if broker_id not in view.placeable_ids:
            fault = f"partition {index} names broker {broker_id}, which does not serve now"
            break
        if broker_id in replicas[:position]:
            fault = f"partition {index} names broker {broker_id} twice"
            break
    if not fault and len(replicas) > REPLICAS_MAX:
        fault = NO_REPLICATION
    if fault:
        raise Refusal(errors.INVALID_REPLICA_ASSIGNMENT, fault)


def placeable(view: ClusterState) -> list[int]:
    """Return the brokers that can take a new partition, sorted; `Refusal` if there is none.

    The metadata store was away for longer than lives last: all of them end at once, and brokers
    serve again a moment later.  The error is one that clients answer by asking again.
    """
    brokers = view.placeable_ids
    if not brokers:
        raise Refusal(errors.NOT_CONTROLLER, NONE_SERVES)
    return brokers


def spread_replicas(view: ClusterState, count: int, factor: int, first: int = 0) -> list[list[int]]:
    """Spread the replicas of `count` partitions from index `first` on, in turn over the brokers;
    `Refusal` if no broker serves.
    """
    brokers = placeable(view)
    return [
        [brokers[(index + position) % len(brokers)] for position in range(factor)]
        for index in range(first, first + count)
    ]
