"""PartitionQueue: the batches of one partition between `append` and their end.

    open  ->  waiting (closed, or sent and to be repeated)  ->  in flight  ->  done

Invariants: `waiting` and `in_flight` are each in the order in which the records were appended;
sequences grow along that order without gaps, except behind a batch that failed for good, and a
number is never given twice while the broker may have the first.  A batch that is repeated goes
alone, so that nothing overtakes it.
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
    """Queue of one partition's batches, with its place in the producer's sequences."""

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
        # The broker that `in_flight` went to; while it is not empty nothing goes to another one.
        self.in_flight_broker = -1
        self.retry_at_ms = 0
        self.failures = 0
        self.batches_made = 0
        self.producer_id = -1
        self.producer_epoch = -1
        self.next_sequence = 0
        # The broker lost count: nothing leaves until a newer epoch is there.
        self.needs_epoch = False
        # The broker has a batch of this id and epoch.  Before that it takes any sequence for the
        # first one, so a second batch could overtake one that was refused: one at a time.
        self.is_known_to_broker = True

    def close_open(self) -> bool:
        """Move the open batch to those that wait; False if there is none."""
        batch = self.open
        if batch is None:
            return False
        self.open = None
        self.waiting.append(batch)
        return True

    def put_back(self, batch: ProducerBatch) -> None:
        """Put a batch that has to be repeated, or a piece of one, back in its place in the
        order."""
        place = 0
        while place < len(self.waiting) and self.waiting[place].order < batch.order:
            place += 1
        self.waiting.insert(place, batch)

    def head(self, leader_id: int, now_ms: int) -> ProducerBatch | None:
        """Return the batch that may leave now for this leader; None: none may."""
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
        """Return true if an earlier batch that has a sequence is not resolved yet."""
        for other in (*self.in_flight, *self.waiting):
            if other.order < batch.order and other.base_sequence != UNSEQUENCED:
                return True
        return False

    # --- Sequences

    def take_over(self, identity: ProducerIdentity) -> bool:
        """Go over to the newest epoch where that is allowed; False: nothing may leave yet."""
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
                    # The broker may have it under its old number, which it keeps.
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
        """Give a batch its sequences, once."""
        if batch.base_sequence != UNSEQUENCED:
            return
        batch.producer_id = self.producer_id
        batch.producer_epoch = self.producer_epoch
        batch.base_sequence = self.next_sequence
        self.next_sequence = (self.next_sequence + batch.count) & SEQUENCE_MASK

    def take_back(self, batch: ProducerBatch, count: int) -> None:
        """Take back the sequences of a batch that the broker refused for good: if nothing was
        numbered behind it, the next batch takes the place of its last `count` records.  Else the
        broker refuses what follows, and a new epoch is asked for."""
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
