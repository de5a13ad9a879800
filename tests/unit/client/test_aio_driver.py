"""The driver of the asyncio faces: turns, ways that are given, blocked loops, calls to users."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any

import pytest
from tests.support.client.group_member import GroupScene
from tests.support.client.hand_loop_face import consumer_of, hand_loop_of, producer_of
from tests.support.client.scripted_cluster import SILENCE, ScriptedCluster

from tarry.base.errors import InvalidSetting
from tarry.client import BufferFull, ClientClosed, DeliveryTimedOut, TimedOut, aio
from tarry.client.aio.blocked import BlockedLoop
from tarry.protocol import api_keys


class Scene:
    """A producer in a hand-moved loop, on a topic with one partition."""

    def __init__(self, **settings: Any) -> None:
        self.cluster = ScriptedCluster()
        self.log = self.cluster.topic("t").logs[0]
        self.loop = hand_loop_of(self.cluster)
        self.producer = producer_of(self.cluster, self.loop, **settings)

    def run(self, coroutine: Any) -> Any:
        return self.loop.run(coroutine)

    def end(self) -> None:
        self.producer.abort()
        self.loop.turn(3)
        assert asyncio.all_tasks(self.loop) == set()
        assert self.loop.live() == []
        assert self.loop.errors == []
        self.loop.close()


class MemberScene:
    """A member of a group in a hand-moved loop."""

    def __init__(self, **settings: Any) -> None:
        self.scene = GroupScene()
        self.cluster = self.scene.cluster
        self.loop = hand_loop_of(self.cluster)
        given: dict[str, Any] = {"group_id": "g", "auto_offset_reset": "earliest", **settings}
        self.consumer = consumer_of(self.cluster, self.loop, "t", **given)

    def run(self, coroutine: Any) -> Any:
        """Run to the end, in which the member is closed."""
        try:
            return self.loop.run(coroutine)
        finally:
            self.consumer._driver.close()
            self.loop.turn(3)
            self.loop.close()


# --- Turns


def test_records_of_one_turn_of_the_loop_go_out_in_one_request() -> None:
    scene = Scene()

    async def send() -> None:
        await scene.producer.send("t", b"0")
        await scene.producer.flush()
        receipts = [await scene.producer.send("t", b"%d" % number) for number in range(1, 9)]
        assert [receipt.is_done for receipt in receipts] == [False] * 8
        await asyncio.gather(*receipts)

    scene.run(send())

    assert len(scene.cluster.requests(api_keys.PRODUCE)) == 2
    assert scene.log.values() == [b"%d" % number for number in range(9)]
    scene.end()


def test_records_linger_and_leave_by_the_loops_timer() -> None:
    scene = Scene(linger_ms=40)

    async def send() -> int:
        await scene.producer.partition_count("t")
        began_ms = scene.cluster.now_ms
        receipt = await scene.producer.send("t", b"v")
        while not receipt.is_done:
            await asyncio.sleep(0.001)
        (request,) = scene.cluster.requests(api_keys.PRODUCE)
        return request.now_ms - began_ms

    assert 40 <= scene.run(send()) <= 60
    scene.end()


@pytest.mark.parametrize("timeout", [0, 0.0])
def test_a_task_that_polls_without_waiting_lets_the_others_run(timeout: float) -> None:
    member = MemberScene()
    member.cluster.topics["t"].logs[0].add(b"v")

    async def poll() -> tuple[int, list[Any]]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.0005)

        other = asyncio.ensure_future(tick())
        groups: list[Any] = []
        while not groups:
            groups = await member.consumer.poll(timeout)
            member.loop.now += 0.0001
        other.cancel()
        await member.consumer.close()
        return ticks, groups

    ticks, groups = member.run(poll())

    assert ticks > 5
    assert [record.value for record in groups[0].records] == [b"v"]


def test_a_task_that_sends_and_sends_lets_the_others_run() -> None:
    scene = Scene(batch_size=200)

    async def send() -> int:
        await scene.producer.partition_count("t")
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        other = asyncio.ensure_future(tick())
        for _ in range(200):
            await scene.producer.send("t", b"x" * 50)
        other.cancel()
        return ticks

    assert scene.run(send()) > 20
    scene.end()


def test_a_fault_of_the_core_ends_the_waits_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()

    async def send() -> None:
        receipt = await scene.producer.send("t", b"v")
        monkeypatch.setattr(scene.producer._core, "work", lambda now_ms: 1 / 0)
        with pytest.raises(ClientClosed):
            await receipt

    # The wait itself turns the core first: the fault comes out there or in the loop.
    with pytest.raises(ZeroDivisionError):
        scene.run(send())
    scene.producer.abort()
    scene.loop.close()


def test_whoever_listens_to_its_warnings_may_use_the_client() -> None:
    scene = Scene()
    scene.cluster.refused[scene.cluster.brokers[1]] = "connection refused"
    core = scene.producer._core
    turn, turns_under_way, seen = core.turn, [0], list[int]()

    def counted(*arguments: Any) -> Any:
        turns_under_way[0] += 1
        try:
            return turn(*arguments)
        finally:
            turns_under_way[0] -= 1

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(turns_under_way[0])

    core.turn = counted
    log, handler = logging.getLogger("tarry.client.waiting"), Listening()
    log.addHandler(handler)

    async def send() -> None:
        with pytest.raises(TimedOut):
            await scene.producer.partition_count("t", timeout=5)

    scene.run(send())
    log.removeHandler(handler)

    assert seen == [0]
    scene.end()


def test_a_poll_under_way_ends_when_another_task_closes_the_consumer() -> None:
    member = MemberScene()
    member.cluster.topics["t"].logs[0].add(b"0")

    async def use() -> None:
        await member.consumer.poll(5)
        poll = asyncio.ensure_future(member.consumer.poll(600))
        await asyncio.sleep(1)
        member.cluster.topics["t"].logs[0].add(b"1")
        await member.consumer.close()
        with pytest.raises(ClientClosed):
            await poll

    member.run(use())


def test_heartbeats_go_on_while_the_body_awaits() -> None:
    member = MemberScene(session_timeout_ms=10_000, heartbeat_interval_ms=3_000)
    member.cluster.topics["t"].logs[0].add(b"0", b"1")

    async def work() -> list[int]:
        generations = []
        async for _ in member.consumer:
            generations.append(member.consumer.group.generation_id)
            if len(generations) == 2:
                break
            # Much longer than a session.
            await asyncio.sleep(60)
        return generations

    first, second = member.run(work())

    beats = [one.now_ms for one in member.scene.requests(api_keys.HEARTBEAT)]
    assert first == second
    assert len(beats) >= 19
    assert max(later - earlier for earlier, later in itertools.pairwise(beats)) <= 3_100


def test_a_member_that_works_for_longer_than_the_poll_interval_leaves() -> None:
    member = MemberScene(max_poll_interval_ms=20_000, session_timeout_ms=10_000)
    member.cluster.topics["t"].logs[0].add(b"0")

    async def work() -> int:
        async for _ in member.consumer:
            await asyncio.sleep(30)
            break
        return len(member.scene.requests(api_keys.LEAVE_GROUP))

    assert member.run(work()) == 1


# --- Giving without waiting


def test_send_nowait_says_what_it_would_have_to_wait_for() -> None:
    scene = Scene(buffer_memory=1_100, batch_size=500)
    scene.cluster.rule(api_keys.PRODUCE, lambda cluster, seen: SILENCE)

    async def send() -> None:
        with pytest.raises(BufferFull, match=r"are not known yet.*await send for the first"):
            scene.producer.send_nowait("t", b"x" * 900)
        await scene.producer.partition_count("t")
        scene.producer.send_nowait("t", b"x" * 900)
        with pytest.raises(BufferFull, match="is full: await send"):
            scene.producer.send_nowait("t", b"y" * 900)
        with pytest.raises(BufferFull, match="stayed full for 60000 ms"):
            await scene.producer.send("t", b"y" * 900)

    scene.run(send())
    scene.end()


def test_a_receipt_is_awaited_by_two_tasks_and_after_the_close() -> None:
    scene = Scene(delivery_timeout_ms=2_000, request_timeout_ms=1_000)

    async def send() -> None:
        first = await scene.producer.send("t", b"0")
        assert [one.offset for one in await asyncio.gather(first, first)] == [0, 0]
        scene.cluster.rule(api_keys.PRODUCE, lambda cluster, seen: SILENCE)
        second = await scene.producer.send("t", b"1")
        outcomes = await asyncio.gather(second, second, return_exceptions=True)
        assert [type(one) for one in outcomes] == [DeliveryTimedOut, DeliveryTimedOut]
        third = await scene.producer.send("t", b"2")
        scene.producer.abort()
        assert (await first).offset == 0
        for _ in range(2):
            with pytest.raises(ClientClosed, match="closed before the record was sent"):
                await third

    scene.run(send())
    scene.end()


# --- Calls to users


def test_deliveries_that_raise_or_are_cancelled_do_not_stop_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    told: list[int] = []

    async def hear(receipt: aio.Receipt) -> None:
        told.append(receipt.offset)
        if receipt.offset == 0:
            raise ZeroDivisionError
        if receipt.offset == 1:
            raise asyncio.CancelledError
        # A flush inside a call cannot wait for that call.
        await scene.producer.flush()

    async def send() -> None:
        for _ in range(3):
            await scene.producer.send("t", b"v", on_delivery=hear)
        await scene.producer.close()

    with caplog.at_level(logging.WARNING, "tarry.client"):
        scene.run(send())

    assert told == [0, 1, 2]
    messages = [record.getMessage() for record in caplog.records]
    assert [message.split(" for ")[0] for message in messages] == [
        "on_delivery raised",
        "on_delivery was cancelled",
    ]
    scene.end()


def test_a_delivery_that_never_returns_ends_with_the_close() -> None:
    scene = Scene(close_timeout_ms=500)

    async def send() -> int:
        await scene.producer.send("t", b"v", on_delivery=lambda _: asyncio.Event().wait())
        with pytest.raises(TimedOut, match="on_delivery did not return within 200 ms"):
            await scene.producer.flush(timeout=0.2)
        began_ms = scene.cluster.now_ms
        with pytest.raises(TimedOut, match="on_delivery did not return within 500 ms"):
            await scene.producer.close()
        return scene.cluster.now_ms - began_ms

    assert scene.run(send()) == 500
    scene.end()


def test_a_revocation_that_does_not_return_is_cut_off_when_the_close_is_over() -> None:
    began: list[str] = []

    class Stuck(aio.Listener):
        async def on_revoked(self, consumer: aio.Consumer, places: list[Any]) -> None:
            began.append("revoked")
            await asyncio.Event().wait()

    member = MemberScene(listener=Stuck(), close_timeout_ms=700)

    async def close() -> int:
        await member.consumer.poll(0.5)
        began_ms = member.cluster.now_ms
        with pytest.raises(TimedOut, match="on_revoked did not return before"):
            await member.consumer.close()
        return member.cluster.now_ms - began_ms

    took_ms = member.run(close())

    assert began == ["revoked"]
    assert 700 <= took_ms <= 710
    assert len(member.scene.requests(api_keys.LEAVE_GROUP)) == 1


@pytest.mark.parametrize("kind", ["producer", "member"])
def test_a_client_that_two_tasks_close_is_closed_once(kind: str) -> None:
    scene, member = Scene(), MemberScene()

    async def close_twice() -> None:
        if kind == "producer":
            await scene.producer.send("t", b"v")
            await asyncio.gather(scene.producer.close(), scene.producer.close())
            assert scene.log.values() == [b"v"]
        else:
            await member.consumer.poll(0.5)
            await asyncio.gather(member.consumer.close(), member.consumer.close())
            assert len(member.scene.requests(api_keys.LEAVE_GROUP)) == 1

    if kind == "producer":
        scene.run(close_twice())
        member.loop.close()
        member.consumer._driver.close()
    else:
        member.run(close_twice())
    scene.end()


# --- Settings and the blocked loop


def test_heartbeats_by_polls_are_not_for_a_loop() -> None:
    with pytest.raises(InvalidSetting, match="the event loop sends the heartbeats"):
        aio.Consumer("t", group_id="g", heartbeat_mode="poll")


def test_a_blocked_loop_is_told_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    blocked = BlockedLoop(session_timeout_ms=3_000)

    for late_ms, now_ms in [(1_000, 0), (1_001, 10), (9_000, 60_009), (2_000, 60_010)]:
        blocked.look(late_ms, now_ms)
    BlockedLoop(session_timeout_ms=0).look(100_000, 0)

    told = [record.getMessage()[:40] for record in caplog.records]
    assert told == [
        "the event loop was blocked for 1.0 s: no",
        "the event loop was blocked for 2.0 s: no",
    ]
