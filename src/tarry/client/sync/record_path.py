"""RecordPath: the way of a record from `send` into its batch, for all threads of a program."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tarry.client.core.outgoing import check_on_delivery
from tarry.client.core.producer.accumulator import Accumulator
from tarry.client.core.producer.intake import Appended, Intake
from tarry.client.core.producer.partitioner import ANY_PARTITION, partition_of_function
from tarry.client.face.clock import monotonic_ms, wall_ms
from tarry.client.face.record import Codecs, record_of
from tarry.client.settings import PartitionFunction, ProducerSettings
from tarry.client.sync.driver import Driver
from tarry.client.sync.receipt import Receipt

if TYPE_CHECKING:
    from tarry.client.core.producer.core import ProducerCore
    from tarry.client.core.producer.due import DueGiven


class RecordPath:
    """Path of one producer's records.  It refers to the driver and not to the producer, so that the
    producer is closed when the program no longer refers to it."""

    def __init__(
        self,
        driver: Driver[ProducerCore],
        settings: ProducerSettings,
        codecs: Codecs | None,
        on_delivery: Callable[[Any], object] | None,
    ) -> None:
        self._driver = driver
        core = driver.core
        self._intake: Intake = core.intake
        self._accumulator: Accumulator = core.accumulator
        self._codecs = codecs
        self._on_delivery = on_delivery
        self._function: PartitionFunction | None = settings.partition_function
        self._block_ms_max: int = settings.block_ms_max

    def send(
        self,
        topic: object,
        value: object,
        key: object,
        headers: object,
        partition: object,
        timestamp: object,
        *,
        due: DueGiven | None,
        on_delivery: Callable[[Any], object] | None,
    ) -> Receipt:
        """Append a record; wait if there is no room, its topic is not known, or it is `due` later
        and the settings of its topic are not known."""
        driver = self._driver
        if driver.is_closed:
            driver.check_usable()
        record = record_of(
            topic,
            value,
            key,
            headers,
            codecs=self._codecs,
            partition=partition,
            timestamp=timestamp,
            now_wall_ms=wall_ms() if timestamp is None else 0,
        )
        if on_delivery is None:
            on_delivery = self._on_delivery
        else:
            check_on_delivery(on_delivery)
        if due is not None:
            record = self._scheduled(record, due, has_timestamp=timestamp is not None)
        if self._function is not None and partition is None:
            record = self._placed(self._function, record)
        with driver.lock:
            # A codec, or another thread, may have forked or closed the client meanwhile.
            if driver.is_closed:
                driver.check_usable()
            intake, accumulator = self._intake, self._accumulator
            closed_before = accumulator.batches_closed
            batch, place = intake.join(record)
            if batch is None:
                batch, place = intake.append(record, monotonic_ms())
            if batch is not None:
                receipt = Receipt(batch, place, record[2])
                if on_delivery is not None:
                    accumulator.deliveries.expect(on_delivery, receipt)
            # A batch is full, so one turn sends it.
            is_due = accumulator.batches_closed != closed_before
            if not driver.background.is_awake:
                driver.background.look()
        if batch is None:
            return self._wait_to_send(record, on_delivery)
        if is_due:
            driver.nudge()
        return receipt

    def _wait_to_send(
        self, record: Appended, on_delivery: Callable[[Any], object] | None
    ) -> Receipt:
        """Wait until the topic of a record is known and there is room, then append it."""
        driver = self._driver
        begin = partial(driver.core.begin_send, record)
        receipt = driver.perform(begin, None, self._block_ms_max)
        assert isinstance(receipt, Receipt)
        if on_delivery is not None:
            with driver.lock:
                driver.core.accumulator.deliveries.expect(on_delivery, receipt)
                driver.background.look()
        return receipt

    def _scheduled(self, record: Appended, due: DueGiven, *, has_timestamp: bool) -> Appended:
        """Return a record that is due later in the form that its topic wants; wait until the
        topic's settings are known."""
        # Imported here, because few programs delay records.
        from tarry.client.core.producer.due import check_own_headers, with_due

        check_own_headers(record[5])
        driver = self._driver
        core = driver.core
        topic = record[0]
        source = delay_source_of(driver, topic, self._block_ms_max)
        if core.partition_count(topic) == 0:
            driver.perform(partial(core.begin_topic_query, topic), None, self._block_ms_max)
        # The lock is not held: a user's own partitioner may call the client.
        return with_due(core, record, due, source, wall_ms(), has_timestamp=has_timestamp)

    def _placed(self, function: PartitionFunction, record: Appended) -> Appended:
        """Return the record with the partition that the user's own partitioner chooses.  The lock
        is not held, since the partitioner may call the client."""
        topic, place, timestamp, key, value, headers = record
        if place == ANY_PARTITION:
            driver = self._driver
            count = driver.core.partition_count(topic)
            if count == 0:
                begin = partial(driver.core.begin_topic_query, topic)
                count = len(driver.perform(begin, None, self._block_ms_max))
            place = partition_of_function(function, topic, key, count)
        return topic, place, timestamp, key, value, headers


def delay_source_of(driver: Driver[ProducerCore], topic: str, block_ms_max: int) -> int:
    """Return how a topic takes records that are due later; wait until its settings are known.
    Raises SchedulingUnsupported if it takes none."""
    # Imported here, because few programs delay records.
    from tarry.client.core.delays import UNKNOWN_SOURCE

    core = driver.core
    with driver.lock:
        source = core.delays.source_of(topic, driver.now_ms())
    if source == UNKNOWN_SOURCE:
        source = driver.perform(partial(core.begin_delay_query, topic), None, block_ms_max)
    return source
