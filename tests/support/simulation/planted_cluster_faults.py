"""Faults planted into brokers that replicate, one at a time.

As in `planted_faults.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from tarry.base.etcd import Compare
from tarry.broker.replication import (
    divergence as follower_divergence,
    follower as follower_module,
    replica_reads,
)
from tarry.broker.replication.followed import Followed
from tarry.broker.replication.leader import ReplicaLeader
from tarry.cluster.claims import ClaimPartitions
from tarry.cluster.isr_changes import ChangeIsr
from tarry.cluster.leaves import LeavePartitions
from tarry.cluster.records import PartitionRow
from tarry.cluster.state import ClusterState, TopicState
from tarry.cluster.transactions import Transaction
from tarry.log.log import Log
from tarry.partition.followers import NOT_TOLD, Follower, Followers
from tarry.partition.producers import ProducerStates
from tarry.partition.role import Role
from tarry.partition.state import Partition
from tarry.records.batch import BatchHeader
from tarry.wire.reader import Window

# --- What counts


def let_the_leader_alone_say_what_is_committed() -> None:
    Followers.high_watermark = lambda self, own_end, in_sync, floor: own_end


def count_what_is_written_as_flushed() -> None:
    Partition.leader_contribution = lambda self: self.log.written_end_offset


def count_only_who_has_told_its_end() -> None:
    def high_watermark(self: Followers, own_end: int, in_sync: int, floor: int) -> int:
        ends = [self.by_id[one].end for one in self.counted if one in self.by_id]
        return min([own_end, *[end for end in ends if end != NOT_TOLD]])

    Followers.high_watermark = high_watermark


def count_an_addition_once_it_is_applied() -> None:
    def recount(
        self: Followers, isr: list[int], living: dict[int, int], joining: list[int]
    ) -> None:
        self.counted = [one for one in isr if one != self.own_id]

    Followers.recount = recount


def count_a_shrink_before_it_is_applied() -> None:
    honest = Followers.recount

    def recount(
        self: Followers, isr: list[int], living: dict[int, int], joining: list[int]
    ) -> None:
        honest(self, isr, living, joining)
        self.counted = [one for one in self.counted if one in living]

    Followers.recount = recount


def take_the_high_watermark_below_the_floor() -> None:
    honest = Followers.high_watermark

    def high_watermark(self: Followers, own_end: int, in_sync: int, floor: int) -> int:
        self.counted = [one for one in self.counted if self.by_id[one].end != NOT_TOLD]
        return honest(self, own_end, floor, floor)

    Followers.high_watermark = high_watermark


# --- Who joins, and who leads


def let_anybody_join() -> None:
    Followers.may_join = lambda self, follower, high_watermark, log_start: follower.end != NOT_TOLD


def let_join_who_is_below_the_start_of_the_epoch() -> None:
    def may_join(self: Followers, follower: Follower, high_watermark: int, log_start: int) -> bool:
        end = follower.end
        return end != NOT_TOLD and end >= high_watermark and follower.log_start >= log_start

    Followers.may_join = may_join


def let_join_whose_log_begins_before_the_leaders() -> None:
    def may_join(self: Followers, follower: Follower, high_watermark: int, log_start: int) -> bool:
        end = follower.end
        return end != NOT_TOLD and end >= high_watermark and end >= self.epoch_start

    Followers.may_join = may_join


def stay_in_sync_with_a_new_disk() -> None:
    LeavePartitions.changed = lambda self, view, topic, index, row: None


def claim_from_outside_the_isr() -> None:
    honest = ClaimPartitions.changed

    def changed(
        self: ClaimPartitions, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        after = honest(self, view, topic, index, replace(row, isr=list(row.replicas)))
        return None if after is None else replace(after, isr=[after.leader_id])

    ClaimPartitions.changed = changed


def claim_in_the_same_epoch_after_a_restart() -> None:
    honest = ClaimPartitions.changed

    def changed(
        self: ClaimPartitions, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        after = honest(self, view, topic, index, row)
        if after is None or after.leader_id != row.leader_id:
            return after
        return replace(after, leader_epoch=row.leader_epoch)

    ClaimPartitions.changed = changed


def write_without_compares() -> None:
    def compares(self: Transaction) -> list[Compare]:
        return []

    Transaction.compares = property(compares)


def lead_in_a_life_that_is_over() -> None:
    honest = Partition.take_role

    def take_role(self: Partition, role: Role) -> None:
        honest(self, role._replace(is_leader=role.leader_id == self.own_id))

    Partition.take_role = take_role


def begin_to_lead_without_a_place_in_the_index_of_epochs() -> None:
    Partition.begin_epoch = lambda self: None


# --- What followers do


def let_logs_that_diverge_go_on() -> None:
    replica_reads.divergence = lambda log, asked: None


def cut_to_the_high_watermark() -> None:
    honest = follower_module.ReplicaFollower._diverge

    def _diverge(self: object, followed: Followed, epoch: int, leader_end: int) -> None:
        partition = followed.partition
        honest(self, followed, partition.leader_epoch, partition.high_watermark)

    follower_module.ReplicaFollower._diverge = _diverge


def cut_what_was_promised() -> None:
    follower_divergence.may_cut = lambda offset, high_watermark, last_epoch, unclean_epoch: True


def append_before_a_cut_is_durable() -> None:
    honest = Log.append_copy

    def append_copy(self: Log, window: Window, header: BatchHeader, now_wall_ms: int) -> int:
        self.unflushed.flushed_cuts = self.unflushed.cuts
        return honest(self, window, header, now_wall_ms)

    def is_settled(self: Followed) -> bool:
        log = self.partition.log
        return not log.has_tail and self.partition.leader_contribution() >= log.log_end_offset

    Log.append_copy = append_copy
    Followed.is_settled = property(is_settled)


def copy_no_producer_states() -> None:
    ProducerStates.follow = lambda self, header, now_ms: None


def ask_for_more_before_it_is_flushed() -> None:
    Followed.is_settled = property(lambda self: not self.partition.log.has_tail)


# --- What is deleted, and what is told


def delete_records_at_the_leader_alone() -> None:
    Partition.low_watermark = lambda self: int(self.log.log_start_offset)


def tell_ends_before_they_are_known() -> None:
    """The end of a new leader may lie below one that readers have seen (KIP-207)."""
    Partition.is_behind_epoch = lambda self: False


def answer_while_another_one_leads() -> None:
    Partition.may_act = lambda self: self.is_leader


# --- Changes of the isr


def forget_an_addition_whose_outcome_is_unknown() -> None:
    honest = ReplicaLeader._on_ended

    def _on_ended(self: ReplicaLeader, change: ChangeIsr) -> None:
        partitions = self._asked.get(change, [])
        honest(self, change)
        for partition in partitions:
            if partition.followers is not None:
                partition.followers.proposed.clear()

    ReplicaLeader._on_ended = _on_ended


def add_without_the_life_that_has_told_its_end() -> None:
    honest_guard = ChangeIsr.guard

    def guard(self: ChangeIsr, transaction: Transaction) -> None:
        self._guarded.clear()
        honest_guard(self, transaction)

    ChangeIsr.guard = guard


# A seed that found each.
CLUSTER: Final[dict[Callable[[], None], int]] = {
    let_the_leader_alone_say_what_is_committed: 1,
    count_what_is_written_as_flushed: 1,
    count_only_who_has_told_its_end: 1,
    count_an_addition_once_it_is_applied: 1,
    count_a_shrink_before_it_is_applied: 1,
    take_the_high_watermark_below_the_floor: 1,
    let_anybody_join: 1,
    let_join_who_is_below_the_start_of_the_epoch: 1,
    let_join_whose_log_begins_before_the_leaders: 1,
    stay_in_sync_with_a_new_disk: 1,
    claim_from_outside_the_isr: 1,
    claim_in_the_same_epoch_after_a_restart: 1,
    write_without_compares: 1,
    lead_in_a_life_that_is_over: 1,
    begin_to_lead_without_a_place_in_the_index_of_epochs: 1,
    let_logs_that_diverge_go_on: 1,
    cut_to_the_high_watermark: 1,
    append_before_a_cut_is_durable: 1,
    copy_no_producer_states: 1,
    ask_for_more_before_it_is_flushed: 1,
    delete_records_at_the_leader_alone: 1,
    tell_ends_before_they_are_known: 1,
    answer_while_another_one_leads: 1,
    forget_an_addition_whose_outcome_is_unknown: 1,
    add_without_the_life_that_has_told_its_end: 1,
}
