"""The ends of reassignments: a leader writes the target alone once all of it is in sync.

Whether it is, the row says: nothing else is looked at, and nobody else has to tell.
"""

from __future__ import annotations

from functools import partial

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
        # Partitions that are reassigned and led by this broker.
        self._open: dict[Place, None] = {}
        self._change: FinishReassignments | None = None

    def on_applied(
        self, version: int, records: list[MetadataRecord], change: Change | None
    ) -> None:
        """Look at what has changed, and end what can be."""
        has_news = change is not None and change is self._change
        if has_news:
            self._change = None
        for record in records:
            if isinstance(record, PartitionChanged):
                has_news |= self._follow((record.topic_id, record.index), record.row)
            elif isinstance(record, TopicDeleted):
                for place in [each for each in self._open if each[0] == record.topic_id]:
                    del self._open[place]
            elif isinstance(record, LifeChanged) and record.phase == SERVING:
                # One that can take over, where this broker is left out.
                has_news = True
        if has_news:
            self._go_on()
        if self._then is not None:
            self._then.on_applied(version, records, change)

    def on_refused(self, change: Change) -> None:
        """Try again later: etcd did not answer."""
        if change is self._change:
            self._change = None
            self._retries.later(partial(self._go_on))
        if self._then is not None:
            self._then.on_refused(change)

    def _follow(self, place: Place, row: PartitionRow) -> bool:
        """Take note of a row; true if it is one to look at."""
        if not is_reassigned(row) or row.leader_id != self._broker_id:
            self._open.pop(place, None)
            return False
        self._open[place] = None
        return True

    def _go_on(self) -> None:
        if self._change is not None or not self._open:
            return
        view = self._store.view
        own = view.brokers.get(self._broker_id)
        if own is None or own.broker_epoch < 0:
            return
        due: dict[Place, None] = {}
        for topic_id, index in self._open:
            topic = view.topic_by_id(topic_id)
            if topic is None or index >= len(topic.partitions):
                continue
            row = topic.partitions[index]
            if row.broker_epoch == own.broker_epoch and finish_reassignment(view, row) is not None:
                due[topic_id, index] = None
        if due:
            change = FinishReassignments(self._store.known, self._broker_id, own.broker_epoch, due)
            self._change = change
            self._store.change(change)
