"""Faults planted into lives, rows of partitions and what replicas know, one at a time.

As in `planted_faults.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from tarry.base.partition_row import PartitionRow
from tarry.broker.replication.follower_session import FollowerSession, Position
from tarry.cluster.decisions import claims, reassignments, unclean
from tarry.cluster.decisions.claims import ClaimPartitions
from tarry.cluster.decisions.isr_changes import ChangeIsr, IsrWish
from tarry.cluster.decisions.row_changes import LifeGuard
from tarry.cluster.lives.life import MARGIN_MS_MIN, MARGIN_PART, Life
from tarry.cluster.state.state import ClusterState, is_reassigned
from tarry.partition.followers import LogCopy
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import LogKey

# --- Lives and claims


def count_a_life_from_the_answer() -> None:
    """The answer of a renewal may have waited for a process that stood still."""

    def renewed(self: Life, ttl_ms: int) -> None:
        margin_ms = max(MARGIN_MS_MIN, ttl_ms // MARGIN_PART)
        self.expires_ms = self._turn.monotonic_ms() + ttl_ms - margin_ms

    Life._renewed = renewed


def claim_in_a_life_that_may_be_over() -> None:
    honest = ClaimPartitions.guards

    def guards(self: ClaimPartitions, before: PartitionRow, after: PartitionRow) -> list[LifeGuard]:
        return [each for each in honest(self, before, after) if each.is_over]

    ClaimPartitions.guards = guards


def claim_while_the_old_life_lasts() -> None:
    honest = claims.is_led

    def is_led(view: ClusterState, row: PartitionRow) -> bool:
        leader = view.brokers.get(row.leader_id)
        return honest(view, row) and leader is not None and leader.phase != "starting"

    claims.is_led = is_led
    ClaimPartitions.guards = lambda self, before, after: [
        LifeGuard(self._broker_id, self.broker_epoch, is_over=False)
    ]


def claim_with_the_living_alone_in_sync() -> None:
    """Fewer stay in sync than the floor."""
    honest = claims.kept_isr

    def kept_isr(view: ClusterState, row: PartitionRow, floor: int) -> list[int]:
        return honest(view, row, 1)

    claims.kept_isr = kept_isr


# --- In-sync sets


def count_as_caught_up_whoever_has_what_was_there_the_time_before() -> None:
    """A follower that is slow stays in sync for twice the lag."""
    honest = LogCopy.told

    def told(
        self: LogCopy, broker_epoch: int, end: int, leader_end: int, now_ms: int, real_ms: int
    ) -> None:
        if broker_epoch == self.broker_epoch and 0 <= self._asked_end <= end:
            self._asked_ms = now_ms
        honest(self, broker_epoch, end, leader_end, now_ms, real_ms)

    LogCopy.told = told


def put_out_of_sync_below_the_floor() -> None:
    honest = ChangeIsr._isr

    def isr(
        self: ChangeIsr, view: ClusterState, row: PartitionRow, wish: IsrWish
    ) -> list[int] | None:
        return honest(self, view, row, wish._replace(floor=1))

    ChangeIsr._isr = isr


# --- Reassignments, unclean elections, deletions


def end_a_reassignment_when_one_of_its_target_is_in_sync() -> None:
    honest = reassignments.finish_reassignment

    def finish(view: ClusterState, row: PartitionRow) -> PartitionRow | None:
        target = reassignments.target_of(row)
        if not is_reassigned(row) or not any(each in row.isr for each in target):
            return None
        after = honest(view, replace(row, isr=list(dict.fromkeys([*row.isr, *target]))))
        if after is None:
            return None
        return replace(after, isr=[each for each in after.isr if each in row.isr])

    reassignments.finish_reassignment = finish


def name_the_epoch_before_an_unclean_election() -> None:
    honest = unclean.elected_uncleanly

    def elected(view: ClusterState, row: PartitionRow, broker_id: int) -> PartitionRow:
        return replace(honest(view, row, broker_id), unclean_epoch=row.leader_epoch)

    unclean.elected_uncleanly = elected


# --- What replicas know


def name_a_partition_that_comes_back_no_more() -> None:
    """The follower took it out of its session after an error, and puts it back."""

    def want(self: FollowerSession, key: LogKey, position: Position) -> None:
        self._wanted[key] = position
        self._forgotten.pop(key, None)
        if self._told.get(key) == position:
            self._changed.pop(key, None)
        else:
            self._changed[key] = None

    FollowerSession.want = want


def keep_producers_at_the_end_of_a_cut() -> None:
    honest = ProducerStates.truncate
    ProducerStates.truncate = lambda self, end_offset: honest(self, end_offset + 1)


# A seed that found each.
ROWS: Final[dict[Callable[[], None], int]] = {
    count_a_life_from_the_answer: 22,
    claim_in_a_life_that_may_be_over: 30,
    claim_while_the_old_life_lasts: 13,
    claim_with_the_living_alone_in_sync: 5,
    count_as_caught_up_whoever_has_what_was_there_the_time_before: 9,
    put_out_of_sync_below_the_floor: 9,
    end_a_reassignment_when_one_of_its_target_is_in_sync: 8,
    name_the_epoch_before_an_unclean_election: 63,
    name_a_partition_that_comes_back_no_more: 501,
    keep_producers_at_the_end_of_a_cut: 13,
}
