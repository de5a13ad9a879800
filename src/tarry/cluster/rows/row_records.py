"""Records from rows: what a revision of etcd changes in the cluster's state.

The known rows are kept with their revisions, since every write compares these.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from tarry.base.etcd import Removed, Row, RowsTallied
from tarry.cluster.rows.row_reading import PutRow, RowReading, refuse_start
from tarry.cluster.rows.rows import (
    AnyRow,
    BrokerRow,
    ClusterRow,
    ConfigsRow,
    DeletedRow,
    FeatureRow,
    GroupConfigsRow,
    Keys,
    LifeRow,
    ProducerIdsRow,
    TopicRow,
    broker_id_of,
    topic_id_of,
)
from tarry.cluster.rows.setting_rows import SETTING_KINDS, setting_record
from tarry.cluster.rows.topic_rows import NO_EPOCH, KnownRow, TopicRows, known_row
from tarry.cluster.state.levels import THIS_RELEASE, Release
from tarry.cluster.state.records import (
    BrokerDescribed,
    BrokerRegistered,
    BrokerUnregistered,
    ClusterCreated,
    LifeChanged,
    LifeEnded,
    MetadataRecord,
    ProducerIdsReserved,
    TopicRemoved,
)

logger = logging.getLogger("tarry.cluster")

# Order of kinds in which a revision becomes records: a topic's name is freed before another topic
# takes it, and a row that is removed was there before.
_GONE_FIRST: Final = ("lives", "topics", "deleted", "brokers")
_KINDS_IN_ORDER: Final = (
    "cluster",
    "brokers",
    "lives",
    "features",
    "configs",
    "groups",
    "names",
    "ids",
)

# Broker id that stands for a broker without data.
NOBODY: Final = -1


class KnownTally(NamedTuple):
    """Tally of the known rows, to compare with etcd's tally of the same revision."""

    rows: int
    changed: dict[bytes, int]

    def fits(self, told: RowsTallied) -> bool:
        """Return whether etcd has as many rows, and every row that it names has the known
        revision.
        """
        return told.count == self.rows and told.changed.items() <= self.changed.items()


