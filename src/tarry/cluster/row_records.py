"""Records out of rows: what a revision of etcd means for the cluster's state.

The rows that are known are kept with their revisions, since every write compares them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from tarry.base.etcd import Removed, Row, RowsTallied
from tarry.cluster.records import (
    BrokerConfigChanged,
    BrokerDescribed,
    BrokerRegistered,
    BrokerUnregistered,
    ClusterCreated,
    ConfigChanged,
    DeletionPending,
    LifeChanged,
    LifeEnded,
    MetadataRecord,
    PartitionChanged,
    PartitionRow,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
    TopicStoodStill,
)
from tarry.cluster.row_reading import RowReading, partition_count
from tarry.cluster.rows import (
    BlockRow,
    BrokerRow,
    ClusterRow,
    ConfigsRow,
    DeletedRow,
    Keys,
    LifeRow,
    PartRow,
    ProducerIdsRow,
    StoredRow,
    TopicRow,
    UnreadableRow,
    are_replicas,
    broker_id_of,
    possible_replicas,
    shown_key,
    topic_id_of,
)
from tarry.cluster.topic_names import collision_key
from tarry.cluster.topic_settings import config_faults

logger = logging.getLogger("tarry.cluster")

# What a revision changes is told in this order of kinds: a topic's name is free before another
# topic takes it, and what is removed was there.
_GONE_FIRST: Final = ("lives", "topics", "deleted", "brokers")
_KINDS_IN_ORDER: Final = (
    "cluster",
    "brokers",
    "lives",
    "configs",
    "deleted",
    "topics",
    "parts",
    "ids",
)

# The epoch of a life that is over or was never there.
NO_EPOCH: Final = -1


class KnownRow:
    """A row as it was last seen."""

    __slots__ = ("create_revision", "mod_revision", "row")

    def __init__(self, row: StoredRow, create_revision: int, mod_revision: int) -> None:
        self.row = row
        self.create_revision = create_revision
        self.mod_revision = mod_revision


class KnownTally(NamedTuple):
    """Tally of what is known, to compare with etcd's of the same revision."""

    rows: int
    changed: dict[bytes, int]

    def fits(self, told: RowsTallied) -> bool:
        """Return whether etcd has as many rows, and each that it names is known as it is."""
        return told.count == self.rows and told.changed.items() <= self.changed.items()


