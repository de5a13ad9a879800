"""Faults planted into brokers that replicate, one at a time.

As in `planted_faults.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from tarry.base.etcd import Compare, EtcdAnswer, RevisionSeen, WatchEnded
from tarry.base.partition_row import PartitionRow
from tarry.broker import reads
from tarry.broker.delayed.produce import Produces
from tarry.broker.membership.elections import Elections
from tarry.broker.metadata.hosting import Hosting
from tarry.broker.metadata.removals import Removals
from tarry.broker.replication import (
    divergence as follower_divergence,
    follower as follower_module,
    taking,
)
from tarry.broker.replication.followed import Followed
from tarry.cluster.decisions.claims import ClaimPartitions
from tarry.cluster.decisions.isr_changes import ChangeIsr
from tarry.cluster.decisions.leaves import LeavePartitions
from tarry.cluster.decisions.row_changes import Place, RowsChange
from tarry.cluster.decisions.topic_decisions import RemoveTopic
from tarry.cluster.etcd.etcd_store import PROGRESS_MS, EtcdStore
from tarry.cluster.etcd.transactions import Transaction
from tarry.cluster.lives.returning import Returning
from tarry.cluster.state.state import ClusterState, DeletedTopic, TopicState
from tarry.log.identity import LogIdentity
from tarry.log.log import Log
from tarry.log.logs import Logs
from tarry.partition.followers import NOT_TOLD, Followers, LogCopy
from tarry.partition.leadership import Leadership
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import ReplicatedLog
from tarry.partition.topic import HostedTopic
from tarry.records.batch import BatchHeader
from tarry.wire.reader import Window

# --- What counts


def let_the_leader_alone_say_what_is_committed() -> None:
    Followers.high_watermark = lambda self, which, own_end, in_sync, floor: own_end


def count_what_is_written_as_flushed() -> None:
    ReplicatedLog.leader_contribution = lambda self: self.log.written_end_offset


def count_only_who_has_told_its_end() -> None:
    def high_watermark(self: Followers, which: int, own_end: int, in_sync: int, floor: int) -> int:
        ends = [self.by_id[one].copies[which].end for one in self.counted if one in self.by_id]
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


def hear_nobody_who_was_silent_for_ten_minutes() -> None:
    honest = LogCopy.told

    def told(
        self: LogCopy, broker_epoch: int, end: int, leader_end: int, now_ms: int, real_ms: int
    ) -> None:
        if self._asked_ms < 0 or now_ms - self._asked_ms < 600_000:
            honest(self, broker_epoch, end, leader_end, now_ms, real_ms)

    LogCopy.told = told


# --- Who joins, and who leads


def let_anybody_join() -> None:
    LogCopy.may_join = lambda self, high_watermark, epoch_start, log_start: self.end != NOT_TOLD


def let_join_whose_log_begins_before_the_leaders() -> None:
    def may_join(self: LogCopy, high_watermark: int, epoch_start: int, log_start: int) -> bool:
        end = self.end
        return end != NOT_TOLD and end >= high_watermark and end >= epoch_start

    LogCopy.may_join = may_join


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
    ClaimPartitions.places = RowsChange.places


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


def claim_in_the_order_of_replicas_whoever_led() -> None:
    Returning.goes_on = property(lambda self: False)  # type: ignore[assignment,method-assign]
    Returning.left_ms = lambda self, broker_id: 0


def write_without_compares() -> None:
    def compares(self: Transaction) -> list[Compare]:
        return []

    Transaction.compares = property(compares)


def begin_to_lead_without_a_place_in_the_index_of_epochs() -> None:
    ReplicatedLog.begin_epoch = lambda self: None


# --- What followers do


def let_logs_that_diverge_go_on() -> None:
    honest = reads.parting
    reads.parting = lambda log, asked, reader: (
        None if reader.is_replica else honest(log, asked, reader)
    )


def cut_to_the_high_watermark() -> None:
    honest = follower_module.ReplicaFollower._diverge

    def _diverge(self: object, followed: Followed, epoch: int, leader_end: int) -> None:
        partition = followed.partition
        honest(self, followed, partition.leadership.leader_epoch, partition.high_watermark)

    follower_module.ReplicaFollower._diverge = _diverge


def cut_what_was_promised() -> None:
    follower_divergence.may_cut = lambda offset, high_watermark, last_epoch, unclean_epoch: True


def append_before_a_cut_is_durable() -> None:
    honest = taking.append_copy

    def append_copy(log: Log, window: Window, header: BatchHeader, now_wall_ms: int) -> int:
        log.unflushed.flushed_cuts = log.unflushed.cuts
        return honest(log, window, header, now_wall_ms)

    def is_settled(self: Followed) -> bool:
        log = self.partition.log
        return not log.has_tail and self.partition.leader_contribution() >= log.log_end_offset

    taking.append_copy = append_copy
    Followed.is_settled = property(is_settled)


def copy_no_producer_states() -> None:
    ProducerStates.follow = lambda self, header, now_ms: None


def ask_for_more_before_it_is_flushed() -> None:
    Followed.is_settled = property(lambda self: not self.partition.log.has_tail)


# --- What is deleted, and what is told


def delete_records_at_the_leader_alone() -> None:
    ReplicatedLog.low_watermark = lambda self: int(self.log.log_start_offset)


def tell_ends_before_they_are_known() -> None:
    """The end of a new leader may lie below one that readers have seen (KIP-207)."""
    ReplicatedLog.is_behind_epoch = lambda self: False


# --- Etcd


def act_while_another_may_lead() -> None:
    """The own expiry of the lease is ignored.

    It is a fault of the workload with isolated brokers: without groups no seed of 500 shows it.
    """
    Leadership.may_act = lambda self: self.is_leader


def resume_the_watch_one_late() -> None:
    def _watch(self: EtcdStore) -> None:
        self._watch_id = self._etcd.watch(self._keys.prefix, self.version + 2)
        self._was_progress_asked = False
        self._watch_alarm.arm(PROGRESS_MS)

    EtcdStore._watch = _watch


def skip_what_was_compacted_away() -> None:
    honest = EtcdStore._hear

    def _hear(self: EtcdStore, answer: EtcdAnswer) -> None:
        if isinstance(answer, WatchEnded) and answer.compact_revision:
            self.version = max(self.version, answer.compact_revision - 1)
            self._watch()
        else:
            honest(self, answer)

    EtcdStore._hear = _hear


def apply_what_a_watch_tells_again() -> None:
    def _take_seen(self: EtcdStore, seen: RevisionSeen) -> None:
        self._take(seen.revision, lambda: self.known.apply(seen.changes))

    EtcdStore._take_seen = _take_seen


def forget_an_addition_whose_outcome_is_unknown() -> None:
    """The deed may still be done."""
    Followers.proposed = property(lambda self: {}, lambda self, value: None)


def count_what_an_earlier_life_has_told() -> None:
    """An addition is done in whatever life the added broker is by then."""
    honest = ChangeIsr.guard

    def guard(self: ChangeIsr, transaction: Transaction) -> None:
        self._guarded = {}
        honest(self, transaction)

    ChangeIsr.guard = guard


def take_a_directory_by_its_name() -> None:
    """The topic that it belonged to was deleted, and made again."""

    def remove(self: Removals, deleted: DeletedTopic) -> None:
        self._store.change(RemoveTopic(deleted.topic_id, self._broker_id))

    Removals.remove = remove
    LogIdentity.read = lambda self, disk: self.text
    Logs._is_known = lambda self, listing, point: True


# --- Logs that the disk refuses


def hide_a_topic_with_a_refused_log() -> None:
    honest = Hosting._make

    def make(self: Hosting, topic: TopicState, hosted: HostedTopic, indexes: list[int]) -> None:
        honest(self, topic, hosted, indexes)
        if hosted.refused:
            self._topics.remove(hosted.topic_id)

    Hosting._make = make


def leave_settings_as_they_were_while_a_log_is_refused() -> None:
    honest = Hosting._reconfigure_topic

    def reconfigure_topic(self: Hosting, topic_id: bytes) -> None:
        hosted = self._topics.with_id(topic_id)
        if hosted is None or not hosted.refused:
            honest(self, topic_id)

    Hosting._reconfigure_topic = reconfigure_topic


def keep_the_lead_of_what_cannot_be_made() -> None:
    """The disk of the leader refuses the directory, and others in sync have a log."""
    honest = Elections._refused_places

    def refused_places(self: Elections) -> list[Place]:
        self._unmade = list
        return honest(self)

    Elections._refused_places = refused_places


# --- Who is woken


def wake_no_produce_when_followers_have_its_records() -> None:
    """It is answered when its time is over."""
    honest = Produces.on_moved

    def on_moved(self: Produces, partition: ReplicatedLog) -> None:
        if partition.leadership.followers is None:
            honest(self, partition)

    Produces.on_moved = on_moved


# A seed that found each.
CLUSTER: Final[dict[Callable[[], None], int]] = {
    let_the_leader_alone_say_what_is_committed: 1,
    count_what_is_written_as_flushed: 1,
    count_only_who_has_told_its_end: 5,
    count_an_addition_once_it_is_applied: 7,
    count_a_shrink_before_it_is_applied: 5,
    let_anybody_join: 3,
    let_join_whose_log_begins_before_the_leaders: 32,
    stay_in_sync_with_a_new_disk: 96,
    claim_from_outside_the_isr: 1,
    claim_in_the_same_epoch_after_a_restart: 1,
    claim_in_the_order_of_replicas_whoever_led: 69,
    write_without_compares: 4,
    begin_to_lead_without_a_place_in_the_index_of_epochs: 1,
    let_logs_that_diverge_go_on: 2,
    cut_to_the_high_watermark: 2,
    append_before_a_cut_is_durable: 2,
    copy_no_producer_states: 4,
    ask_for_more_before_it_is_flushed: 1,
    delete_records_at_the_leader_alone: 7,
    tell_ends_before_they_are_known: 8,
    resume_the_watch_one_late: 1,
    skip_what_was_compacted_away: 22,
    apply_what_a_watch_tells_again: 23,
    forget_an_addition_whose_outcome_is_unknown: 166,
    count_what_an_earlier_life_has_told: 50,
    take_a_directory_by_its_name: 7,
    hide_a_topic_with_a_refused_log: 26,
    leave_settings_as_they_were_while_a_log_is_refused: 29,
    wake_no_produce_when_followers_have_its_records: 1,
}

# A seed that found each.
CLUSTER_HOUR: Final[dict[Callable[[], None], int]] = {
    hear_nobody_who_was_silent_for_ten_minutes: 2,
}

# A seed that found each.
CLUSTER_DISKS: Final[dict[Callable[[], None], int]] = {
    keep_the_lead_of_what_cannot_be_made: 11,
}
