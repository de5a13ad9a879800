"""Claims: a broker takes over the partitions whose leader's life is over.

Leadership is bound to a life.  A leader that has restarted, or has lost its life and begun another,
leads nothing until it has claimed its partitions again, each in a higher epoch: it may have lost
records that it had not flushed, and must not write others under the same epoch and offsets.

Only members of the isr whose logs are whole claim a partition: every committed record is on their
disks.  They claim in the order of `replicas`, a moment after each other.  Members that serve come
before members that are still starting.  If several lives have ended together, the leader itself
comes first (`returning`).
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final, Self

from msgspec.structs import replace

from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.cluster.decisions.row_changes import (
    ROWS_PER_TRANSACTION,
    LifeGuard,
    Place,
    RowsChange,
    Spells,
    is_serving,
    is_starting,
    isr_floor,
    kept_isr,
)
from tarry.cluster.lives.returning import Returning
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.state.records import MetadataRecord
from tarry.cluster.state.state import LEAVING, ClusterState, TopicState, is_led

CLAIMS_PER_TRANSACTION: Final = ROWS_PER_TRANSACTION
# Pause between the claims of two candidates.
CANDIDATE_MS: Final = 250


class ClaimPartitions(RowsChange):
    """Claims of this broker in one of its lives, some at a time; `is_last` if none is left.

    `doubts` are the partitions whose log on this broker is not whole.  `vacancies` knows since when
    a leader's life is over, `returning` which brokers are expected back.
    """

    def __init__(
        self,
        known: KnownRows,
        broker_id: int,
        broker_epoch: int,
        settings: Settings,
        vacancies: Spells,
        doubts: Container[Place] = (),
        *,
        returning: Returning | None = None,
    ) -> None:
        super().__init__(known)
        self._broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._settings = settings
        self._vacancies = vacancies
        self._doubts = doubts
        self._returning = returning
        # Attended time of the next claim that this broker leaves to others for now; for this
        # transaction and those before it, and for those before it alone.  None if there is no such
        # claim.
        self._due_ms: int | None = None
        self._due_before_ms: int | None = None

    @property
    def due_in_ms(self) -> int | None:
        """Time until this broker may claim what it leaves to others now, in ms; None if it
        leaves nothing.
        """
        if self._due_ms is None:
            return None
        # A claim that is overdue by now is due at once, and a timer takes 1 ms at least.
        return max(self._due_ms - self._vacancies.now_ms, 1)

    def rest(self) -> Self:
        rest = super().rest()
        rest._due_before_ms = self._due_ms
        return rest

    def decide(self, view: ClusterState) -> list[MetadataRecord]:
        self._due_ms = self._due_before_ms
        if not self._begin:
            self._vacancies.begin()
        records = super().decide(view)
        self._vacancies.end(is_whole=self.is_last)
        return records

    def places(self, view: ClusterState) -> list[Place]:
        """Return the partitions without a leader.  Those that this broker is the first to claim
        come first, from the front.  The others follow from the end, so that two candidates which
        walk through the same partitions meet only once.
        """
        own: list[Place] = []
        others: list[Place] = []
        for topic in view.topics.values():
            for index, row in enumerate(topic.partitions):
                if self._broker_id in row.isr and not is_led(view, row):
                    is_first = not self._wait_ms(view, row)
                    (own if is_first else others).append((topic.topic_id, index))
        others.reverse()
        return own + others

    def may_begin(self, view: ClusterState) -> bool:
        # If this life is over too, the claims of the next life take its place.
        own = view.brokers.get(self._broker_id)
        return own is not None and own.broker_epoch == self.broker_epoch and own.phase != LEAVING

    def changed(
        self, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        if self._broker_id not in row.isr or is_led(view, row):
            return None
        if (topic.topic_id, index) in self._doubts:
            return None
        wait_ms = self._wait_ms(view, row)
        left_ms = wait_ms - self._vacancies.lasted_ms((row.leader_id, row.broker_epoch))
        if self._returning is not None and row.leader_id != self._broker_id:
            left_ms = max(left_ms, self._returning.left_ms(row.leader_id))
        if left_ms > 0:
            due_ms = self._vacancies.now_ms + left_ms
            if self._due_ms is None or due_ms < self._due_ms:
                self._due_ms = due_ms
            return None
        return replace(
            row,
            leader_id=self._broker_id,
            leader_epoch=row.leader_epoch + 1,
            partition_epoch=row.partition_epoch + 1,
            broker_epoch=self.broker_epoch,
            isr=kept_isr(view, row, isr_floor(topic, row, self._settings)),
        )

    def guards(self, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        own = LifeGuard(self._broker_id, self.broker_epoch, is_over=False)
        if before.leader_id == self._broker_id or before.broker_epoch < 0:
            return [own]
        return [own, LifeGuard(before.leader_id, before.broker_epoch, is_over=True)]

    def _wait_ms(self, view: ClusterState, row: PartitionRow) -> int:
        """Return for how many ms after the end of the leader's life this broker lets other
        candidates go first.
        """
        returning = self._returning
        if returning is not None and returning.goes_on and row.leader_id == self._broker_id:
            return 0
        return CANDIDATE_MS * self._candidates_before(view, row)

    def _candidates_before(self, view: ClusterState, row: PartitionRow) -> int:
        """Return how many members of the isr have precedence over this broker."""
        own_id = self._broker_id
        if is_serving(view, own_id):
            before = row.replicas[: row.replicas.index(own_id)]
            return sum(each in row.isr and is_serving(view, each) for each in before)
        count = 0
        has_passed = False
        for each in row.replicas:
            if each == own_id:
                has_passed = True
            elif each in row.isr and (
                is_serving(view, each) or (not has_passed and is_starting(view, each))
            ):
                count += 1
        return count
