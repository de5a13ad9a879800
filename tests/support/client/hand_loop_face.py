"""The asyncio faces in a loop whose clock the test moves, against the scripted cluster.

Only the sockets and the clocks are replaced: turns, timers and futures are those of the product.
"""

from __future__ import annotations

from asyncio import AbstractEventLoop, Future, TimerHandle, current_task, get_running_loop
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any

from tests.support.client.scripted_cluster import WALL_MS, ScriptedCluster, seeded_random
from tests.support.hand_loop import HandLoop

from tarry.client import aio
from tarry.client.aio.deliveries import DeliveryCalls
from tarry.client.aio.driver import LoopDriver
from tarry.client.aio.streams import LoopStreams
from tarry.client.core.admin.core import AdminCore
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.producer.core import ProducerCore
from tarry.client.settings import ClientSettings
from tarry.link.events import LinkEvent


class ScriptedStreams(LoopStreams):
    """Connections to the scripted cluster: what it sends comes at its time, by the loop's timer."""

    def __init__(
        self,
        settings: ClientSettings,
        loop: AbstractEventLoop,
        on_event: Callable[[], None],
        cluster: ScriptedCluster,
    ) -> None:
        super().__init__(settings, loop, on_event)
        self.cluster = cluster
        self.arrival: TimerHandle | None = None

    def perform(self, outputs: Sequence[Any]) -> None:
        self.cluster.perform(outputs)
        self._expect()

    def _expect(self) -> None:
        if self.arrival is not None:
            self.arrival.cancel()
            self.arrival = None
        due_ms = self.cluster.due_ms
        if due_ms is not None:
            self.arrival = self._loop.call_at(due_ms / 1000, self._on_event)

    def take_events(self) -> list[LinkEvent]:
        self.cluster.now_ms = now_ms_of(self._loop)
        return self.cluster.take_due()

    def close(self) -> None:
        super().close()
        if self.arrival is not None:
            self.arrival.cancel()


class HandLoopDriver(LoopDriver[Any]):
    """Driver whose world is a hand-moved loop and a scripted cluster."""

    def __init__(
        self,
        settings: ClientSettings,
        make_core: Callable[[LoopDriver[Any]], Any],
        cluster: ScriptedCluster,
        loop: AbstractEventLoop,
    ) -> None:
        self.cluster = cluster
        self.hand_loop = loop
        super().__init__(settings, lambda driver: cluster.attach(make_core(driver)))

    def now_ms(self) -> int:
        self.cluster.now_ms = now_ms_of(self.hand_loop)
        return self.cluster.now_ms

    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms()

    def open_streams(self, loop: AbstractEventLoop) -> LoopStreams:
        return ScriptedStreams(self.settings, loop, self.turn_in_loop, self.cluster)


def now_ms_of(loop: AbstractEventLoop) -> int:
    return round(loop.time() * 1000)


def hand_loop_of(cluster: ScriptedCluster) -> HandLoop:
    """A loop whose clock stands where the cluster's does."""
    return HandLoop(cluster.now_ms / 1000)


def producer_of(cluster: ScriptedCluster, loop: HandLoop, **settings: Any) -> aio.Producer:
    """Make a producer of this cluster, whose bootstrap server is its broker 1."""
    producer = aio.Producer({"bootstrap.servers": str(cluster.brokers[1])}, **settings)
    producer.abort()
    made = producer.settings
    producer._driver = driver = HandLoopDriver(
        made,
        lambda driver: ProducerCore(made, seeded_random(), cluster.now_ms, aio.Receipt, driver),
        cluster,
        loop,
    )
    producer._calls = DeliveryCalls(driver)
    return producer


def consumer_of(
    cluster: ScriptedCluster, loop: HandLoop, *what: str, **settings: Any
) -> aio.Consumer:
    """Make a consumer of this cluster, whose bootstrap server is its broker 1."""
    listener = settings.pop("listener", None)
    consumer = aio.Consumer(
        {"bootstrap.servers": str(cluster.brokers[1])}, listener=listener, **settings
    )
    consumer._driver.close()
    made = consumer.settings
    consumer._driver = HandLoopDriver(
        made,
        lambda driver: GroupConsumerCore(made, seeded_random(), cluster.now_ms),
        cluster,
        loop,
    )
    if what:
        consumer.subscribe(what)
    return consumer


def admin_of(cluster: ScriptedCluster, loop: HandLoop) -> aio.Admin:
    """Make an admin client of this cluster, whose bootstrap server is its broker 1."""
    admin = aio.Admin({"bootstrap.servers": str(cluster.brokers[1])})
    admin._driver.close()
    made = admin.settings
    admin._driver = HandLoopDriver(
        made, lambda driver: AdminCore(made, seeded_random(), cluster.now_ms), cluster, loop
    )
    return admin


class CancelledAt:
    """Awaits a coroutine, and has its task cancelled where it waits for the n-th time: at once, or
    as soon as that has come for which it waits."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], number: int, *, is_late: bool) -> None:
        self.coroutine = coroutine
        self.number = number
        self.is_late = is_late
        self.has_cancelled = False

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = self.coroutine.__await__()
        raised: BaseException | None = None
        waits = 0
        while True:
            try:
                future = next(steps) if raised is None else steps.throw(raised)
            except StopIteration as end:
                return end.value
            raised = None
            waits += 1
            if waits == self.number:
                self._cancel(future)
            try:
                yield future
            except BaseException as error:
                raised = error

    def _cancel(self, future: Future[Any] | None) -> None:
        self.has_cancelled = True
        task = current_task()
        assert task is not None
        if self.is_late and future is not None:
            future.add_done_callback(lambda _: task.cancel())
        else:
            get_running_loop().call_soon(task.cancel)
