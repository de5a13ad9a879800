"""Calls of `on_delivery`: each record once, in order, whatever became of its batch."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.scripted_cluster import ScriptedCluster, seeded_random

from tarry.base import errors
from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.core.producer.core import ProducerCore
from tarry.client.errors import BrokerError, DeliveryFailed
from tarry.client.settings import ProducerSettings
from tarry.link.errors import TimedOut
from tarry.protocol import api_keys
from tarry.protocol.messages.produce import BatchIndexAndErrorMessage


class Scene:
    """A producer's core and the calls that a face would make."""

    def __init__(self, **settings: Any) -> None:
        self.cluster = ScriptedCluster()
        self.log = self.cluster.topic("t").logs[0]
        given = ProducerSettings(bootstrap_servers="10.0.0.1:9092", **settings)
        self.core = self.cluster.attach(ProducerCore(given, seeded_random(), self.cluster.now_ms))
        self.deliveries = self.core.accumulator.deliveries
        self.core.track("t")
        self.cluster.run_until(lambda: self.core.metadata.topic("t") is not None)
        self.called: list[RecordReceipt] = []

    def send(self, value: bytes) -> RecordReceipt:
        now_ms = self.cluster.now_ms
        receipt = self.core.append("t", 0, 1_700, None, value, None, now_ms=now_ms)
        assert receipt is not None
        self.deliveries.expect(self.called.append, receipt)
        return receipt

    def call_back(self) -> None:
        while (delivery := self.deliveries.take()) is not None:
            on_delivery, receipt = delivery
            on_delivery(receipt)


def test_each_record_is_told_once_in_its_order() -> None:
    scene = Scene()
    receipts = [scene.send(b"%d" % number) for number in range(3)]
    assert not scene.core.has_callbacks

    scene.cluster.run_until(lambda: scene.core.has_callbacks)
    scene.call_back()

    assert scene.called == receipts
    assert [receipt.offset for receipt in receipts] == [0, 1, 2]
    assert scene.deliveries.take() is None


def test_a_record_that_is_done_already_is_told_all_the_same() -> None:
    scene = Scene()
    receipt = scene.core.append("t", 0, 1_700, None, b"v", None, now_ms=scene.cluster.now_ms)
    assert receipt is not None
    scene.cluster.run_until(lambda: receipt.is_done)

    scene.deliveries.expect(scene.called.append, receipt)
    scene.call_back()

    assert scene.called == [receipt]


def test_a_flush_waits_until_the_last_call_has_returned() -> None:
    scene = Scene()
    scene.send(b"v")
    flush = scene.core.begin_flush(5_000, scene.cluster.now_ms)
    scene.cluster.run_until(lambda: scene.core.has_callbacks)
    assert not flush.look(scene.cluster.now_ms)

    assert scene.deliveries.take() is not None
    assert not flush.look(scene.cluster.now_ms)
    assert scene.deliveries.take() is None

    assert flush.look(scene.cluster.now_ms)


def test_a_flush_inside_a_call_does_not_wait_for_that_call() -> None:
    scene = Scene()
    scene.send(b"v")
    scene.cluster.run_until(lambda: scene.core.has_callbacks)
    assert scene.deliveries.take() is not None

    flush = scene.core.begin_flush(5_000, scene.cluster.now_ms, awaits_callbacks=False)

    assert flush.look(scene.cluster.now_ms)


def test_a_call_that_never_returns_ends_the_flush_in_its_time() -> None:
    scene = Scene()
    scene.send(b"v")
    flush = scene.core.begin_flush(200, scene.cluster.now_ms)
    scene.cluster.run_until(lambda: flush.is_ready)

    with pytest.raises(TimedOut, match="on_delivery did not return within 200 ms; all records"):
        flush.step(scene.cluster.now_ms)


def test_records_of_a_batch_that_was_split_are_told_when_their_half_is_done() -> None:
    scene = Scene()
    refused: list[bool] = []

    def too_large_once(cluster: ScriptedCluster, seen: Any) -> Any:
        response = cluster.produce(seen)
        if not refused:
            refused.append(True)
            scene.log.batches.clear()
            scene.log.end_offset = 0
            scene.log.producers.clear()
            for partition in response.responses[0].partition_responses:
                partition.error_code = errors.MESSAGE_TOO_LARGE
        return response

    scene.cluster.script(api_keys.PRODUCE, too_large_once)
    receipts = [scene.send(b"%d" % number) for number in range(4)]

    scene.cluster.run_until(lambda: scene.core.accumulator.is_empty)
    scene.call_back()

    assert refused
    assert scene.called == receipts
    assert [receipt.offset for receipt in receipts] == [0, 1, 2, 3]


def test_a_record_that_its_broker_blames_is_told_with_its_error() -> None:
    scene = Scene()

    def blame_the_first(cluster: ScriptedCluster, seen: Any) -> Any:
        response = cluster.produce(seen)
        scene.log.batches.clear()
        scene.log.end_offset = 0
        scene.log.producers.clear()
        for partition in response.responses[0].partition_responses:
            partition.error_code = errors.INVALID_RECORD
            partition.record_errors = [BatchIndexAndErrorMessage(0, "no key")]
        return response

    scene.cluster.script(api_keys.PRODUCE, blame_the_first)
    bad, good = scene.send(b"bad"), scene.send(b"good")

    scene.cluster.run_until(lambda: scene.core.accumulator.is_empty)
    scene.call_back()

    assert scene.called == [bad, good]
    assert isinstance(bad.error, BrokerError)
    assert good.error is None


def test_an_error_that_is_asked_for_twice_hides_no_other() -> None:
    scene = Scene()
    receipts = [scene.send(b"1"), scene.send(b"2")]
    scene.core.sender.fail_for_good(BrokerError(errors.INVALID_PRODUCER_EPOCH, "over"))

    assert receipts[0].error is not None
    assert receipts[0].error is not None

    failure = scene.core.take_failure()
    assert isinstance(failure, DeliveryFailed)
    assert failure.count == 1
