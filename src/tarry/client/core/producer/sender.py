"""Sender: sends closed batches to the leaders, and handles the answers.

A request has at most one batch of each partition, and a connection has at most
`max.in.flight.requests.per.connection` requests in flight.  The reactions to error codes are in
`reactions`.
"""

from __future__ import annotations

from collections.abc import Callable

from tarry.base.errors import NONE
from tarry.client.core import reactions
from tarry.client.core.connections import Connections
from tarry.client.core.metadata import Metadata
from tarry.client.core.producer.accumulator import Accumulator
from tarry.client.core.producer.batch import OFFSET_UNKNOWN, ProducerBatch
from tarry.client.core.producer.identity import ProducerIdentity
from tarry.client.core.producer.latencies import Latencies
from tarry.client.core.producer.produce import BatchAnswer, ProduceExchange
from tarry.client.core.producer.queue import PartitionQueue
from tarry.client.core.refresh import HOPS_MAX, Refresh
from tarry.client.errors import BrokerError, ProducerFailed, RecordTooLarge, broker_error
from tarry.client.settings import ProducerSettings
from tarry.link.errors import ClientError


class Sender:
    """Sender of the batches in the accumulator's queues."""

    def __init__(
        self,
        settings: ProducerSettings,
        accumulator: Accumulator,
        connections: Connections,
        metadata: Metadata,
        refresh: Refresh,
        identity: ProducerIdentity,
    ) -> None:
        self.settings = settings
        self.accumulator = accumulator
        self.connections = connections
        self.metadata = metadata
        self.refresh = refresh
        self.identity = identity
        # Number of batches with a final answer; while it does not grow, there is no progress.
        self.settled = 0
        # Error of the last attempt; None after a broker has accepted a batch.
        self.last_error: ClientError | None = None
        self.retries = 0
        self.latencies = Latencies()
        # Callback with the topic when a broker refuses single records.
        self.when_refused: Callable[[str], None] | None = None
        self._in_flight: dict[int, int] = {}

    @property
    def failure(self) -> ClientError | None:
        """Reason why no batch can be sent any more; None if there is none."""
        return self.accumulator.failure

    # --- Out

    def work(self, now_ms: int) -> None:
        """Send the batches that may be sent now."""
        if self.settings.is_idempotent:
            self.identity.take_answer()
            if self.identity.error is not None and self.failure is None:
                self.fail_for_good(self.identity.error)
        ready = self.accumulator.ready
        if not ready or self.failure is not None:
            return
        if self.settings.is_idempotent and not self.identity.is_known:
            self.identity.want(now_ms)
            self.accumulator.obstacle = self.identity.trouble
            return
        self.accumulator.obstacle = ""
        while True:
            requests = self._gather(now_ms)
            if not requests:
                return
            for leader_id, exchange in requests.items():
                connection = self.connections.for_broker(leader_id)
                assert connection is not None
                self._in_flight[leader_id] = self._in_flight.get(leader_id, 0) + 1
                connection.send(exchange, now_ms)

    def _gather(self, now_ms: int) -> dict[int, ProduceExchange]:
        """Make one request for each leader that can take one, with at most one batch of each
        queue."""
        requests: dict[int, ProduceExchange] = {}
        ready = self.accumulator.ready
        for queue in list(ready):
            if not queue.waiting:
                del ready[queue]
                continue
            leader_id = self._leader_of(queue, now_ms)
            if leader_id < 0 or self._in_flight.get(leader_id, 0) >= self.settings.in_flight_max:
                continue
            if self.settings.is_idempotent and not queue.take_over(self.identity):
                continue
            batch = queue.head(leader_id, now_ms)
            if batch is None:
                continue
            exchange = requests.get(leader_id)
            if exchange is None:
                exchange = ProduceExchange(self, leader_id)
                requests[leader_id] = exchange
            elif exchange.size + batch.size > self.settings.request_bytes_max:
                continue
            self._take(queue, batch, leader_id)
            exchange.add(queue, batch)
            # Served queues go to the end, so that full requests do not always serve the same
            # queues.
            del ready[queue]
            if queue.waiting:
                ready[queue] = None
        return requests

    def _leader_of(self, queue: PartitionQueue, now_ms: int) -> int:
        partition = self.metadata.leader_of(queue.topic, queue.partition)
        if partition is None:
            self.refresh.want(now_ms)
            return -1
        return partition.leader_id

    def _take(self, queue: PartitionQueue, batch: ProducerBatch, leader_id: int) -> None:
        queue.waiting.popleft()
        queue.in_flight.append(batch)
        queue.in_flight_broker = leader_id
        batch.attempts += 1
        if self.settings.is_idempotent:
            queue.number(batch)

    @property
    def in_flight(self) -> int:
        """Number of requests without an answer."""
        return sum([*self._in_flight.values()])

    # --- In

    def on_request_done(self, leader_id: int) -> None:
        self._in_flight[leader_id] -= 1

    def on_answer(
        self, queue: PartitionQueue, batch: ProducerBatch, answer: BatchAnswer, now_ms: int
    ) -> None:
        """Handle the broker's answer about one batch."""
        queue.in_flight.remove(batch)
        if queue.waiting:
            self.accumulator.ready[queue] = None
        if answer.error_code == NONE and not queue.is_of_old_epoch(batch):
            queue.is_known_to_broker = True
        if batch.is_done:
            return
        if answer.error_code == NONE:
            self.settled += 1
            self.last_error = None
            queue.failures = 0
            opened_ms = batch.deadline_ms - self.settings.delivery_timeout_ms
            self.latencies.add(now_ms - opened_ms)
            batch.s_offset = answer.s_offset
            self.accumulator.succeed(batch, answer.base_offset, answer.append_time_ms)
            return
        error = _error_of(queue, answer)
        batch.last_error = error
        self.last_error = error
        reaction = reactions.reaction_to(reactions.PRODUCE, answer.error_code)
        if reaction == reactions.RETRY:
            self._repeat(queue, batch, now_ms)
        elif reaction == reactions.REFRESH:
            self._go_to_leader(queue, answer, now_ms)
            self._repeat_at_once(queue, batch, now_ms)
        elif reaction == reactions.ALREADY_THERE:
            self.settled += 1
            self.accumulator.succeed(batch, OFFSET_UNKNOWN, -1)
        elif reaction == reactions.SPLIT:
            self._split(queue, batch, error)
        elif reaction == reactions.RENUMBER:
            self._renumber(queue, batch, now_ms)
        elif reaction == reactions.BLAME:
            self._blame(queue, batch, answer, error)
        elif reaction == reactions.FATAL:
            self.accumulator.put_back(queue, batch)
            why = f"another producer has taken over: {error}"
            unknown = f"{why}; the record had been sent, and may be in the log or not"
            self.fail_for_good(ProducerFailed(why), ProducerFailed(unknown))
        else:
            self._refuse(queue, batch, error)

    def on_failure(
        self, queue: PartitionQueue, batch: ProducerBatch, error: ClientError, now_ms: int
    ) -> None:
        """Handle a request that failed without an answer: the broker may have the batch or not."""
        queue.in_flight.remove(batch)
        if queue.waiting:
            self.accumulator.ready[queue] = None
        if batch.is_done:
            return
        batch.last_error = error
        self.last_error = error
        if error.is_retriable:
            self.refresh.want(now_ms)
            self._repeat(queue, batch, now_ms)
        else:
            self.accumulator.fail(batch, error)

    def on_acknowledged_by_nobody(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Finish a batch of acks=0: it was handed to the kernel, and no broker will answer."""
        queue.in_flight.remove(batch)
        self.settled += 1
        if not batch.is_done:
            self.accumulator.succeed(batch, OFFSET_UNKNOWN, -1)

    def fail_for_good(self, error: ClientError, sent_error: ClientError | None = None) -> None:
        """Fail all records; records that a broker may have fail with `sent_error` if it is
        given."""
        self.accumulator.fail_all(error, sent_error)

    # --- Reactions

    def _repeat(self, queue: PartitionQueue, batch: ProducerBatch, now_ms: int) -> None:
        self._pause(queue, now_ms)
        self._repeat_at_once(queue, batch, now_ms)

    def _repeat_at_once(self, queue: PartitionQueue, batch: ProducerBatch, now_ms: int) -> None:
        self.retries += 1
        self.accumulator.put_back(queue, batch)
        if batch.deadline_ms <= now_ms:
            self.accumulator.expire(queue, now_ms)

    def _go_to_leader(self, queue: PartitionQueue, answer: BatchAnswer, now_ms: int) -> None:
        """Retry at once at the leader that the answer names; after a pause if leaders keep naming
        each other."""
        if not self.refresh.follow(answer.hint):
            self.refresh.want_after(answer.error_code, now_ms)
            self._pause(queue, now_ms)
        elif queue.failures >= HOPS_MAX:
            self._pause(queue, now_ms)
        else:
            queue.failures += 1

    def _pause(self, queue: PartitionQueue, now_ms: int) -> None:
        """Pause the queue; batches that failed during one pause count as one failure."""
        if now_ms < queue.retry_at_ms:
            return
        queue.failures += 1
        queue.retry_at_ms = now_ms + self.connections.retry_pause_ms(queue.failures)
        self.connections.tasks.schedule(queue.retry, queue.retry_at_ms)

    def _split(self, queue: PartitionQueue, batch: ProducerBatch, error: ClientError) -> None:
        self.settled += 1
        if batch.count == 1:
            size = batch.size
            queue.take_back(batch, batch.count)
            self.accumulator.fail(batch, RecordTooLarge(f"a record of {size} bytes: {error}"))
            return
        halves = batch.split()
        self.accumulator.release_after_split(batch, halves)
        for half in halves:
            self.accumulator.put_back(queue, half)

    def _renumber(self, queue: PartitionQueue, batch: ProducerBatch, now_ms: int) -> None:
        """Repeat a batch for which the broker expects another sequence.

        If an earlier batch is not done, that explains the gap.  Else a batch before it is missing
        in the log, and so are the batches sent behind it: request a new epoch.
        """
        if not self.settings.is_idempotent:
            self._repeat(queue, batch, now_ms)
            return
        self.retries += 1
        explained = queue.has_earlier(batch)
        self.accumulator.put_back(queue, batch)
        if not explained:
            queue.needs_epoch = True
            self.identity.want_after(batch.producer_id, batch.producer_epoch, now_ms)

    def _blame(
        self, queue: PartitionQueue, batch: ProducerBatch, answer: BatchAnswer, error: ClientError
    ) -> None:
        """Fail the single records that the broker refuses, and repeat the others."""
        self.settled += 1
        if self.when_refused is not None:
            self.when_refused(queue.topic)
        flaws: dict[int, ClientError] = {
            place: broker_error(answer.error_code, f"{queue.topic} [{queue.partition}]: {sentence}")
            for place, sentence in answer.record_errors
            if 0 <= place < batch.count
        }
        if not flaws or batch.count == 1:
            self._refuse(queue, batch, flaws.get(0, error))
            return
        queue.take_back(batch, len(flaws))
        rest = batch.without(flaws)
        self.accumulator.release_after_split(batch, [rest] if rest is not None else [])
        for piece in batch.pieces or ():
            if piece.batch.error is not None:
                self.accumulator.remember_failed(piece.batch)
        if rest is not None:
            self.accumulator.put_back(queue, rest)

    def _refuse(self, queue: PartitionQueue, batch: ProducerBatch, error: ClientError) -> None:
        self.settled += 1
        queue.take_back(batch, batch.count)
        self.accumulator.fail(batch, error)


def _error_of(queue: PartitionQueue, answer: BatchAnswer) -> BrokerError:
    sentence = answer.message or "the broker refused the records"
    return broker_error(answer.error_code, f"{queue.topic} [{queue.partition}]: {sentence}")
