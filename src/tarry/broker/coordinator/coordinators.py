"""Coordinators of a broker: by internal topic, and by the key type of FindCoordinator."""

from __future__ import annotations

from typing import Any

from tarry.broker.coordinator.coordinator import Coordinator
from tarry.partition.replicated_log import ReplicatedLog


class Coordinators:
    """Register of the broker's coordinators."""

    def __init__(self, first: Coordinator[Any]) -> None:
        self._by_topic: dict[str, Coordinator[Any]] = {}
        self._by_key_type: dict[int, Coordinator[Any]] = {}
        self.register(first)

    def register(self, coordinator: Coordinator[Any]) -> None:
        """Add a coordinator."""
        self._by_topic[coordinator.topic] = coordinator
        self._by_key_type[coordinator.key_type] = coordinator

    def of_key_type(self, key_type: int) -> Coordinator[Any] | None:
        """Return the coordinator for FindCoordinator's key type, if there is one."""
        return self._by_key_type.get(key_type)

    def is_loading_partition(self, partition: ReplicatedLog) -> bool:
        """Return whether a partition is being loaded: its log must not be cleaned then."""
        coordinator = self._by_topic.get(partition.leadership.topic)
        if coordinator is None:
            return False
        shard = coordinator.shards.get(partition.leadership.index)
        return shard is not None and shard.runtime.is_loading()
