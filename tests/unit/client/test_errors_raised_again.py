"""Errors that are raised again and again: each time they show the call that raised them, and not
all the calls before."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest
from tests.support.client.consumer_scene import T0
from tests.support.client.hand_face import perform
from tests.support.client.hand_loop_face import hand_loop_of, producer_of as aio_producer_of
from tests.support.client.scripted_cluster import ScriptedCluster, seeded_random

from tarry.base import errors
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.producer.core import ProducerCore
from tarry.client.settings import ConsumerSettings, ProducerSettings
from tarry.client.sync.receipt import Receipt
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.messages.produce import ProduceResponse

SERVERS = "10.0.0.1:9092"
TIMES = 20


def frames_each_time(call: Callable[[], object]) -> list[int]:
    """Call again and again; return how many frames the traceback has each time."""
    counts: list[int] = []
    for _ in range(TIMES):
        with pytest.raises(ClientError) as raised:
            call()
        counts.append(len(traceback.extract_tb(raised.value.__traceback__)))
    return counts


def refuse(cluster: ScriptedCluster, code: int) -> None:
    def answer(cluster: ScriptedCluster, seen: object) -> ProduceResponse:
        response = cluster.produce(seen)  # type: ignore[arg-type]
        assert response is not None
        response.responses[0].partition_responses[0].error_code = code
        return response

    cluster.rule(api_keys.PRODUCE, answer)


def failed_producer(cluster: ScriptedCluster, code: int) -> ProducerCore:
    """A producer whose first batch was refused, with that batch's receipt behind it."""
    cluster.topic("t")
    refuse(cluster, code)
    settings = ProducerSettings(bootstrap_servers=SERVERS)
    core: ProducerCore = cluster.attach(
        ProducerCore(settings, seeded_random(), cluster.now_ms, Receipt)
    )
    perform(cluster, core.begin_topic_query("t", 5_000, cluster.now_ms))
    return core


def test_each_receipt_of_a_failed_batch_shows_its_own_call() -> None:
    cluster = ScriptedCluster()
    core = failed_producer(cluster, errors.TOPIC_AUTHORIZATION_FAILED)
    receipt = core.append("t", 0, 0, None, b"x", None, now_ms=cluster.now_ms)
    assert isinstance(receipt, Receipt)
    cluster.run_until(lambda: receipt.is_done)

    assert len(set(frames_each_time(receipt.result))) == 1
    waits = frames_each_time(
        lambda: perform(cluster, core.begin_wait(receipt, 1_000, cluster.now_ms))
    )
    assert len(set(waits)) == 1


def test_each_send_of_a_producer_that_is_finished_shows_its_own_call() -> None:
    cluster = ScriptedCluster()
    core = failed_producer(cluster, errors.PRODUCER_FENCED)
    receipt = core.append("t", 0, 0, None, b"x", None, now_ms=cluster.now_ms)
    assert receipt is not None
    cluster.run_until(lambda: receipt.is_done)

    sends = frames_each_time(
        lambda: core.append("t", 0, 0, None, b"x", None, now_ms=cluster.now_ms)
    )

    assert len(set(sends)) == 1


def test_each_await_of_a_receipt_shows_its_own_call() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    refuse(cluster, errors.TOPIC_AUTHORIZATION_FAILED)
    loop = hand_loop_of(cluster)
    producer = aio_producer_of(cluster, loop)

    async def counts() -> list[int]:
        receipt = await producer.send("t", b"x")
        found: list[int] = []
        for _ in range(TIMES):
            with pytest.raises(ClientError) as raised:
                await receipt
            found.append(len(traceback.extract_tb(raised.value.__traceback__)))
        return found

    # The first one waits, the others do not.
    assert len(set(loop.run(counts())[1:])) == 1
    producer.abort()
    loop.turn(3)
    loop.close()


def test_each_poll_of_a_partition_that_cannot_be_read_shows_its_own_call() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    settings = ConsumerSettings(bootstrap_servers=SERVERS, auto_offset_reset="none")
    core = GroupConsumerCore(settings, seeded_random(), cluster.now_ms)
    cluster.attach(core)
    core.assign([T0])

    polls = frames_each_time(lambda: perform(cluster, core.begin_poll(10, 2_000, cluster.now_ms)))

    # The first one tells what is new, the others what still holds.
    assert len(set(polls[1:])) == 1