class KnownRows:
    """Rows of a cluster, by key; `apply` takes what a revision changed."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        # How many partitions of a topic have data on this broker's disk, as far as is known.
        self.count_here: Callable[[str, bytes], int] = _none_here
        self._rows: dict[bytes, KnownRow] = {}
        # Revisions of rows that are passed over, or in whose place an older one stands.
        self._passed_over: dict[bytes, int] = {}
        # Why a row cannot be had, in whose place stands what was known before.
        self._faults: dict[bytes, str] = {}
        # Partitions, by topic id and index, whose row somebody has removed, while their topic goes
        # on; it is known as it was.
        self.removed_parts: dict[tuple[bytes, int], None] = {}
        self._topic_keys: dict[str, bytes] = {}
        self._registered: dict[int, None] = {}

    def get(self, key: bytes) -> StoredRow | None:
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

    def life_epoch(self, broker_id: int) -> int:
        """Return the epoch of a broker's life; `NO_EPOCH` if it does not live."""
        known = self._rows.get(self.keys.life(broker_id))
        return known.create_revision if known is not None else NO_EPOCH

    @property
    def registered_ids(self) -> list[int]:
        """The ids of the brokers that belong to the cluster."""
        return list(self._registered)

    def difference(self, rows: Iterable[Row]) -> list[Row | Removed]:
        """Return what has to change for the known rows to be these."""
        there: dict[bytes, Row] = {row.key: row for row in rows}
        gone = [Removed(key, 0) for key in {**self._rows, **self._passed_over} if key not in there]
        changed = [row for row in there.values() if row.mod_revision != self.mod_revision(row.key)]
        return [*gone, *changed]

    def tally(self, from_revision: int) -> KnownTally:
        """Return how many rows there are, and the revisions of those put from a revision on."""
        revisions = {
            key: known.mod_revision for key, known in self._rows.items() if known.mod_revision
        }
        revisions.update(self._passed_over)
        changed = {key: each for key, each in revisions.items() if each >= from_revision}
        return KnownTally(len(revisions), changed)

    def topic_key_of(self, name: str) -> bytes | None:
        """Return the key of the topic that has this name, or one that clashes with it."""
        return self._topic_keys.get(collision_key(name))

    def fault(self, key: bytes) -> str:
        """Return why the row of a key cannot be had; "" if it can.  What is known is older then."""
        return self._faults.get(key, "")

    def apply(self, changes: Iterable[Row | Removed]) -> list[MetadataRecord]:
        """Take the changes of one revision and return the records that say the same.

        `NewerFormat` or `CorruptData` if a row that concerns the whole cluster cannot be read: then
        nothing is taken.  Any other that cannot be read, or makes no sense, stands still; all else
        goes on.
        """
        changes = list(changes)
        reading = RowReading(self, changes, is_first=not self._rows)
        gone, put = reading.gone, reading.rows
        # Topics that stood still so far have a fault here.
        faults_before = dict(self._faults)
        for rows in put.values():
            for _, change, _ in rows:
                self._faults.pop(change.key, None)
        self._faults.update(reading.faults)
        records: list[MetadataRecord] = []
        for kind in _GONE_FIRST:
            for place, key in gone.get(kind, ()):
                self._tell_gone(place, key, records)
        for kind in _KINDS_IN_ORDER:
            for place, change, row in put.get(kind, ()):
                if isinstance(row, TopicRow):
                    was_still = change.key in faults_before
                    self._tell_topic(change.key, row, records, was_still=was_still)
                else:
                    self._tell(place, change, row, records)
        for place, key in gone.get("configs", ()):
            if key in self._rows:
                broker_id = broker_id_of(key, place[-1])
                records.append(BrokerConfigChanged(broker_id=broker_id, configs={}))
        kept = self._tell_removed_parts(reading, records)
        for each in gone.values():
            for place, key in each:
                known = self._rows.pop(key, None)
                self._faults.pop(key, None)
                is_kept = key in kept or (place[0] == "parts" and place[1] in reading.lost)
                if known is not None and (is_kept or isinstance(known.row, ClusterRow)):
                    # Who has its data, and which cluster this is, must not be forgotten; for a
                    # write it is not there.
                    self._rows[key] = KnownRow(known.row, 0, 0)
        if self.removed_parts:
            for place, _, _ in put.get("parts", ()):
                self.removed_parts.pop((topic_id_of(place[1]), int(place[2])), None)
        for rows in put.values():
            for _, change, row in rows:
                self._rows[change.key] = KnownRow(row, change.create_revision, change.mod_revision)
        for each_change in changes:
            self._passed_over.pop(each_change.key, None)
            revision = each_change.mod_revision
            is_there = isinstance(each_change, Row)
            if is_there and self.mod_revision(each_change.key) != revision:
                self._passed_over[each_change.key] = revision
        return records

    def _tell_gone(self, place: list[str], key: bytes, records: list[MetadataRecord]) -> None:
        if key not in self._rows:
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
            return
        topic_id = topic_id_of(place[1])
        if place[0] == "topics":
            topic = self.get(key)
            assert isinstance(topic, TopicRow)
            self._topic_keys.pop(collision_key(topic.name), None)
            records.append(TopicDeleted(topic_id=topic_id))
        else:
            records.append(TopicRemoved(topic_id=topic_id))

    def _tell_removed_parts(
        self, reading: RowReading, records: list[MetadataRecord]
    ) -> dict[bytes, None]:
        """Tell again of partitions whose row was removed though their topic goes on; return the
        keys of all such that are gone.
        """
        kept: dict[bytes, None] = {}
        deleted = {place[1] for place, _ in reading.gone.get("topics", ())}
        for place, key in reading.gone.get("parts", ()):
            row = self.get(key)
            if not isinstance(row, PartRow | UnreadableRow) or place[1] in reading.lost:
                continue
            topic_id, index = topic_id_of(place[1]), int(place[2])
            topic = self.get(self.keys.topic(topic_id))
            if place[1] in deleted or not isinstance(topic, TopicRow):
                self.removed_parts.pop((topic_id, index), None)
                continue
            kept[key] = None
            if (topic_id, index) in self.removed_parts:
                continue
            self.removed_parts[topic_id, index] = None
            logger.error(
                "the row of %s-%d was removed from etcd, %s, which no broker does: it counts as it "
                "was, and whoever leads the partition writes it anew",
                topic.name,
                index,
                shown_key(key),
            )
            is_still = self.fault(self.keys.topic(topic_id)) != ""
            records.append(_part_changed(topic_id, index, row, is_still=is_still))
        return kept

    def _tell(
        self, place: list[str], change: Row, row: StoredRow, records: list[MetadataRecord]
    ) -> None:
        before = self.get(change.key)
        match row:
            case ClusterRow() if before is None:
                records.append(ClusterCreated(cluster_id=row.cluster_id))
            case ConfigsRow():
                broker_id = broker_id_of(change.key, place[-1])
                records.append(BrokerConfigChanged(broker_id=broker_id, configs=dict(row.configs)))
            case ProducerIdsRow():
                first_id = before.next_id if isinstance(before, ProducerIdsRow) else 0
                count = row.next_id - first_id
                records.append(ProducerIdsReserved(first_id=first_id, count=count))
            case DeletedRow():
                self._tell_deleted(topic_id_of(place[1]), row, before, records)
            case PartRow() | UnreadableRow():
                topic_id = topic_id_of(place[1])
                is_still = self.fault(self.keys.topic(topic_id)) != ""
                records.append(_part_changed(topic_id, int(place[2]), row, is_still=is_still))
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
                    )
                )
                if before is None:
                    self._tell_earlier_life(broker_id, records)
            case _:
                pass

    def _tell_topic(
        self, key: bytes, row: TopicRow, records: list[MetadataRecord], *, was_still: bool
    ) -> None:
        """Tell what has changed of a topic, and whether it stands still or goes on again."""
        topic_id = topic_id_of(self.keys.place(key)[1])
        before = self.get(key)
        is_still = self.fault(key) != ""
        if not isinstance(before, TopicRow):
            self._topic_keys[collision_key(row.name)] = key
            partitions = partitions_of(row.blocks)
            created = TopicCreated(
                topic_id=topic_id,
                name=row.name,
                partitions=[_still(each) for each in partitions] if is_still else partitions,
                configs=_possible(row),
            )
            records.append(created)
            if is_still:
                records.append(TopicStoodStill(topic_id=topic_id, is_still=True))
            return
        if row.configs != before.configs:
            records.append(ConfigChanged(topic_id=topic_id, configs=_possible(row)))
        count = partition_count(before)
        added = partitions_of(row.blocks)[count:] if partition_count(row) > count else []
        if added:
            records.append(PartitionsAdded(topic_id=topic_id, partitions=added))
        if is_still == was_still:
            return
        records.append(TopicStoodStill(topic_id=topic_id, is_still=is_still))
        for index, made in enumerate(partitions_of(row.blocks)[:count]):
            part = self.get(self.keys.part(topic_id, index))
            if isinstance(part, PartRow | UnreadableRow):
                records.append(_part_changed(topic_id, index, part, is_still=is_still))
            else:
                now = _still(made) if is_still else made
                records.append(PartitionChanged(topic_id=topic_id, index=index, row=now))

    def _tell_life(
        self, broker_id: int, broker_epoch: int, row: LifeRow, records: list[MetadataRecord]
    ) -> None:
        if broker_id not in self._registered:
            # It was unregistered while it began to live: it counts once it has registered again.
            return
        if self.life_epoch(broker_id) not in (NO_EPOCH, broker_epoch):
            # Read as a whole after a watch was lost: another life has come meanwhile.
            records.append(LifeEnded(broker_id=broker_id))
        records.append(LifeChanged(broker_id=broker_id, broker_epoch=broker_epoch, phase=row.phase))

    def _tell_earlier_life(self, broker_id: int, records: list[MetadataRecord]) -> None:
        """Tell of a life that began before its broker was registered again."""
        self._registered[broker_id] = None
        row = self.get(self.keys.life(broker_id))
        if isinstance(row, LifeRow):
            epoch = self.life_epoch(broker_id)
            records.append(LifeChanged(broker_id=broker_id, broker_epoch=epoch, phase=row.phase))

    def _tell_deleted(
        self,
        topic_id: bytes,
        row: DeletedRow,
        before: StoredRow | None,
        records: list[MetadataRecord],
    ) -> None:
        """Tell who still has data; and of a topic that was gone before this broker heard of it."""
        pending = DeletionPending(topic_id=topic_id, broker_ids=row.broker_ids)
        if before is not None or self.get(self.keys.topic(topic_id)) is not None:
            # Its own row goes in the same revision, which says it.
            records.append(pending)
            return
        nowhere = PartitionRow(-1, 0, 0, [], [])
        records.append(
            TopicCreated(
                topic_id=topic_id,
                name=row.name,
                partitions=[nowhere] * row.partition_count,
                configs={},
            )
        )
        records.append(TopicDeleted(topic_id=topic_id))
        records.append(pending)


