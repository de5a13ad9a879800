"""Leaves: a broker takes itself out of the replicas in sync.

A broker leaves where its log is not whole: it may lack committed records, so it must neither lead
nor count as in sync.  This may bring the isr below its floor.  But the last member stays: without
it nobody would know where the records may be, and only an operator can elect another replica then.
A broker also leaves where it cannot append, as far as the floor allows.
"""

from __future__ import annotations

from collections.abc import Container

from msgspec.structs import replace

from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.cluster.decisions.row_changes import LifeGuard, Place, RowsChange, isr_floor, lives_in
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.state.state import ClusterState, TopicState, is_led


class LeavePartitions(RowsChange):
    """Leaves of this broker from the isr of these partitions, some in each transaction.

    If `settings` is given, the broker stays where the isr would fall below its floor.
    """

    def __init__(
        self,
        known: KnownRows,
        broker_id: int,
        broker_epoch: int,
        places: Container[Place],
        settings: Settings | None = None,
    ) -> None:
        super().__init__(known)
        self._broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._places = places
        self._settings = settings

    def may_begin(self, view: ClusterState) -> bool:
        return lives_in(view, self._broker_id, self.broker_epoch)

    def changed(
        self, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        own_id = self._broker_id
        if own_id not in row.isr or (topic.topic_id, index) not in self._places:
            return None
        isr = [broker_id for broker_id in row.isr if broker_id != own_id]
        if not isr or (row.leader_id == own_id and is_led(view, row)):
            return None
        if self._settings is not None and len(isr) < isr_floor(topic, row, self._settings):
            return None
        return replace(row, partition_epoch=row.partition_epoch + 1, isr=isr)

    def guards(self, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        return [LifeGuard(self._broker_id, self.broker_epoch, is_over=False)]
