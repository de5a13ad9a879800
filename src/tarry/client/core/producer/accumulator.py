"""Accumulator: collects records in batches, and queues batches until they are sent.

A batch is closed when it is full, when it has lingered, or when a caller waits for it.
`buffer.memory` bounds all records that are not done; a caller that finds no room waits in an
operation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tarry.client.core.metadata import Metadata
from tarry.client.core.producer.batch import RECORD_OVERHEAD, ProducerBatch, expired
from tarry.client.core.producer.deliveries import Deliveries
from tarry.client.core.producer.queue import PartitionQueue
from tarry.client.errors import RecordTooLarge
from tarry.client.settings import ProducerSettings
from tarry.link.errors import ClientError
from tarry.link.tasks import Tasks
from tarry.records.batch import HEADER_SIZE
from tarry.records.builder import Headers

if TYPE_CHECKING:
    from tarry.client.core.producer.acknowledgement import Acknowledgement

# Failed batches kept for the report of `flush`; of older ones only their number is kept.
FAILED_BATCHES_MAX: Final = 1_000


def record_size(key: bytes | None, value: bytes | None, headers: Headers | None) -> int:
    """Return the largest size in bytes that the record can take in a batch."""
    size = RECORD_OVERHEAD
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    if headers:
        for name, content in headers:
            # At most five bytes for each of the two lengths, and four for each character.
            size += 10 + 4 * len(name) + (len(content) if content is not None else 0)
    return size


def look_again(wait: Acknowledgement) -> None:
    """Notify the wait for a record if the record is done; else make it wait at the record's new
    batch."""
    if wait.receipt.is_done:
        wait.operations.notify(wait)
    else:
        wait.watch()


class Accumulator:
    """Queues of one producer; `ready` are those with batches to send."""

    def __init__(
        self,
        settings: ProducerSettings,
        tasks: Tasks,
        metadata: Metadata,
        owner: object,
    ) -> None:
        self.settings = settings
        self.record_bytes_max: int = min(
            settings.request_bytes_max - HEADER_SIZE, settings.buffer_bytes
        )
        self.buffered_bytes = 0
        # Error that prevents all sends from now on; None if there is none.
        self.failure: ClientError | None = None
        # Why no batch of any partition can be sent at the moment; empty if no reason is known.
        self.obstacle = ""
        # Queues with batches to send, as an ordered set: served queues go to the end.
        self.ready: dict[PartitionQueue, None] = {}
        self.failed: list[ProducerBatch] = []
        self.failed_before = 0
        self.deliveries = Deliveries()
        self.batches_closed = 0
        # Numbers of records that were appended, that were acknowledged, and that failed.
        self.appended = 0
        self.acknowledged = 0
        self.failed_records = 0
        # Number of acknowledged batches, and their bytes on the wire.
        self.batches_acknowledged = 0
        self.bytes_acknowledged = 0
        # True if the last batch that ended has timed out.
        self.has_expired = False
        # The face, stored in each batch for the receipts.
        self._owner = owner
        # Callback with topic and partition when a batch is closed.
        self.when_closed: Callable[[str, int], None] | None = None
        self._metadata = metadata
        self._tasks = tasks
        self._batch_bytes = settings.batch_bytes
        self._buffer_bytes = settings.buffer_bytes
        self._queues: dict[str, dict[int, PartitionQueue]] = {}

    @property
    def is_empty(self) -> bool:
        """True if every appended record is done."""
        return self.buffered_bytes == 0

    def has_room(self, size: int) -> bool:
        """Return true if a record of this size fits in the buffer; an empty buffer takes any size,
        so that no record waits for ever."""
        return self.buffered_bytes == 0 or self.buffered_bytes + size <= self._buffer_bytes

    def fits(self, queue: PartitionQueue, size: int) -> bool:
        """Return true if a record of this size fits in the open batch; a new batch takes any
        size."""
        batch = queue.open
        if batch is None:
            return True
        # First compare the sum of the maximum sizes, which is at hand; compute the exact size if
        # needed.
        batch_bytes = self._batch_bytes
        return batch.payload_bytes + size <= batch_bytes or batch.size + size <= batch_bytes

    def append(
        self,
        queue: PartitionQueue,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        size: int,
    ) -> int:
        """Add a record of at most `size` bytes, for which the caller has checked the room, to the
        open batch; return its place there.  A record larger than a batch gets a batch of its
        own."""
        batch = queue.open
        assert batch is not None
        place = batch.append(timestamp, key, value, headers)
        self.appended += 1
        batch.payload_bytes += size
        self.buffered_bytes += size
        if size >= self._batch_bytes:
            self.close(queue)
        return place

    def queue(self, topic: str, partition: int) -> PartitionQueue:
        queues = self._queues.get(topic)
        if queues is None:
            queues = {}
            self._queues[topic] = queues
        queue = queues.get(partition)
        if queue is None:
            queue = PartitionQueue(topic, partition, self.on_lingered, self.expire)
            queues[partition] = queue
        return queue

    def queues(self) -> list[PartitionQueue]:
        return [queue for queues in self._queues.values() for queue in queues.values()]

    def open_batch(self, queue: PartitionQueue, now_ms: int) -> None:
        """Open a batch for new records; close the present one first."""
        self.close(queue)
        deadline_ms = now_ms + self.settings.delivery_timeout_ms
        batch = ProducerBatch(queue.topic, queue.partition, (queue.batches_made,), deadline_ms)
        batch.owner = self._owner
        queue.batches_made += 1
        queue.open = batch
        self._tasks.schedule(queue.linger, now_ms + self.settings.linger_ms)
        self._tasks.schedule_earlier(queue.expiry, deadline_ms)

    def close(self, queue: PartitionQueue) -> None:
        """Close the open batch, so that it is sent as soon as possible."""
        if queue.close_open():
            self._tasks.cancel(queue.linger)
            self.ready[queue] = None
            self.batches_closed += 1
            if self.when_closed is not None:
                self.when_closed(queue.topic, queue.partition)

    def on_lingered(self, queue: PartitionQueue, now_ms: int) -> None:
        self.close(queue)

    def put_back(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Put back a batch that must be sent again, or a piece of one."""
        queue.put_back(batch)
        self.ready[queue] = None

    def close_all(self) -> None:
        for queue in self.queues():
            self.close(queue)

    def refuse_size(self, size: int) -> None:
        """Raise RecordTooLarge for a record of more than `record_bytes_max`."""
        if size + HEADER_SIZE > self.settings.request_bytes_max:
            raise RecordTooLarge(
                f"a record of {size} bytes is too large; "
                f"max.request.size is {self.settings.request_bytes_max}"
            )
        raise RecordTooLarge(
            f"a record of {size} bytes is too large; buffer.memory is {self.settings.buffer_bytes}"
        )

    # --- The end of batches

    def expire(self, queue: PartitionQueue, now_ms: int) -> None:
        """Fail batches that are not done after `delivery.timeout.ms`.  Batches in flight stay in
        `in_flight`, because their answers still matter for the batches behind them."""
        if queue.open is not None and queue.open.deadline_ms <= now_ms:
            self.close(queue)
        for batch in [*queue.in_flight, *queue.waiting]:
            if not batch.is_done and batch.deadline_ms <= now_ms:
                problem = self.problem_of(queue, now_ms)
                self.has_expired = True
                self.fail(batch, expired(batch, self.settings.delivery_timeout_ms, problem))
        queue.waiting = deque([batch for batch in queue.waiting if not batch.is_done])
        left = [batch for batch in [*queue.in_flight, *queue.waiting] if not batch.is_done]
        if queue.open is not None:
            left.append(queue.open)
        if left:
            self._tasks.schedule(queue.expiry, min([batch.deadline_ms for batch in left]))

    def problem_of(self, queue: PartitionQueue, now_ms: int) -> str:
        """Describe why a batch had no answer; "" if no reason is known."""
        if self._metadata.leader_of(queue.topic, queue.partition) is None:
            return self._metadata.problem_with(queue.topic, now_ms)
        return self.obstacle

    def fail_all(self, error: ClientError, sent_error: ClientError | None = None) -> None:
        """Fail all records and stop sending; records that a broker may have fail with
        `sent_error`."""
        self.failure = error
        for queue in self.queues():
            self.close(queue)
            for batch in [*queue.in_flight, *queue.waiting]:
                if not batch.is_done:
                    self.fail(batch, (sent_error if batch.was_sent else None) or error)
            queue.waiting.clear()
        self.ready.clear()

    def succeed(self, batch: ProducerBatch, base_offset: int, append_time_ms: int) -> None:
        batch.succeed(base_offset, append_time_ms)
        self.acknowledged += batch.count
        self.batches_acknowledged += 1
        self.bytes_acknowledged += batch.encoded_bytes
        self.has_expired = False
        self._release(batch)

    def fail(self, batch: ProducerBatch, error: ClientError) -> None:
        batch.fail(error)
        self._release(batch)
        self.remember_failed(batch)

    def remember_failed(self, batch: ProducerBatch) -> None:
        self.failed_records += batch.count
        if len(self.failed) >= FAILED_BATCHES_MAX:
            self.failed_before += self.failed.pop(1).unseen_failures
        self.failed.append(batch)

    def take_failures(self) -> tuple[int, ClientError | None]:
        """Take the number of failed records for whose receipts no call has asked, and the first
        error."""
        unseen = [batch for batch in self.failed if batch.unseen_failures > 0]
        count = self.failed_before + sum([batch.unseen_failures for batch in unseen])
        first = unseen[0].error if unseen else None
        self.failed = []
        self.failed_before = 0
        return count, first

    def release_after_split(self, batch: ProducerBatch, pieces: list[ProducerBatch]) -> None:
        """Release the room of a batch that was split, except for the room of its pieces."""
        self.buffered_bytes += sum([piece.payload_bytes for piece in pieces])
        self._release(batch)

    def _release(self, batch: ProducerBatch) -> None:
        """Release the room of a batch, and notify the operations that wait for its records."""
        self.buffered_bytes -= batch.payload_bytes
        waits = batch.waits
        if waits is not None:
            batch.waits = None
            for wait in waits:
                look_again(wait)
        if batch.expected is not None:
            self.deliveries.on_batch_end(batch)
