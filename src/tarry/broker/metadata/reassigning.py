"""The ends of reassignments: a leader writes the target alone once all of it is in sync.

Whether it is, the row says: nothing else is looked at, and nobody else has to tell.
"""

from __future__ import annotations

from tarry.broker.metadata.retries import Retries
from tarry.cluster.change import Change
from tarry.cluster.etcd_store import EtcdStore
from tarry.cluster.reassignments import FinishReassignments, finish_reassignment
from tarry.cluster.records import (
    LifeChanged,
    MetadataRecord,
    PartitionChanged,
    PartitionRow,
    TopicDeleted,
)
from tarry.cluster.row_changes import Place
from tarry.cluster.state import SERVING, is_reassigned
from tarry.cluster.store import StoreListener


class Reassigning(StoreListener):
    """Listener to rows that ends reassignments of what this broker leads.

    `then` hears everything as well.
    """

    def __init__(
        self, broker_id: int, store: EtcdStore, retries: Retries, then: StoreListener | None
    ) -> None:
        self._broker_id = broker_id
        self._store = store
        self._retries = retries
        self._then = then
        # Partitions that are reassigned and led by this broker, and those of them to look at.
        self._open: dict[Place, None] = {}
        self._unseen: dict[Place, None] = {}
        self._change: FinishReassignments | None = None

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Look at what has changed, and end what can be."""
        for record in records:
            if isinstance(record, PartitionChanged):
                self._follow((record.topic_id, record.index), record.row)
            elif isinstance(record, TopicDeleted):
                for place in [each for each in self._open if each[0] == record.topic_id]:
                    self._forget(place)
            elif isinstance(record, LifeChanged) and record.phase == SERVING:
                # One that can take over, where this broker is left out.
                self._unseen.update(self._open)
        ended = self._change
        if ended is not None and change is ended:
            self._change = None
            if not ended.is_last:
                self._begin(ended.rest())
        self._go_on()
        if self._then is not None:
            self._then.on_applied(version, records, change)

    def on_refused(self, change: Change) -> None:
        """Try again later: etcd did not answer."""
        if change is self._change:
            self._change = None
            self._unseen.update(self._open)
            self._retries.later(self._go_on)
        if self._then is not None:
            self._then.on_refused(change)

    def _follow(self, place: Place, row: PartitionRow) -> None:
        """Take note of a row."""
        if is_reassigned(row) and row.leader_id == self._broker_id:
            self._open[place] = self._unseen[place] = None
        else:
            self._forget(place)

    def _forget(self, place: Place) -> None:
        self._open.pop(place, None)
        self._unseen.pop(place, None)

    def _go_on(self) -> None:
        """End what can be, of what was not looked at since it changed."""
        if self._change is not None or not self._unseen:
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
            self._begin(
                FinishReassignments(self._store.known, self._broker_id, own.broker_epoch, due)
            )

    def _begin(self, change: FinishReassignments) -> None:
        self._change = change
        self._store.change(change)
