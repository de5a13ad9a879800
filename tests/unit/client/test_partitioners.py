"""The ways to choose a partition: hashes of other clients, a function of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.client.scripted_cluster import ScriptedCluster, seeded_random

from tarry.base.errors import InvalidSetting
from tarry.client.core.producer.core import ProducerCore
from tarry.client.core.producer.partitioner import partition_by_crc32, partition_of_function
from tarry.client.errors import PartitionerFailed
from tarry.client.settings import ProducerSettings

COUNT = 2**32


@pytest.mark.parametrize(
    ("key", "wanted"),
    # The check value of CRC-32 (ISO 3309), and what Python's zlib says, which librdkafka agrees to.
    [(b"123456789", 0xCBF43926), (b"a", 0xE8B7BE43), (b"\xff" * 4, 0xFFFFFFFF)],
)
def test_crc32_is_the_one_of_zlib(key: bytes, wanted: int) -> None:
    assert partition_by_crc32(key, COUNT) == wanted
    assert partition_by_crc32(key, 7) == wanted % 7


def core_with(partitioner: str) -> tuple[ScriptedCluster, ProducerCore]:
    cluster = ScriptedCluster()
    cluster.topic("t", 4)
    settings = ProducerSettings(bootstrap_servers="10.0.0.1:9092", partitioner=partitioner)
    core = cluster.attach(ProducerCore(settings, seeded_random(), cluster.now_ms))
    core.track("t")
    cluster.run_until(lambda: core.metadata.topic("t") is not None)
    return cluster, core


def partition_of(cluster: ScriptedCluster, core: ProducerCore, key: bytes | None) -> int:
    receipt = core.append("t", -1, 0, key, b"v", None, now_ms=cluster.now_ms)
    assert receipt is not None
    return receipt.partition


def test_crc32_chooses_by_the_key() -> None:
    cluster, core = core_with("crc32")

    assert partition_of(cluster, core, b"123456789") == 0xCBF43926 % 4
    assert partition_of(cluster, core, b"a") == 0xE8B7BE43 % 4


@pytest.mark.parametrize(("partitioner", "sticks"), [("crc32", True), ("murmur2", False)])
def test_an_empty_key_is_no_key_for_librdkafka_alone(partitioner: str, sticks: bool) -> None:
    cluster, core = core_with(partitioner)
    stuck = partition_of(cluster, core, None)
    of_empty = partition_of(cluster, core, b"")

    # murmur2 of nothing is 275646681, which is 1 of 4.
    assert of_empty == (stuck if sticks else 1)


@pytest.mark.parametrize("given", ["consistent_random", 5, None])
def test_a_partitioner_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(InvalidSetting, match="partitioner"):
        ProducerSettings(partitioner=given)


def test_a_function_is_kept_in_both_forms_of_settings() -> None:
    def last(topic: str, key: bytes | None, count: int) -> int:
        return count - 1

    assert ProducerSettings(partitioner=last).partition_function is last
    assert ProducerSettings({"partitioner": last}).partition_function is last
    assert ProducerSettings(partitioner="crc32").partition_function is None


def test_a_function_hears_topic_key_and_count() -> None:
    heard = []

    def chosen(topic: str, key: bytes | None, count: int) -> int:
        heard.append((topic, key, count))
        return 2

    assert partition_of_function(chosen, "t", b"k", 3) == 2
    assert partition_of_function(chosen, "t", None, 3) == 2
    assert heard == [("t", b"k", 3), ("t", None, 3)]


@pytest.mark.parametrize("given", [-1, 3, "0", None, True, 1.0])
def test_a_function_that_chooses_what_is_not_there_is_told_so(given: Any) -> None:
    with pytest.raises(PartitionerFailed, match="return an int from 0 to 2"):
        partition_of_function(lambda topic, key, count: given, "t", b"k", 3)


def test_a_function_that_raises_is_named_with_its_error() -> None:
    def raising(topic: str, key: bytes | None, count: int) -> int:
        raise KeyError("no such customer")

    with pytest.raises(PartitionerFailed, match=r"raised KeyError .* 't'.* 'no such") as e:
        partition_of_function(raising, "t", b"k", 3)
    assert isinstance(e.value.__cause__, KeyError)


def test_a_number_of_another_library_counts() -> None:
    class Number:
        def __index__(self) -> int:
            return 1

    chosen: Callable[..., Any] = lambda topic, key, count: Number()  # noqa: E731
    assert partition_of_function(chosen, "t", b"k", 3) == 1
