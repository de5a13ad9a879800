"""Coordinators of a broker: by internal topic, and by the key type of FindCoordinator."""

from __future__ import annotations

from typing import Any

from tarry.broker.coordinator.coordinator import Coordinator
from tarry.partition.role import Role
from tarry.partition.state import Partition
from tarry.partition.topic import HostedTopic


class Coordinators:
    """Register of all coordinators, which hear here of topics that come and go."""

    def __init__(self) -> None:
        self.all: list[Coordinator[Any]] = []
        self._by_topic: dict[str, Coordinator[Any]] = {}
        self._by_key_type: dict[int, Coordinator[Any]] = {}

    def register(self, coordinator: Coordinator[Any]) -> None:
        """Add a coordinator."""
        self.all.append(coordinator)
        self._by_topic[coordinator.topic] = coordinator
        self._by_key_type[coordinator.key_type] = coordinator

    def of_key_type(self, key_type: int) -> Coordinator[Any] | None:
        """Return the coordinator for FindCoordinator's key type, if there is one."""
        return self._by_key_type.get(key_type)

    def on_hosted(self, hosted: HostedTopic) -> None:
        """Let the coordinator that is kept in this topic load its partitions."""
        coordinator = self._by_topic.get(hosted.name)
        if coordinator is not None:
            coordinator.on_hosted(hosted)

    def on_role(self, partition: Partition, before: Role | None, after: Role) -> None:
        """Let a coordinator load a partition that is led here from now on, or give it up.

        What it knows belongs to one leader epoch: in any other, even of this broker's, it begins
        anew, since another leader may have written in between.
        """
        coordinator = self._by_topic.get(partition.topic)
        # One that has just come is loaded with its topic.
        if coordinator is None or before is None:
            return
        if before.leader_epoch == after.leader_epoch and before.is_leader == after.is_leader:
            return
        if before.is_leader:
            coordinator.unload(partition)
        if after.is_leader:
            coordinator.load(partition)

    def on_given_up(self, hosted: HostedTopic) -> None:
        """Tell every coordinator that a topic was deleted."""
        for coordinator in self.all:
            coordinator.on_given_up(hosted)

    def is_loading_partition(self, partition: Partition) -> bool:
        """Return whether a partition is being loaded: nothing of it may be cleaned away then."""
        coordinator = self._by_topic.get(partition.topic)
        if coordinator is None:
            return False
        shard = coordinator.shards.get(partition.index)
        return shard is not None and shard.runtime.is_loading()
