"""The asyncio faces over real sockets: what a loop is left with, and who may use a client."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.client.late import error_when_late
from tests.support.patience import PATIENCE_S

from tarry.client import BufferFull, ClientClosed, ConcurrentUse, NewTopic, TimedOut, aio
from tarry.client.aio.driver import LoopDriver

LOOPS = ("asyncio", "uvloop")
BROKER_TEXTS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "300",
    "offsets.topic.num.partitions": "1",
}

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    process.start(BROKER_TEXTS)
    yield process
    process.close()


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs coroutines in one loop."""
    factory = pytest.importorskip(request.param).new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        yield runner.run


@pytest.fixture
def topic(broker: BrokerProcess, request: pytest.FixtureRequest) -> str:
    """A topic of one partition, named by the test; so is its group."""
    name = re.sub(r"\W", "-", request.node.name)[:200]

    async def make() -> None:
        async with aio.Admin(bootstrap_servers=broker.address) as admin:
            (outcome,) = await admin.create_topics([NewTopic(name, 1)])
            assert outcome.error is None

    asyncio.run(make())
    return name


def member(broker: BrokerProcess, topic: str, **settings: Any) -> aio.Consumer:
    given: dict[str, Any] = {"auto_offset_reset": "earliest", "group_id": topic, **settings}
    return aio.Consumer(topic, bootstrap_servers=broker.address, **given)


def descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


async def traces() -> tuple[int, int, list[str]]:
    """What is in the running loop: tasks, timers and readers (of asyncio's own), descriptors."""
    loop: Any = asyncio.get_running_loop()
    live = [one for one in getattr(loop, "_scheduled", ()) if not one.cancelled()]
    selector = getattr(loop, "_selector", None)
    watched = len(selector.get_map()) if selector is not None else 0
    return len(asyncio.all_tasks()), len(live) + watched, descriptors()


def test_a_closed_client_leaves_the_loop_as_it_was(
    run: Run, broker: BrokerProcess, topic: str
) -> None:
    async def use() -> None:
        # A name is looked up, in a task of its own.
        address = f"localhost:{broker.port}"
        async with (
            aio.Admin(bootstrap_servers=address) as admin,
            aio.Producer(bootstrap_servers=address) as producer,
            member(broker, topic) as consumer,
        ):
            await admin.list_topics()
            await (await producer.send(topic, b"v"))
            async for record in consumer:
                assert record.value == b"v"
                break

    async def look_around() -> tuple[Any, Any, Any]:
        await asyncio.get_running_loop().getaddrinfo("localhost", 1)
        before = await traces()
        await use()
        after = await traces()
        consumer = member(broker, topic)
        await consumer.poll(0.05)
        polls = asyncio.ensure_future(consumer.poll(PATIENCE_S))
        closes = asyncio.ensure_future(consumer.close())
        await asyncio.sleep(0)
        closes.cancel()
        await asyncio.wait([polls, closes])
        assert closes.cancelled()
        assert isinstance(polls.exception(), ClientClosed)
        return before, after, await traces()

    before, after, after_cancelled = run(look_around())

    assert after == before
    assert after_cancelled == before


def test_a_look_up_that_the_program_cancels_is_made_again(run: Run, broker: BrokerProcess) -> None:
    async def ask() -> int:
        async with aio.Admin(bootstrap_servers=f"localhost:{broker.port}") as admin:
            asked = asyncio.ensure_future(admin.list_topics())
            cancelled = 0
            while not asked.done():
                for task in asyncio.all_tasks():
                    if task.get_name().startswith("tarry-resolve") and not cancelled:
                        cancelled += task.cancel()
                await asyncio.sleep(0)
            assert asked.exception() is None
            return cancelled

    assert run(ask()) == 1


