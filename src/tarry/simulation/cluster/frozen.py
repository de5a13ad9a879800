"""Leaders and coordinators before etcd was frozen, compared with those soon after it woke.

When etcd wakes, all lives end at once.  Brokers that ran all the time must lead the same partitions
in new lives, and must have kept their groups.
"""

from __future__ import annotations

from typing import Final

from tarry.broker.coordinator.groups.shard import GroupShard
from tarry.cluster.state.state import is_led
from tarry.simulation.cluster.cluster_node import ClusterNode

# After etcd has woken everything is served again within this time.
AGAIN_MS: Final = 1_000

# Leaders' ids by name, id and index of a partition: a name may be used by another topic later.
Led = dict[tuple[str, bytes, int], int]


class LedBefore:
    """Leaders and loaded groups at one moment, compared if no other fault strikes meanwhile."""

    def __init__(self, nodes: list[ClusterNode]) -> None:
        self._nodes = nodes
        self._lives = [node.life for node in nodes]
        self._leaders = self._led()
        self._shards = self._coordinated()
        self.is_whole = self._is_untroubled() and self._leaders is not None

    def violations(self) -> list[str]:
        """Return a sentence for each change, if no broker has died or lost a link meanwhile."""
        if [node.life for node in self._nodes] != self._lives or not self._is_untroubled():
            return []
        leaders = self._led()
        if leaders is None:
            return [f"{AGAIN_MS} ms after etcd woke not everything is led"]
        found: list[str] = []
        assert self._leaders is not None
        for place, leader_id in self._leaders.items():
            now_id = leaders.get(place, leader_id)
            if now_id != leader_id:
                found.append(
                    f"{place[0]}-{place[2]} was led by b{leader_id}, and by b{now_id} after etcd "
                    "woke"
                )
        shards = self._coordinated()
        for key, shard in self._shards.items():
            if key in shards and shards[key] is not shard:
                found.append(f"the groups of {key} were loaded anew after etcd woke")
        return found

    def _is_untroubled(self) -> bool:
        return all(
            node.is_ready
            and not node.is_cut_off
            and not node.network.deaf_to
            and not node.clock.drift_per_mille
            and node.busy_until_ms <= node.clock.now_ms
            and node.door is not None
            and node.door.lateness is None
            and node.door.watch_limit is None
            for node in self._nodes
        )

    def _led(self) -> Led | None:
        """Return the leaders on which all brokers agree; None if they differ or one is missing."""
        found: Led = {}
        for node in self._nodes:
            if node.broker is None:
                return None
            state = node.broker.cluster
            for topic in state.topics.values():
                for index, row in enumerate(topic.partitions):
                    place = (topic.name, topic.topic_id, index)
                    if not is_led(state, row) or found.get(place, row.leader_id) != row.leader_id:
                        return None
                    found[place] = row.leader_id
        return found

    def _coordinated(self) -> dict[tuple[str, int], GroupShard]:
        """Return the shards of each broker that are loaded."""
        return {
            (node.name, index): shard
            for node in self._nodes
            if node.broker is not None
            for index, shard in node.broker.groups.shards.items()
            if not shard.runtime.is_loading()
        }
