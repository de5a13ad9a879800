"""Hand-overs: another member of a partition's isr becomes its leader, in a higher epoch.

Any broker may write a hand-over: all members of the isr have every committed record, so the new
leader need only serve, and still be in the life in which the writer saw it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.cluster.decisions.row_changes import (
    LifeGuard,
    Place,
    RowsChange,
    is_serving,
    isr_floor,
)
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.state.state import ClusterState, TopicState, is_led


def can_take_over(view: ClusterState, row: PartitionRow, broker_id: int) -> bool:
    """Return whether a partition may be handed over to this broker: it is in sync and serves."""
    return broker_id in row.isr and is_serving(view, broker_id)


def successor(view: ClusterState, row: PartitionRow, *, without: int) -> int:
    """Return the broker that takes a partition over from the broker `without`; -1 if none can.

    It is the next replica behind `without`, and not the first one: if several brokers cannot write
    the partition, each gets its turn.
    """
    replicas = row.replicas
    place = replicas.index(without) + 1 if without in replicas else 0
    for broker_id in (*replicas[place:], *replicas[:place]):
        if broker_id != without and can_take_over(view, row, broker_id):
            return broker_id
    return -1


def handed_over(view: ClusterState, row: PartitionRow, broker_id: int) -> PartitionRow:
    """Return the row in which this broker, which `can_take_over`, leads.  `guards_of` gives its
    conditions.
    """
    return replace(
        row,
        leader_id=broker_id,
        leader_epoch=row.leader_epoch + 1,
        partition_epoch=row.partition_epoch + 1,
        broker_epoch=view.brokers[broker_id].broker_epoch,
    )


def guards_of(after: PartitionRow) -> list[LifeGuard]:
    """Return the condition of a hand-over: the new leader lives."""
    return [LifeGuard(after.leader_id, after.broker_epoch, is_over=False)]


class HandOver(RowsChange):
    """Hand-over of what a broker leads in one of its lives, because it stops or cannot write.

    If `places` is given, only these partitions are handed over.  If `settings` is given, the broker
    also leaves the isr as far as the floor allows: it is about to stop or takes no records, and the
    new leader need not wait for it.
    """

    def __init__(
        self,
        known: KnownRows,
        broker_id: int,
        broker_epoch: int,
        *,
        places: Iterable[Place] | None = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(known)
        self._broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._places = None if places is None else list(places)
        self._settings = settings

    def places(self, view: ClusterState) -> list[Place]:
        return super().places(view) if self._places is None else self._places

    def changed(
        self, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        own_id = self._broker_id
        if row.leader_id != own_id or row.broker_epoch != self.broker_epoch:
            return None
        next_id = successor(view, row, without=own_id)
        if next_id < 0:
            return None
        after = handed_over(view, row, next_id)
        if self._settings is not None and len(row.isr) > isr_floor(topic, row, self._settings):
            after = replace(after, isr=[each for each in row.isr if each != own_id])
        return after

    def guards(self, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        return guards_of(after)


class PreferLeaders(RowsChange):
    """Return of leaders: a broker takes over the partitions whose first replica it is, if another
    living broker leads them.

    Nothing is done unless other brokers lead more than `percentage` percent of these partitions.
    """

    def __init__(self, known: KnownRows, broker_id: int, percentage: int) -> None:
        super().__init__(known)
        self._broker_id = broker_id
        self._percentage = percentage
        self._is_begun = False

    def may_begin(self, view: ClusterState) -> bool:
        # Once the share was exceeded, all of the partitions return, also in later transactions.
        if not self._is_begun:
            preferred = elsewhere = 0
            for topic in view.topics.values():
                for row in topic.partitions:
                    if row.replicas[:1] == [self._broker_id]:
                        preferred += 1
                        elsewhere += row.leader_id != self._broker_id
            self._is_begun = 100 * elsewhere > self._percentage * preferred
        return self._is_begun

    def changed(
        self, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        own_id = self._broker_id
        if row.replicas[:1] != [own_id] or row.leader_id == own_id or not is_led(view, row):
            return None
        if not can_take_over(view, row, own_id):
            return None
        return handed_over(view, row, own_id)

    def guards(self, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        return guards_of(after)
