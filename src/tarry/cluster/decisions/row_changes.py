"""Changes of many partitions' rows: decided row by row, written some at a time.

Each kind says of a row what it becomes, and which lives must go on or be over when that is written.
What others have changed meanwhile, a row or a life, fails the transaction, and all of it is decided
again.
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

# A row compares itself and, if it is its partition's first one, its topic; beside them stand the
# lives that it rests on.
ROWS_PER_TRANSACTION: Final = 42
_COMPARES_OF_ROW: Final = 2

# As an epoch that a life must have: there is none.
NO_LIFE: Final = 0

# A partition: the id of its topic, and its index.
Place = tuple[bytes, int]


class LifeGuard(NamedTuple):
    """Guard of a change of rows: a broker must live in this epoch, or this life must be over."""

    broker_id: int
    broker_epoch: int
    is_over: bool

    def add_to(self, transaction: Transaction) -> None:
        """Have nothing of a transaction done unless this holds."""
        if self.is_over:
            transaction.guard_end(self.broker_id, self.broker_epoch)
        else:
            transaction.guard_life(self.broker_id, self.broker_epoch)


class RegistrationGuard(NamedTuple):
    """Guard of a change that gives replicas to a broker that does not live: it is registered."""

    broker_id: int

    def add_to(self, transaction: Transaction) -> None:
        """Have nothing of a transaction done unless this holds; it takes an operation."""
        transaction.keep_registered(self.broker_id)


class RowsChange(GuardedChange):
    """A change of rows, at most `ROWS_PER_TRANSACTION` at a time; `is_last` if none is left.

    Where there is no room for all, `rest` goes on behind them: however many transactions it takes,
    each row is looked at once.
    """

    is_last = False
    _guards: dict[LifeGuard, None]

    def __init__(self, known: KnownRows) -> None:
        super().__init__(known)
        # What is looked at, in this order, and where this part of it begins and ends.
        self._walk: list[Place] = []
        self._begin = 0
        self._end = 0

    def may_begin(self, view: ClusterState) -> bool:
        """Return whether anything can be decided now; a kind may prepare for its rows here."""
        return True

    def concerns(self, topic: TopicState) -> bool:
        """Return whether rows of this topic may change, so that others are passed over soon."""
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
        """Return what becomes of a row; None: it stays as it is."""
        raise NotImplementedError

    def guards(self, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        """Return what must hold for a row to become this."""
        raise NotImplementedError

    def rest(self) -> Self:
        """Return the change of what this one had no room for."""
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
        """Take the guards of one more row, unless it is too much for one transaction."""
        new = [each for each in guards if each not in self._guards]
        compares = _COMPARES_OF_ROW * (rows + 1) + len(self._guards) + len(new)
        if rows == ROWS_PER_TRANSACTION or compares > COMPARES_MAX:
            return False
        self._guards.update(dict.fromkeys(new))
        return True


class Spells:
    """Times for which things have been so, by key; what a whole look does not find is forgotten.

    Time is attended time: what the process slept through counts for nobody.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._since_ms: dict[Hashable, int] = {}
        self._found: dict[Hashable, int] = {}

    @property
    def now_ms(self) -> int:
        """Attended time."""
        return self._turn.now_ms

    def begin(self) -> None:
        """Begin a look at everything."""
        self._found = {}

    def lasted_ms(self, key: Hashable) -> int:
        """Return for how long it has been so, and note that it is so still."""
        now_ms = self._turn.now_ms
        since_ms = self._found.get(key)
        if since_ms is None:
            since_ms = self._found[key] = self._since_ms.get(key, now_ms)
        return now_ms - since_ms

    def end(self, *, is_whole: bool) -> None:
        """End a look; `is_whole`: nothing was passed over."""
        if is_whole:
            self._since_ms = self._found
        else:
            self._since_ms.update(self._found)


def lives_in(view: ClusterState, broker_id: int, broker_epoch: int) -> bool:
    """Return whether a broker is still in this life."""
    broker = view.brokers.get(broker_id)
    return broker is not None and broker.broker_epoch == broker_epoch


def is_serving(view: ClusterState, broker_id: int) -> bool:
    """Return whether a broker takes part in everything."""
    broker = view.brokers.get(broker_id)
    return broker is not None and broker.phase == SERVING


def is_starting(view: ClusterState, broker_id: int) -> bool:
    """Return whether a broker lives and does not serve yet."""
    broker = view.brokers.get(broker_id)
    return broker is not None and broker.phase == STARTING


def isr_floor(topic: TopicState, row: PartitionRow, settings: Settings) -> int:
    """Return the number of replicas in sync below which deaths and lag do not take a partition."""
    wanted = topic_value("min.insync.replicas", topic.configs, settings)
    assert isinstance(wanted, int)
    return min(wanted, len(row.replicas))


def kept_isr(view: ClusterState, row: PartitionRow, floor: int) -> list[int]:
    """Return the members of the isr that live, filled up to the floor with dead ones."""
    dead = [broker_id for broker_id in row.isr if not is_alive(view, broker_id)]
    gone = dead[max(floor - (len(row.isr) - len(dead)), 0) :]
    return [broker_id for broker_id in row.isr if broker_id not in gone]
