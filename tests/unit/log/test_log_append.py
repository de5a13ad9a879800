"""Appending: offsets, one write a turn, rolling, and the undoing of a write that failed."""

from __future__ import annotations

import pytest

from tarry.base.errors import StorageError
from tarry.log.index.epoch_index import EPOCH_FILE
from tarry.records.batch import decode_batch_header
from tarry.wire.reader import Window

SMALL = b"v" * 40
LARGE = b"v" * 5000


def test_a_batch_gets_the_next_offset_and_the_leaders_epoch(world):
    log = world.open()

    first = world.append(log, 1000, 1001, 1002, epoch=5)
    second = world.append(log, 1003, epoch=5)
    log.write()

    assert (first, second, log.log_end_offset) == (0, 3, 4)
    region = log.read(0, log.end_position(), 10_000, True)
    headers = world.headers_in(region.file.read(region.position, region.size))
    assert [(h.base_offset, h.leader_epoch) for h, _ in headers] == [(0, 5), (3, 5)]


def test_a_batch_is_kept_byte_for_byte_but_for_offset_and_epoch(world):
    log = world.open()
    for value in (SMALL, LARGE):
        world.append(log, 1000, 1001, value=value, codec=1)
    log.write()
    stored = world.disk.open("orders-0/00000000000000000000.log").read(0, 100_000)

    assert stored[12:16] == bytes(4)
    small, large = (world.batch(1000, 1001, value=v, codec=1) for v in (SMALL, LARGE))
    assert stored[16 : len(small)] == small[16:]
    assert stored[len(small) + 16 :] == large[16:]


def test_a_batch_is_taken_out_of_the_middle_of_a_frame(world):
    log = world.open()
    for value in (SMALL, LARGE):
        batch = world.batch(1000, value=value)
        frame = b"before" + batch + b"after"
        window = Window(frame, 6, 6 + len(batch))
        log.append(window, decode_batch_header(batch, 0), 0, 5000)
    log.write()

    assert [record.value for record in world.read_all(log)] == [SMALL, LARGE]


def test_nothing_is_written_before_the_turn_writes(world):
    log = world.open()

    world.append(log)

    assert world.names() == []
    assert (log.log_end_offset, log.written_end_offset) == (1, 0)
    assert log.has_tail


def test_a_turn_makes_one_write_per_segment(world):
    log = world.open()
    world.fill(log, 1)
    world.disk.fail_writes(1)

    world.append(log)
    world.append(log, value=LARGE)
    world.append(log)
    with pytest.raises(StorageError):
        log.write()
    world.append(log)
    log.write()

    assert world.offsets(log) == [0, 1]


def test_a_write_without_a_tail_does_nothing(world):
    log = world.open()

    log.write()

    assert world.names() == []


def test_a_segment_rolls_when_the_next_batch_would_exceed_its_size(world):
    log = world.open()
    size = len(world.batch(1000))
    world.config.segment_bytes = 3 * size

    world.fill(log, 7)

    assert [segment.base_offset for segment in log.segments] == [0, 3, 6]
    assert world.names(".log") == [f"{base:020d}.log" for base in (0, 3, 6)]
    assert world.offsets(log) == list(range(7))


def test_a_batch_larger_than_a_segment_has_one_for_itself(world):
    log = world.open()
    world.config.segment_bytes = 300

    world.append(log)
    world.append(log, value=LARGE)
    world.append(log)
    log.write()

    assert [segment.base_offset for segment in log.segments] == [0, 1, 2]


def test_a_segment_rolls_by_the_time_of_its_records(world):
    log = world.open()
    world.config.segment_ms = 1000

    for timestamp in (5000, 6000, 6001, 6500):
        world.append(log, timestamp)
        log.write()

    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_the_first_records_time_is_known_again_after_a_restart(world):
    world.config.segment_ms = 1000
    log = world.open()
    world.append(log, 5000)
    log.write()
    log = world.open()

    world.append(log, 6001)

    assert len(log.segments) == 2


def test_records_without_a_time_roll_by_the_wall_clock(world):
    log = world.open()
    world.config.segment_ms = 1000

    for wait_ms in (0, 1000, 1):
        world.now_wall_ms += wait_ms
        world.append(log, -1)

    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_jitter_makes_a_segment_roll_earlier(world):
    log = world.open()
    world.config.segment_ms = 1000
    world.config.segment_jitter_ms = 400

    for timestamp in (5000, 5600, 5601):
        world.append(log, timestamp)

    assert [segment.base_offset for segment in log.segments] == [0, 2]


def test_a_segment_rolls_when_its_offset_index_is_full(world):
    log = world.open()
    world.config.index_interval_bytes = 0
    world.config.segment_index_bytes = 8 * 4

    world.fill(log, 12)

    # With an interval of 0 every batch but the first has an entry; time entries take 12 bytes.
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6, 9]


@pytest.mark.parametrize("records", [1, 5])
def test_a_segment_rolls_before_an_offset_exceeds_32_bits(world, records):
    log = world.open()
    world.config.index_interval_bytes = 0
    world.fill(log, 1)
    # Two thousand million records are taken as read: the last of the batch does not fit.
    base_offset = (1 << 31) - records + 1
    log.log_end_offset = base_offset
    log.written_end_offset = base_offset

    world.append(log, *range(1000, 1000 + records))
    world.append(log)

    assert [segment.base_offset for segment in log.segments] == [0, base_offset]


