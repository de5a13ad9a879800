"""Producer: records in, receipts out.

    with Producer(bootstrap_servers="localhost:9092") as producer:
        receipt = producer.send("orders", key=b"7", value=b"...")
        print(receipt.result(timeout=5).offset)

Idempotent with acks=all by default.  Nothing fails silently: a record whose receipt nobody asks
raises `DeliveryFailed` from `flush` or at the end of the `with` block.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Self, Unpack

from tarry.client.core.arguments import check_settings
from tarry.client.core.outgoing import (
    Content,
    HeadersGiven,
    check_partition,
    check_timestamp,
    check_topic,
    content_of,
    pairs_of,
)
from tarry.client.core.producer import batch
from tarry.client.core.producer.core import ProducerCore
from tarry.client.core.producer.partitioner import ANY_PARTITION
from tarry.client.errors import BufferFull
from tarry.client.setting_arguments import ProducerArguments
from tarry.client.settings import ProducerSettings, SettingValue
from tarry.client.sync.delivery import Delivery
from tarry.client.sync.driver import Tell, monotonic_ms, system_random, wait_telling, wall_ms
from tarry.link.errors import ClientError, timed_out

__all__ = ["HeadersGiven", "Producer", "Receipt"]


class Receipt(batch.Receipt):
    """What became of one record; `result` waits for it."""

    __slots__ = ()

    def result(self, timeout: float | None = None) -> Self:
        """This receipt when its record is in the log.  Raises why it is not, or TimedOut.

        `timeout` is in seconds; without one it is `delivery.timeout.ms`.
        """
        delivery = self.owner
        assert isinstance(delivery, Delivery)
        delivery.wait_for(self, timeout)
        return self


class Producer:
    """Safe to be used by several threads."""

    def __init__(
        self,
        settings: Mapping[str, SettingValue] | None = None,
        **arguments: Unpack[ProducerArguments],
    ) -> None:
        check_settings("Producer", settings)
        self.settings = ProducerSettings(settings, **arguments)
        self._core = ProducerCore(self.settings, system_random(), monotonic_ms())
        self._delivery = Delivery(self.settings, self._core)
        self._driver = self._delivery.driver
        self._thread = self._delivery.thread
        self._core.accumulator.receipt_type = Receipt
        self._core.accumulator.owner = self._delivery
        # Told again and again while `partition_count` waits.
        self.on_wait: Tell | None = None

    # --- Records

    def send(
        self,
        topic: str,
        value: Content | None = None,
        *,
        key: Content | None = None,
        headers: HeadersGiven | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> Receipt:
        """Take a record and return at once, unless there is no room or the topic is not known yet:
        then wait `max.block.ms` at most.  `timestamp` is in milliseconds; now if there is none.

        Raises TypeError or ValueError for an argument that no record can have; nothing has changed
        then, and the records around it are sent."""
        driver = self._driver
        if driver.is_closed:
            driver.check_usable()
        core = self._core
        check_topic(topic)
        if timestamp is None:
            timestamp = wall_ms()
        else:
            check_timestamp(timestamp)
        place = ANY_PARTITION
        if partition is not None:
            check_partition(partition)
            place = partition
        value = content_of("value", value)
        key = content_of("key", key)
        pairs = None if headers is None else pairs_of(headers) or None
        with driver.lock:
            core.now_ms = monotonic_ms()
            closed_before = core.accumulator.batches_closed
            receipt = core.append(topic, place, timestamp, key, value, pairs)
            if receipt is not None:
                self._thread.on_send(core.now_ms)
            # A batch is full: one turn sends it.
            is_due = core.accumulator.batches_closed != closed_before
        if receipt is None:
            receipt = self._send_later(topic, place, timestamp, key, value, pairs)
        elif is_due:
            driver.nudge()
        assert isinstance(receipt, Receipt)
        return receipt

    def _send_later(
        self,
        topic: str,
        place: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]] | None,
    ) -> batch.Receipt:
        """Wait for metadata or for room, then take the record."""
        core = self._core
        attempt = _Attempt()

        def try_again() -> bool:
            core.now_ms = monotonic_ms()
            try:
                attempt.receipt = core.append(topic, place, timestamp, key, value, headers)
            except ClientError as error:
                attempt.error = error
            return attempt.receipt is not None or attempt.error is not None

        with self._driver.lock:
            # Room comes only from what is sent.
            core.begin_flush()
        if self._driver.wait(try_again, self.settings.block_ms_max):
            if attempt.error is not None:
                raise attempt.error
            assert attempt.receipt is not None
            with self._driver.lock:
                self._thread.on_send(core.now_ms)
            return attempt.receipt
        with self._driver.lock:
            raise self._no_room(topic, self.settings.block_ms_max)

    def _no_room(self, topic: str, waited_ms: int) -> ClientError:
        core = self._core
        if core.metadata.topic(topic) is None:
            reason = core.refresh.last_error
            if reason is not None:
                return timed_out(f"no broker described topic {topic!r}", waited_ms, reason)
            error = core.metadata.error_of(topic, core.now_ms)
            # Nobody waits for it any more; the next `send` asks again.
            core.metadata.untrack(topic)
            return error
        return BufferFull(
            f"buffer.memory ({self.settings.buffer_bytes} bytes) stayed full for {waited_ms} ms"
        )

    def partition_count(self, topic: str, timeout: float | None = None) -> int:
        """How many partitions a topic has; waits for metadata.  Raises UnknownTopic."""
        check_topic(topic)
        core = self._core
        timeout_ms = self.settings.block_ms_max if timeout is None else int(timeout * 1000)

        def is_settled() -> bool:
            return core.partition_count(topic) > 0 or core.metadata.is_missing(topic, core.now_ms)

        wait_telling(self._driver, core, is_settled, timeout_ms, self.on_wait)
        with self._driver.lock:
            count = core.partition_count(topic)
            if count == 0:
                raise self._no_room(topic, timeout_ms)
        return count

    @property
    def trouble(self) -> str:
        """Why records do not get out at the moment; empty if nothing seems wrong."""
        with self._driver.lock:
            return self._core.trouble

    @property
    def settled(self) -> int:
        """A count that grows whenever a broker takes records, or refuses them for good."""
        return self._core.sender.settled

    @property
    def acknowledged(self) -> int:
        """How many records brokers have taken; with acks=0 those that left."""
        return self._core.accumulator.acknowledged

    @property
    def is_waiting(self) -> bool:
        """Records wait to be acknowledged, or the last ones waited in vain."""
        accumulator = self._core.accumulator
        return accumulator.has_expired or not accumulator.is_empty

    # --- The end

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait for it, `delivery.timeout.ms` at most.  Raises
        `DeliveryFailed` for records that failed and whose receipts nobody asked, TimedOut if some
        are not done."""
        self._delivery.flush(timeout)

    def close(self, timeout: float | None = None) -> None:
        """Flush and close; `timeout` defaults to `close.timeout.ms`.  Raises what flush raises,
        but the producer is closed then as well."""
        if not self._driver.is_closed:
            self._delivery.close(timeout)

    def abort(self) -> None:
        """Close without waiting: what is not acknowledged fails."""
        self._delivery.abort()

    def __repr__(self) -> str:
        return self._driver.describe(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error_type is not None and not issubclass(error_type, Exception):
            # Ctrl-C: whoever interrupts does not want to wait for the network.
            self.abort()
            return
        if error is None:
            self.close()
        else:
            # The first error is the one to see; what flush would raise comes of it.
            with contextlib.suppress(ClientError):
                self.close()

    def __del__(self) -> None:
        # A producer whose settings were refused has none.
        delivery = getattr(self, "_delivery", None)
        if delivery is not None and not delivery.driver.is_closed:
            warnings.warn("a Producer was not closed", ResourceWarning, stacklevel=1)
            delivery.abandon()


class _Attempt:
    """What `_send_later` got."""

    receipt: batch.Receipt | None = None
    error: ClientError | None = None
