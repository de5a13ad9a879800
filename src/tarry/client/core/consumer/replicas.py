"""Preferred replicas: choice whether a partition is read from its leader or a nearby replica
(KIP-392).

The leader names a replica in the rack of the consumer.  The consumer reads from it until it fails
or `metadata.max.age.ms` is over; then it asks the leader again.  If a replica fails twice in a row,
or cannot be reached at all, the consumer reads from the leader for `metadata.max.age.ms` and hides
its rack, so that the leader sends the records itself.
"""

from __future__ import annotations

from typing import Final

from tarry.client.core.consumer.position import NO_REPLICA, PartitionPosition
from tarry.client.core.metadata import Metadata

FAILURES_MAX: Final = 2


class PreferredReplicas:
    """Choice between leader and replica for each position of one consumer."""

    def __init__(self, metadata: Metadata, age_ms_max: int) -> None:
        self._metadata = metadata
        self._age_ms_max = age_ms_max

    def broker_for(self, position: PartitionPosition, leader_id: int, now_ms: int) -> int:
        """Return the broker to fetch from: the replica that the leader named, or the leader."""
        replica_id = position.replica_id
        if replica_id == NO_REPLICA:
            return leader_id
        if now_ms >= position.replica_until_ms or replica_id not in self._metadata.brokers:
            position.replica_id = NO_REPLICA
            return leader_id
        return replica_id

    def follow(
        self, position: PartitionPosition, asked_id: int, replica_id: int, now_ms: int
    ) -> bool:
        """Switch to the replica that the leader named; return False if it cannot be followed."""
        leader = self._metadata.leader_of(position.topic, position.partition)
        is_leader = leader is not None and leader.leader_id == asked_id
        may_follow = now_ms >= position.leader_only_until_ms
        if not is_leader or not may_follow or replica_id == asked_id:
            return False
        if replica_id not in self._metadata.brokers:
            return False
        position.replica_id = replica_id
        position.replica_until_ms = now_ms + self._age_ms_max
        return True

    def leave(self, position: PartitionPosition, now_ms: int) -> None:
        """Return to the leader; for `metadata.max.age.ms` if the replica failed twice in a row."""
        position.replica_id = NO_REPLICA
        position.replica_failures += 1
        if position.replica_failures >= FAILURES_MAX:
            self.leave_for_long(position, now_ms)

    def leave_for_long(self, position: PartitionPosition, now_ms: int) -> None:
        """Read only from the leader, without naming the rack, for `metadata.max.age.ms`."""
        position.replica_id = NO_REPLICA
        position.replica_failures = 0
        position.leader_only_until_ms = now_ms + self._age_ms_max
