"""Producer for asyncio: records in, receipts out.

    async with Producer(bootstrap_servers="localhost:9092") as producer:
        receipt = await producer.send("orders", key=b"7", value=b"...")
        print((await receipt).offset)

Idempotent with acks=all by default.  Nothing fails silently: a record whose receipt nobody asks
raises `DeliveryFailed` from `flush` or at the end of the `async with` block.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack, overload
from weakref import WeakMethod

from tarry.client.aio.deliveries import DeliveryCalls
from tarry.client.aio.driver import LoopDriver
from tarry.client.aio.receipt import Receipt
from tarry.client.codecs import Codec, KeyIn_contra, ValueIn_contra
from tarry.client.core.arguments import check_settings, timeout_ms_of
from tarry.client.core.outgoing import Content, HeadersGiven, check_on_delivery, check_topic
from tarry.client.core.producer.accumulator import record_size
from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.core.producer.core import ProducerCore
from tarry.client.core.producer.intake import Appended
from tarry.client.core.producer.partitioner import ANY_PARTITION, partition_of_function
from tarry.client.core.producer.room import no_room_error
from tarry.client.errors import ClientForked
from tarry.client.face.at_exit import at_exit
from tarry.client.face.chance import SystemRandom
from tarry.client.face.producer import ProducerFace, cancel_of, due_of
from tarry.client.face.record import codecs_of, record_of
from tarry.client.setting_arguments import ProducerArguments
from tarry.client.settings import ProducerSettings, ProducerValue
from tarry.link.errors import ClientError

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from tarry.client.core.producer.due import DueGiven
    from tarry.client.core.schedule.entries import ScheduleOutcome

__all__ = ["HeadersGiven", "Producer", "Receipt"]


# Function or coroutine that is called with the receipt of a record that is done or has failed.
OnDelivery = Callable[[Receipt], object]


class ProducerDriver(LoopDriver[ProducerCore]):
    """Driver that writes to stderr how many records were lost if a producer was not closed and its
    loop is gone, so that nothing can send them."""

    def __init__(
        self,
        settings: ProducerSettings,
        make_core: Callable[[LoopDriver[ProducerCore]], ProducerCore],
    ) -> None:
        super().__init__(settings, make_core)
        self._is_told = False
        # The reference is weak, so that a producer can be collected, which also writes the line.
        tell = WeakMethod(self.tell_lost)
        self._take_back = at_exit(lambda: _call(tell))

    def tell_lost(self) -> None:
        """Write once how many records are not delivered, if there are any."""
        if self.is_closed or self._is_told:
            return
        self._is_told = True
        accumulator = self.core.accumulator
        lost = accumulator.appended - accumulator.acknowledged - accumulator.failed_records
        if lost > 0:
            noun = "record was" if lost == 1 else "records were"
            # Written to stderr, whatever the program does with warnings and logs: data is lost.
            sys.stderr.write(
                f"tarry: an aio.Producer was not closed, and {lost} {noun} not delivered: "
                "use `async with`, or await its close()\n"
            )

    def close(self) -> None:
        if self.is_stranded:
            self.tell_lost()
        super().close()

    def let_go(self) -> None:
        super().let_go()
        self._take_back()

    def disown(self) -> None:
        super().disown()
        self._take_back()

    def __del__(self) -> None:
        # A producer whose constructor has failed has no such attribute.
        if hasattr(self, "_take_back"):
            self._take_back()
            self.tell_lost()


def _call(method: WeakMethod[Callable[[], None]]) -> None:
    found = method()
    if found is not None:
        found()


class Producer(ProducerFace, Generic[KeyIn_contra, ValueIn_contra]):
    """Producer that all tasks of one event loop may use.

    Keys and values are bytes, bytearray or memoryview, unless `key` and `value` are codecs."""

    _driver: LoopDriver[ProducerCore]

    @overload
    def __init__(
        self: Producer[Content, Content],
        settings: Mapping[str, ProducerValue] | None = None,
        *,
        key: None = None,
        value: None = None,
        on_delivery: OnDelivery | None = None,
        **arguments: Unpack[ProducerArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Producer[KeyIn_contra, Content],
        settings: Mapping[str, ProducerValue] | None = None,
        *,
        key: Codec[KeyIn_contra],
        value: None = None,
        on_delivery: OnDelivery | None = None,
        **arguments: Unpack[ProducerArguments],
    ) -> None: ...

    @overload
    def __init__(
        self: Producer[Content, ValueIn_contra],
        settings: Mapping[str, ProducerValue] | None = None,
        *,
        key: None = None,
        value: Codec[ValueIn_contra],
        on_delivery: OnDelivery | None = None,
        **arguments: Unpack[ProducerArguments],
    ) -> None: ...

    @overload
    def __init__(
        self,
        settings: Mapping[str, ProducerValue] | None = None,
        *,
        key: Codec[KeyIn_contra],
        value: Codec[ValueIn_contra],
        on_delivery: OnDelivery | None = None,
        **arguments: Unpack[ProducerArguments],
    ) -> None: ...

    def __init__(
        self,
        settings: Mapping[str, ProducerValue] | None = None,
        *,
        key: Codec[Any] | None = None,
        value: Codec[Any] | None = None,
        on_delivery: OnDelivery | None = None,
        **arguments: Unpack[ProducerArguments],
    ) -> None:
        """Make a producer; it connects when it is first used.

        `on_delivery`, a function or a coroutine, is called with the receipt of each record that is
        done or has failed, one after the other, in a task of the producer's own.  `flush` and
        `close` wait for these calls.  What it raises is logged.
        """
        check_settings("Producer", settings)
        check_on_delivery(on_delivery)
        self._codecs = codecs_of(key, value)
        self.settings = made = ProducerSettings(settings, **arguments)
        self._driver = driver = ProducerDriver(
            made,
            lambda driver: ProducerCore(made, SystemRandom(), driver.now_ms(), Receipt, driver),
        )
        self._on_delivery = on_delivery
        self._has_partitioner = made.partition_function is not None
        self._calls = DeliveryCalls(driver)
        driver.close_when_forgotten(self, "a Producer")

    # --- Records

    async def send(
        self,
        topic: str,
        value: ValueIn_contra | None = None,
        *,
        key: KeyIn_contra | None = None,
        headers: HeadersGiven | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        deliver_at: datetime | int | None = None,
        deliver_after: timedelta | str | int | None = None,
        schedule_id: str | bytes | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Receipt:
        """Take a record; waits until its topic is known and there is room, `max.block.ms` at most.
        A call that is cancelled has not taken it.  `timestamp` is in milliseconds since
        1970; without one it is now.  `on_delivery` is called for this record in place of the
        producer's own.

        `deliver_at`: the record appears then; a datetime with a time zone, or milliseconds since
        1970.  `deliver_after`: it appears so long after it has arrived; a timedelta, a text such as
        "1h30m", or milliseconds.  `schedule_id`: a name by which it can be taken back or replaced;
        without a key it chooses the partition.  Raises SchedulingUnsupported if the topic does not
        delay records; the first such record of a topic waits for its settings.

        Raises TypeError or ValueError for an argument that no record can have, and what a codec
        raises; nothing has changed then, and the records around it are sent."""
        record, hears = self._checked(
            topic, value, key, headers, partition, timestamp, on_delivery=on_delivery
        )
        if deliver_at is not None or deliver_after is not None or schedule_id is not None:
            due = due_of(deliver_at, deliver_after, schedule_id)
            return await self._send_due(record, hears, due, has_timestamp=timestamp is not None)
        if self._driver.owes_way:
            await self._driver.give_way()
        if self._has_partitioner and partition is None:
            count = self._core.partition_count(topic) or await self.partition_count(topic)
            record = self._placed(record, count)
        receipt = self._append(record, hears)
        if receipt is None:
            receipt = await self._append_with_room(record, hears)
        return receipt

    async def send_and_wait(
        self,
        topic: str,
        value: ValueIn_contra | None = None,
        *,
        key: KeyIn_contra | None = None,
        headers: HeadersGiven | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        deliver_at: datetime | int | None = None,
        deliver_after: timedelta | str | int | None = None,
        schedule_id: str | bytes | None = None,
    ) -> Receipt:
        """Send a record and wait until it is in the log, `delivery.timeout.ms` at most; raises why
        it is not.  One after the other: `send` is for many records.  One that is due later is safe
        then, and has no offset yet."""
        receipt = await self.send(
            topic,
            value,
            key=key,
            headers=headers,
            partition=partition,
            timestamp=timestamp,
            deliver_at=deliver_at,
            deliver_after=deliver_after,
            schedule_id=schedule_id,
        )
        return await receipt

    def send_nowait(
        self,
        topic: str,
        value: ValueIn_contra | None = None,
        *,
        key: KeyIn_contra | None = None,
        headers: HeadersGiven | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        deliver_at: datetime | int | None = None,
        deliver_after: timedelta | str | int | None = None,
        schedule_id: str | bytes | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Receipt:
        """Take a record as `send` does, without waiting.  Raises BufferFull if there is no room, or
        if the topic, or how it delays records, is not known yet: `send` waits for all of it."""
        record, hears = self._checked(
            topic, value, key, headers, partition, timestamp, on_delivery=on_delivery
        )
        if deliver_at is not None or deliver_after is not None or schedule_id is not None:
            # Imported here, because few programs delay records.
            from tarry.client.aio.scheduled import scheduled_at_once

            due = due_of(deliver_at, deliver_after, schedule_id)
            has_timestamp = timestamp is not None
            record = scheduled_at_once(self._driver, record, due, has_timestamp=has_timestamp)
        if self._has_partitioner and record[1] == ANY_PARTITION:
            count = self._core.partition_count(topic)
            record = self._placed(record, count) if count else record
        receipt = self._append(record, hears)
        if receipt is None:
            raise no_room_error(self._core, topic)
        return receipt

    @overload
    async def cancel(self, topic: Receipt) -> ScheduleOutcome: ...

    @overload
    async def cancel(
        self,
        topic: str,
        *,
        schedule_id: str | bytes,
        key: KeyIn_contra | None = None,
        partition: int | None = None,
    ) -> Receipt: ...

    async def cancel(
        self,
        topic: str | Receipt,
        *,
        schedule_id: str | bytes | None = None,
        key: KeyIn_contra | None = None,
        partition: int | None = None,
    ) -> Receipt | ScheduleOutcome:
        """Cancel a scheduled record.  With a receipt: returns the outcome as
        `Admin.cancel_scheduled` does; BrokerError if the record waits in one batch with others.
        With a topic and an id: the receipt is done when the cancel is decided; give the same key or
        the same partition as for the record.
        """
        if isinstance(topic, Receipt):
            from tarry.client.aio.scheduled import cancel_receipt

            others = (schedule_id, key, partition)
            return await cancel_receipt(self._driver, self.settings, topic, *others)
        record, hears = self._checked(topic, None, key, None, partition, None, on_delivery=None)
        return await self._send_due(record, hears, cancel_of(schedule_id), has_timestamp=False)

    async def _send_due(
        self,
        record: Appended,
        on_delivery: OnDelivery | None,
        due: DueGiven,
        *,
        has_timestamp: bool,
    ) -> Receipt:
        """Send a record that is due later, or one that cancels another record."""
        from tarry.client.aio.scheduled import scheduled_record

        driver = self._driver
        if driver.owes_way:
            await driver.give_way()
        record = await scheduled_record(
            driver, self.settings, record, due, has_timestamp=has_timestamp
        )
        if self._has_partitioner and record[1] == ANY_PARTITION:
            count = self._core.partition_count(record[0]) or await self.partition_count(record[0])
            record = self._placed(record, count)
        return self._append(record, on_delivery) or await self._append_with_room(
            record, on_delivery
        )

    def _checked(
        self,
        topic: str,
        value: object,
        key: object,
        headers: HeadersGiven | None,
        partition: int | None,
        timestamp: int | None,
        *,
        on_delivery: OnDelivery | None,
    ) -> tuple[Appended, OnDelivery | None]:
        """Check a send before anything has changed; return its record and its `on_delivery`."""
        driver = self._driver
        driver.check_usable()
        record = record_of(
            topic,
            value,
            key,
            headers,
            codecs=self._codecs,
            partition=partition,
            timestamp=timestamp,
            now_wall_ms=driver.wall_ms(),
        )
        if on_delivery is None:
            return record, self._on_delivery
        check_on_delivery(on_delivery)
        return record, on_delivery

    def _placed(self, record: Appended, partition_count: int) -> Appended:
        """Return the record with the partition that the user's own partitioner chooses."""
        function = self.settings.partition_function
        assert function is not None
        topic, _, timestamp, key, value, headers = record
        place = partition_of_function(function, topic, key, partition_count)
        return topic, place, timestamp, key, value, headers

    def _append(self, record: Appended, on_delivery: OnDelivery | None) -> Receipt | None:
        """Append a record; return None if there is no room.  It is sent in a turn that runs when
        the loop continues, or at once if a batch is full."""
        driver = self._driver
        core = driver.core
        accumulator = core.accumulator
        closed_before = accumulator.batches_closed
        batch, place = core.intake.join(record)
        receipt: RecordReceipt | None
        if batch is not None:
            receipt = Receipt(batch, place, record[2])
        else:
            receipt = core.append(*record, now_ms=driver.now_ms())
        if receipt is not None and on_delivery is not None:
            accumulator.deliveries.expect(on_delivery, receipt)
        if accumulator.batches_closed != closed_before:
            driver.turn()
        elif not driver.is_turn_wanted:
            driver.turn_soon()
        assert receipt is None or isinstance(receipt, Receipt)
        return receipt

    async def _append_with_room(self, record: Appended, on_delivery: OnDelivery | None) -> Receipt:
        driver = self._driver
        topic, _, _, key, value, headers = record
        begin = partial(self._core.begin_room, topic, record_size(key, value, headers))
        ends_ms = driver.now_ms() + self.settings.block_ms_max
        while True:
            await driver.perform(begin, None, max(ends_ms - driver.now_ms(), 0))
            # Other tasks may have used the room first.
            receipt = self._append(record, on_delivery)
            if receipt is not None:
                return receipt

    async def partition_count(self, topic: str, timeout: float | None = None) -> int:
        """Return the number of partitions of a topic; waits for metadata.  Raises UnknownTopic."""
        check_topic(topic)
        begin = partial(self._core.begin_topic_query, topic)
        limit_ms = self.settings.block_ms_max
        partitions: list[int] = await self._driver.perform(begin, timeout, limit_ms)
        return len(partitions)

    # --- The end

    async def flush(self, timeout: float | None = None) -> None:
        """Send all records now and wait for them, `delivery.timeout.ms` at most.  Raises
        `DeliveryFailed` for failed records whose receipts were not asked, TimedOut if some records
        are not done."""
        await self._flush(timeout, self.settings.delivery_timeout_ms)

    async def _flush(self, timeout: float | None, limit_ms: int) -> None:
        # A flush inside a call of `on_delivery` cannot wait for that very call.
        awaits = not self._calls.is_this_task
        begin = partial(self._core.begin_flush, awaits_callbacks=awaits)
        await self._driver.perform(begin, timeout, limit_ms)

    async def close(self, timeout: float | None = None) -> None:
        """Flush and close; `timeout` defaults to `close.timeout.ms`.  Raises what flush raises,
        but the producer is closed then as well, and so it is when this is cancelled."""
        driver = self._driver
        driver.check_parent()
        if driver.is_stranded:
            self.abort()
        elif not driver.is_closed:
            driver.check_usable()
            limit_ms = timeout_ms_of(timeout, self.settings.close_timeout_ms)
            if not driver.begin_end():
                await driver.until_closed()
                return
            ends_ms = driver.now_ms() + limit_ms
            try:
                await self._flush(None, limit_ms)
            except asyncio.CancelledError:
                self.abort()
                self._calls.cancel()
                raise
            finally:
                self.abort()
                await self._calls.finish(ends_ms - driver.now_ms())
        await driver.settle()

    def abort(self) -> None:
        """Close without waiting: records that are not acknowledged fail."""
        self._driver.check_parent()
        self._driver.close()

    async def __aenter__(self) -> Self:
        self._driver.check_usable()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            # The event loop is about to end.
            with contextlib.suppress(ClientForked):
                self.abort()
        elif error is None:
            await self.close()
        else:
            # Only the first error is to be seen; flush would raise a consequence of it.  The
            # records of a cancelled task are sent, too.
            with contextlib.suppress(ClientError):
                await self.close()
