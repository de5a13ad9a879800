"""Producer for asyncio: records in, receipts out.

    async with Producer(bootstrap_servers="localhost:9092") as producer:
        receipt = await producer.send("orders", key=b"7", value=b"...")
        print((await receipt).offset)

Idempotent with acks=all by default.  Nothing fails silently: a record whose receipt nobody asks
raises `DeliveryFailed` from `flush` or at the end of the `async with` block.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Generator, Mapping
from functools import partial
from random import SystemRandom
from types import TracebackType
from typing import Any, Self, Unpack

from tarry.client.aio.driver import LoopDriver, abandon
from tarry.client.core.arguments import check_settings
from tarry.client.core.outgoing import Content, HeadersGiven, check_topic
from tarry.client.core.producer import batch
from tarry.client.core.producer.accumulator import record_size
from tarry.client.core.producer.core import Appended, ProducerCore
from tarry.client.core.producer.room import no_room_error
from tarry.client.face.producer import record_of
from tarry.client.process_bound import ProcessBound
from tarry.client.setting_arguments import ProducerArguments
from tarry.client.settings import ProducerSettings, SettingValue
from tarry.link.errors import ClientError

__all__ = ["HeadersGiven", "Producer", "Receipt"]


class Receipt(batch.RecordReceipt):
    """Receipt for one record; to await it is to wait until its record is in the log, or to hear why
    it is not."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Self]:
        """Wait for the record, `delivery.timeout.ms` at most; the record goes on if that is
        cancelled."""
        return self._outcome().__await__()

    async def _outcome(self) -> Self:
        driver = self.owner
        if isinstance(driver, LoopDriver) and not self.is_done:
            limit_ms = driver.core.producer_settings.delivery_timeout_ms
            await driver.perform(partial(driver.core.begin_wait, self), None, limit_ms)
            return self
        error = self.error
        if error is not None:
            raise error
        return self


class Producer(ProcessBound):
    """Producer that all tasks of one event loop may use."""

    def __init__(
        self,
        settings: Mapping[str, SettingValue] | None = None,
        **arguments: Unpack[ProducerArguments],
    ) -> None:
        check_settings("Producer", settings)
        self.settings = made = ProducerSettings(settings, **arguments)
        self._driver = driver = LoopDriver(
            made,
            lambda driver: ProducerCore(made, SystemRandom(), driver.now_ms(), Receipt, driver),
        )
        self._core = driver.core
        self._finalizer = weakref.finalize(self, abandon, driver, "a Producer")
        # At the end of the program there is no loop left.
        self._finalizer.atexit = False

    # --- Records

    async def send(
        self,
        topic: str,
        value: Content | None = None,
        *,
        key: Content | None = None,
        headers: HeadersGiven | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Receipt:
        """Take a record; waits until its topic is known and there is room, `max.block.ms` at most.
        A call that is cancelled has not taken it.  `timestamp` is in milliseconds; now if there is
        none.

        Raises TypeError or ValueError for an argument that no record can have; nothing has changed
        then, and the records around it are sent."""
        driver = self._driver
        record = record_of(
            topic,
            value,
            key,
            headers,
            partition=partition,
            timestamp=timestamp,
            now_wall_ms=driver.wall_ms(),
        )
        driver.check_usable()
        if driver.owes_way:
            await driver.give_way()
        receipt = self._append(record)
        if receipt is None:
            receipt = await self._append_with_room(record)
        return receipt

    def send_nowait(
        self,
        topic: str,
        value: Content | None = None,
        *,
        key: Content | None = None,
        headers: HeadersGiven | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Receipt:
        """Take a record, without waiting.  Raises BufferFull if there is no room, or if the topic
        is not known yet: `send` waits for both."""
        driver = self._driver
        record = record_of(
            topic,
            value,
            key,
            headers,
            partition=partition,
            timestamp=timestamp,
            now_wall_ms=driver.wall_ms(),
        )
        driver.check_usable()
        receipt = self._append(record)
        if receipt is None:
            raise no_room_error(self._core, topic)
        return receipt

    def _append(self, record: Appended) -> Receipt | None:
        """Append a record; the turn that sends it comes when the loop goes on, or at once if a
        batch is full."""
        core, driver = self._core, self._driver
        closed_before = core.accumulator.batches_closed
        receipt = core.append(*record, now_ms=driver.now_ms())
        if core.accumulator.batches_closed != closed_before:
            driver.turn()
        else:
            driver.turn_soon()
        assert receipt is None or isinstance(receipt, Receipt)
        return receipt

    async def _append_with_room(self, record: Appended) -> Receipt:
        driver = self._driver
        topic, _, _, key, value, headers = record
        begin = partial(self._core.begin_room, topic, record_size(key, value, headers))
        ends_ms = driver.now_ms() + self.settings.block_ms_max
        while True:
            await driver.perform(begin, None, max(ends_ms - driver.now_ms(), 0))
            # Others may have been faster.
            receipt = self._append(record)
            if receipt is not None:
                return receipt

    async def partition_count(self, topic: str, timeout: float | None = None) -> int:
        """Return the number of partitions of a topic; waits for metadata.  Raises UnknownTopic."""
        check_topic(topic)
        begin = partial(self._core.begin_topic_query, topic)
        limit_ms = self.settings.block_ms_max
        partitions: list[int] = await self._driver.perform(begin, timeout, limit_ms)
        return len(partitions)

    @property
    def trouble(self) -> str:
        """Reason why records are not sent at the moment; empty if nothing seems wrong."""
        return self._core.trouble(self._driver.now_ms())

    @property
    def settled(self) -> int:
        """Count that grows whenever a broker takes records, or refuses them for good."""
        return self._core.sender.settled

    @property
    def acknowledged(self) -> int:
        """Number of records that brokers have taken; with acks=0 those that were sent."""
        return self._core.accumulator.acknowledged

    # --- The end

    async def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait for it, `delivery.timeout.ms` at most.  Raises
        `DeliveryFailed` for records that failed and whose receipts nobody asked, TimedOut if some
        are not done."""
        limit_ms = self.settings.delivery_timeout_ms
        await self._driver.perform(self._core.begin_flush, timeout, limit_ms)

    async def close(self, timeout: float | None = None) -> None:
        """Flush and close; `timeout` defaults to `close.timeout.ms`.  Raises what flush raises,
        but the producer is closed then as well, and so it is when this is cancelled."""
        driver = self._driver
        if driver.is_gone:
            self.abort()
        elif not driver.is_closed:
            driver.check_here()
            limit_ms = self.settings.close_timeout_ms
            try:
                await driver.perform(self._core.begin_flush, timeout, limit_ms)
            finally:
                self.abort()
        await driver.settle()

    def abort(self) -> None:
        """Close without waiting: what is not acknowledged fails."""
        self._finalizer.detach()
        self._driver.close()

    def __repr__(self) -> str:
        return self._driver.describe(self)

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
            # The loop is at its end.
            self.abort()
        elif error is None:
            await self.close()
        else:
            # The first error is the one to see; what flush would raise comes of it.  A cancelled
            # task sends what it was given, too.
            with contextlib.suppress(ClientError):
                await self.close()