def test_a_loop_that_was_blocked_for_long_is_told_once(
    run: Run, broker: BrokerProcess, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def block() -> None:
        settings = {"session_timeout_ms": 300, "heartbeat_interval_ms": 10}
        async with member(broker, topic, **settings) as consumer:
            while not consumer.assignment():
                await consumer.poll(0.05)
            for _ in range(2):
                threading.Event().wait(0.2)
                await consumer.poll(0)
                await asyncio.sleep(0.01)

    run(block())

    told = [one.getMessage() for one in caplog.records if "was blocked" in one.getMessage()]
    assert len(told) == 1
    assert "asyncio.to_thread" in told[0]


def test_another_loop_and_another_thread_are_refused(broker: BrokerProcess, topic: str) -> None:
    consumer = member(broker, topic)

    async def poll() -> list[Any]:
        return await consumer.poll(0)

    async def use() -> list[BaseException | None]:
        await poll()
        refusals: list[BaseException | None] = []

        def elsewhere(call: Callable[[], object]) -> None:
            try:
                call()
            except ConcurrentUse as error:
                refusals.append(error)

        def both() -> None:
            elsewhere(lambda: asyncio.run(poll()))
            elsewhere(lambda: consumer.pause([]))

        await asyncio.to_thread(both)
        await consumer.close()
        return refusals

    refusals = asyncio.run(use())

    assert len(refusals) == 2
    assert "belongs to the event loop in which it was first used" in str(refusals[0])


def test_a_thread_may_wake_a_poll(run: Run, broker: BrokerProcess, topic: str) -> None:
    async def wake() -> list[Any]:
        async with member(broker, topic) as consumer:
            polled = asyncio.ensure_future(consumer.poll(PATIENCE_S))
            await asyncio.to_thread(consumer.wakeup)
            return await polled

    assert run(wake()) == []


def test_two_tasks_that_poll_are_both_named(run: Run, broker: BrokerProcess, topic: str) -> None:
    async def poll_twice() -> str:
        async with member(broker, topic) as consumer:
            first = asyncio.create_task(consumer.poll(PATIENCE_S), name="first")
            await asyncio.sleep(0)
            with pytest.raises(ConcurrentUse) as refused:
                await asyncio.create_task(consumer.poll(0), name="second")
            # Others may commit, seek and look.
            await consumer.end_offsets([(topic, 0)])
            first.cancel()
            return str(refused.value)

    assert "second polls it while first does" in run(poll_twice())


def test_a_client_whose_loop_was_closed_is_warned_of_and_closes_at_once(
    broker: BrokerProcess, topic: str
) -> None:
    async def use() -> aio.Consumer:
        consumer = member(broker, topic)
        await consumer.poll(0.05)
        return consumer

    consumer = asyncio.run(use())
    with pytest.raises(ConcurrentUse, match="is closed; make a new client"):
        asyncio.run(consumer.poll(0))
    asyncio.run(consumer.close())
    forgotten = asyncio.run(use())

    with pytest.warns(ResourceWarning, match="a Consumer was not closed"):
        del forgotten
        gc.collect()


def test_a_producer_that_is_dropped_is_told_of_and_sends_what_it_took(
    run: Run, broker: BrokerProcess, topic: str
) -> None:
    async def drop() -> tuple[Any, Any]:
        before = await traces()
        producer = aio.Producer(bootstrap_servers=broker.address)
        receipt = await producer.send(topic, b"v")
        with pytest.warns(ResourceWarning, match="a Producer was not closed"):
            del producer
            gc.collect()
        assert (await receipt).offset == 0
        driver = receipt.owner
        assert isinstance(driver, LoopDriver)
        while not driver.is_closed:
            await asyncio.sleep(0)
        return before, await traces()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before, after = run(drop())

    assert after == before


def test_a_timeout_around_a_call_ends_it_and_nothing_else(
    run: Run, broker: BrokerProcess, topic: str
) -> None:
    async def interrupt() -> list[bytes | None]:
        async with (
            member(broker, topic) as consumer,
            aio.Producer(bootstrap_servers=broker.address) as producer,
        ):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await consumer.poll(PATIENCE_S)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    async for _ in consumer:
                        pass
            await producer.send(topic, b"v")
            async for record in consumer:
                return [record.value]
        return []

    assert run(interrupt()) == [b"v"]


def test_a_close_ends_the_poll_of_another_task(run: Run, broker: BrokerProcess, topic: str) -> None:
    async def close() -> None:
        consumer = member(broker, topic)
        reader = asyncio.create_task(consumer.poll(PATIENCE_S))
        await asyncio.sleep(0.05)
        await consumer.close()
        with pytest.raises(ClientClosed):
            await reader

    run(close())


def test_a_callback_that_never_returns_does_not_hold_up_the_close(
    run: Run, broker: BrokerProcess, topic: str
) -> None:
    began = asyncio.Event()

    class Stuck(aio.Listener):
        async def on_assigned(self, consumer: aio.Consumer, places: list[Any]) -> None:
            began.set()
            await asyncio.Event().wait()

    async def close() -> None:
        consumer = member(broker, topic, listener=Stuck())
        reader = asyncio.create_task(consumer.poll(PATIENCE_S))
        await began.wait()
        await consumer.close()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader

    run(close())


def test_a_name_that_nobody_knows_is_told_in_time() -> None:
    async def ask(time_s: float) -> None:
        async with aio.Admin(bootstrap_servers="no.such.host.invalid:9092") as admin:
            await admin.list_topics(timeout=time_s)

    error = error_when_late(lambda time_s: asyncio.run(ask(time_s)), "is not known", 1)

    assert isinstance(error, TimedOut)
    assert "is not known" in str(error)


def test_a_record_is_given_without_waiting_once_its_topic_is_known(
    run: Run, broker: BrokerProcess, topic: str
) -> None:
    async def send() -> int:
        async with aio.Producer(bootstrap_servers=broker.address) as producer:
            with pytest.raises(BufferFull, match="await send for the first record"):
                producer.send_nowait(topic, b"v")
            await producer.partition_count(topic)
            return (await producer.send_nowait(topic, b"v")).offset

    assert run(send()) == 0


FORKING = """
import asyncio, contextlib, importlib, os, socket, sys
from tarry.client import ClientForked, aio

def connections(address):
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            handle = socket.socket(fileno=int(name))
            with contextlib.suppress(OSError):
                found += ":".join(map(str, handle.getpeername()[:2])) == address
            handle.detach()
    return found

async def use(address, topic):
    async with (
        aio.Producer(bootstrap_servers=address) as producer,
        aio.Consumer(bootstrap_servers=address) as consumer,
        aio.Admin(bootstrap_servers=address) as admin,
    ):
        consumer.assign([(topic, 0)])
        await (await producer.send(topic, b"before"))
        assert connections(address) > 0
        child = os.fork()
        if child == 0:
            for call in (producer.send(topic, b"child"), producer.flush(), producer.close()):
                try:
                    call.send(None)
                except ClientForked:
                    continue
                os._exit(1)
            if not all("of the parent process" in repr(one) for one in (producer, consumer, admin)):
                os._exit(2)
            raise LookupError("the first error")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        await (await producer.send(topic, b"after"))
        print((await producer.send(topic, b"last")) and "goes on")

async def use_or_tell(address, topic):
    try:
        await use(address, topic)
    except LookupError:
        os._exit(7 + connections(address))

loop = importlib.import_module(sys.argv[1]).new_event_loop()
with asyncio.Runner(loop_factory=lambda: loop) as runner:
    runner.run(use_or_tell(*sys.argv[2:]))
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_a_forked_child_is_refused_and_the_parents_loop_goes_on(
    broker: BrokerProcess, topic: str, loop: str
) -> None:
    pytest.importorskip(loop)
    command = [sys.executable, "-W", "error", "-c", FORKING, loop, broker.address, topic]

    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert (done.stdout, done.returncode) == ("goes on\n", 0), done.stderr
