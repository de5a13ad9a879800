"""Records out of rows: what a revision of etcd means for the cluster's state.

The rows that are known are kept with their revisions, since every write compares them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from tarry.base.errors import CorruptData
from tarry.base.etcd import Removed, Row
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
    NewerFormat,
    PartitionChanged,
    PartitionRow,
    PartitionsAdded,
    ProducerIdsReserved,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
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
    decode_row,
    format_of,
    part_fault,
    shown_key,
    topic_id_of,
)
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


class KnownRows:
    """Rows of a cluster, by key; `apply` takes what a revision changed."""

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        self._rows: dict[bytes, KnownRow] = {}
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
        gone = [Removed(key, 0) for key in self._rows if key not in there]
        changed = [row for row in there.values() if row.mod_revision != self.mod_revision(row.key)]
        return [*gone, *changed]

    def apply(self, changes: Iterable[Row | Removed]) -> list[MetadataRecord]:
        """Take the changes of one revision and return the records that say the same.

        `NewerFormat` or `CorruptData` if a row cannot be read: then nothing is taken.  A partition
        whose own row cannot be read, or makes no sense, stands still; all else goes on.
        """
        by_kind: dict[str, list[tuple[list[str], Row, StoredRow]]] = {}
        gone: dict[str, list[tuple[list[str], bytes]]] = {}
        parts: list[tuple[list[str], Row]] = []
        for change in changes:
            place = self.keys.place(change.key)
            if isinstance(change, Removed):
                gone.setdefault(place[0], []).append((place, change.key))
            elif place[0] == "parts":
                parts.append((place, change))
            else:
                row = decode_row(place[0], change.key, change.value)
                by_kind.setdefault(place[0], []).append((place, change, row))
        topics = {
            change.key: row for _, change, row in by_kind.get("topics", ()) if type(row) is TopicRow
        }
        by_kind["parts"] = [
            (place, change, part)
            for place, change in parts
            if (part := self._read_part(place, change, topics)) is not None
        ]
        records: list[MetadataRecord] = []
        for kind in _GONE_FIRST:
            for place, key in gone.get(kind, ()):
                self._tell_gone(place, key, records)
        for kind in _KINDS_IN_ORDER:
            for place, change, row in by_kind.get(kind, ()):
                self._tell(place, change, row, records)
        for place, key in gone.get("configs", ()):
            broker_id = broker_id_of(key, place[-1])
            records.append(BrokerConfigChanged(broker_id=broker_id, configs={}))
        for each in gone.values():
            for _, key in each:
                self._rows.pop(key, None)
        for put in by_kind.values():
            for _, change, row in put:
                self._rows[change.key] = KnownRow(row, change.create_revision, change.mod_revision)
        return records

    def _read_part(
        self, place: list[str], change: Row, topics: dict[bytes, TopicRow]
    ) -> StoredRow | None:
        """Return the row of a partition, or what stands for it; None if there is none such."""
        topic, index = self._topic_of(place, topics)
        if topic is None or index < 0:
            logger.error(
                "%s in etcd belongs to no partition: it is passed over; remove it",
                shown_key(change.key),
            )
            return None
        try:
            row = decode_row("parts", change.key, change.value)
            fault = part_fault(row) if isinstance(row, PartRow) else ""
        except (NewerFormat, CorruptData) as error:
            fault = str(error)
        else:
            if not fault:
                return row
        logger.error(
            "%s-%d stands still, nobody leads it and no data of it is removed: %s; its row in "
            "etcd, %s, is to be mended, or read by a newer release",
            topic.name,
            index,
            fault,
            shown_key(change.key),
        )
        known = self.get(change.key)
        if isinstance(known, PartRow | UnreadableRow):
            epochs, replicas = (known.leader_epoch, known.partition_epoch), known.replicas
        else:
            epochs, replicas = (0, 0), partitions_of(topic.blocks)[index].replicas
        return UnreadableRow(format_of(change.value), *epochs, replicas)

    def _topic_of(
        self, place: list[str], topics: dict[bytes, TopicRow]
    ) -> tuple[TopicRow | None, int]:
        """Return topic and index of a partition's key; an index of -1 if there is none such."""
        if len(place) != 3 or not (place[2].isascii() and place[2].isdigit()):
            return None, -1
        key = self.keys.prefix + f"topics/{place[1]}".encode()
        topic = topics.get(key) or self.get(key)
        if not isinstance(topic, TopicRow):
            return None, -1
        last = topic.blocks[-1] if topic.blocks else BlockRow(0, [], [])
        index = int(place[2]) if len(place[2]) < 10 else -1
        return topic, index if index < last.first_index + len(last.replicas) else -1

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
            records.append(TopicDeleted(topic_id=topic_id))
        else:
            records.append(TopicRemoved(topic_id=topic_id))

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
            case TopicRow():
                _tell_topic(topic_id_of(place[1]), row, before, records)
            case PartRow():
                records.append(partition_changed(topic_id_of(place[1]), int(place[2]), row))
            case UnreadableRow():
                still = PartitionRow(-1, row.leader_epoch, row.partition_epoch, row.replicas, [])
                records.append(
                    PartitionChanged(topic_id=topic_id_of(place[1]), index=int(place[2]), row=still)
                )
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


def _tell_topic(
    topic_id: bytes, row: TopicRow, before: StoredRow | None, records: list[MetadataRecord]
) -> None:
    if not isinstance(before, TopicRow):
        records.append(
            TopicCreated(
                topic_id=topic_id,
                name=row.name,
                partitions=partitions_of(row.blocks),
                configs=_possible(row),
            )
        )
        return
    if row.configs != before.configs:
        records.append(ConfigChanged(topic_id=topic_id, configs=_possible(row)))
    added = row.blocks[len(before.blocks) :]
    if added:
        records.append(PartitionsAdded(topic_id=topic_id, partitions=partitions_of(added)))


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
                made.append(PartitionRow(-1, 0, 0, replicas, []))
                continue
            made.append(PartitionRow(isr[0], 0, 0, replicas, isr, epochs.get(isr[0], NO_EPOCH)))
    return made
