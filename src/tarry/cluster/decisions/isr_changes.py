"""Changes of the replicas in sync, which the leader of a partition proposes.

Several partitions share a transaction.  It is done only while the leader lives, and each replica
that is added lives in the epoch in which it told its end: one that has restarted since may have
lost what it told.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from tarry.base.partition_row import PartitionRow
from tarry.cluster.etcd.transactions import GuardedChange, Transaction
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.state.records import MetadataRecord, PartitionChanged
from tarry.cluster.state.state import SERVING, ClusterState

# Rows of one transaction.  Beside each row a topic may be compared, and the lives of those added;
# etcd takes 128 compares.
ISR_CHANGES_PER_TRANSACTION: Final = 42


class IsrWish(NamedTuple):
    """Wish of a leader for one of its partitions.

    `added` are replicas with the broker epochs of their fetches.  `removed` lag or are dead: they
    go as far as the floor allows, in this order.  `lost` have lost what they had flushed and go
    below the floor too, but never the leader.  `must_write`: the row is written though nothing
    changes, so that an addition whose deed may still come does not.
    """

    topic_id: bytes
    partition_index: int
    leader_epoch: int
    partition_epoch: int
    floor: int
    added: dict[int, int]
    removed: list[int]
    lost: list[int]
    must_write: bool = False


class ChangeIsr(GuardedChange):
    """Change of the rows of some partitions that this broker leads in its present life."""

    def __init__(
        self, known: KnownRows, broker_id: int, broker_epoch: int, wishes: list[IsrWish]
    ) -> None:
        assert len(wishes) <= ISR_CHANGES_PER_TRANSACTION
        super().__init__(known)
        self.wishes = wishes
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._guarded: dict[int, int] = {}
        # Replicas that a deed may add which was asked for, whatever became of it.
        self.sent: dict[tuple[bytes, int, int], None] = {}

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        self._guarded = {}
        records: list[MetadataRecord] = []
        if self._known.life_epoch(self._broker_id) != self._broker_epoch:
            return records
        for wish in self.wishes:
            topic = view.topic_by_id(wish.topic_id)
            if topic is None or wish.partition_index >= len(topic.partitions):
                continue
            row = topic.partitions[wish.partition_index]
            isr = self._isr(view, row, wish)
            if isr is None:
                continue
            for broker_id in isr:
                if broker_id not in row.isr:
                    self._guarded[broker_id] = wish.added[broker_id]
                    self.sent[wish.topic_id, wish.partition_index, broker_id] = None
            changed = replace(row, isr=isr, partition_epoch=row.partition_epoch + 1)
            records.append(
                PartitionChanged(topic_id=wish.topic_id, index=wish.partition_index, row=changed)
            )
        return records

    def guard(self, transaction: Transaction) -> None:
        transaction.guard_life(self._broker_id, self._broker_epoch)
        for broker_id, broker_epoch in self._guarded.items():
            transaction.guard_life(broker_id, broker_epoch)

    def _isr(self, view: ClusterState, row: PartitionRow, wish: IsrWish) -> list[int] | None:
        """Return the replicas in sync as they are to be; None if nothing is to be written."""
        if (row.leader_id, row.leader_epoch) != (self._broker_id, wish.leader_epoch):
            return None
        if row.broker_epoch != self._broker_epoch:
            return None
        if row.partition_epoch != wish.partition_epoch:
            # The leader counts whom it wants to add until this row has moved on: what was decided
            # for another row could add somebody who counts no more.
            return None
        isr = [
            broker_id
            for broker_id in row.replicas
            if broker_id in row.isr or self._may_be_added(view, wish, broker_id)
        ]
        for broker_id in wish.lost:
            if broker_id in isr and len(isr) > 1 and broker_id != self._broker_id:
                isr.remove(broker_id)
        for broker_id in wish.removed:
            if broker_id in isr and len(isr) > wish.floor and broker_id != self._broker_id:
                isr.remove(broker_id)
        if sorted(isr) != sorted(row.isr):
            return isr
        # Once the row has moved on, no deed that was meant for it comes any more.
        if wish.must_write:
            return row.isr
        return None

    def _may_be_added(self, view: ClusterState, wish: IsrWish, broker_id: int) -> bool:
        epoch = wish.added.get(broker_id, -1)
        broker = view.brokers.get(broker_id)
        if epoch < 0 or broker is None or broker.phase != SERVING:
            return False
        known = self._known.life_epoch(broker_id)
        # Two partitions of a transaction may not ask for two lives of one broker.
        return known == epoch and self._guarded.get(broker_id, epoch) == epoch
