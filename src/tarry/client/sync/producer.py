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
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Generic, Self, Unpack, overload

from tarry.client.codecs import Codec, KeyIn_contra, ValueIn_contra
from tarry.client.core.arguments import check_settings, timeout_ms_of
from tarry.client.core.outgoing import Content, HeadersGiven, check_on_delivery, check_topic
from tarry.client.core.producer.core import ProducerCore
from tarry.client.errors import ClientForked
from tarry.client.face.chance import SystemRandom
from tarry.client.face.producer import ProducerFace
from tarry.client.face.record import codecs_of
from tarry.client.setting_arguments import ProducerArguments
from tarry.client.settings import ProducerSettings, ProducerValue
from tarry.client.sync.at_exit import at_exit
from tarry.client.sync.driver import Driver, Tell
from tarry.client.sync.receipt import Receipt
from tarry.client.sync.record_path import RecordPath
from tarry.link.errors import ClientError

__all__ = ["HeadersGiven", "Producer", "Receipt"]


# Function that is called with the receipt of a record that is done or has failed.
OnDelivery = Callable[[Receipt], object]


class Producer(ProducerFace, Generic[KeyIn_contra, ValueIn_contra]):
    """Producer that several threads may use.

    Keys and values are bytes, bytearray or memoryview, unless `key` and `value` are codecs."""

    _driver: Driver[ProducerCore]

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

        `on_delivery` is called with the receipt of each record that is done or has failed, one
        after the other, by the producer's own thread, which sends nothing meanwhile.  `flush` and
        `close` wait for these calls.  What it raises is logged.
        """
        check_settings("Producer", settings)
        check_on_delivery(on_delivery)
        codecs = codecs_of(key, value)
        self.settings = made = ProducerSettings(settings, **arguments)
        self._driver = Driver(
            made,
            lambda driver: ProducerCore(made, SystemRandom(), driver.now_ms(), Receipt, driver),
            "tarry-sender",
            max(made.linger_ms, 1),
        )
        self._path = RecordPath(self._driver, made, codecs, on_delivery)
        self._driver.tell_users = partial(_call_back, self._driver)
        self._driver.close_when_forgotten(self, "a Producer")
        # Told again and again while `partition_count` waits.
        self.on_wait: Tell | None = None
        # A program that ends without a close still delivers.
        self._driver.when_closed = at_exit(partial(_close_at_exit, self._driver))

    # --- Records

    def send(
        self,
        topic: str,
        value: ValueIn_contra | None = None,
        *,
        key: KeyIn_contra | None = None,
        headers: HeadersGiven | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Receipt:
        """Take a record and return at once, unless there is no room or the topic is not known yet:
        then wait `max.block.ms` at most.  `timestamp`: milliseconds since 1970; without one, now.
        `on_delivery` is called for this record in place of the producer's own.

        Raises TypeError or ValueError for an argument that no record can have, and what a codec
        raises; nothing has changed then, and the records around it are sent."""
        return self._path.send(
            topic, value, key, headers, partition, timestamp, on_delivery=on_delivery
        )

    def partition_count(self, topic: str, timeout: float | None = None) -> int:
        """Return the number of partitions of a topic; waits for metadata.  Raises UnknownTopic."""
        check_topic(topic)
        begin = partial(self._core.begin_topic_query, topic)
        limit_ms = self.settings.block_ms_max
        return len(self._driver.perform(begin, timeout, limit_ms, tell=self.on_wait))

    # --- The end

    def flush(self, timeout: float | None = None) -> None:
        """Send everything now and wait for it, `delivery.timeout.ms` at most.  Raises
        `DeliveryFailed` for records that failed and whose receipts nobody asked, TimedOut if some
        are not done."""
        self._flush(timeout, self.settings.delivery_timeout_ms)

    def _flush(self, timeout: float | None, limit_ms: int) -> None:
        # A flush inside a call of `on_delivery` cannot wait for that call.
        awaits = not self._driver.background.is_this_thread
        begin = partial(self._core.begin_flush, awaits_callbacks=awaits)
        self._driver.perform(begin, timeout, limit_ms)

    def close(self, timeout: float | None = None) -> None:
        """Flush and close; `timeout` defaults to `close.timeout.ms`.  Raises what flush raises,
        but the producer is closed then as well."""
        self._driver.check_parent()
        # A flaw in the call must not cost the records that wait.
        timeout_ms_of(timeout, 0)
        if not self._driver.is_closed:
            try:
                self._flush(timeout, self.settings.close_timeout_ms)
            finally:
                self.abort()

    def abort(self) -> None:
        """Close without waiting: what is not acknowledged fails."""
        self._driver.check_parent()
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error_type is not None and issubclass(error_type, KeyboardInterrupt):
            # Whoever interrupts does not want to wait for the network.
            with contextlib.suppress(ClientForked):
                self.abort()
            return
        if error is None:
            self.close()
        else:
            # The first error is the one to see; what flush would raise comes of it.
            with contextlib.suppress(ClientError):
                self.close()


def _call_back(driver: Driver[ProducerCore]) -> None:
    """Make the calls of `on_delivery` that are due; a child that one of them has forked makes no
    more."""
    deliveries = driver.core.accumulator.deliveries
    while not driver.is_forked:
        with driver.lock:
            delivery = deliveries.take()
        if delivery is None:
            break
        on_delivery, receipt = delivery
        try:
            on_delivery(receipt)
        except BaseException as error:
            # Imported with the first mistake: a program without one pays nothing for it.
            import logging

            log = logging.getLogger("tarry.client")
            log.exception("on_delivery raised for %r; the producer goes on", receipt)
            if not isinstance(error, Exception) and not driver.background.is_this_thread:
                raise
    if not driver.is_closed and driver.core.accumulator.is_empty:
        # A flush may have waited for the last call.
        driver.nudge()


def _close_at_exit(driver: Driver[ProducerCore]) -> None:
    if not driver.is_closed:
        if not driver.background.is_abandoned:
            warnings.warn("a Producer was not closed", ResourceWarning, stacklevel=1)
        try:
            driver.perform(driver.core.begin_flush, None, driver.settings.close_timeout_ms)
        finally:
            driver.close()
