"""Changes of many partitions' rows: decided row by row, written some in each transaction.

Each kind of change says what a row becomes, and which lives must go on or be over when the row is
written.  If other brokers have changed such a row or life meanwhile, the transaction fails, and all
its rows are decided again.
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from typing import Final, NamedTuple, Self

from tarry.base.etcd import COMPARES_MAX
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.cluster.configs.topic_settings import topic_value
from tarry.cluster.etcd.transactions import GuardedChange, Transaction
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.state.records import MetadataRecord, PartitionChanged
from tarry.cluster.state.state import (
    SERVING,
    STARTING,
    ClusterState,
    TopicState,
    is_alive,
    stands_still,
)

# Number of rows in one transaction.  A row needs a compare of itself and, if it is the first row of
# its partition, one of its topic.  Further compares are left for the lives that rows rest on.
ROWS_PER_TRANSACTION: Final = 42
_COMPARES_OF_ROW: Final = 2

# Epoch in a guard that requires a broker to have no life.
NO_LIFE: Final = 0

# A partition: the id of its topic, and its index.
Place = tuple[bytes, int]


class LifeGuard(NamedTuple):
    """Guard of a change of rows: a broker must live in this epoch, or this life must be over."""

    broker_id: int
    broker_epoch: int
    is_over: bool

    def add_to(self, transaction: Transaction) -> None:
        """Let the transaction fail unless the broker lives, or the life is over, as this guard
        says.
        """
        if self.is_over:
            transaction.guard_end(self.broker_id, self.broker_epoch)
        else:
            transaction.guard_life(self.broker_id, self.broker_epoch)


class RegistrationGuard(NamedTuple):
    """Guard of a change that gives replicas to a broker without a life: it must stay registered."""

    broker_id: int

    def add_to(self, transaction: Transaction) -> None:
        """Let the transaction fail unless the broker is registered; this costs an operation."""
        transaction.keep_registered(self.broker_id)


class RowsChange(GuardedChange):
    """A change of rows, at most `ROWS_PER_TRANSACTION` in a transaction.

    `is_last` is true if no row is left.  Otherwise `rest` continues behind the rows of this change,
    so each row is decided once, however many transactions the change takes.
    """

    is_last = False
    _guards: dict[LifeGuard, None]

    def __init__(self, known: KnownRows) -> None:
        super().__init__(known)
        # Partitions to decide, in their order, and the positions at which this change begins and
        # ends.
        self._walk: list[Place] = []
        self._begin = 0
        self._end = 0

    def may_begin(self, view: ClusterState) -> bool:
        """Return whether anything can be decided now.  A kind may prepare its decisions here."""
        return True

    def concerns(self, topic: TopicState) -> bool:
        """Return whether rows of this topic may change, so that other topics are skipped early."""
        return True

    def places(self, view: ClusterState) -> list[Place]:
        """Return the partitions to look at, in their order."""
        return [
            (topic.topic_id, index)
            for topic in view.topics.values()
            if self.concerns(topic)
            for index in range(len(topic.partitions))
        ]

    def changed(
        self, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        """Return what a row becomes; None if it stays as it is."""
        raise NotImplementedError

    def guards(self, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        """Return the conditions under which a row may become `after`."""
        raise NotImplementedError

    def rest(self) -> Self:
        """Return the change of the rows for which this change had no room."""
        rest = copy(self)
        rest.is_ended, rest.refusal = False, ""
        rest._begin = self._end
        return rest

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        self._guards = {}
        self.is_last = True
        records: list[MetadataRecord] = []
        if not self.may_begin(view):
            return records
        if not self._begin:
            self._walk = self.places(view)
        topics = view.topics_by_id
        for position in range(self._begin, len(self._walk)):
            topic_id, index = self._walk[position]
            topic = topics.get(topic_id)
            if topic is None or index >= len(topic.partitions):
                continue
            row = topic.partitions[index]
            after = None if stands_still(row) else self.changed(view, topic, index, row)
            if after is None:
                continue
            if not self._has_room(len(records), self.guards(row, after)):
                self.is_last = False
                self._end = position
                return records
            records.append(PartitionChanged(topic_id=topic_id, index=index, row=after))
        return records

    def guard(self, transaction: Transaction) -> None:
        for each in self._guards:
            each.add_to(transaction)

    def _has_room(self, rows: int, guards: list[LifeGuard]) -> bool:
        """Add the guards of one more row; return false if the transaction cannot hold the row."""
        new = [each for each in guards if each not in self._guards]
        compares = _COMPARES_OF_ROW * (rows + 1) + len(self._guards) + len(new)
        if rows == ROWS_PER_TRANSACTION or compares > COMPARES_MAX:
            return False
        self._guards.update(dict.fromkeys(new))
        return True


class Spells:
    """Durations for which conditions have held, by key.  A key that a full pass does not meet is
    forgotten.

    Time is attended time, which does not run while the process is stopped.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._since_ms: dict[Hashable, int] = {}
        self._found: dict[Hashable, int] = {}

    @property
    def now_ms(self) -> int:
        """The attended time, in ms."""
        return self._turn.now_ms

    def begin(self) -> None:
        """Begin a pass over all keys."""
        self._found = {}

    def lasted_ms(self, key: Hashable) -> int:
        """Return for how many ms the key's condition has held, and note that it still holds."""
        now_ms = self._turn.now_ms
        since_ms = self._found.get(key)
        if since_ms is None:
            since_ms = self._found[key] = self._since_ms.get(key, now_ms)
        return now_ms - since_ms

    def end(self, *, is_whole: bool) -> None:
        """End a pass; `is_whole` is true if the pass skipped nothing."""
        if is_whole:
            self._since_ms = self._found
        else:
            self._since_ms.update(self._found)


def lives_in(view: ClusterState, broker_id: int, broker_epoch: int) -> bool:
    """Return whether a broker is still in this life."""
    broker = view.brokers.get(broker_id)
    return broker is not None and broker.broker_epoch == broker_epoch


def is_serving(view: ClusterState, broker_id: int) -> bool:
    """Return whether a broker is in the phase in which it leads and answers clients."""
    broker = view.brokers.get(broker_id)
    return broker is not None and broker.phase == SERVING


def is_starting(view: ClusterState, broker_id: int) -> bool:
    """Return whether a broker lives and does not serve yet."""
    broker = view.brokers.get(broker_id)
    return broker is not None and broker.phase == STARTING


def isr_floor(topic: TopicState, row: PartitionRow, settings: Settings) -> int:
    """Return the size of the isr below which deaths and lag remove no more replicas from it."""
    wanted = topic_value("min.insync.replicas", topic.configs, settings)
    assert isinstance(wanted, int)
    return min(wanted, len(row.replicas))


def kept_isr(view: ClusterState, row: PartitionRow, floor: int) -> list[int]:
    """Return the members of the isr that live, filled up to the floor with dead ones."""
    dead = [broker_id for broker_id in row.isr if not is_alive(view, broker_id)]
    gone = dead[max(floor - (len(row.isr) - len(dead)), 0) :]
    return [broker_id for broker_id in row.isr if broker_id not in gone]
