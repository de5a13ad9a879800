"""Claims: a broker takes over the partitions whose leader's life is over.

Leadership is bound to a life.  A leader that has restarted, or has lost its life and begun another,
leads nothing until it has claimed its partitions anew, each in a higher epoch: it may have lost
records that it had not flushed, and must not write others under the same epoch and offsets.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tarry.cluster.records import MetadataRecord, PartitionChanged, PartitionRow
from tarry.cluster.row_records import KnownRows
from tarry.cluster.state import ClusterState
from tarry.cluster.transactions import GuardedChange, Transaction

# A claim compares at most three keys a partition, its row, its topic and its leader's life, and
# etcd takes 128 compares in a transaction.
CLAIMS_PER_TRANSACTION: Final = 42


class ClaimPartitions(GuardedChange):
    """Claims of this broker in one of its lives, some at a time; `is_last` if none is left."""

    def __init__(self, known: KnownRows, broker_id: int, broker_epoch: int) -> None:
        super().__init__(known)
        self._broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.is_last = False
        # Lives that must be over: of leaders whose partitions are claimed.
        self._ended: dict[tuple[int, int], None] = {}

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        self._ended = {}
        self.is_last = True
        claims: list[MetadataRecord] = []
        known = self._known
        if known.life_epoch(self._broker_id) != self.broker_epoch:
            # This life is over as well; the next one claims by itself.
            return []
        for topic in view.topics.values():
            if not any(self._broker_id in partition.isr for partition in topic.partitions):
                continue
            for index, row in enumerate(topic.partitions):
                if not self._may_claim(row):
                    continue
                if len(claims) == CLAIMS_PER_TRANSACTION:
                    self.is_last = False
                    return claims
                claims.append(self._claim(topic.topic_id, index, row))
                self._ended[row.leader_id, row.broker_epoch] = None
        return claims

    def guard(self, transaction: Transaction) -> None:
        transaction.guard_life(self._broker_id, self.broker_epoch)
        for broker_id, broker_epoch in self._ended:
            if broker_id != self._broker_id and broker_epoch >= 0:
                transaction.guard_end(broker_id, broker_epoch)

    def _may_claim(self, row: PartitionRow) -> bool:
        """Return whether the leader's life is over and this broker comes next in the order."""
        known = self._known
        if row.leader_id >= 0 and known.life_epoch(row.leader_id) == row.broker_epoch >= 0:
            return False
        if self._broker_id not in row.isr:
            return False
        first = next(
            broker_id
            for broker_id in row.replicas
            if broker_id in row.isr and known.life_epoch(broker_id) >= 0
        )
        return first == self._broker_id

    def _claim(self, topic_id: bytes, index: int, row: PartitionRow) -> PartitionChanged:
        claimed = replace(
            row,
            leader_id=self._broker_id,
            leader_epoch=row.leader_epoch + 1,
            partition_epoch=row.partition_epoch + 1,
            broker_epoch=self.broker_epoch,
        )
        return PartitionChanged(topic_id=topic_id, index=index, row=claimed)
