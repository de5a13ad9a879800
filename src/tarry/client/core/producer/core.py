"""The producer's core: takes records, sends batches to the leaders, and fulfils receipts."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from tarry.base.doors import Random
from tarry.base.errors import NONE
from tarry.client.core.core import ClientCore
from tarry.client.core.operation import Operation
from tarry.client.core.producer.accumulator import Accumulator
from tarry.client.core.producer.acknowledgement import Acknowledgement
from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.core.producer.identity import ProducerIdentity
from tarry.client.core.producer.intake import Appended, Intake
from tarry.client.core.producer.partitioner import Partitioner
from tarry.client.core.producer.room import PendingRoom
from tarry.client.core.producer.sender import Sender
from tarry.client.errors import (
    BufferFull,
    ClientClosed,
    DeliveryFailed,
    DeliveryTimedOut,
)
from tarry.client.settings import ProducerSettings
from tarry.link.errors import ClientError, TimedOut
from tarry.records.builder import Headers

if TYPE_CHECKING:
    from tarry.client.core.delays import DelayQuery, Delays
    from tarry.client.core.schedule.entries import ScheduleOutcome
    from tarry.client.metrics import ProducerMetrics

# Shortest time between turns that no user asks for.
NAP_MS_MIN: Final = 1


class ProducerCore(ClientCore):
    """Core of a producer: `append` takes records between turns, and the next turn sends the batches
    that are ready."""

    what_waits = "records wait to be sent"

    def __init__(
        self,
        settings: ProducerSettings,
        random: Random,
        now_ms: int,
        receipt_type: type[RecordReceipt] = RecordReceipt,
        owner: object = None,
    ) -> None:
        """Make a core whose receipts are of `receipt_type` and have this `owner`."""
        super().__init__(settings, random, now_ms)
        self.producer_settings = settings
        self.refresh.may_create = settings.allow_auto_create_topics
        self.accumulator = Accumulator(settings, self.tasks, self.metadata, owner)
        self.identity = ProducerIdentity(self.errands, settings.api_timeout_ms)
        self.sender = Sender(
            settings,
            self.accumulator,
            self.connections,
            self.metadata,
            self.refresh,
            self.identity,
        )
        self.partitioner = Partitioner(random, settings.partitioner)
        self.accumulator.when_closed = self.partitioner.on_batch_closed
        self._receipt_type = receipt_type
        self.intake = Intake(self.accumulator, self.metadata, self.partitioner)

    def work(self, now_ms: int) -> None:
        # Append records that waited for room, so that this turn sends them.
        self.operations.look(now_ms)
        self.errands.work(now_ms)
        self.sender.work(now_ms)

    def begin_cancel(
        self, receipt: RecordReceipt, timeout_ms: int, now_ms: int
    ) -> Operation[ScheduleOutcome]:
        """Take back the record of a receipt that is done, if it still waits."""
        # Few programs delay records: the others load nothing of it.
        from tarry.client.core.schedule.changing import cancel_record

        return self.begin_errand(cancel_record(self.connections, receipt), timeout_ms, now_ms)

    # --- Records

    def append(
        self,
        topic: str,
        partition: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None,
        *,
        now_ms: int,
    ) -> RecordReceipt | None:
        """Take a record; return None if the topic is not known yet or there is no room: wait and
        try again.

        `partition` -1 lets the partitioner choose.  Raises an error for a record that can never be
        sent.
        """
        record = (topic, partition, timestamp, key, value, headers)
        batch, place = self.intake.append(record, now_ms)
        if batch is not None:
            return self._receipt_type(batch, place, timestamp)
        if self.metadata.topic(topic) is None:
            self._raise_refusal(topic, now_ms)
            self.track(topic)
        return None

    def _raise_refusal(self, topic: str, now_ms: int) -> None:
        """Raise the error of a topic that brokers refuse, because waiting would not help."""
        if self.metadata.refusal(topic) != NONE:
            error = self.metadata.error_of(topic, now_ms)
            # The next record for the topic asks the brokers again.
            self.metadata.untrack(topic)
            raise error

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic; 0 while the topic is not known."""
        known = self.metadata.topic(topic)
        return len(known.partitions) if known is not None else 0

    def begin_send(self, record: Appended, timeout_ms: int, now_ms: int) -> PendingSend:
        """Begin a send that waits until the topic is known and there is room."""
        # Only sent batches make room.
        self.accumulator.close_all()
        return self.operations.begin(PendingSend(self, record), timeout_ms, now_ms)

    def begin_room(self, topic: str, size: int, timeout_ms: int, now_ms: int) -> PendingRoom:
        """Wait until there is room for a record of this size, without appending it."""
        # Only sent batches make room.
        self.accumulator.close_all()
        return self.operations.begin(PendingRoom(self, topic, size), timeout_ms, now_ms)

    @cached_property
    def delays(self) -> Delays:
        """Knowledge of how each topic takes delayed records."""
        # Imported here, because few programs delay records.
        from tarry.client.core.delays import Delays

        settings = self.producer_settings
        delays = Delays(
            self.metadata, self.errands, settings.api_timeout_ms, settings.metadata_age_ms_max
        )
        self.sender.when_refused = delays.forget
        return delays

    def begin_delay_query(self, topic: str, timeout_ms: int, now_ms: int) -> DelayQuery:
        """Look up how a topic takes records that are due later."""
        from tarry.client.core.delays import DelayQuery

        self.track(topic)
        return self.operations.begin(DelayQuery(self, topic), timeout_ms, now_ms)

    def begin_wait(self, receipt: RecordReceipt, timeout_ms: int, now_ms: int) -> Acknowledgement:
        """Begin a wait for a record; its batch stops lingering."""
        acknowledgement = Acknowledgement(self.operations, receipt, self.trouble)
        if not receipt.is_done:
            self._hurry(receipt)
            acknowledgement.watch()
            self.operations.set_deadline(acknowledgement, timeout_ms, now_ms)
        return acknowledgement

    def _hurry(self, receipt: RecordReceipt) -> None:
        queue = self.accumulator.queue(receipt.topic, receipt.partition)
        if queue.open is not None and queue.open is receipt.batch:
            self.accumulator.close(queue)

    def begin_flush(self, timeout_ms: int, now_ms: int, *, awaits_callbacks: bool = True) -> Flush:
        """Send all batches now, and wait for them.  The flush also waits for calls of
        `on_delivery`, unless one of these calls has begun the flush."""
        self.accumulator.close_all()
        flush = Flush(self, awaits_callbacks=awaits_callbacks)
        return self.operations.begin(flush, timeout_ms, now_ms)

    def metrics(self, now_ms: int) -> ProducerMetrics:
        """Return a snapshot of the producer's counters."""
        # Imported here, because few programs read metrics.
        from tarry.client.metrics import ProducerMetrics

        accumulator, sender = self.accumulator, self.sender
        return ProducerMetrics(
            records=accumulator.acknowledged,
            bytes=accumulator.bytes_acknowledged,
            batches=accumulator.batches_acknowledged,
            retries=sender.retries,
            failed=accumulator.failed_records,
            buffered=accumulator.appended - accumulator.acknowledged - accumulator.failed_records,
            buffered_bytes=accumulator.buffered_bytes,
            in_flight=sender.in_flight,
            throttled_ms=self.connections.throttled_ms,
            latency=sender.latencies.metrics(),
            connections=self.connections.metrics(now_ms),
        )

    # --- Turns while no user waits

    @property
    def has_work(self) -> bool:
        return not self.accumulator.is_empty or self.has_callbacks

    @property
    def has_callbacks(self) -> bool:
        return self.accumulator.deliveries.are_due

    @property
    def unattended_due_ms(self) -> int | None:
        """Time of the next turn that is needed without a user, on the monotonic clock; a send takes
        turns itself."""
        if self.has_callbacks:
            return self.turned_ms
        nap_ms = max(self.producer_settings.linger_ms, NAP_MS_MIN)
        return self.turned_ms + nap_ms if self.has_work else None

    def needs_turns(self, now_ms: int) -> bool:
        return not self.accumulator.is_empty

    # --- What stands in the way

    def topic_error(
        self, topic: str, waited_ms: int, now_ms: int, partition: int | None = None
    ) -> ClientError:
        error = super().topic_error(topic, waited_ms, now_ms, partition)
        if self.refresh.last_error is None:
            # No call waits for the topic any more; the next record asks the brokers again.
            self.metadata.untrack(topic)
        return error

    def room_error(self, topic: str, waited_ms: int, now_ms: int) -> ClientError:
        """Return the error of a record that found no room in this time."""
        if self.metadata.topic(topic) is None:
            return self.topic_error(topic, waited_ms, now_ms)
        size = self.producer_settings.buffer_bytes
        return BufferFull(f"buffer.memory ({size} bytes) stayed full for {waited_ms} ms")

    def trouble(self, now_ms: int) -> str:
        """Return why records are not sent at the moment; an empty text if no problem is known."""
        trouble = super().trouble(now_ms)
        if trouble:
            return trouble
        if self.sender.last_error is not None:
            return str(self.sender.last_error)
        for queue in self.accumulator.ready:
            problem = self.accumulator.problem_of(queue, now_ms)
            if problem:
                return problem
        return self._trouble_with_topics(now_ms)

    def _trouble_with_topics(self, now_ms: int) -> str:
        """Describe a missing topic that a send waits for, or an unreachable leader."""
        for name in self.metadata.tracked:
            if self.metadata.topic(name) is None and name in self.metadata.topics:
                return self.metadata.problem_with(name, now_ms)
        for broker_id in self.metadata.brokers:
            failure = self.connections.failure_of(broker_id)
            if failure is not None:
                return str(failure)
        return ""

    @property
    def is_waiting(self) -> bool:
        """True if records are not acknowledged, or a send waits for its topic."""
        is_empty = self.accumulator.is_empty
        return not is_empty or self.metadata.needs_refresh or super().is_waiting

    def take_failure(self) -> DeliveryFailed | None:
        """Take the error for failed records for whose receipts no call has asked."""
        count, first = self.accumulator.take_failures()
        if count == 0:
            return None
        return DeliveryFailed(count, first or ClientError("the reason is not known any more"))

    def close(self, now_ms: int) -> None:
        """Close the core, and fail the records that are not done; flush first."""
        self.sender.fail_for_good(
            ClientClosed("the producer was closed before the record was sent"),
            ClientClosed(
                "the producer was closed before the record was acknowledged; it may be in the log "
                "or not"
            ),
        )
        super().close(now_ms)


