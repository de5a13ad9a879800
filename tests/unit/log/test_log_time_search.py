"""ListOffsets by time: exact to the record, whatever the order and the codec."""

from __future__ import annotations

import random

import pytest

from tarry.records.batch import decode_batch_header, with_log_append_time
from tarry.wire.reader import window_of


def first_from(records, timestamp, end_offset):
    """The oracle: the first record that is late enough."""
    for record in records:
        if record.offset < end_offset and record.timestamp >= timestamp:
            return record.timestamp, record.offset
    return None


def latest(records, end_offset):
    below = [record for record in records if record.offset < end_offset and record.timestamp >= 0]
    if not below:
        return None
    best = max(below, key=lambda record: (record.timestamp, -record.offset))
    return best.timestamp, best.offset


def without_epoch(found):
    return found if found is None else found[:2]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("codec", [0, 1, 3])
def test_any_order_of_timestamps_is_searched_exactly(world, seed, codec):
    chance = random.Random(seed)
    world.config.segment_bytes = chance.choice([1500, 6000, 1 << 30])
    world.config.index_interval_bytes = chance.choice([0, 150, 700])
    log = world.open_logs()
    drift = chance.choice([0, 1, 8])
    starts = []
    for number in range(150):
        times = [
            1000 + number * drift + chance.randrange(200) for _ in range(1 + chance.randrange(4))
        ]
        times = times if chance.randrange(9) else [-1]
        starts.append(world.append(log, *times, codec=codec))
        if chance.randrange(3) == 0:
            log.write()
    log.write()
    world.flush(log)
    if seed % 2:
        world.recovery_point_round(100_000)
        log = world.open_logs()
    records = world.read_all(log)
    # A reader ends at a high watermark, and that lies between batches.
    ends = [*starts, log.log_end_offset]

    for _ in range(60):
        timestamp = 950 + chance.randrange(300 + 150 * drift)
        end_offset = chance.choice([log.log_end_offset, chance.choice(ends)])

        found = log.offset_for_time(timestamp, end_offset)
        largest = log.max_timestamp_offset(end_offset)

        assert without_epoch(found) == first_from(records, timestamp, end_offset)
        assert without_epoch(largest) == latest(records, end_offset)


def test_the_answer_names_the_leader_epoch_of_the_record(world):
    log = world.open()
    world.fill(log, 3, epoch=2)
    world.fill(log, 3, epoch=7)
    fourth = log.max_timestamp_offset(log.log_end_offset)

    assert log.offset_for_time(0, 6) == (1000, 0, 2)
    assert fourth[1:] == (5, 7)


def test_records_below_the_log_start_are_not_found(world):
    log = world.open()
    world.append(log, 5000, 6000, 7000)
    world.append(log, 4000)
    log.write()

    log.advance_log_start_offset(2)

    assert log.offset_for_time(5000, 4) == (7000, 2, 0)
    log.advance_log_start_offset(3)
    assert log.offset_for_time(5000, 4) is None


def test_a_time_after_all_records_is_not_found(world):
    log = world.open()
    world.fill(log, 5)

    assert log.offset_for_time(10**12, 5) is None


def test_an_empty_log_has_no_times(world):
    log = world.open()

    assert log.offset_for_time(0, 0) is None
    assert log.max_timestamp_offset(0) is None


def test_records_without_timestamps_have_no_latest(world):
    log = world.open()
    world.append(log, -1, -1)
    log.write()

    assert log.max_timestamp_offset(2) is None


def test_with_log_append_time_every_record_has_the_batches_time(world):
    log = world.open()
    for now_wall_ms in (10_000, 20_000, 30_000):
        batch = window_of(world.batch(1, 2, 3))
        header = decode_batch_header(batch.data, 0)
        rewritten = with_log_append_time(batch, header, now_wall_ms)
        log.append(rewritten, header, 0, now_wall_ms)
    log.write()

    assert log.offset_for_time(10_001, 9) == (20_000, 3, 0)
    assert log.offset_for_time(10_000, 9) == (10_000, 0, 0)
    assert log.max_timestamp_offset(9) == (30_000, 6, 0)


def test_a_batch_that_cannot_be_opened_answers_with_its_first_offset(world):
    log = world.open()
    world.append(log, 1000)
    broken = bytearray(world.batch(5000, 6000, codec=1))
    broken[70:90] = b"\xff" * 20
    log.append_bytes(bytes(broken), 0, 1)
    log.write()

    assert log.offset_for_time(5500, 3) == (6000, 1, 0)
    assert log.max_timestamp_offset(3) == (6000, 1, 0)


def test_the_unwritten_tail_is_not_searched(world):
    log = world.open()
    world.config.index_interval_bytes = 0
    world.fill(log, 5)
    for timestamp in (90_000, 90_001, 90_002):
        world.append(log, timestamp)

    assert log.offset_for_time(90_000, log.written_end_offset) is None
    assert log.max_timestamp_offset(log.written_end_offset)[1] == 4


def test_a_wrong_time_index_is_noticed_and_rebuilt(world):
    log = world.open()
    world.config.index_interval_bytes = 0
    for number in range(40):
        world.append(log, 1000 + 10 * number)
    log.write()
    times = log.active.loaded().times
    times.data[3 * 20 + 2] += 5
    times.data[3 * 25 + 1] -= 100

    for timestamp in range(1000, 1390, 10):
        assert log.offset_for_time(timestamp, 40) == (timestamp, (timestamp - 1000) // 10, 0)


def test_a_search_reads_little_of_a_long_segment(world):
    log = world.open()
    for number in range(400):
        world.append(log, 1000 + number)
        log.write()
    log = world.open()
    log.offset_for_time(1000, 400)
    reads = []
    file = log.active.file()
    read = file.read
    file.read = lambda position, size: reads.append(size) or read(position, size)

    assert log.offset_for_time(1371, 400) == (1371, 371, 0)
    assert sum(reads) < log.size_bytes


def test_batches_that_claim_later_times_than_they_have_cost_a_bounded_search(world):
    log = world.open()
    world.config.index_interval_bytes = 0
    lying = bytearray(world.batch(*[1000] * 30, value=b"v" * 100_000, codec=1))
    lying[35:43] = (9000).to_bytes(8, "big")
    for _ in range(20):
        log.append_bytes(bytes(lying), 0, 1)
    log.write()

    # Two are opened, the third would exceed what one search may open.
    assert log.offset_for_time(5000, 600) == (9000, 60, 0)
