"""Reading of rows of etcd: what one damaged row concerns stands still, and all else goes on.

In the place of a row that cannot be read, or makes no sense, stands what was known of it before; of
a topic that was never known, what else is known.  It is never written.  Only what concerns the
whole cluster is refused: its own row, a kind of row that a newer release has brought, and producer
ids.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from tarry.base.errors import CorruptData
from tarry.base.etcd import Removed, Row
from tarry.base.ids import id_from_text
from tarry.cluster.records import EVERY_BROKER, NewerFormat
from tarry.cluster.rows import (
    PARTITIONS_MAX,
    ROW_FORMAT,
    BlockRow,
    BrokerRow,
    ClusterRow,
    ConfigsRow,
    DeletedRow,
    Keys,
    LifeRow,
    NameRow,
    PartRow,
    StoredRow,
    TopicRow,
    UnreadableRow,
    decode_row,
    format_of,
    is_broker_id,
    is_number,
    part_fault,
    possible_replicas,
    row_fault,
    shown_key,
)
from tarry.cluster.state import STARTING
from tarry.cluster.topic_names import collision_key, name_fault

logger = logging.getLogger("tarry.cluster")

# Keys of these kinds end with a broker's id, and of these with a topic's.
_OF_BROKERS: Final = ("brokers", "lives", "configs")
_OF_TOPICS: Final = ("topics", "deleted")

# What a damaged row of a kind means, and what helps; a topic's has a sentence of its own.
_CONSEQUENCES: Final = {
    "names": "nobody can take this name",
    "brokers": "what was known of the broker counts, if anything was; it writes the row anew while "
    "it lives",
    "lives": "the broker's life counts, in the phase that was known; it writes the row anew while "
    "it lives, and if it does not, remove the row",
    "configs": "what was set before counts; set a value anew",
    "deleted": "whose data is to be removed is what was known before",
}

_REMOVED: Final = "it was removed, and nobody has deleted the topic, so put it back"

Place = list[str]


class KnownValues(Protocol):
    """View of the rows that are known already."""

    keys: Keys
    # How many partitions of a topic have data on this broker's disk: one more than the last index.
    count_here: Callable[[str, bytes], int]

    def get(self, key: bytes) -> StoredRow | None:
        """Return the row with this key, or None."""

    def create_revision(self, key: bytes) -> int:
        """Return the revision in which a key came into being; 0 if it is not there."""

    def topic_key_of(self, name: str) -> bytes | None:
        """Return the key of the topic that has this name, or one that clashes with it."""

    @property
    def registered_ids(self) -> list[int]:
        """The ids of the brokers that belong to the cluster."""


class RowReading:
    """Rows that a revision changed, by kind, each as it can be had.

    `NewerFormat` or `CorruptData` if one of them concerns the whole cluster.  `is_first`: nothing
    was known before, and so this broker does not run yet.
    """

    def __init__(
        self, known: KnownValues, changes: Iterable[Row | Removed], *, is_first: bool
    ) -> None:
        self._known = known
        self._is_first = is_first
        self.rows: dict[str, list[tuple[Place, Row, StoredRow]]] = {}
        self.gone: dict[str, list[tuple[Place, bytes]]] = {}
        # Why a row is none, by key; but for partitions, whose rows say it themselves.
        self.faults: dict[bytes, str] = {}
        self._topics: dict[bytes, TopicRow] = {}
        # Of those, by what names that clash have in common.
        self._topic_keys: dict[str, bytes] = {}
        put: dict[str, list[tuple[Place, Row]]] = {}
        for change in changes:
            place = known.keys.place(change.key)
            if isinstance(change, Removed):
                self.gone.setdefault(place[0], []).append((place, change.key))
            else:
                put.setdefault(place[0], []).append((place, change))
        # Topics whose row was removed though nobody has deleted them, by their ids.
        self.lost = self._find_lost(put.get("deleted", ()))
        self._parts = put.pop("parts", [])
        # A topic whose row is damaged is known by its name.
        for kind in sorted(put, key=lambda kind: kind != "names"):
            read = [(*each, row) for each in put[kind] if (row := self._read(*each)) is not None]
            self.rows[kind] = read
        for place, key, before in self.lost.values():
            _tell_still(before, key, _REMOVED)
            self._stand_for(place, key, before)
        if is_first:
            self._look_for_lost()
        self.rows["parts"] = [
            (*each, part) for each in self._parts if (part := self._read_part(*each)) is not None
        ]

    # -- all but partitions

    def _find_lost(
        self, deleted: Iterable[tuple[Place, Row]]
    ) -> dict[str, tuple[Place, bytes, TopicRow]]:
        """Find the topics that are gone, not deleted and have data here, and take them from what is
        gone: the only licence to remove data is the row that is put when a topic's goes.

        Who has none of it may not have heard of its deletion before all others were through.
        """
        known = self._known
        licensed = dict.fromkeys(place[-1] for place, _ in deleted)
        lost: dict[str, tuple[Place, bytes, TopicRow]] = {}
        for place, key in self.gone.get("topics", ()):
            before = known.get(key)
            if not isinstance(before, TopicRow) or place[1] in licensed:
                continue
            topic_id = id_from_text(place[1])
            if known.get(known.keys.deleted(topic_id)) is not None:
                continue
            if known.count_here(before.name, topic_id):
                lost[place[1]] = place, key, before
        if lost:
            self.gone["topics"] = [each for each in self.gone["topics"] if each[0][1] not in lost]
        return lost

    def _look_for_lost(self) -> None:
        """Look at a start for topics with data here of which only the name is left."""
        deleted = {place[1] for place, _, _ in self.rows.get("deleted", ())}
        for _, change, row in self.rows.get("names", ()):
            if not isinstance(row, NameRow) or change.key in self.faults or name_fault(row.name):
                continue
            place = ["topics", row.topic_id]
            if _key_fault(place) or row.topic_id in deleted:
                continue
            topic_id = id_from_text(row.topic_id)
            key = self._known.keys.topic(topic_id)
            if key in self._topics or not self._known.count_here(row.name, topic_id):
                continue
            stand_in = self._topic_stand_in(place, Row(key, b"", 0, 0), _REMOVED)
            if stand_in is not None:
                self._take(key, stand_in)
                self._stand_for(place, key, stand_in)

    def _stand_for(self, place: Place, key: bytes, row: TopicRow) -> None:
        """Let this stand in the place of a row that is not there."""
        self.faults[key] = _REMOVED
        self.rows.setdefault("topics", []).append((place, Row(key, b"", 0, 0), row))

    def _read(self, place: Place, change: Row) -> StoredRow | None:
        """Return a row, or what stands in its place; None if it is passed over."""
        kind = place[0]
        fault = _key_fault(place)
        if fault:
            logger.error("%s in etcd %s: it is passed over", shown_key(change.key), fault)
            return None
        try:
            row = decode_row(kind, change.key, change.value)
            fault = row_fault(row)
            if not fault and isinstance(row, ClusterRow):
                fault = self._cluster_fault(change.key, row)
            if fault:
                raise CorruptData(f"{shown_key(change.key)} in etcd makes no sense: {fault}")
            fault = self._topic_fault(change.key, row) if isinstance(row, TopicRow) else ""
        except (NewerFormat, CorruptData) as error:
            if kind not in _CONSEQUENCES and kind != "topics":
                raise
            fault = str(error)
        else:
            if not fault:
                return self._take(change.key, row)
        stand_in = self._stand_in(place, change, fault)
        if stand_in is None:
            return None
        self.faults[change.key] = fault
        return self._take(change.key, stand_in)

    def _take(self, key: bytes, row: StoredRow) -> StoredRow:
        if isinstance(row, TopicRow):
            self._topics[key] = row
            self._topic_keys.setdefault(collision_key(row.name), key)
        return row

    def _cluster_fault(self, key: bytes, row: ClusterRow) -> str:
        before = self._known.get(key)
        if isinstance(before, ClusterRow) and row.cluster_id != before.cluster_id:
            return (
                f"the cluster was {before.cluster_id} before, and is {row.cluster_id} now; restore "
                "etcd"
            )
        return ""

    def _topic_fault(self, key: bytes, row: TopicRow) -> str:
        """Return why a topic cannot be as its row says; "" if it can."""
        fault = name_fault(row.name)
        if fault:
            return fault
        count = partition_count(row)
        if count == 0:
            return "it has no partition"
        before = self._known.get(key)
        if isinstance(before, TopicRow):
            if row.name != before.name:
                return f"it was named {before.name} before, and is {row.name} now"
            if count < partition_count(before):
                return f"it had {partition_count(before)} partitions, and has {count} now"
            return ""
        taken = self._key_with(row.name)
        if taken not in (None, key):
            return f"another topic has its name, {row.name}"
        return ""

    def _key_with(self, name: str) -> bytes | None:
        """Return the key of another topic that has this name and stays."""
        key = self._known.topic_key_of(name)
        if key is not None and not self._goes(key):
            return key
        return self._topic_keys.get(collision_key(name))

    def _goes(self, key: bytes) -> bool:
        """Return whether a topic goes in this revision."""
        return any(key == gone for _, gone in self.gone.get("topics", ()))

    def _stand_in(self, place: Place, change: Row, fault: str) -> StoredRow | None:
        kind = place[0]
        if kind == "topics":
            return self._topic_stand_in(place, change, fault)
        if kind == "configs" and self._is_first:
            # Begun without them, promises such as min.insync.replicas could be weaker than before.
            raise CorruptData(
                f"the settings that were changed while brokers ran cannot be had ({fault}): mend "
                "the row, or remove it to go by the settings of the file"
            )
        before = self._known.get(change.key)
        stand_in = before
        if kind == "lives":
            if self._known.create_revision(change.key) != change.create_revision:
                stand_in = None
            stand_in = stand_in or LifeRow(ROW_FORMAT, "", 0, STARTING)
        elif kind == "deleted" and before is None:
            stand_in = self._deletion(place)
        elif before is None:
            stand_in = _EMPTY[kind]
        told = "" if stand_in is None else f": {_CONSEQUENCES[kind]}"
        logger.error("a row in etcd cannot be had%s; %s", told, fault)
        return stand_in

    def _deletion(self, place: Place) -> DeletedRow | None:
        """Return what a deletion comes to if anyone may have data; None if the topic was never
        known: then nothing here is touched.
        """
        topic = self._known.get(self._known.keys.topic(id_from_text(place[1])))
        if not isinstance(topic, TopicRow):
            return None
        return DeletedRow(
            ROW_FORMAT, topic.name, partition_count(topic), self._known.registered_ids
        )

    def _topic_stand_in(self, place: Place, change: Row, fault: str) -> TopicRow | None:
        """Return the topic as it was known, or with the partitions of which something is known.

        A broker that starts must know it: else what it has of the topic would be nobody's data.
        """
        before = self._known.get(change.key)
        if isinstance(before, TopicRow):
            stand_in = before
        else:
            name = self._name_of(place[1])
            if not name or self._key_with(name) not in (None, change.key):
                if self._is_first:
                    raise CorruptData(
                        f"{shown_key(change.key)} in etcd is the row of a topic of which not even "
                        f"the name is known: {fault}; mend it"
                    )
                logger.error("%s in etcd is passed over: %s", shown_key(change.key), fault)
                return None
            indexes = [
                int(each[2])
                for each, part in self._parts
                if each[1:2] == place[1:2] and _is_index(each) and _is_sound(part)
            ]
            here = self._known.count_here(name, id_from_text(place[1]))
            count = max([0, *indexes]) + 1
            stand_in = TopicRow(
                ROW_FORMAT, name, {}, [BlockRow(0, [[] for _ in range(max(count, here))], [])]
            )
        _tell_still(stand_in, change.key, fault)
        return stand_in

    def _name_of(self, id_text: str) -> str:
        """Return the name under which a topic is listed; "" if it is under none."""
        for _, _, row in self.rows.get("names", ()):
            if isinstance(row, NameRow) and row.topic_id == id_text and not name_fault(row.name):
                return row.name
        return ""

    # -- partitions

    def _read_part(self, place: Place, change: Row) -> StoredRow | None:
        """Return the row of a partition, or what stands for it; None if there is none such."""
        topic, index = self._topic_of(place)
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
        known = self._known.get(change.key)
        if isinstance(known, PartRow | UnreadableRow):
            epochs, replicas = (known.leader_epoch, known.partition_epoch), known.replicas
        else:
            epochs, replicas = (0, 0), replicas_of(topic)[index]
        return UnreadableRow(format_of(change.value), *epochs, replicas)

    def _topic_of(self, place: Place) -> tuple[TopicRow | None, int]:
        """Return topic and index of a partition's key; an index of -1 if there is none such."""
        if not _is_index(place):
            return None, -1
        key = self._known.keys.prefix + f"topics/{place[1]}".encode()
        topic = self._topics.get(key) or self._known.get(key)
        if not isinstance(topic, TopicRow) or self._goes(key):
            return None, -1
        index = int(place[2])
        return topic, index if index < partition_count(topic) else -1


