"""What a damaged fetch answer costs: a second fetch, or an error; never a record."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.support.client.consumer_scene import (
    T0,
    answer_with_bytes,
    by_default,
    fetched,
    poll,
    poll_all,
    reading,
)
from tests.support.client.scripted_cluster import Log, ScriptedCluster, Seen

from tarry.client.core.consumer.core import ConsumerCore
from tarry.client.errors import CorruptRecords
from tarry.protocol import api_keys
from tarry.records.batch import ATTRIBUTES, CRC, LAST_OFFSET_DELTA, decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.wire.crc32c import crc32c
from tarry.wire.reader import window_of

# A fetch brings about three batches of the logs below.
SMALL = {"max_partition_fetch_bytes": 400}


def log_of(cluster: ScriptedCluster, count: int) -> Log:
    """One with `count` batches of two records; the values are their offsets."""
    log = cluster.topic("t").logs[0]
    for number in range(count):
        log.add(b"%d" % (2 * number), b"%d" % (2 * number + 1))
    return log


def offsets_as_values(first: int, end: int) -> list[bytes | None]:
    return [b"%d" % number for number in range(first, end)]


def flipping(position: int, bit: int = 0) -> Callable[[ScriptedCluster, Seen], Any]:
    """One byte of the records is not what the broker sent."""

    def answer(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = fetched(cluster, seen)
        for topic in response.responses:
            for partition in topic.partitions:
                if partition.records.size:
                    data = bytearray(partition.records.to_bytes())
                    data[position % len(data)] ^= 1 << bit
                    partition.records = window_of(bytes(data))
        return response

    return answer


def read_until_corrupt(cluster: ScriptedCluster) -> tuple[list[bytes | None], str]:
    values: list[bytes | None] = []
    try:
        for _ in range(100):
            values += poll(cluster)
    except CorruptRecords as error:
        return values, str(error)
    raise AssertionError("nothing was raised")


# --- On the way


def test_one_damaged_answer_costs_a_second_fetch_and_no_record() -> None:
    cluster = ScriptedCluster()
    log_of(cluster, 100)
    cluster.script(api_keys.FETCH, by_default, flipping(-1), by_default)
    reading(cluster, **SMALL)

    assert poll_all(cluster, 200) == offsets_as_values(0, 200)


@pytest.mark.parametrize("position", range(0, 150))
def test_whichever_byte_of_an_answer_is_damaged_no_record_is_lost(position: int) -> None:
    cluster = ScriptedCluster()
    log_of(cluster, 30)
    cluster.script(api_keys.FETCH, by_default, flipping(position, bit=position % 8))
    core = reading(cluster, **SMALL)

    values = poll_all(cluster, 60)

    assert values == offsets_as_values(0, 60)
    assert core.position(T0).position == 60


@pytest.mark.parametrize("seed", range(20))
def test_damage_now_and_then_at_any_place_loses_nothing(seed: int) -> None:
    random = Random(seed)
    cluster = ScriptedCluster()
    log_of(cluster, 100)
    for _ in range(20):
        cluster.script(api_keys.FETCH, by_default, by_default)
        cluster.script(api_keys.FETCH, flipping(random.randrange(10_000), random.randrange(8)))
    core = reading(cluster, **SMALL)

    values = poll_all(cluster, 200)

    assert values == offsets_as_values(0, 200)
    assert core.fetcher.buffered_bytes == core.position(T0).buffered_bytes == 0


def test_the_records_before_the_damage_are_handed_out_at_once() -> None:
    cluster = ScriptedCluster()
    log = log_of(cluster, 3)
    cluster.script(api_keys.FETCH, flipping(len(log.batches[0]) + 10))
    reading(cluster)

    assert poll(cluster) == offsets_as_values(0, 2)


def test_an_offset_that_was_damaged_upwards_is_not_believed() -> None:
    cluster = ScriptedCluster()
    log = log_of(cluster, 3)
    base_offset_of_the_last = len(log.batches[0]) + len(log.batches[1]) + 7
    cluster.script(api_keys.FETCH, flipping(base_offset_of_the_last, bit=5))
    core = reading(cluster)

    values = poll_all(cluster, 6)

    assert values == offsets_as_values(0, 6)
    assert core.position(T0).position == 6


def test_partitions_beside_the_damaged_one_read_on() -> None:
    cluster = ScriptedCluster()
    topic = cluster.topic("t", partitions=2)
    for log in topic.logs:
        log.add(b"0")
        log.add(b"1")

    def damaged(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = fetched(cluster, seen)
        data = bytearray(response.responses[0].partitions[0].records.to_bytes())
        data[-1] ^= 1
        response.responses[0].partitions[0].records = window_of(bytes(data))
        return response

    cluster.script(api_keys.FETCH, damaged)
    core = reading(cluster)
    core.assign([T0, ("t", 1)])
    core.seek(("t", 1), 0)

    values = poll_all(cluster, 4)

    assert sorted(value or b"" for value in values) == [b"0", b"0", b"1", b"1"]


# --- On the disk


def damage(log: Log, number: int, position: int, bit: int = 0) -> None:
    flawed = bytearray(log.batches[number])
    flawed[position] ^= 1 << bit
    log.batches[number] = bytes(flawed)


def test_a_batch_that_is_damaged_for_good_is_raised_and_nothing_behind_it_is_skipped() -> None:
    cluster = ScriptedCluster()
    log = log_of(cluster, 100)
    damage(log, 40, -1)
    core = reading(cluster, **SMALL)

    values, sentence = read_until_corrupt(cluster)

    assert values == offsets_as_values(0, 80)
    assert core.position(T0).position == 80
    assert "offset 80" in sentence
    assert "seek('t', 0, 82)" in sentence
    core.seek(T0, 82)
    assert poll_all(cluster, 118) == offsets_as_values(82, 200)


def read_as_advised(cluster: ScriptedCluster, end: int) -> tuple[list[bytes | None], int]:
    """What comes when the reader goes on as each error says, and how often that was needed."""
    core: ConsumerCore = cluster.core
    values: list[bytes | None] = []
    raised = 0
    while core.position(T0).position < end:
        try:
            values += poll(cluster)
        except CorruptRecords as error:
            raised += 1
            advised = int(str(error).rpartition(", ")[2].rstrip(")"))
            assert advised > core.position(T0).position
            core.seek(T0, advised)
    return values, raised


@pytest.mark.parametrize("position", range(16, 79))
def test_whichever_byte_of_a_batch_is_damaged_for_good_only_that_batch_is_missing(
    position: int,
) -> None:
    cluster = ScriptedCluster()
    log = log_of(cluster, 20)
    assert len(log.batches[10]) == 79
    damage(log, 10, position, bit=position % 8)
    reading(cluster)

    values, raised = read_as_advised(cluster, 40)

    assert values == offsets_as_values(0, 20) + offsets_as_values(22, 40)
    assert raised >= 1


@pytest.mark.parametrize("bit", range(8))
@pytest.mark.parametrize("position", [6, 7, 10])
def test_a_batch_whose_offset_or_size_is_damaged_for_good_hides_nothing(
    position: int, bit: int
) -> None:
    cluster = ScriptedCluster()
    log = log_of(cluster, 20)
    damage(log, 10, position, bit)
    reading(cluster)

    values, raised = read_as_advised(cluster, 40)

    assert raised >= 1
    assert values[:20] == offsets_as_values(0, 20)
    assert values[20:] == sorted(values[20:], key=lambda value: int(value or b""))
    # Of the batch beside it, since both claim the same offsets.
    missing = [value for value in offsets_as_values(0, 40) if value not in values]
    assert set(missing) <= {b"20", b"21", b"22", b"23"}
    assert not set(values) - set(offsets_as_values(0, 40))


def test_a_damaged_partition_is_told_although_others_always_have_records() -> None:
    cluster = ScriptedCluster()
    topic = cluster.topic("t", partitions=2)
    topic.logs[0].add(b"bad")
    damage(topic.logs[0], 0, -1)
    core = reading(cluster)
    core.assign([T0, ("t", 1)])
    core.seek(("t", 1), 0)

    with pytest.raises(CorruptRecords):
        for _ in range(50):
            topic.logs[1].add(b"good")
            poll(cluster)
    topic.logs[1].add(b"good")
    assert poll(cluster), "told once, it does not keep the others from being read"


# --- Gaps


def compacted(cluster: ScriptedCluster, *gone: int, count: int = 12) -> Log:
    """Batches of two records, some of which a compaction has taken away."""
    log = log_of(cluster, count)
    log.batches = [one for number, one in enumerate(log.batches) if number not in gone]
    return log


def values_without(gone: tuple[int, ...], count: int = 12) -> list[bytes | None]:
    kept = [number for number in range(count) if number not in gone]
    return [b"%d" % offset for number in kept for offset in (2 * number, 2 * number + 1)]


def test_gaps_that_a_compaction_left_are_read_over() -> None:
    cluster = ScriptedCluster()
    gone = (2, 3, 5, 7, 8, 9)
    compacted(cluster, *gone)
    core = reading(cluster)

    assert poll_all(cluster, 12) == values_without(gone)
    assert core.position(T0).position == 24


def test_a_gap_is_asked_about_once_and_believed_from_then_on() -> None:
    cluster = ScriptedCluster()
    compacted(cluster, 2, 4, 6, 8, 10)
    reading(cluster)

    poll_all(cluster, 14)

    offsets = [
        seen.request.topics[0].partitions[0].fetch_offset
        for seen in cluster.requests(api_keys.FETCH)
    ]
    assert offsets[:3] == [0, 4, 24]


def test_a_position_inside_a_gap_is_good() -> None:
    cluster = ScriptedCluster()
    compacted(cluster, 2, 3)
    reading(cluster, offset=5)

    assert poll_all(cluster, 16) == offsets_as_values(8, 24)


@pytest.mark.parametrize("position", range(0, 150, 7))
def test_damage_beside_a_gap_loses_nothing(position: int) -> None:
    cluster = ScriptedCluster()
    gone = (2, 3, 5)
    compacted(cluster, *gone)
    cluster.script(api_keys.FETCH, by_default, by_default, flipping(position))
    reading(cluster, **SMALL)

    assert poll_all(cluster, 18) == values_without(gone)


def test_while_there_is_trouble_a_batch_behind_the_offset_asked_for_is_refused() -> None:
    cluster = ScriptedCluster()
    log = compacted(cluster, 1)
    core = reading(cluster)
    assert poll_all(cluster, 22) == values_without((1,))
    for number in range(12, 20):
        log.add(b"%d" % (2 * number), b"%d" % (2 * number + 1))
    damaged = bytearray(log.batches[11])
    damaged[-1] ^= 1
    behind = b"".join(log.batches[13:])
    assert decode_batch_header(behind, 0).base_offset == 28
    cluster.script(
        api_keys.FETCH, answer_with_bytes(bytes(damaged)), answer_with_bytes(behind), by_default
    )

    assert poll_all(cluster, 16) == offsets_as_values(24, 40)
    assert isinstance(core, ConsumerCore)


# --- Batches without their last records


def without_its_tail(*values: bytes, last_offset_delta: int) -> bytes:
    """A batch of which a compaction has left these records, the first ones."""
    builder = BatchBuilder()
    for value in values:
        builder.append(0, None, value)
    data = bytearray(builder.build())
    data[LAST_OFFSET_DELTA : LAST_OFFSET_DELTA + 4] = last_offset_delta.to_bytes(4, "big")
    data[CRC:ATTRIBUTES] = crc32c(bytes(data[ATTRIBUTES:])).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("records_max", [1, 500])
def test_the_position_goes_behind_a_batch_whose_tail_was_compacted_away(records_max: int) -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.batches.append(without_its_tail(b"0", last_offset_delta=4))
    log.end_offset = 5
    core = reading(cluster)

    cluster.run_until(lambda: core.has_records(cluster.now_ms))
    (group,) = core.take(records_max, cluster.now_ms)

    assert [record.offset for record in group.records] == [0]
    position = core.position(T0)
    assert position.position == 5
    assert position.is_at_end
    assert position.lag == 0


def test_the_position_goes_behind_a_compacted_tail_when_records_were_left_over() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.batches.append(without_its_tail(b"0", b"1", last_offset_delta=4))
    log.end_offset = 5
    core = reading(cluster)
    cluster.run_until(lambda: core.has_records(cluster.now_ms))

    positions = []
    for _ in range(2):
        core.take(1, cluster.now_ms)
        positions.append(core.position(T0).position)

    assert positions == [1, 5]
