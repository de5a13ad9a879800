"""Producer: records in, receipts out.

    with Producer(bootstrap_servers="localhost:9092") as producer:
        receipt = producer.send("orders", key=b"7", value=b"...")
        print(receipt.result(timeout=5).offset)

Idempotent with acks=all by default.  Nothing fails silently: a record whose receipt nobody asks
raises `DeliveryFailed` from `flush` or at the end of the `with` block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any, Generic, Unpack, overload

from tarry.client.codecs import Codec, KeyIn_contra, ValueIn_contra
from tarry.client.core.outgoing import Content, HeadersGiven, check_on_delivery
from tarry.client.core.producer.core import ProducerCore
from tarry.client.face.producer import cancel_of, check_receipt_alone, due_of
from tarry.client.face.record import codecs_of
from tarry.client.setting_arguments import ProducerArguments
from tarry.client.settings import ProducerValue
from tarry.client.sync.base_producer import BaseProducer
from tarry.client.sync.driver import Driver
from tarry.client.sync.receipt import Receipt
from tarry.client.sync.record_path import RecordPath

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from tarry.client.core.schedule.entries import ScheduleOutcome

__all__ = ["HeadersGiven", "Producer", "Receipt"]


# Function that is called with the receipt of a record that is done or has failed.
OnDelivery = Callable[[Receipt], object]


class Producer(BaseProducer, Generic[KeyIn_contra, ValueIn_contra]):
    """Producer that several threads may use.

    Keys and values are bytes, bytearray or memoryview, unless `key` and `value` are codecs."""

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
        check_on_delivery(on_delivery)
        codecs = codecs_of(key, value)
        super().__init__(settings, **arguments)
        self._path = RecordPath(self._driver, self.settings, codecs, on_delivery)
        self._driver.tell_users = partial(_call_back, self._driver)

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
        deliver_at: datetime | int | None = None,
        deliver_after: timedelta | str | int | None = None,
        schedule_id: str | bytes | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Receipt:
        """Take a record and return at once, unless there is no room or the topic is not known yet:
        then wait `max.block.ms` at most.  `timestamp`: milliseconds since 1970; without one, now.
        `on_delivery` is called for this record in place of the producer's own.

        `deliver_at`: the record appears then; a datetime with a time zone, or milliseconds since
        1970.  `deliver_after`: it appears so long after it has arrived; a timedelta, a text such as
        "1h30m", or milliseconds.  `schedule_id`: a name by which it can be taken back or replaced;
        without a key it chooses the partition.  Raises SchedulingUnsupported if the topic does not
        delay records; the first such record of a topic waits for its settings.

        Raises TypeError or ValueError for an argument that no record can have, and what a codec
        raises; nothing has changed then, and the records around it are sent."""
        due = None
        if deliver_at is not None or deliver_after is not None or schedule_id is not None:
            due = due_of(deliver_at, deliver_after, schedule_id)
        return self._path.send(
            topic, value, key, headers, partition, timestamp, due=due, on_delivery=on_delivery
        )

    def send_and_wait(
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
        due = None
        if deliver_at is not None or deliver_after is not None or schedule_id is not None:
            due = due_of(deliver_at, deliver_after, schedule_id)
        receipt = self._path.send(
            topic, value, key, headers, partition, timestamp, due=due, on_delivery=None
        )
        return receipt.result()

    @overload
    def cancel(self, topic: Receipt) -> ScheduleOutcome: ...

    @overload
    def cancel(
        self,
        topic: str,
        *,
        schedule_id: str | bytes,
        key: KeyIn_contra | None = None,
        partition: int | None = None,
    ) -> Receipt: ...

    def cancel(
        self,
        topic: str | Receipt,
        *,
        schedule_id: str | bytes | None = None,
        key: KeyIn_contra | None = None,
        partition: int | None = None,
    ) -> Receipt | ScheduleOutcome:
        """Cancel a scheduled record, by its receipt or by its id.

        With a receipt: waits until the record is acknowledged, and returns the outcome as
        `Admin.cancel_scheduled` does.  BrokerError if the record waits in one batch with others:
        give a record a `schedule_id` if it is to be cancelled alone.

        With a topic and an id: the receipt is done when the cancel is decided.  A record that was
        released already stays, and an unknown id does no harm.  The cancel has to go to the
        record's partition: give the same key or the same partition, or neither if the record was
        sent with neither.  Waits and raises as `send` does.
        """
        if isinstance(topic, Receipt):
            check_receipt_alone(schedule_id, key, partition)
            topic.result()
            begin = partial(self._core.begin_cancel, topic)
            return self._driver.perform(begin, None, self.settings.api_timeout_ms)
        due = cancel_of(schedule_id)
        return self._path.send(topic, None, key, None, partition, None, due=due, on_delivery=None)


def _call_back(driver: Driver[ProducerCore]) -> None:
    """Call `on_delivery` for all receipts that are due; a child that such a call has forked makes
    no further calls."""
    deliveries = driver.core.accumulator.deliveries
    thread = get_ident()
    while not driver.is_forked:
        with driver.lock:
            if not deliveries.may_call(thread):
                # This thread is inside a call that lasts longer than a close waits.
                return
            delivery = deliveries.take_for(thread)
        if delivery is None:
            break
        on_delivery, receipt = delivery
        try:
            on_delivery(receipt)
        except BaseException as error:
            # Imported with the first mistake, so that other programs do not load it.
            import logging

            log = logging.getLogger("tarry.client")
            log.exception("on_delivery raised for %r; the producer goes on", receipt)
            if not isinstance(error, Exception) and not driver.background.is_this_thread:
                raise
    if not driver.is_closed and driver.core.accumulator.is_empty:
        # A flush may be waiting for the last of these calls.
        driver.nudge()