_EMPTY: Final[dict[str, StoredRow]] = {
    "names": NameRow(ROW_FORMAT, "", ""),
    "brokers": BrokerRow(ROW_FORMAT, "", "", {}, ""),
    "configs": ConfigsRow(ROW_FORMAT, {}),
}


def _tell_still(topic: TopicRow, key: bytes, fault: str) -> None:
    logger.error(
        "topic %s stands still, nobody leads it, changes it or removes its data: %s; its row in "
        "etcd, %s, is to be mended, or read by a newer release",
        topic.name,
        fault,
        shown_key(key),
    )


def partition_count(row: TopicRow) -> int:
    """Return how many partitions a topic has."""
    last = row.blocks[-1] if row.blocks else BlockRow(0, [], [])
    return last.first_index + len(last.replicas)


def replicas_of(row: TopicRow) -> list[list[int]]:
    """Return the replicas with which the partitions of a topic were made."""
    return [possible_replicas(replicas) for block in row.blocks for replicas in block.replicas]


def _key_fault(place: Place) -> str:
    """Return why a key of a broker or topic is none; "" if it is one, or of another kind."""
    kind = place[0]
    if kind in _OF_BROKERS:
        text = place[1] if len(place) == 2 else ""
        if kind == "configs" and text == str(EVERY_BROKER):
            return ""
        return "" if is_number(text) and is_broker_id(int(text)) else "names no broker"
    if kind in _OF_TOPICS:
        try:
            id_from_text(place[1] if len(place) == 2 else "")
        except ValueError:
            return "names no topic"
    return ""


def _is_index(place: Place) -> bool:
    """Return whether a key names a topic and a partition."""
    return len(place) == 3 and is_number(place[2]) and int(place[2]) < PARTITIONS_MAX


def _is_sound(part: Row) -> bool:
    try:
        row = decode_row("parts", part.key, part.value)
    except (NewerFormat, CorruptData):
        return False
    return isinstance(row, PartRow) and not part_fault(row)
