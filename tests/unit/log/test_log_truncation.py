"""Truncation: everything derived follows, and the recovery point is never left behind."""

from __future__ import annotations

import pytest

from tarry.base.errors import StorageError
from tarry.log.recovery.truncation import try_truncate


@pytest.fixture
def full(world):
    world.config.segment_bytes = 1500
    log = world.open_logs()
    world.fill(log, 30, epoch=1)
    world.fill(log, 30, epoch=2)
    return log


@pytest.mark.parametrize("offset", [59, 52, 51, 31, 30, 29, 13, 12, 1, 0])
def test_a_cut_takes_everything_from_an_offset_on(world, full, offset):
    assert try_truncate(full, offset)

    assert full.log_end_offset == full.written_end_offset == full.flushed_offset == offset
    assert world.offsets(full) == list(range(offset))
    assert world.listener.offsets == list(range(offset))
    assert full.leader_epochs.epochs == ([1, 2] if offset > 30 else [1] if offset > 0 else [])
    world.flush(full)
    world.fill(full, 3, epoch=5)
    assert world.offsets(full) == list(range(offset + 3))
    assert full.end_offset_for_epoch(5) == (5, offset + 3)


def test_a_cut_inside_a_batch_takes_the_whole_batch(world):
    log = world.open_logs()
    world.append(log, 1, 2, 3)
    world.append(log, 4, 5, 6)
    log.write()

    assert try_truncate(log, 4)

    assert log.log_end_offset == 3


def test_a_cut_at_or_past_the_end_changes_nothing(world, full):
    assert try_truncate(full, 60)
    assert try_truncate(full, 1000)

    assert full.log_end_offset == 60


def test_indexes_and_timestamps_are_those_of_what_is_left(world, full):
    try_truncate(full, 20)
    again = world.open()

    for segment, other in zip(full.segments, again.segments, strict=True):
        assert segment.max_timestamp == other.max_timestamp
        assert segment.max_timestamp_offset == other.max_timestamp_offset
        assert segment.loaded().offsets.encode_from(0) == other.loaded().offsets.encode_from(0)
    assert full.max_timestamp_offset(20) == again.max_timestamp_offset(20)


def test_a_cut_is_durable_with_the_next_flush(world, full):
    try_truncate(full, 20)
    assert full.is_dirty
    world.flush(full)

    world.disk.crash()

    assert world.open_logs().log_end_offset == 20


def test_a_cut_below_the_recovery_point_lowers_it_first(world, full):
    world.recovery_point_round(100_000)

    assert not try_truncate(full, 20)
    assert full.log_end_offset == 60
    assert world.recovery_point_round(100_001) == 3
    assert full.recovery_point.offset == 20
    assert try_truncate(full, 20)

    world.flush(full)
    world.disk.crash()
    log = world.open_logs()
    assert (log.log_end_offset, log.flaw_offset) == (20, -1)
    assert world.offsets(log) == list(range(20))
    assert world.listener.offsets == list(range(20))


def test_a_crash_between_lowering_and_cutting_loses_nothing(world, full):
    world.recovery_point_round(100_000)
    try_truncate(full, 20)
    world.recovery_point_round(100_001)

    world.disk.crash()

    log = world.open_logs()
    assert log.log_end_offset == 60
    assert world.offsets(log) == list(range(60))


def test_a_cut_waits_for_a_round_that_is_under_way(world, full):
    flush_id = world.logs.recovery_points.begin(100_000)

    assert not try_truncate(full, 20)

    while flush_id >= 0:
        world.disk.complete_flush(flush_id)
        flush_id = world.logs.recovery_points.on_flushed(flush_id)
    assert not try_truncate(full, 20)
    world.recovery_point_round(100_001)
    assert try_truncate(full, 20)


def test_the_listener_is_restored_from_a_snapshot_before_the_cut(world, full):
    world.recovery_point_round(100_000)
    world.fill(full, 20, epoch=2)
    world.listener.recovered = []

    try_truncate(full, 70)

    assert world.listener.offsets == list(range(70))
    assert world.listener.recovered == list(range(60, 70))


def test_a_flush_from_before_a_cut_proves_nothing_after_it(world, full):
    world.fill(full, 5, flush=False)
    offset = full.collect_flush([], {})
    try_truncate(full, 20)

    full.flushed(offset)

    assert full.flushed_offset == 20
    assert full.is_dirty
    assert full.has_undurable_cut


def test_nothing_is_appended_before_a_cut_is_durable(world, full):
    try_truncate(full, 20)

    with pytest.raises(StorageError, match="is being cut"):
        world.append(full, epoch=3)

    world.flush(full)
    assert not full.has_undurable_cut
    world.listener.offsets = list(range(20))
    world.fill(full, 1, epoch=3)
    assert world.offsets(full) == list(range(21))


def test_a_recovery_point_that_was_perhaps_renamed_counts_as_there(world, full):
    flush_id = world.logs.recovery_points.begin(100_000)
    world.disk.complete_flush(flush_id)
    flush_id = world.logs.recovery_points.on_flushed(flush_id)
    world.disk.complete_flush(flush_id)
    # The renaming is done, its flush cannot begin: the round is given up.
    world.disk.begin_flush = lambda files, directories: (_ for _ in ()).throw(StorageError("no"))
    assert world.logs.recovery_points.on_flushed(flush_id) == -1
    del world.disk.begin_flush

    assert not try_truncate(full, 20)
    world.recovery_point_round(200_000)
    assert try_truncate(full, 20)
    world.flush(full)
    world.disk.crash()

    assert world.open_logs().flaw_offset == -1
