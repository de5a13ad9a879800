"""Faults planted into the consumer that reads transactions and follows replicas, one at a time.

As in `planted_faults.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.support.simulation.planted_client_faults import drop_the_records_of_a_cancelled_poll

from tarry.base import errors
from tarry.client.core import metadata
from tarry.client.core.consumer.fetcher import Fetcher
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.core.consumer.replicas import PreferredReplicas
from tarry.client.core.metadata import leader_hint
from tarry.client.core.topic import BrokerMetadata
from tarry.protocol.messages.fetch import PartitionData
from tarry.records.aborted import AbortedTransactions
from tarry.records.batch import BatchHeader

# --- Transactions


def hand_out_what_was_aborted() -> None:
    def leaves_out(
        self: AbortedTransactions, data: bytes, position: int, header: BatchHeader
    ) -> bool:
        return header.is_control

    AbortedTransactions.leaves_out = leaves_out


def take_any_marker_for_the_end_of_all_transactions() -> None:
    honest = AbortedTransactions.leaves_out

    def leaves_out(
        self: AbortedTransactions, data: bytes, position: int, header: BatchHeader
    ) -> bool:
        found = honest(self, data, position, header)
        if header.is_control:
            self._open.clear()
        return found

    AbortedTransactions.leaves_out = leaves_out


def leave_out_all_of_a_producer_that_aborted_once() -> None:
    """The marker does not end what is left out."""
    honest = AbortedTransactions.leaves_out

    def leaves_out(
        self: AbortedTransactions, data: bytes, position: int, header: BatchHeader
    ) -> bool:
        aborted = dict(self._open)
        found = honest(self, data, position, header)
        self._open.update(aborted)
        return found

    AbortedTransactions.leaves_out = leaves_out


def take_aborted_transactions_in_the_order_of_the_broker() -> None:
    """Kafka names them by where they ended, and they are looked for by where they began."""
    honest = AbortedTransactions.__init__

    def init(self: AbortedTransactions, transactions: list[tuple[int, int]]) -> None:
        honest(self, transactions)
        self._waiting = transactions[::-1]

    AbortedTransactions.__init__ = init


# --- Replicas


def let_metadata_go_back() -> None:
    """A broker that lags names the leader of before."""
    metadata._keep_newer_leaders = lambda topic, old: None


def believe_a_replica_that_lags() -> None:
    """An offset that the replica does not have yet counts as out of range: the reader resets."""
    honest = Fetcher.on_answer

    def on_answer(
        self: Fetcher,
        position: PartitionPosition,
        answer: PartitionData,
        broker_id: int,
        brokers: dict[int, BrokerMetadata],
        now_ms: int,
    ) -> None:
        if answer.error_code != errors.OFFSET_OUT_OF_RANGE:
            honest(self, position, answer, broker_id, brokers, now_ms)
            return
        hint = leader_hint(position.topic, position.partition, answer.current_leader, brokers)
        self._on_error(position, answer, hint, now_ms)

    Fetcher.on_answer = on_answer


def stay_with_a_replica_that_lags() -> None:
    """Nobody asks the leader: the reader waits until the replica has what it wants, or for ever."""

    def leave(self: PreferredReplicas, position: PartitionPosition, now_ms: int) -> None:
        position.failures += 1

    def broker_for(
        self: PreferredReplicas, position: PartitionPosition, leader_id: int, now_ms: int
    ) -> int:
        return leader_id if position.replica_id < 0 else position.replica_id

    PreferredReplicas.leave = leave
    PreferredReplicas.broker_for = broker_for


# A seed that found each.
REPLICAS: Final[dict[Callable[[], None], int]] = {
    hand_out_what_was_aborted: 1,
    take_any_marker_for_the_end_of_all_transactions: 3,
    leave_out_all_of_a_producer_that_aborted_once: 3,
    believe_a_replica_that_lags: 3,
    stay_with_a_replica_that_lags: 4,
    take_aborted_transactions_in_the_order_of_the_broker: 3,
    let_metadata_go_back: 11,
    drop_the_records_of_a_cancelled_poll: 2,
}
