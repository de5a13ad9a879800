"""Clients of a simulated world: the product's client cores, with calls that wait like real ones.

A call lets the world run until the call is done.  Between two calls nothing happens, and no time
passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from tarry.client.core.admin.core import AdminCore
from tarry.client.core.consumer.record_group import ConsumerRecord, RecordGroup
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.group.identity import GroupView
from tarry.client.core.group.offsets.what import CommitWhat
from tarry.client.core.operation import Callback, Done, Operation
from tarry.client.core.outgoing import (
    Content,
    HeadersGiven,
    check_partition,
    check_timestamp,
    check_topic,
    content_of,
    pairs_of,
)
from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.core.producer.core import ProducerCore
from tarry.client.core.producer.partitioner import ANY_PARTITION
from tarry.client.errors import ClientClosed
from tarry.client.face.consumer import ConsumerFace
from tarry.client.settings import ClientSettings, ConsumerSettings, ProducerSettings
from tarry.client.sync.listener import Listener
from tarry.link.errand import Steps
from tarry.simulation.clients.simulated_client import Delay
from tarry.simulation.product.client_node import ClientNode, User
from tarry.simulation.world import NEVER_MS, World

# Time after its own time-out at which an operation counts as hanging.
HANG_MS: Final = 3_600_000

Result = TypeVar("Result")


class WorldClient(ClientNode):
    """Process of one client, whose user is the test."""

    listener: Listener | None = None

    def user(self) -> User:
        while True:
            yield Delay(NEVER_MS)

    def perform(
        self, begin: Callable[[int, int], Operation[Result]], timeout: float | None, default_ms: int
    ) -> Result:
        """Begin an operation and let the world run until its end; return its answer, or raise its
        error."""
        if self.is_gone:
            raise ClientClosed(f"{self.name} is closed or killed")
        timeout_ms = default_ms if timeout is None else round(timeout * 1000)
        operation = begin(timeout_ms, self.clock.now_ms)
        try:
            while True:
                step = operation.step(self.clock.now_ms)
                if isinstance(step, Done):
                    return step.answer
                if isinstance(step, Callback):
                    step.call(self.listener or Listener(), self)
                    operation.end_callback(self.clock.now_ms)
                else:
                    self._wait(operation, timeout_ms)
        finally:
            operation.end(self.clock.now_ms)
            self.leave()

    def _wait(self, operation: Operation[Any], timeout_ms: int) -> None:
        self.attend()
        end_ms = self.clock.now_ms + timeout_ms + HANG_MS
        self.world.run_until(end_ms, lambda: operation.is_ready or self.is_gone)
        if self.is_gone:
            raise ClientClosed(f"{self.name} was killed")
        assert operation.is_ready, f"{self.name} hangs in {type(operation).__name__}"


class WorldProducer(WorldClient):
    """Producer in a simulated world."""

    def __init__(self, world: World, name: str, settings: ProducerSettings) -> None:
        self.settings = settings
        self.is_answered = settings.acks != 0
        self.producer_core = ProducerCore(settings, world.random, world.agenda.now_ms)
        super().__init__(world, name, self.producer_core)

    def send(
        self,
        topic: str,
        value: Content | None = None,
        *,
        key: Content | None = None,
        headers: HeadersGiven | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> RecordReceipt:
        """Append a record to be sent, and return its receipt, which has the outcome later."""
        check_topic(topic)
        if timestamp is not None:
            check_timestamp(timestamp)
        if partition is not None:
            check_partition(partition)
        record = (
            topic,
            ANY_PARTITION if partition is None else partition,
            self.clock.now_wall_ms if timestamp is None else timestamp,
            content_of("key", key),
            content_of("value", value),
            None if headers is None else pairs_of(headers) or None,
        )
        core = self.producer_core
        receipt = core.append(*record, now_ms=self.clock.now_ms)
        if receipt is None:

            def begin(timeout_ms: int, now_ms: int) -> Operation[RecordReceipt]:
                return core.begin_send(record, timeout_ms, now_ms)

            return self.perform(begin, None, self.settings.block_ms_max)
        # Let the core plan its next step: a lingering record is sent though no call waits for it.
        self.leave()
        return receipt

    def result(self, receipt: RecordReceipt, timeout: float | None = None) -> RecordReceipt:
        """Return the receipt when its record is in the log; raise the error if it fails."""

        def begin(timeout_ms: int, now_ms: int) -> Operation[Any]:
            return self.producer_core.begin_wait(receipt, timeout_ms, now_ms)

        self.perform(begin, timeout, self.settings.delivery_timeout_ms)
        return receipt

    def flush(self, timeout: float | None = None) -> None:
        """Send all records and wait for them; raise `DeliveryFailed` if some have failed."""
        self.perform(self.producer_core.begin_flush, timeout, self.settings.delivery_timeout_ms)


class WorldConsumer(ConsumerFace, WorldClient):
    """Consumer in a simulated world."""

    def __init__(
        self, world: World, name: str, settings: ConsumerSettings, listener: Listener | None
    ) -> None:
        self.settings = settings
        self.listener = listener
        self.consumer_core = GroupConsumerCore(settings, world.random, world.agenda.now_ms)
        super().__init__(world, name, self.consumer_core)

    @property
    def _core(self) -> GroupConsumerCore:
        return self.consumer_core

    @contextmanager
    def _told(self) -> Iterator[GroupConsumerCore]:
        self.consumer_core.take_back()
        yield self.consumer_core
        self.leave()

    @property
    def trouble(self) -> str:
        """Reason why the cluster cannot be reached now; "" if nothing seems wrong."""
        return self.consumer_core.trouble(self.clock.now_ms)

    @property
    def group(self) -> GroupView:
        """View of this member's place in its group."""
        return self.consumer_core.view()

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to topics, whose partitions the group's members share."""
        with self._told() as core:
            core.subscribe(topics)

    def poll(self, timeout: float = 1.0, max_records: int | None = None) -> list[RecordGroup]:
        """Return received records by partition; those of the call before count as processed."""
        count = max_records or self.settings.poll_records_max

        def begin(timeout_ms: int, now_ms: int) -> Operation[list[RecordGroup]]:
            return self.consumer_core.begin_poll(count, timeout_ms, now_ms)

        return self.perform(begin, timeout, 0)

    def read(self, count: int, timeout: float = 60.0) -> list[ConsumerRecord]:
        """Poll until `count` records have come; AssertionError if they do not come in time."""
        end_ms = self.clock.now_ms + round(timeout * 1000)
        read: list[ConsumerRecord] = []
        while len(read) < count:
            left_ms = end_ms - self.clock.now_ms
            assert left_ms > 0, f"{len(read)} of {count} records came within {timeout:g} s"
            for group in self.poll(min(left_ms / 1000, 1.0), count - len(read)):
                read += group
        return read

    def commit(self, what: CommitWhat = None, timeout: float | None = None) -> None:
        """Commit the positions behind the records that were returned, or those of `what`."""

        def begin(timeout_ms: int, now_ms: int) -> Operation[Any]:
            return self.consumer_core.begin_commit(what, timeout_ms, now_ms)

        self.perform(begin, timeout, self.settings.api_timeout_ms)

    def close(self, timeout: float | None = None) -> None:
        """Commit the processed records, leave the group, and end the process."""

        def begin(timeout_ms: int, now_ms: int) -> Operation[Any]:
            return self.consumer_core.begin_close(timeout_ms, now_ms, leave=None)

        try:
            self.perform(begin, timeout, self.settings.close_timeout_ms)
        finally:
            self.kill()


class WorldAdmin(WorldClient):
    """Administrator in a simulated world."""

    def __init__(self, world: World, name: str, settings: ClientSettings) -> None:
        self.settings = settings
        self.admin_core = AdminCore(settings, world.random, world.agenda.now_ms)
        self.requests = self.admin_core.requests
        super().__init__(world, name, self.admin_core)

    def ask(self, steps: Steps[Result], timeout: float | None = None) -> Result:
        """Send one of the requests of `requests`, such as `requests.list_topics()`."""

        def begin(timeout_ms: int, now_ms: int) -> Operation[Result]:
            return self.admin_core.begin_errand(steps, timeout_ms, now_ms)

        return self.perform(begin, timeout, self.settings.api_timeout_ms)
