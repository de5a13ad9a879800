"""A consumer's core in front of scripted brokers: what tests of reading begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.client.scripted_cluster import ScriptedCluster, Seen, seeded_random

from tarry.client.core.consumer.core import ConsumerCore
from tarry.client.settings import ConsumerSettings
from tarry.wire.reader import window_of

T0 = ("t", 0)


def consumer(cluster: ScriptedCluster, **arguments: Any) -> ConsumerCore:
    settings = {key.replace("_", "."): value for key, value in arguments.items()}
    given = ConsumerSettings({"bootstrap.servers": "10.0.0.1:9092", **settings})
    core: ConsumerCore = cluster.attach(ConsumerCore(given, seeded_random(), cluster.now_ms))
    return core


def reading(cluster: ScriptedCluster, offset: int = 0, **settings: Any) -> ConsumerCore:
    """Make a consumer of partition 0 of topic t."""
    core = consumer(cluster, **settings)
    core.assign([T0])
    core.seek(T0, offset)
    return core


def poll(cluster: ScriptedCluster, limit_ms: int = 5_000) -> list[bytes | None]:
    """Return the values of the next poll; none if no record came in time."""
    core = cluster.core
    cluster.run_until(lambda: core.has_records(cluster.now_ms), limit_ms, must=False)
    values = [record.value for group in core.take(500, cluster.now_ms) for record in group.records]
    if not values and core.standing_error(cluster.now_ms) is not None:
        raise core.standing_error(cluster.now_ms)
    return values


def poll_all(cluster: ScriptedCluster, count: int) -> list[bytes | None]:
    """Return the values of as many polls as bring `count` of them."""
    values: list[bytes | None] = []
    empty_polls = 0
    while empty_polls < 3:
        if len(values) >= count:
            return values
        found = poll(cluster)
        empty_polls = 0 if found else empty_polls + 1
        values += found
    raise AssertionError(f"{len(values)} of {count} records came")


def fetched(cluster: ScriptedCluster, seen: Seen) -> Any:
    """Make the broker's answer to a fetch, without its wait."""
    response = cluster.fetch(seen)
    return response[1] if isinstance(response, tuple) else response


def answer_with(code: int) -> Callable[[ScriptedCluster, Seen], Any]:
    def answer(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = fetched(cluster, seen)
        for topic in response.responses:
            for partition in topic.partitions:
                partition.error_code = code
                partition.records = window_of(b"")
        return response

    return answer


def answer_with_bytes(data: bytes) -> Callable[[ScriptedCluster, Seen], Any]:
    def answer(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = fetched(cluster, seen)
        response.responses[0].partitions[0].records = window_of(data)
        return response

    return answer


def by_default(cluster: ScriptedCluster, seen: Seen) -> Any:
    return cluster.default(seen)
