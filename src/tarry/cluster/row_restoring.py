"""Restoring of partitions' rows that somebody has removed from etcd.

A partition without a row is as it was made, so a broker that starts would take epochs and replicas
of long ago for those of now.  Whoever leads it still knows its row, and writes it anew.
"""

from __future__ import annotations

from msgspec.structs import replace

from tarry.cluster.records import PartitionRow
from tarry.cluster.row_changes import LifeGuard, Place, RowsChange
from tarry.cluster.row_records import KnownRows
from tarry.cluster.state import ClusterState, TopicState


class RestoreRows(RowsChange):
    """Rows that are gone, of the partitions that this broker leads in its present life."""

    def __init__(self, known: KnownRows, broker_id: int, broker_epoch: int) -> None:
        super().__init__(known)
        self._broker_id = broker_id
        self.broker_epoch = broker_epoch

    def places(self, view: ClusterState) -> list[Place]:
        return list(self._known.removed_parts)

    def changed(
        self, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        if (row.leader_id, row.broker_epoch) != (self._broker_id, self.broker_epoch):
            return None
        return replace(row, partition_epoch=row.partition_epoch + 1)

    def guards(self, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        return [LifeGuard(self._broker_id, self.broker_epoch, is_over=False)]
