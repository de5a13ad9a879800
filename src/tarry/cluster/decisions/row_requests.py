"""Rows that a client asks to change: each partition is changed or refused by itself.

One request takes several transactions if one cannot hold all of its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tarry.base import errors
from tarry.base.etcd import COMPARES_MAX, OPERATIONS_MAX
from tarry.base.partition_row import NOWHERE, PartitionRow
from tarry.cluster.decisions.replica_choice import Refusal
from tarry.cluster.decisions.row_changes import LifeGuard, Place, RegistrationGuard
from tarry.cluster.etcd.transactions import ConditionalChange, Transaction
from tarry.cluster.state.records import MetadataRecord, PartitionChanged
from tarry.cluster.state.scheduled_topics import why_not_changed
from tarry.cluster.state.state import ClusterState, TopicState, stands_still

# Number of rows in one transaction; two operations are left for registrations.
ROWS_MAX: Final = OPERATIONS_MAX - 2


Guard = LifeGuard | RegistrationGuard


class RowDecision(NamedTuple):
    """Row as it becomes, and the lives and registrations that the transaction requires for it."""

    row: PartitionRow
    guards: Sequence[Guard]


class RowWish:
    """Wish of a client for one partition, and the outcome of the wish."""

    __slots__ = ("error_code", "index", "message", "topic")

    def __init__(self, topic: str, index: int) -> None:
        self.topic = topic
        self.index = index
        self.error_code = errors.NONE
        self.message: str | None = None

    def decide(
        self, view: ClusterState, topic: TopicState, row: PartitionRow
    ) -> RowDecision | None:
        """Return what the row becomes, None if it is as wished already; or raise `Refusal`."""
        raise NotImplementedError

    def refuse(self, error_code: int, message: str) -> None:
        self.error_code = error_code
        self.message = message


class RowWishes:
    """Wishes of one request.  Call `next_change` until `are_done`."""

    def __init__(self, wishes: list[RowWish]) -> None:
        self.wishes = wishes
        self._done = 0

    @property
    def are_done(self) -> bool:
        """True once each wish is granted or refused."""
        return self._done == len(self.wishes)

    def next_change(self) -> GrantWishes:
        """Return the change that takes the next wishes, as many as one transaction holds."""
        return GrantWishes(self.wishes, self._done)

    def take(self, change: GrantWishes) -> None:
        """Note that a change has been made."""
        self._done = change.end

    def fail(self, change: GrantWishes, error_code: int, message: str) -> None:
        """Note that a change was not made, or not in time.  No further change is made.

        A wish that the change refused keeps its refusal.  All other wishes from the change on fail.
        """
        for position in range(self._done, len(self.wishes)):
            wish = self.wishes[position]
            if position >= change.end or wish.error_code == errors.NONE:
                wish.refuse(error_code, message)
        self._done = len(self.wishes)


class GrantWishes(ConditionalChange):
    """A change that grants wishes from `first` on, up to `end`."""

    def __init__(self, wishes: list[RowWish], first: int) -> None:
        super().__init__()
        self._wishes = wishes
        self._first = first
        self.end = first
        self._guards: dict[Guard, None] = {}
        self._topics: dict[bytes, None] = {}
        # Rows that earlier decisions of this change may have written, as their outcome is unknown.
        self._tried: dict[Place, PartitionRow] = {}

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        self._guards = {}
        self._topics = {}
        records: list[MetadataRecord] = []
        self.end = self._first
        for wish in self._wishes[self._first :]:
            record = self._decide_one(view, wish, len(records))
            if record is _NO_ROOM:
                break
            self.end += 1
            if record is not None:
                self._tried[record.topic_id, record.index] = record.row
                records.append(record)
        return records

    def _decide_one(self, view: ClusterState, wish: RowWish, count: int) -> PartitionChanged | None:
        wish.error_code, wish.message = errors.NONE, None
        topic = view.topic(wish.topic)
        why = why_not_changed(view, wish.topic) if topic is None else ""
        if why:
            wish.refuse(errors.INVALID_TOPIC_EXCEPTION, why)
            return None
        if topic is None or not 0 <= wish.index < len(topic.partitions):
            wish.refuse(
                errors.UNKNOWN_TOPIC_OR_PARTITION,
                "no topic has this name" if topic is None else "the topic has no such partition",
            )
            return None
        row = topic.partitions[wish.index]
        if stands_still(row):
            wish.refuse(
                errors.UNKNOWN_SERVER_ERROR,
                "the partition stands still, its row in etcd cannot be read or makes no sense: the "
                "brokers' logs say why; mend it, or start a release that can read it",
            )
            return None
        if self._tried.get((topic.topic_id, wish.index)) == row:
            return None
        try:
            decision = wish.decide(view, topic, row)
        except Refusal as refusal:
            wish.refuse(refusal.error_code, refusal.message)
            return None
        if decision is None:
            return None
        if not self._has_room(count, topic.topic_id, decision.guards):
            return _NO_ROOM
        return PartitionChanged(topic_id=topic.topic_id, index=wish.index, row=decision.row)

    def _has_room(self, count: int, topic_id: bytes, guards: Sequence[Guard]) -> bool:
        """Add one more row; return false if the transaction cannot hold it."""
        topics = {**self._topics, topic_id: None}
        together: dict[Guard, None] = {**self._guards, **dict.fromkeys(guards)}
        written = sum(isinstance(each, RegistrationGuard) for each in together)
        if count and (
            count == ROWS_MAX
            or count + 1 + written > OPERATIONS_MAX
            or count + 1 + len(topics) + len(together) > COMPARES_MAX
        ):
            return False
        self._topics, self._guards = topics, together
        return True

    def guard(self, transaction: Transaction) -> None:
        for each in self._guards:
            each.add_to(transaction)


_NO_ROOM: Final = PartitionChanged(topic_id=b"", index=-1, row=NOWHERE)
