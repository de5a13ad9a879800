"""Cancellation of every call of the asyncio faces, at every place where it waits.

Each scene is played with a cancellation at the first wait, at the second, and so on until the call
ends without one; at once, and when what was waited for has just come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.support.client.group_member import PLACE, GroupScene
from tests.support.client.hand_loop_face import (
    CancelledAt,
    admin_of,
    consumer_of,
    hand_loop_of,
    producer_of,
)
from tests.support.client.scripted_cluster import ScriptedCluster
from tests.support.client.scripted_groups import GroupCluster
from tests.support.hand_loop import HandLoop

from tarry.client import aio

# More waits than any of these calls has.
WAITS_MAX = 60


class Play:
    """One client on a scripted cluster, and what its user was given."""

    def __init__(self) -> None:
        self.cluster = ScriptedCluster()
        self.loop: HandLoop = hand_loop_of(self.cluster)
        self.client: Any = None
        self.is_cancelled = False
        self.values: list[bytes | None] = []
        self.told: list[str] = []

    @property
    def log(self) -> list[bytes | None]:
        return self.cluster.topics["t"].logs[0].values()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run(coroutine)

    def check_nothing_is_left(self) -> None:
        """The client is closed, and the loop is as it was without it."""
        self.loop.turn(3)
        assert self.client._driver.is_closed
        assert asyncio.all_tasks(self.loop) == set()
        assert self.loop.live() == []
        assert self.loop.errors == []
        self.loop.close()


class ProducerPlay(Play):
    def __init__(self) -> None:
        super().__init__()
        self.cluster.topic("t")
        # A second record of this size has to wait for the first.
        settings = {"buffer_memory": 1_100, "batch_size": 500}
        self.client = producer_of(self.cluster, self.loop, **settings)
        self.receipt: Any = None

    async def send(self, value: bytes) -> None:
        self.receipt = await self.client.send("t", value * 900)


class DelayPlay(Play):
    """A producer, and a topic that delays records by their headers."""

    def __init__(self) -> None:
        super().__init__()
        self.loop.close()
        self.cluster = GroupCluster()
        self.loop = hand_loop_of(self.cluster)
        self.cluster.topic("t")
        self.cluster.settings[2, "t"] = {"delay.enable": "true", "delay.source": "header"}
        self.client = producer_of(self.cluster, self.loop)

    async def send(self) -> None:
        await self.client.send("t", b"a", deliver_after="1h")


class MemberPlay(Play):
    """A member of a group on a partition with four records."""

    def __init__(self) -> None:
        super().__init__()
        scene = GroupScene()
        self.scene, self.cluster = scene, scene.cluster
        self.loop.close()
        self.loop = hand_loop_of(self.cluster)
        self.cluster.topics["t"].logs[0].add(b"0", b"1", b"2", b"3")
        told = self.told

        class Listener(aio.Listener):
            async def on_assigned(self, consumer: aio.Consumer, places: list[Any]) -> None:
                told.append("begins")
                await asyncio.sleep(0.01)
                told.append("ends")

        self.client = consumer_of(
            self.cluster,
            self.loop,
            "t",
            group_id="g",
            auto_offset_reset="earliest",
            max_poll_records=2,
            listener=Listener(),
        )

    async def poll(self) -> None:
        for group in await self.client.poll(5.0):
            self.values += [record.value for record in group.records]

    async def iterate(self) -> None:
        async for record in self.client:
            self.values.append(record.value)
            if len(self.values) == 4:
                break

    async def poll_all(self) -> None:
        while len(self.values) < 4:
            await self.poll()


Call = Callable[[Any], Coroutine[Any, Any, Any]]


def cancel_everywhere(
    make: Callable[[], Any], call: Call, check: Call, prepare: Call | None = None
) -> int:
    """Play until the call ends without a cancellation; returns how often it was cancelled."""
    cancellations = 0
    for is_late in (False, True):
        for number in range(1, WAITS_MAX):
            play = make()
            if prepare is not None:
                play.run(prepare(play))
            waiter = CancelledAt(call(play), number, is_late=is_late)

            async def wait(waiter: CancelledAt = waiter) -> None:
                await waiter

            task = play.loop.create_task(wait())
            play.run(asyncio.wait([task]))
            play.is_cancelled = task.cancelled()
            assert task.cancelled() or task.exception() is None, task.exception()
            play.run(check(play))
            play.check_nothing_is_left()
            cancellations += waiter.has_cancelled
            if not waiter.has_cancelled:
                break
        else:
            raise AssertionError("the call waits again and again")
    return cancellations


# --- Producers


def test_a_send_that_is_cancelled_has_not_taken_its_record() -> None:
    async def check(play: ProducerPlay) -> None:
        await play.client.close()
        assert play.log == ([] if play.is_cancelled else [b"a" * 900])

    assert cancel_everywhere(ProducerPlay, lambda play: play.send(b"a"), check) > 1


def test_a_send_of_a_delayed_record_that_is_cancelled_has_not_taken_it() -> None:
    async def check(play: DelayPlay) -> None:
        taken = [] if play.is_cancelled else [b"a"]
        await play.client.send_and_wait("t", b"b", schedule_id="b")
        await play.client.close()
        assert play.log == [*taken, b"b"]

    # One wait brings the partitions and the settings.
    assert cancel_everywhere(DelayPlay, DelayPlay.send, check) > 1


def test_a_send_that_is_cancelled_for_want_of_room_has_not_taken_its_record() -> None:
    async def check(play: ProducerPlay) -> None:
        await play.client.close()
        assert play.log == [b"a" * 900] + ([] if play.is_cancelled else [b"b" * 900])

    count = cancel_everywhere(
        ProducerPlay, lambda play: play.send(b"b"), check, lambda play: play.send(b"a")
    )

    assert count > 1


@pytest.mark.parametrize("call", ["receipt", "flush"])
def test_a_record_goes_on_when_the_wait_for_it_is_cancelled(call: str) -> None:
    async def wait(play: ProducerPlay) -> None:
        await (play.receipt if call == "receipt" else play.client.flush())

    async def check(play: ProducerPlay) -> None:
        assert (await play.receipt).offset == 0
        await play.client.close()
        assert play.log == [b"a" * 900]

    assert cancel_everywhere(ProducerPlay, wait, check, lambda play: play.send(b"a")) > 1


def test_a_producer_whose_close_is_cancelled_is_closed_all_the_same() -> None:
    async def check(play: ProducerPlay) -> None:
        assert play.client._driver.is_closed
        assert play.receipt.is_done

    count = cancel_everywhere(
        ProducerPlay, lambda play: play.client.close(), check, lambda play: play.send(b"a")
    )

    assert count > 1


# --- Consumers


@pytest.mark.parametrize("call", [MemberPlay.poll, MemberPlay.iterate])
def test_a_read_that_is_cancelled_loses_and_finishes_nothing(call: Call) -> None:
    async def check(play: MemberPlay) -> None:
        offsets = play.client._core.finished_offsets()
        given = len(play.values)
        assert PLACE not in offsets or offsets[PLACE].offset <= given
        await play.poll_all()
        play.client.finish()
        await play.client.close()
        assert play.values == [b"0", b"1", b"2", b"3"]
        assert play.scene.committed == 4

    assert cancel_everywhere(MemberPlay, call, check) > 5


def test_a_callback_that_is_cancelled_counts_as_told() -> None:
    async def check(play: MemberPlay) -> None:
        await play.poll_all()
        await play.client.close()
        assert play.told.count("begins") == 1

    cancel_everywhere(MemberPlay, MemberPlay.poll, check)


@pytest.mark.parametrize(
    "call",
    [
        lambda consumer: consumer.commit(),
        lambda consumer: consumer.committed([PLACE]),
        lambda consumer: consumer.partitions_of("t"),
        lambda consumer: consumer.end_offsets([PLACE]),
    ],
)
def test_a_question_that_is_cancelled_leaves_the_connections_whole(call: Call) -> None:
    async def check(play: MemberPlay) -> None:
        connects = len(play.cluster.connects)
        await play.client.commit({PLACE: 3})
        committed = (await play.client.committed([PLACE]))[PLACE]
        assert committed is not None and committed.offset == 3
        assert len(play.cluster.connects) == connects
        await play.client.close()

    count = cancel_everywhere(
        MemberPlay, lambda play: call(play.client), check, MemberPlay.poll_all
    )

    assert count > 0


def test_a_consumer_whose_close_is_cancelled_is_closed_all_the_same() -> None:
    async def check(play: MemberPlay) -> None:
        assert play.client._driver.is_closed

    count = cancel_everywhere(
        MemberPlay, lambda play: play.client.close(), check, MemberPlay.poll_all
    )

    assert count > 1


# --- Administrators


class AdminPlay(Play):
    def __init__(self) -> None:
        super().__init__()
        self.cluster.topic("t")
        self.client = admin_of(self.cluster, self.loop)


def test_a_call_of_an_administrator_that_is_cancelled_disturbs_no_other() -> None:
    async def check(play: AdminPlay) -> None:
        assert [topic.name for topic in await play.client.list_topics()] == ["t"]
        await play.client.close()

    async def ask(play: AdminPlay) -> None:
        await play.client.list_topics()

    assert cancel_everywhere(AdminPlay, ask, check) > 1
