"""Changes of the replicas in sync, which the leader of a partition proposes.

One transaction changes several partitions.  etcd does it only if the leader still lives, and if
each added replica still lives in the epoch in which it reported its end to the leader: a replica
that has restarted since may have lost records of that end.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec.structs import replace

from tarry.base.partition_row import PartitionRow
from tarry.cluster.etcd.transactions import GuardedChange, Transaction
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.state.records import MetadataRecord, PartitionChanged
from tarry.cluster.state.state import SERVING, ClusterState

# Number of rows in one transaction.  Each row may need three compares, its own, its topic's and the
# life of an added replica, and etcd takes 128.
ISR_CHANGES_PER_TRANSACTION: Final = 42


class IsrWish(NamedTuple):
    """Wish of a leader for one of its partitions.

    `added` are replicas to add, with the broker epochs of their fetches.  `removed` lag or are
    dead: they are removed in this order, as far as the floor allows.  `lost` have lost what they
    had flushed: they are removed even below the floor, but never the leader.  `must_write` is true
    if the row has to be written even unchanged, to make an earlier addition fail whose transaction
    may still arrive.
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
        # Replicas that any transaction of this change may have added, whatever its outcome.
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
        """Return the new isr; None if nothing is to be written."""
        if (row.leader_id, row.leader_epoch) != (self._broker_id, wish.leader_epoch):
            return None
        if row.broker_epoch != self._broker_epoch:
            return None
        if row.partition_epoch != wish.partition_epoch:
            # The leader counts a replica that it wants to add until this row has moved on.  A wish
            # that was made on another row could add a replica that the leader no longer counts.
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
        # Once the row has moved on, a delayed transaction that compares the old row fails.
        if wish.must_write:
            return row.isr
        return None

    def _may_be_added(self, view: ClusterState, wish: IsrWish, broker_id: int) -> bool:
        epoch = wish.added.get(broker_id, -1)
        broker = view.brokers.get(broker_id)
        if epoch < 0 or broker is None or broker.phase != SERVING:
            return False
        known = self._known.life_epoch(broker_id)
        # One transaction cannot require two different lives of one broker.
        return known == epoch and self._guarded.get(broker_id, epoch) == epoch
