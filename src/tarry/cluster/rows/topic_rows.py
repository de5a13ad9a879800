"""Records from the rows of topics and of their partitions.

A topic is frozen while one of its rows is damaged, or was removed though nobody has deleted the
topic: no partition of it has a leader or a replica in sync, so that no broker leads it, changes it
or removes its data.  What was known of its rows is kept, and the topic goes on by itself once the
row is mended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from tarry.base.partition_row import NOWHERE, PartitionRow
from tarry.cluster.configs.topic_settings import config_faults
from tarry.cluster.rows.row_reading import PutRow, RowReading
from tarry.cluster.rows.rows import (
    AnyRow,
    BlockRow,
    DeletedRow,
    Keys,
    TopicRow,
    partition_count,
    shown_key,
    topic_id_of,
)
from tarry.cluster.state.records import (
    ConfigChanged,
    DeletionPending,
    MetadataRecord,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    TopicRemoved,
)
from tarry.cluster.state.topic_names import collision_key

logger = logging.getLogger("tarry.cluster")

# Broker epoch in a row without a life: no life has led the partition yet.
NO_EPOCH: Final = -1


class KnownRow:
    """A row as it was last seen; if it is damaged or was removed by hand, the row known before."""

    __slots__ = ("create_revision", "fault", "mod_revision", "row")

    def __init__(
        self, row: AnyRow | None, create_revision: int, mod_revision: int, fault: str = ""
    ) -> None:
        # Content of the row; None if there is a row of which nothing is known.
        self.row = row
        # Revisions of the key; both are 0 if the key is not in etcd.
        self.create_revision = create_revision
        self.mod_revision = mod_revision
        # Why the row is damaged; "" if it is not.
        self.fault = fault


def known_row(put: PutRow) -> KnownRow:
    """Return the known row that a put row becomes."""
    return KnownRow(put.row, put.change.create_revision, put.change.mod_revision, put.fault)


class TopicRows:
    """Rows of topics among the known rows; this class takes them in and makes their records."""

    def __init__(self, keys: Keys, rows: dict[bytes, KnownRow]) -> None:
        self._keys = keys
        self._rows = rows
        # Keys of damaged rows, by the id of the topic, as text, that they freeze.
        self._freezing: dict[str, dict[bytes, None]] = {}
        self._keys_by_name: dict[str, bytes] = {}

    def key_of(self, name: str) -> bytes | None:
        """Return the key of the topic that has this name, or one that clashes with it."""
        return self._keys_by_name.get(collision_key(name))

    def hosts(self, topic_id: bytes) -> list[int]:
        """Return the brokers that may have data of a topic, also those before a reassignment."""
        topic = self._get(self._keys.topic(topic_id))
        assert isinstance(topic, TopicRow)
        hosts: dict[int, None] = {}
        for block in topic.blocks:
            for replicas in block.replicas:
                hosts.update(dict.fromkeys(replicas))
        for _, part in self._parts(topic_id, 0, partition_count(topic)):
            hosts.update(dict.fromkeys(part.replicas))
        return sorted(hosts)

    def _get(self, key: bytes) -> AnyRow | None:
        known = self._rows.get(key)
        return known.row if known is not None else None

    def _parts(
        self, topic_id: bytes, first_index: int, count: int
    ) -> Iterator[tuple[int, PartitionRow]]:
        """Yield those partitions from `first_index` on that have rows of their own."""
        # Building the whole key of each partition costs most with ten thousand: share the prefix.
        prefix = self._keys.parts(topic_id)
        for index in range(first_index, count):
            known = self._rows.get(prefix + b"%d" % index)
            if known is not None and isinstance(known.row, PartitionRow):
                yield index, known.row

    def take(self, reading: RowReading, records: list[MetadataRecord]) -> None:
        """Take the rows of topics and partitions, and add the records of each topic that they
        concern.

        The records of a frozen topic's partitions only say that the partitions stand still.
        """
        changed: dict[str, _ChangedTopic] = {}
        for each in reading.put.pop("topics", ()):
            if each.row is not None or each.fault:
                self._change_of(each.place[1], changed)
                self._freeze(each.place[1], each.change.key, each.fault)
            self._rows[each.change.key] = known_row(each)
        for id_text, key in reading.lost.items():
            self._change_of(id_text, changed)
            self._note_removal(id_text, key, "nobody has deleted its topic")
        for each in reading.put.pop("parts", ()):
            if each.row is not None or each.fault:
                self._change_of(each.place[1], changed).indexes.append(int(each.place[2]))
                self._freeze(each.place[1], each.change.key, each.fault)
            self._rows[each.change.key] = known_row(each)
        for place, key in reading.gone.pop("parts", ()):
            self._take_gone_part(place, key, changed, is_lost=place[1] in reading.lost)
        for id_text, one in changed.items():
            self._tell_topic(id_text, one, records)

    def _change_of(self, id_text: str, changed: dict[str, _ChangedTopic]) -> _ChangedTopic:
        """Return the change of a topic in this revision.  Call it before a row of the topic is
        taken.
        """
        found = changed.get(id_text)
        if found is None:
            before = self._get(self._keys.topic(topic_id_of(id_text)))
            was_frozen = id_text in self._freezing
            found = _ChangedTopic(before if isinstance(before, TopicRow) else None, was_frozen)
            changed[id_text] = found
        return found

    def _freeze(self, id_text: str, key: bytes, fault: str) -> None:
        """Let a damaged row freeze its topic, and a sound row no longer."""
        if fault:
            self._freezing.setdefault(id_text, {})[key] = None
        elif id_text in self._freezing:
            self._freezing[id_text].pop(key, None)
            if not self._freezing[id_text]:
                del self._freezing[id_text]

    def is_freezing(self, key: bytes) -> bool:
        """Return whether the row at this key freezes its topic."""
        known = self._rows.get(key)
        if known is None or not known.fault:
            return False
        return any(key in keys for keys in self._freezing.values())

    def _note_removal(self, id_text: str, key: bytes, reason: str) -> None:
        """Keep the content of a row that was removed by hand, with revision 0, so that a write
        creates it.
        """
        fault = f"{shown_key(key)} was removed from etcd, and {reason}"
        logger.error("%s: the topic is frozen until the row is put back as it was", fault)
        self._rows[key] = KnownRow(self._rows[key].row, 0, 0, fault)
        self._freeze(id_text, key, fault)

    def _take_gone_part(
        self, place: list[str], key: bytes, changed: dict[str, _ChangedTopic], *, is_lost: bool
    ) -> None:
        known = self._rows.get(key)
        if known is None:
            return
        is_there = len(place) == 3 and isinstance(
            self._get(self._keys.prefix + f"topics/{place[1]}".encode()), TopicRow
        )
        if is_there and is_lost:
            self._rows[key] = KnownRow(known.row, 0, 0, known.fault)
            return
        if is_there:
            self._change_of(place[1], changed)
            if isinstance(known.row, PartitionRow):
                self._note_removal(place[1], key, "its topic goes on")
                return
            self._freeze(place[1], key, "")
        del self._rows[key]

    def _tell_topic(self, id_text: str, one: _ChangedTopic, records: list[MetadataRecord]) -> None:
        """Add the records of what changed in a topic, and of whether it is frozen."""
        topic_id = topic_id_of(id_text)
        key = self._keys.topic(topic_id)
        topic, before = self._get(key), one.before
        count_now = partition_count(topic) if isinstance(topic, TopicRow) else 0
        if id_text not in self._freezing and max(one.indexes, default=-1) >= count_now:
            logger.error(
                "%s in etcd belongs to no partition: it is passed over; remove it",
                shown_key(self._keys.part(topic_id, max(one.indexes))),
            )
        if not isinstance(topic, TopicRow):
            return
        is_frozen = id_text in self._freezing
        if before is None:
            self._keys_by_name[collision_key(topic.name)] = key
            rows = self._partitions(topic_id, topic)
            records.append(
                TopicCreated(
                    topic_id=topic_id, name=topic.name, partitions=rows, configs=_possible(topic)
                )
            )
            return
        if topic.configs != before.configs:
            records.append(ConfigChanged(topic_id=topic_id, configs=_possible(topic)))
        count = partition_count(before)
        if count_now > count:
            added = self._partitions(topic_id, topic, count)
            records.append(PartitionsAdded(topic_id=topic_id, partitions=added))
        if is_frozen != one.was_frozen:
            if not is_frozen:
                logger.info("topic %s goes on: its rows in etcd are sound again", topic.name)
            for index, row in enumerate(self._partitions(topic_id, topic)[:count]):
                records.append(PartitionChanged(topic_id=topic_id, index=index, row=row))
        elif not is_frozen:
            for index in one.indexes:
                part = self._get(self._keys.part(topic_id, index))
                if index < count and isinstance(part, PartitionRow):
                    records.append(PartitionChanged(topic_id=topic_id, index=index, row=part))

    def _partitions(
        self, topic_id: bytes, topic: TopicRow, first_index: int = 0
    ) -> list[PartitionRow]:
        """Return the known partitions of a topic, from `first_index` on; the partitions of a frozen
        topic stand still.
        """
        rows = partitions_of(topic.blocks, first_index)
        for index, part in self._parts(topic_id, first_index, partition_count(topic)):
            rows[index - first_index] = part
        if self._keys.place(self._keys.topic(topic_id))[1] not in self._freezing:
            return rows
        return [row.still() for row in rows]

    def forget(
        self, id_text: str, topic: TopicRow, records: list[MetadataRecord], *, is_licensed: bool
    ) -> None:
        """Forget the rows of a topic and its partitions, and add the records of the topic's
        deletion.

        `is_licensed`: the same revision puts the row with the brokers that still have its data.
        """
        topic_id = topic_id_of(id_text)
        self._keys_by_name.pop(collision_key(topic.name), None)
        self._freezing.pop(id_text, None)
        prefix = self._keys.parts(topic_id)
        for index in range(partition_count(topic)):
            self._rows.pop(prefix + b"%d" % index, None)
        records.append(TopicDeleted(topic_id=topic_id))
        pending = self._get(self._keys.deleted(topic_id))
        if isinstance(pending, DeletedRow):
            # The row `deleted` was put by hand while the topic still existed.
            records.append(DeletionPending(topic_id=topic_id, broker_ids=pending.broker_ids))
        elif not is_licensed:
            # The row `deleted` was put and removed before this broker read either change.
            records.append(TopicRemoved(topic_id=topic_id))

    def tell_deleted(
        self,
        id_text: str,
        row: DeletedRow,
        deleted: set[str],
        records: list[MetadataRecord],
    ) -> None:
        """Add the record of the brokers that still have data of a deleted topic.

        If this broker did not know the topic, records that create and delete it come first.
        `deleted` has the ids of the topics whose rows went in this revision.
        """
        topic_id = topic_id_of(id_text)
        pending = DeletionPending(topic_id=topic_id, broker_ids=row.broker_ids)
        topic = self._rows.get(self._keys.topic(topic_id))
        if topic is not None and isinstance(topic.row, TopicRow):
            if topic.mod_revision:
                logger.error("topic %s is deleted in etcd, and there: remove a row", row.name)
                return
            # The topic's row was removed in an earlier revision.
            del self._rows[self._keys.topic(topic_id)]
            self.forget(id_text, topic.row, records, is_licensed=True)
        elif id_text not in deleted and self._get(self._keys.deleted(topic_id)) is None:
            created = TopicCreated(
                topic_id=topic_id,
                name=row.name,
                partitions=[NOWHERE] * row.partition_count,
                configs={},
            )
            records += [created, TopicDeleted(topic_id=topic_id)]
        records.append(pending)


class _ChangedTopic:
    """Change of a topic in a revision: the row before, and the partitions that have new rows."""

    __slots__ = ("before", "indexes", "was_frozen")

    def __init__(self, before: TopicRow | None, was_frozen: bool) -> None:
        self.before = before
        self.was_frozen = was_frozen
        self.indexes: list[int] = []


def _possible(row: TopicRow) -> dict[str, str]:
    """Return the settings of a topic without invalid ones, which must not stop a broker."""
    faults = config_faults(row.configs)
    for fault in faults.values():
        logger.error("a setting of topic %s in etcd is left out: %s", row.name, fault)
    return {key: text for key, text in row.configs.items() if key not in faults}


def partitions_of(blocks: list[BlockRow], first_index: int = 0) -> list[PartitionRow]:
    """Return the partitions, from `first_index` on, as they were made: the replicas that served at
    that moment are in sync, and the first of them leads.
    """
    made: list[PartitionRow] = []
    for block in blocks:
        epochs = dict(block.epochs)
        for replicas in block.replicas[max(first_index - block.first_index, 0) :]:
            isr = [broker_id for broker_id in replicas if broker_id in epochs] or replicas
            made.append(PartitionRow(isr[0], 0, epochs.get(isr[0], NO_EPOCH), 0, replicas, isr))
    return made
