"""Choice of the brokers for a new partition: as a client assigns them, or spread over all."""

from __future__ import annotations

from tarry.base import errors
from tarry.cluster.state import ClusterState


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
        if broker_id in replicas[:position]:
            fault = f"partition {index} names broker {broker_id} twice"
            break
    if fault:
        raise Refusal(errors.INVALID_REPLICA_ASSIGNMENT, fault)


def spread_replicas(view: ClusterState, count: int, factor: int, first: int = 0) -> list[list[int]]:
    """Spread the replicas of `count` partitions from index `first` on, in turn over the brokers."""
    brokers = view.broker_ids
    return [
        [brokers[(index + position) % len(brokers)] for position in range(factor)]
        for index in range(first, first + count)
    ]
