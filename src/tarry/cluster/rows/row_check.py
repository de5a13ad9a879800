"""The check of all rows of a cluster: whether each can be read, and whether they fit each other.

Brokers write a row only together with the rows that it depends on.  So a row that does not fit was
damaged, written by somebody else, or written because of a mistake of ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from tarry.base.errors import TarryError
from tarry.base.etcd import Row
from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.row_faults import key_fault, listed, read_row
from tarry.cluster.rows.rows import (
    KINDS,
    AnyRow,
    BlockRow,
    BrokerRow,
    ClusterRow,
    ConfigsRow,
    DeletedRow,
    FeatureRow,
    Keys,
    LifeRow,
    NameRow,
    TopicRow,
    partition_count,
    shown_key,
    topic_id_of,
)
from tarry.cluster.state.records import EVERY_BROKER
from tarry.cluster.state.state import SERVING
from tarry.cluster.state.topic_names import collision_key

R = TypeVar("R", bound=AnyRow)


class RowProblem(NamedTuple):
    """Finding about a row; `is_damage` if the cluster cannot go on properly with the row.

    `bars_start` if no broker may start before the row is mended: it could take a topic's data for
    nobody's and remove it, or lead by a row that is not the newest.
    """

    key: str
    problem: str
    is_damage: bool
    bars_start: bool = False


class RowCheck:
    """The rows of a cluster as they were read at one revision, and what is wrong with them."""

    def __init__(self, keys: Keys, rows: Iterable[Row]) -> None:
        self._keys = keys
        self.row_count = 0
        self.problems: list[RowProblem] = []
        self._rows: dict[str, dict[tuple[str, ...], tuple[bytes, AnyRow]]] = {}
        # Kinds of which a row could not be read: a row that seems to be missing may be that one.
        self._unread: dict[str, None] = {}
        # Broker epochs of the lives, by broker id.
        self._epochs: dict[int, int] = {}
        for row in rows:
            self.row_count += 1
            self._read(row)
        self.brokers = {int(place[0]): row for place, _, row in self._of("brokers", BrokerRow)}
        self.lives = {int(place[0]): row for place, _, row in self._of("lives", LifeRow)}
        self.topics = {place[0]: row for place, _, row in self._of("topics", TopicRow)}
        self.deleted = {place[0]: row for place, _, row in self._of("deleted", DeletedRow)}
        self.cluster_id = ""
        self._check_cluster()
        self._check_brokers()
        self._check_features()
        self._check_names()
        self._check_parts()
        self._check_deleted()
        self._check_rest()

    @property
    def partition_count(self) -> int:
        """The number of partitions of all topics together."""
        return sum(partition_count(topic) for topic in self.topics.values())

    @property
    def is_sound(self) -> bool:
        """True if no row is damaged; there may be notes."""
        return not any(each.is_damage for each in self.problems)

    # --- reading

    def _of(self, kind: str, row_type: type[R]) -> list[tuple[tuple[str, ...], bytes, R]]:
        return [
            (place, key, row)
            for place, (key, row) in self._rows.get(kind, {}).items()
            if isinstance(row, row_type)
        ]

    def _read(self, row: Row) -> None:
        """Add a row to those that were read, or note why it cannot be read."""
        kind, *names = self._keys.place(row.key)
        if fault := key_fault(self._keys, row.key):
            self._damage(row.key, f"{fault}: brokers pass it over; remove it")
            return
        if kind not in KINDS:
            self._note(row.key, "this Tarry does not know this kind of row: brokers pass it over")
            return
        try:
            decoded = read_row(kind, row.key, row.value)
        except TarryError as error:
            self._unread[kind] = None
            self._bar(row.key, f"{error}; mend it, or restore etcd")
            return
        if kind == "lives":
            if not row.lease_id:
                self._damage(
                    row.key, "it has no lease and would never end: stop that broker, remove it"
                )
            self._epochs[int(names[0])] = row.create_revision
        self._rows.setdefault(kind, {})[tuple(names)] = (row.key, decoded)

    def _bar(self, key: bytes, problem: str) -> None:
        self.problems.append(RowProblem(shown_key(key), problem, is_damage=True, bars_start=True))

    def _damage(self, key: bytes, problem: str) -> None:
        self.problems.append(RowProblem(shown_key(key), problem, is_damage=True))

    def _note(self, key: bytes, problem: str) -> None:
        self.problems.append(RowProblem(shown_key(key), problem, is_damage=False))

    # --- brokers

    def _check_cluster(self) -> None:
        found = self._of("cluster", ClusterRow)
        if found:
            self.cluster_id = found[0][2].cluster_id
        elif "cluster" in self._unread:
            return
        elif self.row_count:
            self._damage(
                self._keys.cluster,
                "it is missing though there are other rows: a migration was not ended (repeat "
                "it), or the row was removed (restore etcd)",
            )
        else:
            self._damage(
                self._keys.prefix,
                "there is no row below this prefix: no broker has made a cluster there yet, or "
                "the prefix is another one",
            )

    def _check_brokers(self) -> None:
        for broker_id, row in self.brokers.items():
            key = self._keys.broker(broker_id)
            if not row.directory_id:
                self._note(key, "it names no log directory yet: the broker was never started")
            life = self.lives.get(broker_id)
            if life is not None and life.directory_id != row.directory_id:
                self._note(
                    key,
                    "the broker lives with another log directory than it is registered with: its "
                    "replicas leave those in sync and are copied anew",
                )
        for broker_id in self.lives:
            key = self._keys.life(broker_id)
            if broker_id not in self.brokers and "brokers" not in self._unread:
                self._note(key, f"broker {broker_id} lives and is not registered: start it again")

    def _is_unknown(self, broker_id: int) -> bool:
        return broker_id not in self.brokers and "brokers" not in self._unread

    def _check_features(self) -> None:
        in_force = {place[0]: row.level for place, _, row in self._of("features", FeatureRow)}
        for name, level in in_force.items():
            for broker_id, broker in self.brokers.items():
                if broker.levels.get(name, 0) < level:
                    self._damage(
                        self._keys.feature(name),
                        f"level {level} is in force, and broker {broker_id} does not know it: "
                        "upgrade that broker, or take it out of the cluster",
                    )

    # --- topics

    def _check_names(self) -> None:
        names = self._rows.get("names", {})
        for place, key, row in self._of("names", NameRow):
            if collision_key(row.name) != place[0]:
                self._bar(key, f"it holds the name {row.name}, which has another key: restore etcd")
            topic = self.topics.get(row.topic_id)
            if topic is None and "topics" not in self._unread:
                self._bar(
                    key,
                    f"it takes the name {row.name} for topic {row.topic_id}, which is not there: "
                    "remove it, or restore etcd",
                )
            elif topic is not None and topic.name != row.name:
                self._bar(key, f"it says {row.name}, and the topic says {topic.name}: restore etcd")
        for text, topic in self.topics.items():
            key = self._keys.topic(topic_id_of(text))
            entry = names.get((collision_key(topic.name),))
            taken = None if entry is None else entry[1]
            if isinstance(taken, NameRow) and taken.topic_id != text:
                self._bar(key, f"its name {topic.name} is taken by topic {taken.topic_id}")
            elif taken is None and "names" not in self._unread:
                self._damage(key, f"its name {topic.name} is not kept: another topic could take it")

    def _check_parts(self) -> None:
        told: set[tuple[str, int]] = set()
        for place, key, row in self._of("parts", PartitionRow):
            text, index = place[0], int(place[1])
            told.add((text, index))
            topic = self.topics.get(text)
            if topic is None:
                if "topics" not in self._unread:
                    self._bar(key, f"there is no topic {text}: remove it, or restore etcd")
                continue
            if index >= partition_count(topic):
                self._bar(key, f"topic {topic.name} has {partition_count(topic)} partitions")
                continue
            label = f"{topic.name} [{index}]"
            # A leader whose life is another one may have left the isr, with another disk, and
            # nobody claims its partitions while the other replicas are dead.
            is_led = self._epochs.get(row.leader_id) == row.broker_epoch
            if is_led and row.leader_id not in row.isr:
                self._damage(
                    key,
                    f"{label}: leader {row.leader_id} is not in sync ({listed(row.isr)}): "
                    "restore etcd",
                )
            self._check_hosts(key, label, row.replicas)
        for text, topic in self.topics.items():
            key = self._keys.topic(topic_id_of(text))
            for block in topic.blocks:
                for number, replicas in enumerate(block.replicas):
                    index = block.first_index + number
                    if (text, index) not in told:
                        label = f"{topic.name} [{index}]"
                        self._check_hosts(key, label, replicas)
                        self._check_as_made(topic_id_of(text), index, label, block)

    def _check_as_made(self, topic_id: bytes, index: int, label: str, block: BlockRow) -> None:
        """Note a partition without a row if it can hardly be as it was made."""
        epochs = dict(block.epochs)
        replicas = block.replicas[index - block.first_index]
        isr = [each for each in replicas if each in epochs] or replicas
        if not isr or self._epochs.get(isr[0], -1) == epochs.get(isr[0]):
            return
        claimants = [
            each for each in isr if each in self.lives and self.lives[each].phase == SERVING
        ]
        if claimants:
            self._note(
                self._keys.part(topic_id, index),
                f"{label}: it has no row, so broker {isr[0]} leads it as it was made, in a life "
                f"that is over, and {listed(claimants)} did not claim it: look again in a moment; "
                "if it stays so, its row was removed (put it back as it was), or their data is not "
                "whole (their logs say so)",
            )

    def _check_hosts(self, key: bytes, label: str, replicas: list[int]) -> None:
        for broker_id in replicas:
            if self._is_unknown(broker_id):
                self._damage(
                    key,
                    f"{label}: broker {broker_id} has a replica and is not registered: start it, "
                    "or move the replica with tarry topics reassign",
                )

    def _check_deleted(self) -> None:
        for text, row in self.deleted.items():
            key = self._keys.deleted(topic_id_of(text))
            if text in self.topics:
                self._bar(key, f"topic {row.name} is deleted and there: restore etcd")
            for broker_id in row.broker_ids:
                if self._is_unknown(broker_id):
                    self._note(
                        key,
                        f"deleted topic {row.name}: broker {broker_id} still has its data and is "
                        "not registered; remove this row if that broker will not come back",
                    )

    # --- the rest

    def _check_rest(self) -> None:
        for place, key, _ in self._of("configs", ConfigsRow):
            broker_id = int(place[0])
            if broker_id != EVERY_BROKER and self._is_unknown(broker_id):
                self._note(key, f"settings of broker {broker_id}, which is not registered")
