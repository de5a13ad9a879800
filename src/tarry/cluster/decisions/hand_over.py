"""Hand-overs: a partition gets another leader out of its isr, in a higher epoch.

Anybody may write one: all members of the isr have every committed record, so the new leader need
only serve, and still be in the life in which it was seen.
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
    """Return who takes a partition over from a broker: the next replica that may; -1 if none.

    The next one and not the first: where several cannot write it, all get their turn.
    """
    replicas = row.replicas
    place = replicas.index(without) + 1 if without in replicas else 0
    for broker_id in (*replicas[place:], *replicas[:place]):
        if broker_id != without and can_take_over(view, row, broker_id):
            return broker_id
    return -1


def handed_over(view: ClusterState, row: PartitionRow, broker_id: int) -> PartitionRow:
    """Return the row once this broker leads, which `can_take_over`; `guards_of` says what for."""
    return replace(
        row,
        leader_id=broker_id,
        leader_epoch=row.leader_epoch + 1,
        partition_epoch=row.partition_epoch + 1,
        broker_epoch=view.brokers[broker_id].broker_epoch,
    )


def guards_of(after: PartitionRow) -> list[LifeGuard]:
    """Return what must hold for a partition to be handed over: its new leader lives."""
    return [LifeGuard(after.leader_id, after.broker_epoch, is_over=False)]


class HandOver(RowsChange):
    """Hand-over of what a broker leads in one of its lives: it stops, or cannot write.

    `places`: only these partitions.  With `settings` the broker leaves the isr too, where the floor
    allows: it is about to be gone or takes no records, and the new leader need not wait for it.
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
    """Return of leaders to where they are preferred: a broker takes over what it is the first
    replica of, while the leader is another one that lives.

    Nothing is decided while no more than `percentage` of what the broker is to lead is elsewhere.
    """

    def __init__(self, known: KnownRows, broker_id: int, percentage: int) -> None:
        super().__init__(known)
        self._broker_id = broker_id
        self._percentage = percentage
        self._is_begun = False

    def may_begin(self, view: ClusterState) -> bool:
        # Once it was decided to, all of them return.
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
