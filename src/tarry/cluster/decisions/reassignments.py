"""Reassignments: a partition gets other replicas while it is led, read and written.

When a reassignment begins, `replicas` become the target followed by the replicas that leave.
`adding` holds the new replicas, and `removing` those that are not in the target.  Once the whole
target is in sync, the leader writes the target alone; if the leader is not in it, the same step
hands over.  Cancelling restores the replicas before: those that are not in `adding`.

A row that drops a replica begins a leader epoch, as in Kafka, even if the same broker goes on
leading.  The dropped replica removes its data.  If it became a replica again in the same epoch, a
late fetch from before would tell the leader of records that the replica no longer has.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.cluster.decisions.hand_over import can_take_over
from tarry.cluster.decisions.replica_choice import Refusal, replicas_fault
from tarry.cluster.decisions.row_changes import (
    LifeGuard,
    Place,
    RegistrationGuard,
    RowsChange,
    isr_floor,
    lives_in,
)
from tarry.cluster.decisions.row_requests import RowDecision, RowWish
from tarry.cluster.rows.row_records import KnownRows
from tarry.cluster.state.state import ClusterState, TopicState, is_alive, is_led, is_reassigned


class ReassignmentWish(RowWish):
    """A partition that is to have the replicas `target`; None to cancel its reassignment."""

    __slots__ = ("may_change_factor", "settings", "target")

    def __init__(
        self,
        topic: str,
        index: int,
        target: list[int] | None,
        settings: Settings,
        *,
        may_change_factor: bool = True,
    ) -> None:
        super().__init__(topic, index)
        self.target = target
        self.settings = settings
        self.may_change_factor = may_change_factor

    def decide(
        self, view: ClusterState, topic: TopicState, row: PartitionRow
    ) -> RowDecision | None:
        if self.target is None:
            return cancel_reassignment(view, topic, row, self.settings)
        fault = replicas_fault(view, self.index, self.target)
        if fault:
            raise Refusal(errors.INVALID_REPLICA_ASSIGNMENT, fault)
        factor = len(target_of(row))
        if not self.may_change_factor and len(self.target) != factor:
            raise Refusal(
                errors.INVALID_REPLICATION_FACTOR,
                f"the partition has {factor} replicas and is to have {len(self.target)}, which "
                "this request does not allow",
            )
        return begin_reassignment(view, row, self.target)


def target_of(row: PartitionRow) -> list[int]:
    """Return the replicas that a partition has once its reassignment is done."""
    return [broker_id for broker_id in row.replicas if broker_id not in row.removing]


def begin_reassignment(
    view: ClusterState, row: PartitionRow, target: list[int]
) -> RowDecision | None:
    """Return the row with a reassignment begun, or finished if the whole target is in sync already;
    None if the row is so already.  The new reassignment replaces one that is under way.
    """
    original = [broker_id for broker_id in row.replicas if broker_id not in row.adding]
    replicas = [*target, *(each for each in row.replicas if each not in target)]
    begun = replace(
        row,
        replicas=replicas,
        adding=[each for each in replicas if each not in original],
        removing=[each for each in replicas if each not in target],
        partition_epoch=row.partition_epoch + 1,
    )
    if (begun.replicas, begun.adding, begun.removing) == (row.replicas, row.adding, row.removing):
        return None
    finished = finish_reassignment(view, begun)
    if finished is None:
        added = [each for each in replicas if each not in row.replicas]
        return RowDecision(begun, [_stays(view, each) for each in added])
    after = replace(finished, partition_epoch=begun.partition_epoch)
    return RowDecision(after, _guards(row, after))


def cancel_reassignment(
    view: ClusterState, topic: TopicState, row: PartitionRow, settings: Settings
) -> RowDecision:
    """Return the row as it was before its reassignment.

    Raises `Refusal` if no reassignment is under way, or if too few of the old replicas are in sync
    to go on without the new ones.
    """
    if not is_reassigned(row):
        raise Refusal(
            errors.NO_REASSIGNMENT_IN_PROGRESS, "no reassignment of this partition is under way"
        )
    original = [broker_id for broker_id in row.replicas if broker_id not in row.adding]
    isr = [broker_id for broker_id in row.isr if broker_id in original]
    after = replace(
        row,
        replicas=original,
        isr=isr,
        adding=[],
        removing=[],
        partition_epoch=row.partition_epoch + 1,
    )
    led = _led_by_replica(view, row, after)
    if (
        not isr
        or led is None
        or (len(isr) < len(row.isr) and len(isr) < isr_floor(topic, after, settings))
    ):
        raise Refusal(
            errors.INVALID_REPLICA_ASSIGNMENT,
            "nobody leads it, or too few of the replicas before the reassignment are in sync to go "
            "back to them: start them and wait, or let the reassignment end",
        )
    return RowDecision(led, _guards(row, led))


def finish_reassignment(view: ClusterState, row: PartitionRow) -> PartitionRow | None:
    """Return the row with its target alone; None while a replica of the target is not in sync, or
    none of them could lead.
    """
    target = target_of(row)
    if not is_reassigned(row) or any(broker_id not in row.isr for broker_id in target):
        return None
    after = replace(
        row,
        replicas=target,
        isr=[broker_id for broker_id in row.isr if broker_id in target],
        adding=[],
        removing=[],
        partition_epoch=row.partition_epoch + 1,
    )
    return _led_by_replica(view, row, after)


class FinishReassignments(RowsChange):
    """The end of reassignments of partitions that a broker leads, in one of its lives."""

    def __init__(
        self, known: KnownRows, broker_id: int, broker_epoch: int, places: Iterable[Place]
    ) -> None:
        super().__init__(known)
        self._broker_id = broker_id
        self.broker_epoch = broker_epoch
        self._places = list(places)

    def may_begin(self, view: ClusterState) -> bool:
        # A broker that has begun its next life has to claim its partitions first, in other rows.
        return lives_in(view, self._broker_id, self.broker_epoch)

    def places(self, view: ClusterState) -> list[Place]:
        return self._places

    def changed(
        self, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        if row.leader_id != self._broker_id or row.broker_epoch != self.broker_epoch:
            return None
        return finish_reassignment(view, row)

    def guards(self, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        own = LifeGuard(self._broker_id, self.broker_epoch, is_over=False)
        return [own, *_guards(before, after)]


def _led_by_replica(
    view: ClusterState, before: PartitionRow, after: PartitionRow
) -> PartitionRow | None:
    """Return the row led by one of its replicas: the present leader, or one that takes over in the
    same step; None if none can.

    A partition without a leader is handed over to none: a replica in sync that has not claimed it
    may lack records.
    """
    if after.leader_id in after.replicas:
        is_left = any(broker_id not in after.replicas for broker_id in before.replicas)
        return replace(after, leader_epoch=after.leader_epoch + 1) if is_left else after
    if not is_led(view, before):
        return None
    for broker_id in after.replicas:
        if can_take_over(view, after, broker_id):
            return replace(
                after,
                leader_id=broker_id,
                leader_epoch=after.leader_epoch + 1,
                broker_epoch=view.brokers[broker_id].broker_epoch,
            )
    return None


def _stays(view: ClusterState, broker_id: int) -> LifeGuard | RegistrationGuard:
    """Return the guard of a broker that gets a replica: it must not be unregistered meanwhile."""
    if is_alive(view, broker_id):
        return LifeGuard(broker_id, view.brokers[broker_id].broker_epoch, is_over=False)
    return RegistrationGuard(broker_id)


def _guards(before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
    """Return the condition of a new leader: it lives."""
    if after.leader_id == before.leader_id:
        return []
    return [LifeGuard(after.leader_id, after.broker_epoch, is_over=False)]