class PendingSend(Operation[RecordReceipt]):
    """Operation of one record that waits for its topic and for room; appends the record as soon as
    possible."""

    def __init__(self, core: ProducerCore, record: Appended) -> None:
        super().__init__(core.operations)
        self._core = core
        self._record = record
        self._receipt: RecordReceipt | None = None
        self._error: ClientError | None = None

    def look(self, now_ms: int) -> bool:
        if self._receipt is None and self._error is None:
            try:
                self._receipt = self._core.append(*self._record, now_ms=now_ms)
            except ClientError as error:
                self._error = error
        return self._receipt is not None or self._error is not None

    def answer(self, now_ms: int) -> RecordReceipt:
        if self._error is not None:
            raise self._error
        assert self._receipt is not None
        return self._receipt

    def late_error(self, now_ms: int) -> ClientError:
        return self._core.room_error(self._record[0], self.timeout_ms, now_ms)


class Flush(Operation[None]):
    """Operation that waits until all records are done and all calls of `on_delivery` have returned;
    raises DeliveryFailed for failed records for whose receipts no call has asked."""

    def __init__(self, core: ProducerCore, *, awaits_callbacks: bool) -> None:
        super().__init__(core.operations)
        self._core = core
        self._awaits_callbacks = awaits_callbacks

    def look(self, now_ms: int) -> bool:
        accumulator = self._core.accumulator
        if not accumulator.is_empty:
            return False
        return accumulator.deliveries.are_over or not self._awaits_callbacks

    def answer(self, now_ms: int) -> None:
        failure = self._core.take_failure()
        if failure is not None:
            raise failure

    def late_error(self, now_ms: int) -> ClientError:
        if self._core.accumulator.is_empty:
            return TimedOut(
                f"on_delivery did not return within {self.timeout_ms} ms; all records are done"
            )
        trouble = self._core.trouble(now_ms)
        because = f": {trouble}" if trouble else ""
        return self._core.take_failure() or DeliveryTimedOut(
            f"not all records were acknowledged within {self.timeout_ms} ms{because}"
        )
