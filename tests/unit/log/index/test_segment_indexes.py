"""The sparse indexes: look-ups, Kafka's bytes, cutting."""

from __future__ import annotations

import struct

from tarry.log.index.offset_index import OffsetIndex
from tarry.log.index.segment_indexes import SegmentIndexes
from tarry.log.index.time_index import TimeIndex
from tarry.simulation.disk import SimulatedDisk


def offset_index(*entries: tuple[int, int], base_offset: int = 100) -> OffsetIndex:
    index = OffsetIndex(base_offset)
    for offset, position in entries:
        index.append(offset, position)
    return index


def time_index(*entries: tuple[int, int], base_offset: int = 100) -> TimeIndex:
    index = TimeIndex(base_offset)
    for timestamp, offset in entries:
        index.maybe_append(timestamp, offset)
    return index


def test_an_offset_is_found_in_the_last_entry_at_or_before_it():
    index = offset_index((109, 0), (120, 400), (135, 900))

    assert index.entry_of_offset(108) == -1
    assert index.entry_of_offset(109) == 0
    assert index.entry_of_offset(134) == 1
    assert index.entry_of_offset(10_000) == 2


def test_a_position_is_found_in_the_last_entry_at_or_before_it():
    index = offset_index((109, 50), (120, 400), (135, 900))

    assert index.entry_of_position(49) == -1
    assert index.entry_of_position(400) == 1
    assert index.entry_of_position(899) == 1
    assert index.entry_of_position(1 << 40) == 2


def test_an_offset_index_has_kafkas_bytes():
    index = offset_index((109, 0), (100 + 0x7FFFFFFF, 0x7FFFFFFF))

    assert index.encode_from(0) == struct.pack(">iiii", 9, 0, 0x7FFFFFFF, 0x7FFFFFFF)
    assert index.encode_from(1) == struct.pack(">ii", 0x7FFFFFFF, 0x7FFFFFFF)


def test_a_time_index_has_kafkas_bytes():
    index = time_index((0, 101), (0x7FFFFFFF80000001, 103))

    assert index.encode_from(0) == struct.pack(">qiqi", 0, 1, 0x7FFFFFFF80000001, 3)


def test_a_time_index_takes_only_later_timestamps():
    index = time_index((1000, 101), (1000, 105), (999, 107), (1001, 109), (-1, 111))

    assert [(index.timestamp_at(i), index.offset_at(i)) for i in range(index.count)] == [
        (1000, 101),
        (1001, 109),
    ]


def test_a_time_is_found_in_the_last_entry_at_or_before_it():
    index = time_index((1000, 101), (1 << 40, 105), ((1 << 40) + 1, 107))

    assert index.entry_of_timestamp(999) == -1
    assert index.entry_of_timestamp(1000) == 0
    assert index.entry_of_timestamp(1 << 40) == 1
    assert index.entry_of_timestamp(1 << 60) == 2
    assert index.entry_before_offset(101) == -1
    assert index.entry_before_offset(106) == 1


def test_indexes_come_back_from_their_files():
    disk = SimulatedDisk()
    disk.make_directory("d")
    indexes = SegmentIndexes(disk, "d/100", 100)
    indexes.offsets.append(109, 0)
    indexes.times.maybe_append(-5 + (1 << 33), 109)
    indexes.save([])
    again = SegmentIndexes(disk, "d/100", 100)

    again.cover(1, 1)

    assert again.try_load()
    assert again.offsets.offset_at(0) == 109
    assert again.times.timestamp_at(0) == -5 + (1 << 33)


def test_a_save_writes_only_what_the_files_lack():
    disk = SimulatedDisk()
    disk.make_directory("d")
    indexes = SegmentIndexes(disk, "d/100", 100)
    indexes.offsets.append(109, 0)
    indexes.save([])
    disk.fail_writes(1, ".timeindex")

    indexes.offsets.append(119, 300)
    indexes.save([])

    assert disk.open("d/100.index").read(0, 100) == struct.pack(">iiii", 9, 0, 19, 300)
    assert not indexes.has_unsaved()


def test_a_save_after_a_cut_takes_back_what_the_files_had_too_much():
    disk = SimulatedDisk()
    disk.make_directory("d")
    indexes = SegmentIndexes(disk, "d/100", 100)
    for number in range(4):
        indexes.offsets.append(109 + number, 300 * number)
    indexes.save([])

    indexes.cut(2, 0)
    assert indexes.has_unsaved()
    indexes.save([])

    assert disk.open("d/100.index").size == 16


def test_files_that_are_shorter_than_they_should_be_are_not_loaded():
    disk = SimulatedDisk()
    disk.make_directory("d")
    indexes = SegmentIndexes(disk, "d/100", 100)
    indexes.offsets.append(109, 0)
    indexes.save([])
    indexes.cover(2, 0)

    assert not indexes.try_load()


def test_an_entry_behind_one_that_a_flipped_bit_has_made_too_large_is_left_out():
    """A search that meets the damaged entry has the index rebuilt; an append must not fail."""
    index = OffsetIndex(100)
    index.append(104, 0)
    index.append(108, 200)
    index.data[2] += 1 << 13

    index.append(120, 400)

    assert (index.count, index.offset_at(1)) == (2, 108 + (1 << 13))
