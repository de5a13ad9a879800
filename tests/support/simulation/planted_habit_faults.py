"""Faults planted into replication, metadata and clients: slips of the kind that reviews pass over.

As in `planted_faults.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.broker.replication import divergence
from tarry.broker.replication.followed import Followed
from tarry.client.core.group.membership import Membership
from tarry.client.core.group.ownership import Ownership
from tarry.client.core.producer.queue import PartitionQueue
from tarry.cluster.decisions import hand_over, reassignments
from tarry.cluster.decisions.hand_over import HandOver
from tarry.cluster.decisions.row_changes import is_serving
from tarry.cluster.decisions.row_requests import RowDecision
from tarry.cluster.lives.life import Life
from tarry.cluster.state.state import ClusterState, TopicState
from tarry.log.index.epoch_index import EpochIndex
from tarry.partition.followers import LogCopy
from tarry.records.aborted import AbortedTransactions

# --- Replication


def join_below_the_high_watermark() -> None:
    """The start of the leader epoch alone counts."""

    def may_join(self: LogCopy, high_watermark: int, epoch_start: int, log_start: int) -> bool:
        return self.end >= epoch_start and max(self.log_start, 0) >= log_start

    LogCopy.may_join = may_join


def tell_an_end_before_a_cut_is_durable() -> None:
    def is_settled(self: Followed) -> bool:
        log = self.partition.log
        return not log.has_tail and self.partition.leader_contribution() >= log.log_end_offset

    Followed.is_settled = property(is_settled)


def keep_epochs_of_what_was_cut() -> None:
    EpochIndex.truncate_end = lambda self, end_offset: None


def count_each_fetch_of_a_session_as_caught_up() -> None:
    honest = LogCopy.on_news

    def on_news(self: LogCopy) -> None:
        honest(self)
        self.has_news = False

    LogCopy.on_news = on_news


def cut_nothing_that_was_promised_even_then() -> None:
    """After an unclean election the replicas that differ stand still."""
    divergence.may_cut = lambda offset, high_watermark, last_epoch, unclean_epoch: (
        offset >= high_watermark
    )


# --- Metadata


def hand_over_to_whoever_serves() -> None:
    hand_over.can_take_over = lambda view, row, broker_id: is_serving(view, broker_id)


def begin_a_reassignment_without_saying_who_comes() -> None:
    honest = reassignments.begin_reassignment

    def begin(view: ClusterState, row: PartitionRow, target: list[int]) -> RowDecision | None:
        found = honest(view, row, target)
        return None if found is None else found._replace(row=replace(found.row, adding=[]))

    reassignments.begin_reassignment = begin


def go_back_with_those_in_sync_who_go() -> None:
    honest = reassignments.cancel_reassignment

    def cancel(
        view: ClusterState, topic: TopicState, row: PartitionRow, settings: object
    ) -> object:
        found = honest(view, topic, row, settings)
        return found._replace(row=replace(found.row, isr=row.isr))

    reassignments.cancel_reassignment = cancel


def take_a_replica_away_in_the_same_epoch() -> None:
    honest = reassignments._led_by_replica

    def led(view: ClusterState, before: PartitionRow, after: PartitionRow) -> PartitionRow | None:
        if after.leader_id in after.replicas:
            return after
        return honest(view, before, after)

    reassignments._led_by_replica = led


def hand_over_in_the_same_epoch() -> None:
    honest = HandOver.changed

    def changed(
        self: HandOver, view: ClusterState, topic: TopicState, index: int, row: PartitionRow
    ) -> PartitionRow | None:
        after = honest(self, view, topic, index, row)
        return None if after is None else replace(after, leader_epoch=row.leader_epoch)

    HandOver.changed = changed


def hand_over_in_the_life_of_the_leader_before() -> None:
    honest = hand_over.handed_over

    def handed_over(view: ClusterState, row: PartitionRow, broker_id: int) -> PartitionRow:
        return replace(honest(view, row, broker_id), broker_epoch=row.broker_epoch)

    hand_over.handed_over = handed_over


def give_nothing_away_for_clocks_that_differ() -> None:
    def renewed(self: Life, ttl_ms: int) -> None:
        self.expires_ms = self._sent_ms + ttl_ms

    Life._renewed = renewed


# --- Clients


def put_a_repeated_batch_in_front() -> None:
    """Two that are repeated change their places."""
    PartitionQueue.put_back = lambda self, batch: self.waiting.insert(0, batch)


def keep_what_was_lost() -> None:
    """The coordinator has removed the member, which reads on."""
    honest = Ownership.lose

    def lose(self: Ownership) -> None:
        honest(self)
        self.is_lost = False

    Ownership.lose = lose


def begin_an_aborted_transaction_one_batch_late() -> None:
    honest = AbortedTransactions.__init__

    def init(self: AbortedTransactions, transactions: list[tuple[int, int]]) -> None:
        honest(self, [(producer_id, first + 1) for producer_id, first in transactions])

    AbortedTransactions.__init__ = init


def take_a_heartbeat_that_calls_for_a_round_for_a_good_one() -> None:
    honest = Membership.on_beat

    def on_beat(self: Membership, code: int, who: object, now_ms: int) -> None:
        if code == errors.REBALANCE_IN_PROGRESS:
            code = errors.NONE
        honest(self, code, who, now_ms)

    Membership.on_beat = on_beat


# A seed that found each.
HABITS: Final[dict[str, dict[Callable[[], None], int]]] = {
    "cluster": {
        join_below_the_high_watermark: 3,
        tell_an_end_before_a_cut_is_durable: 7,
        keep_epochs_of_what_was_cut: 8,
        count_each_fetch_of_a_session_as_caught_up: 9,
        cut_nothing_that_was_promised_even_then: 592,
        hand_over_to_whoever_serves: 19,
        begin_a_reassignment_without_saying_who_comes: 8,
        go_back_with_those_in_sync_who_go: 19,
        take_a_replica_away_in_the_same_epoch: 8,
        hand_over_in_the_same_epoch: 5,
        hand_over_in_the_life_of_the_leader_before: 5,
        give_nothing_away_for_clocks_that_differ: 46,
    },
    "clients": {
        put_a_repeated_batch_in_front: 63,
    },
    "members": {
        keep_what_was_lost: 57,
        take_a_heartbeat_that_calls_for_a_round_for_a_good_one: 1,
    },
    "replicas": {
        begin_an_aborted_transaction_one_batch_late: 1,
    },
}
