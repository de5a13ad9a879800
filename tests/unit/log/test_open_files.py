"""Descriptors: bounded, opened on first use, never taken from who needs them."""

from __future__ import annotations

import pytest

from tarry.base.errors import StorageError, TooManyOpenFiles
from tarry.log.open_files import FileHolder, OpenFiles
from tarry.simulation.disk import SimulatedDisk


class Holder(FileHolder):
    def __init__(self) -> None:
        super().__init__()
        self.is_busy = False
        self.is_released = False

    def try_release(self) -> bool:
        self.is_released = not self.is_busy
        return self.is_released


def opened(files, count):
    holders = [Holder() for _ in range(count)]
    for holder in holders:
        files.opened(holder)
    return holders


def test_the_least_recently_used_file_is_given_back():
    files = OpenFiles(SimulatedDisk(), 2)
    first, second = opened(files, 2)
    files.used(first)

    files.opened(Holder())

    assert second.is_released
    assert not first.is_released
    assert len(files) == 2


def test_a_busy_file_stays_open():
    files = OpenFiles(SimulatedDisk(), 2)
    first, second = opened(files, 2)
    first.is_busy = True

    files.opened(Holder())

    assert not first.is_released
    assert second.is_released


def test_too_many_are_tolerated_while_all_are_busy_and_given_back_later():
    files = OpenFiles(SimulatedDisk(), 2)
    holders = [Holder() for _ in range(10)]
    for holder in holders:
        holder.is_busy = True
        files.opened(holder)
    assert len(files) == 10

    for holder in holders:
        holder.is_busy = False
    opened(files, 2)

    assert len(files) == 2


def test_the_file_that_was_just_opened_is_kept():
    files = OpenFiles(SimulatedDisk(), 0)

    (holder,) = opened(files, 1)

    assert not holder.is_released


def test_many_segments_are_read_over_few_descriptors(world):
    world.logs.files.open_files_max = 3
    world.config.segment_bytes = 300
    log = world.logs.open("orders-0", b"", world.config, None)
    world.fill(log, 60)
    assert len(log.segments) > 15

    offsets = world.offsets(log)

    assert offsets == list(range(60))
    assert len(world.logs.files) <= 4


def test_a_segment_with_unflushed_bytes_stays_open(world):
    world.logs.files.open_files_max = 1
    log = world.logs.open("orders-0", b"", world.config, None)
    other = world.logs.open("orders-1", b"", world.config, None)
    world.fill(log, 3, flush=False)
    world.fill(other, 3, flush=False)
    file = log.active.file()

    world.fill(other, 3, flush=False)

    assert log.active.file() is file


def test_indexes_are_given_back_with_their_file_and_read_again(world):
    world.config.segment_bytes = 1000
    log = world.open_logs()
    world.fill(log, 60)
    world.recovery_point_round(100_000)
    first = log.segments[0]
    assert first.indexes.are_loaded

    first.try_release()

    assert not first.indexes.are_loaded
    assert world.offsets(log) == list(range(60))
    assert log.offset_for_time(1050, 60)[1] == 3


def test_a_segment_given_back_under_a_failing_tail_is_as_it_was(world):
    world.logs.files.open_files_max = 1
    world.config.segment_bytes = 1000
    log = world.logs.open("orders-0", b"", world.config, None)
    world.fill(log, 9)
    world.recovery_point_round(100_000)
    before = log.active.row().encode()

    # The first batch rolls, so the old segment has no part in the write.
    world.append(log, value=b"v" * 5000)
    world.disk.fail_writes(1)
    with pytest.raises(StorageError):
        log.write()

    assert log.active.row().encode() == before
    world.fill(log, 20)
    assert world.offsets(log) == list(range(29))


class CrowdedDisk:
    """A disk that opens a file only while few holders have theirs."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        self.files = OpenFiles(self, 100)
        self.holders_max = 4

    def open(self, path, *, create=False):
        if len(self.files) > self.holders_max:
            raise TooManyOpenFiles(f"{path}: too many files are open")
        return self.disk.open(path, create=create)


def test_files_are_given_back_where_the_system_has_no_descriptor_left():
    disk = CrowdedDisk()
    holders = opened(disk.files, 8)

    file = disk.files.open("a", create=True)

    assert file.path == "a"
    assert [holder.is_released for holder in holders] == [True] * 4 + [False] * 4
    assert disk.files.open_files_max == 4


def test_a_file_is_refused_where_all_others_are_busy():
    disk = CrowdedDisk()
    for holder in opened(disk.files, 8):
        holder.is_busy = True

    with pytest.raises(TooManyOpenFiles):
        disk.files.open("a", create=True)

    assert len(disk.files) == 8