def test_a_batch_whose_last_offset_just_fits_into_32_bits_stays_in_its_segment(world):
    log = world.open()
    world.config.index_interval_bytes = 0
    world.fill(log, 1)
    log.log_end_offset = (1 << 31) - 5
    log.written_end_offset = (1 << 31) - 5

    world.append(log, *range(1000, 1005))

    assert [segment.base_offset for segment in log.segments] == [0]


def test_a_failed_write_leaves_the_log_as_it_was(world):
    log = world.open()
    world.fill(log, 30)
    before = describe(log)

    for number in range(30):
        world.append(log, 90_000 + number, epoch=1)
    world.disk.fail_writes(1)
    with pytest.raises(StorageError):
        log.write()

    assert describe(log) == before
    assert world.offsets(log) == list(range(30))


def test_a_failed_write_undoes_the_segments_that_were_rolled_in_the_tail(world):
    log = world.open()
    world.config.segment_bytes = 1000
    world.fill(log, 5)
    before = describe(log)

    for number in range(30):
        world.append(log, 90_000 + number)
    assert len(log.segments) > 3
    # The first segments of the tail are written, a later one fails.
    world.disk.fail_writes(1, f"{log.segments[2].base_offset:020d}")
    with pytest.raises(StorageError):
        log.write()

    assert describe(log) == before
    assert world.names(".log") == ["00000000000000000000.log"]
    world.fill(log, 20)
    assert world.offsets(log) == list(range(25))


def test_a_full_disk_is_a_failed_write_and_room_heals_it(world):
    log = world.open()
    world.fill(log, 3)
    world.disk.capacity_bytes = world.disk.open("orders-0/00000000000000000000.log").size + 50

    world.append(log)
    with pytest.raises(StorageError):
        log.write()
    world.disk.capacity_bytes = None
    world.fill(log, 1)

    assert world.offsets(log) == [0, 1, 2, 3]


def test_the_very_first_write_can_fail(world):
    log = world.open()
    world.disk.fail_writes(1)

    world.append(log, epoch=3)
    with pytest.raises(StorageError):
        log.write()

    assert log.leader_epochs.epochs == []
    world.fill(log, 2)
    assert world.offsets(log) == [0, 1]


def test_what_a_failed_write_left_behind_never_comes_back_after_a_flush(worlds):
    ends = []
    for world in worlds:
        log = log_with_a_failed_write(world)

        world.flush(log)
        world.disk.crash()

        ends.append(world.open().log_end_offset)
    assert ends == [3] * len(worlds)


def test_what_a_failed_write_left_behind_never_comes_back_before_the_next_segment(worlds):
    ends = []
    for world in worlds:
        log = log_with_a_failed_write(world)
        world.config.segment_bytes = log.active.size
        world.fill(log, 1)
        assert [segment.base_offset for segment in log.segments] == [0, 3]

        world.disk.crash()

        ends.append(world.open().log_end_offset)
    assert ends == [4] * len(worlds)


def log_with_a_failed_write(world):
    """Three records are durable; of five more a part was written and cut off again."""
    log = world.open()
    world.fill(log, 3)
    for _ in range(5):
        world.append(log, epoch=1)
    world.disk.fail_writes(1)
    with pytest.raises(StorageError):
        log.write()
    return log


def test_epochs_are_noted_where_they_begin(world):
    log = world.open()
    world.fill(log, 3, epoch=1)
    world.fill(log, 2, epoch=4)

    assert log.end_offset_for_epoch(1) == (1, 3)
    assert log.end_offset_for_epoch(4) == (4, 5)
    assert log.end_offset_for_epoch(5) == (-1, -1)
    assert [log.epoch_at(offset) for offset in (0, 2, 3, 4)] == [1, 1, 4, 4]
    assert EPOCH_FILE not in world.names()


def describe(log):
    """Everything that a failed write must leave alone."""
    return (
        log.log_end_offset,
        log.written_end_offset,
        log.size_bytes,
        list(log.leader_epochs.epochs),
        list(log.leader_epochs.start_offsets),
        [
            (
                segment.base_offset,
                segment.size,
                segment.written_size,
                segment.max_timestamp,
                segment.max_timestamp_offset,
                segment.unindexed_bytes,
                segment.loaded().offsets.encode_from(0),
                segment.loaded().times.encode_from(0),
                [
                    segment.newest.position_of(offset)
                    for offset in range(segment.base_offset, log.log_end_offset)
                ],
            )
            for segment in log.segments
        ],
    )


def test_a_failed_write_forgets_the_positions_of_a_part_that_was_written(world):
    log = world.open()
    world.fill(log, 120)
    world.fill(log, 125)
    world.config.segment_bytes = log.active.size // 245 * 300
    for number in range(70):
        world.append(log, 90_000 + number)
    assert len(log.segments) == 2
    # The written part is long enough that older positions are forgotten with it.
    world.disk.fail_writes(1, f"{log.active.base_offset:020d}")
    with pytest.raises(StorageError):
        log.write()

    world.append(log, *range(95_000, 95_030))
    world.fill(log, 1)

    region = log.read(250, log.end_position(), 1 << 30, True)
    headers = world.headers_in(region.file.read(region.position, region.size))
    assert [header.base_offset for header, _ in headers] == [245, 275]
