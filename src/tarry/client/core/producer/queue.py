"""PartitionQueue: the batches of one partition from `append` to their end.

    open  ->  waiting (closed, or sent and to be repeated)  ->  in flight  ->  done

Invariants: `waiting` and `in_flight` each have the batches in the order in which their records were
appended.  Sequences grow in that order without gaps, except behind a batch that failed for good,
and a sequence is never reused while the broker may have a batch with it.  A repeated batch is sent
alone, so that no other batch overtakes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from tarry.client.core.producer.batch import UNSEQUENCED, ProducerBatch
from tarry.client.core.producer.identity import ProducerIdentity
from tarry.link.tasks import Task, wake_up

SEQUENCE_MASK: Final = 0x7FFF_FFFF


class PartitionQueue:
    """Queue of one partition's batches, with the partition's next sequence."""

    def __init__(
        self,
        topic: str,
        partition: int,
        on_lingered: Callable[[PartitionQueue, int], None],
        on_expired: Callable[[PartitionQueue, int], None],
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.linger = Task(partial(on_lingered, self))
        self.expiry = Task(partial(on_expired, self))
        self.retry = wake_up()
        self.open: ProducerBatch | None = None
        self.waiting: deque[ProducerBatch] = deque()
        self.in_flight: list[ProducerBatch] = []
        # Broker of the batches in flight; while there are any, no batch is sent to another broker.
        self.in_flight_broker = -1
        self.retry_at_ms = 0
        self.failures = 0
        self.batches_made = 0
        self.producer_id = -1
        self.producer_epoch = -1
        self.next_sequence = 0
        # True if the broker has lost the sequences: no batch is sent before there is a newer epoch.
        self.needs_epoch = False
        # True if the broker has a batch of this id and epoch.  Before that it accepts any first
        # sequence, so a second batch could overtake a refused one: one batch at a time is sent.
        self.is_known_to_broker = True

    def close_open(self) -> bool:
        """Move the open batch to the waiting ones; return False if there is none."""
        batch = self.open
        if batch is None:
            return False
        self.open = None
        self.waiting.append(batch)
        return True

    def put_back(self, batch: ProducerBatch) -> None:
        """Put a batch that must be repeated, or a piece of one, back in its place in the order."""
        place = 0
        while place < len(self.waiting) and self.waiting[place].order < batch.order:
            place += 1
        self.waiting.insert(place, batch)

    def head(self, leader_id: int, now_ms: int) -> ProducerBatch | None:
        """Return the batch that may be sent to this leader now; None if there is none."""
        if not self.waiting or now_ms < self.retry_at_ms:
            return None
        batch = self.waiting[0]
        if self.in_flight:
            is_repeated = batch.attempts > 0 or self.in_flight[0].attempts > 1
            is_alone = is_repeated or self.needs_epoch or not self.is_known_to_broker
            if is_alone or leader_id != self.in_flight_broker:
                return None
        return batch

    def has_earlier(self, batch: ProducerBatch) -> bool:
        """Return true if an earlier batch with a sequence is not done yet."""
        for other in (*self.in_flight, *self.waiting):
            if other.order < batch.order and other.base_sequence != UNSEQUENCED:
                return True
        return False

    # --- Sequences

    def take_over(self, identity: ProducerIdentity) -> bool:
        """Move to the newest epoch if possible; return False if no batch may be sent yet."""
        is_same = (self.producer_id, self.producer_epoch) == (
            identity.producer_id,
            identity.producer_epoch,
        )
        if is_same:
            return not self.needs_epoch
        if self.in_flight:
            return not self.needs_epoch
        if not self.needs_epoch:
            for batch in self.waiting:
                if batch.base_sequence != UNSEQUENCED:
                    # The broker may have the batch under its old sequence, so it must keep that.
                    return True
        for batch in self.waiting:
            batch.forget_sequence()
        self.producer_id = identity.producer_id
        self.producer_epoch = identity.producer_epoch
        self.next_sequence = 0
        self.needs_epoch = False
        self.is_known_to_broker = False
        return True

    def number(self, batch: ProducerBatch) -> None:
        """Give a batch its sequences, unless it has them."""
        if batch.base_sequence != UNSEQUENCED:
            return
        batch.producer_id = self.producer_id
        batch.producer_epoch = self.producer_epoch
        batch.base_sequence = self.next_sequence
        self.next_sequence = (self.next_sequence + batch.count) & SEQUENCE_MASK

    def take_back(self, batch: ProducerBatch, count: int) -> None:
        """Take back the last `count` sequences of a batch that the broker refused for good.

        That works only if no batch was numbered behind it.  Else the broker refuses the batches
        behind it, and a new epoch is requested.
        """
        if batch.base_sequence == UNSEQUENCED or self.is_of_old_epoch(batch):
            return
        end = (batch.base_sequence + batch.count) & SEQUENCE_MASK
        if end == self.next_sequence:
            self.next_sequence = (end - count) & SEQUENCE_MASK

    def is_of_old_epoch(self, batch: ProducerBatch) -> bool:
        return (batch.producer_id, batch.producer_epoch) != (
            self.producer_id,
            self.producer_epoch,
        )
