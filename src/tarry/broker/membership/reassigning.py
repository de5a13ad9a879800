"""The ends of reassignments: a leader writes the target alone once all of it is in sync.

The row itself says whether it is: no other source is needed.
"""

from __future__ import annotations

from tarry.base.partition_row import PartitionRow
from tarry.broker.membership.series import Series
from tarry.broker.metadata.retries import Retries
from tarry.cluster.decisions.reassignments import FinishReassignments, finish_reassignment
from tarry.cluster.decisions.row_changes import Place
from tarry.cluster.etcd.etcd_store import EtcdStore
from tarry.cluster.state.records import (
    LifeChanged,
    MetadataRecord,
    PartitionChanged,
    TopicDeleted,
)
from tarry.cluster.state.state import SERVING, is_reassigned
from tarry.cluster.store.change import Change
from tarry.cluster.store.store import StoreListener


class Reassigning(StoreListener):
    """Listener to rows, which completes the reassignments of partitions that this broker leads."""

    def __init__(self, broker_id: int, store: EtcdStore, retries: Retries) -> None:
        self._broker_id = broker_id
        self._store = store
        self._retries = retries
        # Reassigned partitions that this broker leads, and those of them that have to be examined.
        self._open: dict[Place, None] = {}
        self._unseen: dict[Place, None] = {}
        self._series: Series[FinishReassignments] = Series(store)

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Examine the partitions whose rows have changed, and complete their reassignments."""
        for record in records:
            if isinstance(record, PartitionChanged):
                self._follow((record.topic_id, record.index), record.row)
            elif isinstance(record, TopicDeleted):
                for place in [each for each in self._open if each[0] == record.topic_id]:
                    self._forget(place)
            elif isinstance(record, LifeChanged) and record.phase == SERVING:
                # The broker that serves now may be able to take over from this one.
                self._unseen.update(self._open)
        if self._series.end(change) is not None:
            self._series.go_on()
        self._go_on()

    def on_refused(self, change: Change) -> None:
        """Try again later, because etcd did not answer."""
        if self._series.end(change) is not None:
            self._unseen.update(self._open)
            self._retries.later(self._go_on)

    def _follow(self, place: Place, row: PartitionRow) -> None:
        """Note the row of a partition."""
        if is_reassigned(row) and row.leader_id == self._broker_id:
            self._open[place] = self._unseen[place] = None
        else:
            self._forget(place)

    def _forget(self, place: Place) -> None:
        self._open.pop(place, None)
        self._unseen.pop(place, None)

    def _go_on(self) -> None:
        """Complete the reassignments that can be, among partitions whose rows have changed."""
        if self._series.current is not None or not self._unseen:
            return
        view = self._store.view
        own = view.brokers.get(self._broker_id)
        if own is None or own.broker_epoch < 0:
            return
        unseen, self._unseen = self._unseen, {}
        due: list[Place] = []
        for topic_id, index in unseen:
            topic = view.topic_by_id(topic_id)
            if topic is None or index >= len(topic.partitions):
                continue
            row = topic.partitions[index]
            if row.broker_epoch == own.broker_epoch and finish_reassignment(view, row) is not None:
                due.append((topic_id, index))
        if due:
            self._series.begin(
                FinishReassignments(self._store.known, self._broker_id, own.broker_epoch, due)
            )