class KnownRows:
    """The known rows of a cluster, by key; `apply` takes the changes of a revision."""

    def __init__(
        self, keys: Keys, release: Release = THIS_RELEASE, broker_id: int = NOBODY
    ) -> None:
        self.keys = keys
        self._unknown_kinds = release.unknown_kinds
        self._broker_id = broker_id
        self._rows: dict[bytes, KnownRow] = {}
        self._topics = TopicRows(keys, self._rows)
        self._registered: dict[int, None] = {}

    def get(self, key: bytes) -> AnyRow | None:
        """Return the row with this key, or None."""
        known = self._rows.get(key)
        return known.row if known is not None else None

    def mod_revision(self, key: bytes) -> int:
        """Return the revision of a key's newest value; 0 if the key is not there."""
        known = self._rows.get(key)
        return known.mod_revision if known is not None else 0

    def create_revision(self, key: bytes) -> int:
        """Return the revision in which a key came into being; 0 if it is not there."""
        known = self._rows.get(key)
        return known.create_revision if known is not None else 0

    def newest_revision(self, prefix: bytes) -> int:
        """Return the newest revision of all keys that begin with `prefix`; 0 if there is none."""
        known = [each.mod_revision for key, each in self._rows.items() if key.startswith(prefix)]
        return max([0, *known])

    def feature_levels(self) -> list[tuple[str, int]]:
        """Return the features that have a level in force, each with its level."""
        prefix = self.keys.of_kind("features")
        return [
            (self.keys.place(key)[1], known.row.level)
            for key, known in self._rows.items()
            if key.startswith(prefix) and isinstance(known.row, FeatureRow)
        ]

    def life_epoch(self, broker_id: int) -> int:
        """Return the epoch of a broker's life; `NO_EPOCH` if it does not live."""
        known = self._rows.get(self.keys.life(broker_id))
        return known.create_revision if known is not None else NO_EPOCH

    def difference(self, rows: Iterable[Row]) -> list[Row | Removed]:
        """Return the changes that turn the known rows into these."""
        there: dict[bytes, Row] = {row.key: row for row in rows}
        gone = [
            Removed(key, 0)
            for key, known in self._rows.items()
            if known.mod_revision and key not in there
        ]
        changed = [
            row
            for row in there.values()
            # A row that freezes its topic may be sound together with the rows read now.
            if row.mod_revision != self.mod_revision(row.key) or self._topics.is_freezing(row.key)
        ]
        return [*gone, *changed]

    def tally(self, from_revision: int) -> KnownTally:
        """Return the number of known rows, and the revisions of those put at `from_revision` or
        later.
        """
        there = {key: known.mod_revision for key, known in self._rows.items() if known.mod_revision}
        changed = {key: each for key, each in there.items() if each >= from_revision}
        return KnownTally(len(there), changed)

    def topic_key_of(self, name: str) -> bytes | None:
        """Return the key of the topic that has this name, or one that clashes with it."""
        return self._topics.key_of(name)

    def fault(self, key: bytes) -> str:
        """Return why the row of a key is damaged; "" if it is sound.  An older row is known
        instead.
        """
        known = self._rows.get(key)
        return known.fault if known is not None else ""

    def hosts(self, topic_id: bytes) -> list[int]:
        """Return the brokers that may have data of a topic."""
        return self._topics.hosts(topic_id)

    def has_replica_here(self, topic_id: bytes) -> bool:
        """Return whether this broker may have data of a topic."""
        return self._broker_id in self._topics.hosts(topic_id)

    def apply(self, changes: Iterable[Row | Removed]) -> list[MetadataRecord]:
        """Take the changes of one revision and return the records that say the same.

        Raises `CorruptData`, and takes nothing, if a row that concerns the whole cluster cannot be
        read, or if no row is known yet and any row of a topic is damaged.  Later on a damaged row
        freezes its topic, or is replaced by the row known before, and everything else goes on.
        """
        changes = list(changes)
        if not self._rows:
            refuse_start(self.keys, changes)
        reading = RowReading(self, changes, self._unknown_kinds)
        gone, put = reading.gone, reading.put
        # A topic whose row was never known gives no record when it is gone.
        deleted = {
            place[-1]
            for place, key in gone.get("topics", ())
            if isinstance(self.get(key), TopicRow)
        }
        licensed = frozenset(each.place[-1] for each in put["deleted"] if each.row is not None)
        records: list[MetadataRecord] = []
        for kind in _GONE_FIRST:
            for place, key in gone.pop(kind, ()):
                self._tell_gone(place, key, licensed, records)
        for kind in _KINDS_IN_ORDER:
            for each in put.pop(kind, ()):
                # A damaged row of a life gives a record all the same, since its key has the life's
                # epoch.
                if each.row is not None and (not each.fault or kind == "lives"):
                    self._tell(each, records)
                self._keep(each)
        for each in put.pop("deleted"):
            if isinstance(each.row, DeletedRow) and not each.fault:
                self._topics.tell_deleted(each.place[1], each.row, deleted, records)
            self._keep(each)
        self._topics.take(reading, records)
        for kind in SETTING_KINDS:
            for place, key in gone.pop(kind, ()):
                if self.get(key) is not None:
                    records.append(setting_record(kind, key, place[-1], None))
                self._rows.pop(key, None)
        for rows in gone.values():
            for _, key in rows:
                known = self._rows.pop(key, None)
                if known is not None and isinstance(known.row, ClusterRow | ProducerIdsRow):
                    # The cluster's id and the producer ids that were given out must not be
                    # forgotten.  Revision 0 makes the next write create the row again.
                    self._rows[key] = KnownRow(known.row, 0, 0)
        for passed_over in put.values():
            for each in passed_over:
                self._keep(each)
        return records

    def _keep(self, put: PutRow) -> None:
        self._rows[put.change.key] = known_row(put)

    def _tell_gone(
        self,
        place: list[str],
        key: bytes,
        licensed: frozenset[str],
        records: list[MetadataRecord],
    ) -> None:
        """Add the records of a removed row; `licensed` has the ids of topics whose deletion is put
        in the same revision.
        """
        known = self._rows.pop(key, None)
        if known is None or known.row is None:
            return
        if place[0] == "lives":
            broker_id = broker_id_of(key, place[-1])
            if broker_id in self._registered:
                records.append(LifeEnded(broker_id=broker_id))
            return
        if place[0] == "brokers":
            broker_id = broker_id_of(key, place[-1])
            self._registered.pop(broker_id, None)
            records.append(BrokerUnregistered(broker_id=broker_id))
        elif isinstance(known.row, TopicRow):
            is_licensed = place[1] in licensed
            self._topics.forget(place[1], known.row, records, is_licensed=is_licensed)
        elif not isinstance(self.get(self.keys.topic(topic_id_of(place[1]))), TopicRow):
            # The row was put by hand while its topic existed, and gave no record then.
            records.append(TopicRemoved(topic_id=topic_id_of(place[1])))

    def _tell(self, put: PutRow, records: list[MetadataRecord]) -> None:
        place, change, row = put.place, put.change, put.row
        before = self.get(change.key)
        match row:
            case ClusterRow() if before is None:
                records.append(ClusterCreated(cluster_id=row.cluster_id))
            case ConfigsRow() | GroupConfigsRow() | FeatureRow():
                records.append(setting_record(place[0], change.key, place[-1], row))
            case ProducerIdsRow():
                first_id = before.next_id if isinstance(before, ProducerIdsRow) else 0
                count = row.next_id - first_id
                records.append(ProducerIdsReserved(first_id=first_id, count=count))
            case LifeRow():
                broker_id = broker_id_of(change.key, place[-1])
                self._tell_life(broker_id, change.create_revision, row, records)
            case BrokerRow():
                broker_id = broker_id_of(change.key, place[-1])
                if before is None:
                    records.append(BrokerRegistered(broker_id=broker_id))
                records.append(
                    BrokerDescribed(
                        broker_id=broker_id,
                        directory_id=row.directory_id,
                        rack=row.rack,
                        endpoints=row.endpoints,
                        release=row.release,
                        levels=row.levels,
                    )
                )
                if before is None:
                    self._tell_earlier_life(broker_id, records)
            case _:
                pass

    def _tell_life(
        self, broker_id: int, broker_epoch: int, row: LifeRow, records: list[MetadataRecord]
    ) -> None:
        if broker_id not in self._registered:
            # The broker was unregistered while its life began.  The life counts once it registers
            # again.
            return
        if self.life_epoch(broker_id) not in (NO_EPOCH, broker_epoch):
            # The rows were read as a whole after a lost watch, and another life has begun
            # meanwhile.
            records.append(LifeEnded(broker_id=broker_id))
        records.append(LifeChanged(broker_id=broker_id, broker_epoch=broker_epoch, phase=row.phase))

    def _tell_earlier_life(self, broker_id: int, records: list[MetadataRecord]) -> None:
        """Add the record of a life that began before its broker was registered again."""
        self._registered[broker_id] = None
        row = self.get(self.keys.life(broker_id))
        if isinstance(row, LifeRow):
            epoch = self.life_epoch(broker_id)
            records.append(LifeChanged(broker_id=broker_id, broker_epoch=epoch, phase=row.phase))
