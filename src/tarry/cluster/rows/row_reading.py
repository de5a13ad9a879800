"""Reading of rows of etcd: which rows a revision has put, and which of them are damaged.

A row is damaged if it cannot be read, makes no sense by itself, or takes back what was known, as no
broker does.  Instead of a damaged row the row counts that was known before, if there was one, and
an error names the damaged row.  Only damage to what concerns the whole cluster stops a broker: the
row `cluster` and the producer ids.  A row in a newer format stops no running broker, and rows of an
unknown kind are skipped: the feature level in force says whether a release has to know the kind.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from tarry.base.errors import CorruptData
from tarry.base.etcd import Removed, Row
from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.row_check import RowCheck
from tarry.cluster.rows.row_faults import key_fault, read_row
from tarry.cluster.rows.rows import (
    KINDS,
    ROW_FORMAT,
    AnyRow,
    ClusterRow,
    Keys,
    LifeRow,
    ProducerIdsRow,
    TopicRow,
    partition_count,
    shown_key,
    topic_id_of,
)
from tarry.cluster.state.records import NewerFormat
from tarry.cluster.state.state import STARTING
from tarry.cluster.state.topic_names import collision_key

logger = logging.getLogger("tarry.cluster")

# Ends of log lines about a damaged row: its effect, and the remedy.
_FROZEN: Final = (
    "its topic is frozen, nobody leads it, changes it or removes its data: mend the row, or start "
    "a release that can read it"
)
_CONSEQUENCES: Final = {
    "topics": _FROZEN,
    "parts": _FROZEN,
    "names": "nobody can take this name: mend the row",
    "brokers": "what was known of the broker counts, if anything was; it writes the row anew while "
    "it lives",
    "lives": "the broker's life counts; it writes the row anew while it lives, and if it does not, "
    "remove the row",
    "configs": "what was set before counts; set a value anew",
    "deleted": "no more data of the topic is removed than was known before: mend the row",
    "features": "the level that was known counts; mend the row",
    "groups": "what was set for the group before counts; set a value anew",
    "ids": "the ids that were given out count; the next broker that needs some writes the row anew",
}
# Number of damaged rows that a start names at most.
_NAMED_MAX: Final = 20

Place = list[str]


class PutRow(NamedTuple):
    """Row that a revision has put: its content, or what counts instead, which may be None."""

    place: Place
    change: Row
    row: AnyRow | None
    # Why the row is damaged; "" if it is not.
    fault: str = ""


class KnownValues(Protocol):
    """View of the rows that are known already."""

    keys: Keys

    def get(self, key: bytes) -> AnyRow | None:
        """Return the row with this key, or None."""

    def create_revision(self, key: bytes) -> int:
        """Return the revision in which a key came into being; 0 if it is not there."""

    def topic_key_of(self, name: str) -> bytes | None:
        """Return the key of the topic that has this name, or one that clashes with it."""

    def has_replica_here(self, topic_id: bytes) -> bool:
        """Return whether this broker may have data of a topic."""


class RowReading:
    """Rows that a revision changed, by kind.

    Raises `CorruptData` if a damaged row concerns the whole cluster.
    """

    def __init__(
        self, known: KnownValues, changes: Iterable[Row | Removed], unknown_kinds: frozenset[str]
    ) -> None:
        self._known = known
        self.put: dict[str, list[PutRow]] = {}
        self.gone: dict[str, list[tuple[Place, bytes]]] = {}
        # Keys of the topics that this revision puts, by the collision key of their names.
        self._topic_keys: dict[str, bytes] = {}
        by_kind: dict[str, list[tuple[Place, Row]]] = {}
        for change in changes:
            place = known.keys.place(change.key)
            if isinstance(change, Removed):
                self.gone.setdefault(place[0], []).append((place, change.key))
            else:
                by_kind.setdefault(place[0], []).append((place, change))
        self.put["deleted"] = [self._read(*each) for each in by_kind.pop("deleted", ())]
        # Topics whose row was removed although nobody has deleted the topic: they still exist.
        self.lost = self._find_lost()
        for kind, rows in by_kind.items():
            if kind not in KINDS or kind in unknown_kinds:
                _tell_unknown(kind, rows)
                self.put[kind] = [PutRow(place, change, None) for place, change in rows]
            else:
                self.put[kind] = [self._read(place, change) for place, change in rows]

    def _find_lost(self) -> dict[str, bytes]:
        """Find topics whose row is gone, that were not deleted, and that have a replica here.

        They are taken out of `gone`; their keys are returned by topic id as text.  Data of a topic
        may be removed only if a row `deleted` is put when the topic's row goes.  A broker without a
        replica of the topic may miss that row, because the other brokers may be done with the
        deletion by then.
        """
        known = self._known
        licensed = {each.place[-1] for each in self.put["deleted"] if not each.fault}
        lost: dict[str, bytes] = {}
        for place, key in self.gone.get("topics", ()):
            if place[-1] in licensed or not isinstance(known.get(key), TopicRow):
                continue
            topic_id = topic_id_of(place[-1])
            is_deleted = known.get(known.keys.deleted(topic_id)) is not None
            if not is_deleted and known.has_replica_here(topic_id):
                lost[place[-1]] = key
        if lost:
            self.gone["topics"] = [
                each for each in self.gone["topics"] if each[1] not in lost.values()
            ]
        return lost

    def _read(self, place: Place, change: Row) -> PutRow:
        kind, key = place[0], change.key
        if fault := key_fault(self._known.keys, key):
            logger.error("%s in etcd is passed over, %s: remove it", shown_key(key), fault)
            return PutRow(place, change, None)
        try:
            row = read_row(kind, key, change.value)
            if fault := self._taken_back(key, row):
                raise CorruptData(f"{shown_key(key)} in etcd makes no sense: {fault}")
        except (NewerFormat, CorruptData) as error:
            fault = str(error)
            if kind not in _CONSEQUENCES or (kind == "ids" and self._known.get(key) is None):
                if isinstance(error, CorruptData):
                    raise
                logger.error("%s; this broker goes on by what it knew before", fault)
            else:
                logger.error("a row in etcd is damaged, %s; %s", fault, _CONSEQUENCES[kind])
            return PutRow(place, change, self._stand_in(kind, change), fault)
        if isinstance(row, TopicRow):
            self._topic_keys.setdefault(collision_key(row.name), key)
        return PutRow(place, change, row)

    def _stand_in(self, kind: str, change: Row) -> AnyRow | None:
        # The row is that of another life than the known one: the revision that made the key is the
        # life's epoch, and needs no readable value.
        if kind == "lives" and self._known.create_revision(change.key) != change.create_revision:
            return LifeRow(ROW_FORMAT, "", 0, STARTING)
        return self._known.get(change.key)

    def _taken_back(self, key: bytes, row: AnyRow) -> str:
        """Return what a row takes back of the known row; "" if nothing."""
        before = self._known.get(key)
        match row:
            case ClusterRow() if isinstance(before, ClusterRow):
                if row.cluster_id != before.cluster_id:
                    return (
                        f"the cluster was {before.cluster_id} before, and is {row.cluster_id} now; "
                        "restore etcd"
                    )
            case PartitionRow() if isinstance(before, PartitionRow):
                for what, now, then in (
                    ("leader epoch", row.leader_epoch, before.leader_epoch),
                    ("partition epoch", row.partition_epoch, before.partition_epoch),
                ):
                    if now < then:
                        return f"its {what} was {then} before, and is {now} now"
            case ProducerIdsRow() if isinstance(before, ProducerIdsRow):
                if row.next_id < before.next_id:
                    return f"ids below {before.next_id} were given out, and it says {row.next_id}"
            case TopicRow() if isinstance(before, TopicRow):
                count, now = partition_count(before), partition_count(row)
                if row.name != before.name:
                    return f"it was named {before.name} before, and is {row.name} now"
                if now < count:
                    return f"it had {count} partitions, and has {now} now"
            case TopicRow():
                taken = self._known.topic_key_of(row.name)
                if taken is None or any(taken == gone for _, gone in self.gone.get("topics", ())):
                    taken = self._topic_keys.get(collision_key(row.name))
                if taken not in (None, key):
                    return f"another topic has its name, {row.name}"
        return ""


def refuse_start(keys: Keys, changes: Iterable[Row | Removed]) -> None:
    """Raise `CorruptData` if rows are damaged on which a broker's data depends, so that none
    starts.

    A starting broker does not know what such a row held before.  It could take a topic's data for
    nobody's, or an old row for the newest.
    """
    rows = [each for each in changes if isinstance(each, Row)]
    barring = [each for each in RowCheck(keys, rows).problems if each.bars_start]
    if not barring:
        return
    for each in barring[:_NAMED_MAX]:
        logger.error("%s in etcd is damaged: %s", each.key, each.problem)
    raise CorruptData(
        f"rows in etcd are damaged, {len(barring)} of them, and no broker starts before they are "
        f"mended (tarry metadata check names them all); one is {barring[0].key}: "
        f"{barring[0].problem}"
    )


def _tell_unknown(kind: str, rows: list[tuple[Place, Row]]) -> None:
    logger.warning(
        "etcd holds %s and %d more of a kind of row that this release does not know: a newer one "
        "has written them, and they are passed over",
        shown_key(rows[0][1].key),
        len(rows) - 1,
    )
