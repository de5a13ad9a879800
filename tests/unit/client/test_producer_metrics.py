"""metrics() of a producer: counts that only grow, and what is under way."""

from __future__ import annotations

from typing import Any

from tests.support.client import producer_scene
from tests.support.client.scripted_cluster import CUT, ScriptedCluster

from tarry.base import errors
from tarry.client.core.producer.core import ProducerCore
from tarry.client.core.producer.latencies import KEPT_MAX, Latencies
from tarry.client.metrics import LatencyMetrics, ProducerMetrics
from tarry.protocol import api_keys


def producer(cluster: ScriptedCluster, **settings: Any) -> ProducerCore:
    core = producer_scene.producer(cluster, **settings)
    core.track("t")
    cluster.run_until(lambda: core.metadata.topic("t") is not None)
    return core


def send(cluster: ScriptedCluster, count: int) -> None:
    for _ in range(count):
        receipt = cluster.core.append("t", 0, 1_700, None, b"v" * 10, None, now_ms=cluster.now_ms)
        assert receipt is not None


def metrics(cluster: ScriptedCluster) -> ProducerMetrics:
    found: ProducerMetrics = cluster.core.metrics(cluster.now_ms)
    return found


def test_records_move_from_the_buffer_to_those_that_brokers_took() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster)
    send(cluster, 3)

    waiting = metrics(cluster)
    cluster.run_until(lambda: core.accumulator.is_empty)
    done = metrics(cluster)

    assert (waiting.records, waiting.buffered, waiting.bytes) == (0, 3, 0)
    assert waiting.buffered_bytes > 30
    assert waiting.latency == LatencyMetrics(-1, -1, -1, -1)
    assert (done.records, done.buffered, done.buffered_bytes, done.batches) == (3, 0, 0, 1)
    (log,) = cluster.topics["t"].logs
    assert done.bytes == sum(map(len, log.batches))
    assert done.latency.p50_ms == done.latency.max_ms >= core.producer_settings.linger_ms
    assert (done.retries, done.failed, done.in_flight, done.throttled_ms) == (0, 0, 0, 0)
    assert done.connections.made == 1


def test_a_batch_that_is_sent_again_and_one_that_is_refused_are_counted() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster, enable_idempotence=False)

    def refuse(cluster: ScriptedCluster, seen: Any) -> Any:
        response = cluster.produce(seen)
        assert response is not None
        response.throttle_time_ms = 40
        for partition in response.responses[0].partition_responses:
            partition.error_code = errors.TOPIC_AUTHORIZATION_FAILED
        return response

    cluster.script(api_keys.PRODUCE, lambda cluster, seen: CUT, refuse)
    send(cluster, 2)
    cluster.run_until(lambda: core.accumulator.is_empty)

    found = metrics(cluster)
    assert (found.retries, found.failed, found.records, found.buffered) == (1, 2, 0, 0)
    assert found.throttled_ms == 40
    assert found.connections.lost == 1
    assert found.connections.made > 1


def test_latencies_are_those_of_the_last_batches() -> None:
    latencies = Latencies()
    for latency_ms in range(1, 101):
        latencies.add(latency_ms)
    assert latencies.metrics() == LatencyMetrics(50, 90, 99, 100)

    for _ in range(KEPT_MAX):
        latencies.add(7)
    assert latencies.metrics() == LatencyMetrics(7, 7, 7, 7)