def _none_here(topic: str, topic_id: bytes) -> int:
    return 0


def _still(row: PartitionRow) -> PartitionRow:
    """Return the row of a partition that nobody may lead or change."""
    return PartitionRow(-1, row.leader_epoch, row.partition_epoch, row.replicas, [])


def _part_changed(
    topic_id: bytes, index: int, row: PartRow | UnreadableRow, *, is_still: bool
) -> PartitionChanged:
    """Return what a partition's row says; `is_still`: its topic stands still."""
    if isinstance(row, PartRow):
        changed = partition_changed(topic_id, index, row)
        return replace(changed, row=_still(changed.row)) if is_still else changed
    still = PartitionRow(-1, row.leader_epoch, row.partition_epoch, row.replicas, [])
    return PartitionChanged(topic_id=topic_id, index=index, row=still)


def _possible(row: TopicRow) -> dict[str, str]:
    """Return the settings of a topic without those that cannot be had: no broker ends by them."""
    faults = config_faults(row.configs)
    for fault in faults.values():
        logger.error("a setting of topic %s in etcd is left out: %s", row.name, fault)
    return {key: text for key, text in row.configs.items() if key not in faults}


def partition_changed(topic_id: bytes, index: int, row: PartRow) -> PartitionChanged:
    """Return the record that says what a partition's row says."""
    return PartitionChanged(
        topic_id=topic_id,
        index=index,
        row=PartitionRow(
            row.leader_id,
            row.leader_epoch,
            row.partition_epoch,
            row.replicas,
            row.isr,
            row.broker_epoch,
            row.adding,
            row.removing,
            row.unclean_epoch,
        ),
    )


def partitions_of(blocks: list[BlockRow]) -> list[PartitionRow]:
    """Return the partitions as they were made: in sync are the replicas that served then, and the
    first of them leads.
    """
    made: list[PartitionRow] = []
    for block in blocks:
        epochs = dict(block.epochs)
        for replicas in block.replicas:
            isr = [broker_id for broker_id in replicas if broker_id in epochs] or replicas
            if not isr or not are_replicas(replicas):
                # Damaged: it stands still.
                made.append(PartitionRow(-1, 0, 0, possible_replicas(replicas), []))
                continue
            made.append(PartitionRow(isr[0], 0, 0, replicas, isr, epochs.get(isr[0], NO_EPOCH)))
    return made
