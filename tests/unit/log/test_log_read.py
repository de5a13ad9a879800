"""Reading: whole batches, limits, the tail in memory and the rest by index."""

from __future__ import annotations

import pytest

from tarry.log.segments import LogPosition

BATCHES = 600


@pytest.fixture
def full(world):
    """A log of several segments, most of whose positions are not in memory any more."""
    log = world.open()
    world.config.segment_bytes = 20_000
    for number in range(BATCHES):
        world.append(log, *([1000 + number] * (1 + number % 3)))
        log.write()
    world.flush(log)
    return log


def first_header(world, region):
    return world.headers_in(region.file.read(region.position, region.size))[0][0]


def test_every_offset_is_found_in_its_batch(world, full):
    end = full.end_position()

    for offset in range(full.log_end_offset):
        header = first_header(world, full.read(offset, end, 1, True))

        assert header.base_offset <= offset <= header.last_offset


def test_every_offset_is_found_after_a_restart(world, full):
    log = world.open()

    for offset in range(0, log.log_end_offset, 7):
        header = first_header(world, log.read(offset, log.end_position(), 1, True))

        assert header.base_offset <= offset <= header.last_offset


@pytest.mark.parametrize("size_max", [1, 200, 1000, 5000, 1 << 30])
def test_a_reader_that_goes_on_where_it_ended_sees_everything_once(world, full, size_max):
    offsets = [record.offset for record in world.read_all(full, size_max)]

    assert offsets == list(range(full.log_end_offset))


def test_a_read_keeps_to_its_size_with_whole_batches(world, full):
    end = full.end_position()

    for offset in range(0, full.log_end_offset, 13):
        region = full.read(offset, end, 1000, False)

        assert region.size <= 1000
        world.headers_in(region.file.read(region.position, region.size))


def test_a_read_takes_as_many_batches_as_fit(world, full):
    whole = full.read(0, full.end_position(), 1 << 30, False)
    sizes = [h.size for h, _ in world.headers_in(whole.file.read(0, whole.size))]

    region = full.read(0, full.end_position(), sum(sizes[:5]), False)

    assert region.size == sum(sizes[:5])


def test_the_first_batch_comes_whole_only_if_asked_for(world, full):
    size = first_header(world, full.read(0, full.end_position(), 1, True)).size

    assert full.read(0, full.end_position(), size - 1, False) is None
    assert full.read(0, full.end_position(), size - 1, True).size == size


def test_a_read_ends_at_the_readers_end(world, full):
    for offset in (5, 100, 500, 900):
        end = full.position_of(offset)
        header = first_header(world, full.read(offset, full.end_position(), 1, True))

        records = world.read_from(full, 0)
        region = full.read(max(0, offset - 10), end, 1 << 30, True)
        last = world.headers_in(region.file.read(region.position, region.size))[-1][0]

        assert len(records) == full.log_end_offset
        assert last.last_offset < offset
        assert header.base_offset <= offset


def test_nothing_is_read_at_the_end(full):
    assert full.read(full.log_end_offset, full.end_position(), 1000, True) is None


def test_a_read_never_sees_the_unwritten_tail(world, full):
    end_offset = full.written_end_offset
    for _ in range(5):
        world.append(full)

    assert full.end_position().offset == end_offset
    assert len(world.offsets(full)) == end_offset
    assert full.position_of(end_offset).offset == end_offset


def test_a_read_goes_on_in_the_next_segment(world, full):
    second = full.segments[1].base_offset

    region = full.read(second, full.end_position(), 1 << 30, True)

    assert region.position == 0
    assert region.size == full.segments[1].size


def test_a_removed_segment_is_read_to_its_end(world, full):
    region = full.read(0, full.end_position(), 1 << 30, True)
    before = region.file.read(region.position, region.size)

    full.advance_log_start_offset(full.segments[1].base_offset)
    world.disk.remove("orders-0/00000000000000000000.log")

    assert region.file.read(region.position, region.size) == before


def test_the_flushed_end_has_its_position_without_a_search(world, full):
    offset = full.flushed_offset
    world.append(full)
    full.write()
    world.disk.fail_reads(1)

    position = full.position_of(offset)

    assert isinstance(position, LogPosition)
    assert full.read(offset, full.end_position(), 1000, True).position == position.position


def test_the_tail_is_read_without_touching_the_disk(world, full):
    world.disk.fail_reads(1)
    offset = full.log_end_offset - 50

    region = full.read(offset, full.end_position(), 300, True)

    assert 0 < region.size <= 300


def test_a_wrong_offset_index_is_noticed_and_rebuilt(world, full):
    segment = full.segments[0]
    segment.loaded().offsets.data[5] += 3
    segment.loaded().offsets.data[9] += 1

    offsets = [record.offset for record in world.read_all(full, 300)]

    assert offsets == list(range(full.log_end_offset))
    assert segment.loaded().offsets.position_at(0) > 0
