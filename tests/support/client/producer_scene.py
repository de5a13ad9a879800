"""A producer's core in front of scripted brokers: what tests of writing begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.client.scripted_cluster import CUT, SILENCE, ScriptedCluster, Seen, seeded_random

from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.core.producer.core import ProducerCore
from tarry.client.settings import ProducerSettings
from tarry.protocol import api_keys
from tarry.records.batch import decode_batch_header


def producer(cluster: ScriptedCluster, **settings: Any) -> ProducerCore:
    given = ProducerSettings(bootstrap_servers="10.0.0.1:9092", **settings)
    core: ProducerCore = cluster.attach(ProducerCore(given, seeded_random(), cluster.now_ms))
    return core


def send(
    cluster: ScriptedCluster,
    value: bytes | None,
    *,
    topic: str = "t",
    partition: int = 0,
    key: bytes | None = None,
) -> RecordReceipt:
    """Append a record, waiting for metadata and room as a face does."""
    core = cluster.core
    taken: list[RecordReceipt] = []

    def try_it() -> bool:
        receipt = core.append(topic, partition, 1_700, key, value, None, now_ms=cluster.now_ms)
        if receipt is not None:
            taken.append(receipt)
        return receipt is not None

    if not try_it():
        cluster.run_until(try_it)
    return taken[0]


def flush(cluster: ScriptedCluster) -> None:
    """Wait until every record is written or refused."""
    flush = cluster.core.begin_flush(300_000, cluster.now_ms)
    cluster.run_until(lambda: flush.is_ready)
    flush.end(cluster.now_ms)


def refusing(code: int, **fields: Any) -> Callable[[ScriptedCluster, Seen], Any]:
    """An answer that refuses every batch and appends nothing."""

    def answer(cluster: ScriptedCluster, seen: Seen) -> Any:
        saved = {
            name: [list(log.batches) for log in one.logs] for name, one in cluster.topics.items()
        }
        ends = {name: [log.end_offset for log in one.logs] for name, one in cluster.topics.items()}
        known = {
            name: [
                {pid: (epoch, list(kept)) for pid, (epoch, kept) in log.producers.items()}
                for log in one.logs
            ]
            for name, one in cluster.topics.items()
        }
        response = cluster.produce(seen)
        for name, one in cluster.topics.items():
            for index, log in enumerate(one.logs):
                log.batches = saved[name][index]
                log.end_offset = ends[name][index]
                log.producers = known[name][index]
        assert response is not None
        for topic in response.responses:
            for partition in topic.partition_responses:
                partition.error_code = code
                partition.base_offset = -1
                for name, value in fields.items():
                    setattr(partition, name, value)
        return response

    return answer


def appended_but_cut(cluster: ScriptedCluster, seen: Seen) -> str:
    """The broker appends, and the connection breaks before its answer."""
    cluster.produce(seen)
    return CUT


def appended_but_late(cluster: ScriptedCluster, seen: Seen) -> str:
    cluster.produce(seen)
    return SILENCE


def sent_batches(cluster: ScriptedCluster) -> list[tuple[int, int, int]]:
    """(base sequence, record count, producer epoch) of each batch that was sent."""
    found = []
    for seen in cluster.requests(api_keys.PRODUCE):
        for topic in seen.request.topic_data:
            for data in topic.partition_data:
                header = decode_batch_header(data.records.to_bytes(), 0)
                found.append((header.base_sequence, header.record_count, header.producer_epoch))
    return found
