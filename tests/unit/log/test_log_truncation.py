"""Truncation: everything derived follows, and the recovery point is never left behind."""

from __future__ import annotations

import pytest

from tarry.base.errors import StorageError
from tarry.log.recovery import truncation
from tarry.log.recovery.truncation import try_restart, try_truncate
from tarry.log.state import NEXT_STATES, Cut


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


def test_a_log_start_that_passes_a_waiting_cut_gives_no_row_below_it(world, full):
    full.follow_start(55)
    flush_id = world.logs.recovery_points.begin(100_000)
    assert not try_truncate(full, 20)
    while flush_id >= 0:
        world.disk.complete_flush(flush_id)
        flush_id = world.logs.recovery_points.on_flushed(flush_id)
    assert full.log_start_offset == 55

    world.logs.close_cleanly()
    log = world.open_logs()

    assert (log.log_start_offset, log.log_end_offset) == (55, 60)
    assert world.offsets(log) == list(range(55, 60))
    cut(world, log, 20)
    assert (log.log_start_offset, log.log_end_offset) == (20, 20)


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


def cut(world, log, offset: int, *, how=try_truncate) -> int:
    """Call until it is done, with rounds of recovery points; the number of calls."""
    calls = 1
    while not how(log, offset):
        calls += 1
        assert log.is_being_cut
        assert calls < 1000
        world.recovery_point_round(1_000_000 + calls)
        if log.has_undurable_cut:
            world.flush(log)
    return calls


def test_a_long_cut_takes_a_bounded_part_of_each_turn(world, full, monkeypatch):
    monkeypatch.setattr(truncation, "SEGMENTS_PER_CALL_MAX", 1)
    monkeypatch.setattr(truncation, "BATCHES_PER_CALL_MAX", 10)
    segments = len(full.segments)

    calls = 1
    while not try_truncate(full, 35):
        calls += 1
        with pytest.raises(StorageError, match="is being cut"):
            world.append(full, epoch=3)
        # Nothing is saved while derived state is not that of the log.
        assert world.recovery_point_round(100_000 * calls) == 0

    assert calls > segments // 3 + 3
    assert world.offsets(full) == list(range(35))
    assert world.listener.offsets == list(range(35))
    assert full.has_undurable_cut


@pytest.mark.parametrize("calls", range(1, 20))
def test_a_lower_cut_comes_after_the_one_that_has_begun(world, full, monkeypatch, calls):
    world.recovery_point_round(100_000)
    cut(world, full, 55)
    world.flush(full)
    world.fill(full, 20, epoch=3)
    monkeypatch.setattr(truncation, "SEGMENTS_PER_CALL_MAX", 1)
    monkeypatch.setattr(truncation, "BATCHES_PER_CALL_MAX", 5)
    for _ in range(calls):
        try_truncate(full, 56)

    cut(world, full, 30)

    assert full.log_end_offset == 30
    assert world.listener.offsets == world.offsets(full) == list(range(30))
    world.flush(full)
    world.disk.crash()
    assert world.offsets(world.open_logs()) == list(range(30))


def test_a_cut_goes_by_its_table_of_states_alone():
    for state, following in NEXT_STATES.items():
        for wanted in NEXT_STATES:
            log_cut = Cut()
            log_cut.state = state
            if wanted in following:
                log_cut.enter(wanted, 7)
                assert (log_cut.state, log_cut.offset) == (wanted, 7)
            else:
                with pytest.raises(AssertionError):
                    log_cut.enter(wanted, 7)
                assert log_cut.state == state


def test_a_cut_that_is_not_needed_any_more_ends_where_it_has_come_to(world, full):
    world.recovery_point_round(100_000)
    assert not try_truncate(full, 20)

    assert try_truncate(full, full.log_end_offset)

    assert not full.is_being_cut
    world.fill(full, 1, epoch=3)
    assert world.offsets(full) == list(range(61))


def test_a_cut_at_the_end_forgets_an_epoch_without_a_batch(world, full):
    full.assign_epoch(9)

    assert try_truncate(full, 60)

    assert full.leader_epochs.epochs == [1, 2]


def test_a_listener_that_is_not_touched_by_a_cut_is_not_read_anew(world, full):
    world.listener.truncate = lambda end_offset: True
    world.listener.recovered = []

    assert try_truncate(full, 50)

    assert world.listener.recovered == []


def test_a_segment_is_cut_though_another_of_its_name_comes_before_its_file_is_gone(world, full):
    world.disk.defers_removals = True
    try_truncate(full, 0)
    world.flush(full)
    world.listener.offsets = []
    world.fill(full, 60, epoch=7)

    world.disk.complete_removals()
    world.disk.crash()

    assert world.offsets(world.open_logs()) == list(range(60))


@pytest.mark.parametrize("offset", [500, 60, 30, 0])
def test_a_restart_leaves_an_empty_log_at_its_offset(world, full, offset):
    assert not try_restart(full, offset)
    cut(world, full, offset, how=try_restart)

    assert full.log_start_offset == full.log_end_offset == full.flushed_offset == offset
    assert world.offsets(full) == []
    assert full.leader_epochs.epochs == []
    assert world.listener.offsets == []
    world.flush(full)
    world.disk.crash()
    log = world.open_logs()
    assert (log.log_start_offset, log.log_end_offset) == (offset, offset)
    assert log.leader_epochs.epochs == []
    world.fill(log, 3, epoch=4)
    assert world.offsets(log) == list(range(offset, offset + 3))


def test_a_restart_at_an_empty_log_has_nothing_to_do(world):
    log = world.open_logs()
    log.assign_epoch(4)

    assert try_restart(log, 0)
    # Without a batch it may have no place in the history that is followed now.
    assert log.leader_epochs.epochs == []
    assert not try_restart(log, 7)
    cut(world, log, 7, how=try_restart)
    world.flush(log)
    world.fill(log, 2)

    assert world.offsets(log) == [7, 8]
    world.flush(log)
    world.disk.crash()
    assert world.offsets(world.open_logs()) == [7, 8]


def test_a_cut_below_the_log_start_begins_the_log_anew(world, full):
    full.follow_start(40)
    world.recovery_point_round(100_000)

    cut(world, full, 25)

    assert full.log_start_offset == full.log_end_offset == 25
    world.flush(full)
    world.fill(full, 2, epoch=5)
    world.disk.crash()
    assert world.offsets(world.open_logs()) == [25, 26]


@pytest.fixture
def begun_inside(world):
    """A log of four batches of three records each, that begins at the second record of one."""
    log = world.open_logs()
    for first in range(0, 12, 3):
        world.append(log, *range(first, first + 3))
    log.write()
    world.flush(log)
    log.follow_start(4)
    world.recovery_point_round(100_000)
    return log


@pytest.mark.parametrize("offset", [4, 5])
def test_a_cut_inside_the_batch_where_the_log_begins_leaves_an_empty_log(
    world, begun_inside, offset
):
    cut(world, begun_inside, offset)

    assert begun_inside.log_start_offset == begun_inside.log_end_offset == 4
    world.flush(begun_inside)
    world.fill(begun_inside, 2, epoch=5)
    world.disk.crash()
    log = world.open_logs()
    assert (log.log_start_offset, log.flaw_offset) == (4, -1)
    assert world.offsets(log) == [4, 5]


@pytest.mark.parametrize("offset", [4, 5])
def test_a_cut_inside_that_batch_which_is_not_needed_any_more_loses_nothing(
    world, begun_inside, offset
):
    try_truncate(begun_inside, offset)
    world.recovery_point_round(100_001)
    while not try_truncate(begun_inside, begun_inside.log_end_offset):
        world.recovery_point_round(100_002)
    end_offset = begun_inside.log_end_offset

    world.disk.crash()

    log = world.open_logs()
    assert (log.log_end_offset, log.flaw_offset) == (end_offset, -1)


def test_a_damaged_log_is_whole_after_a_restart(world, full):
    path = full.segments[1].path + ".log"
    world.recovery_point_round(100_000)
    world.disk.kill()
    world.disk.lose_file(path)
    log = world.open_logs()
    assert log.flaw_offset >= 0

    cut(world, log, 60, how=try_restart)

    assert log.flaw_offset == -1
    world.flush(log)
    world.fill(log, 2, epoch=5)
    world.disk.crash()
    assert world.offsets(world.open_logs()) == [60, 61]


def test_a_crash_between_the_row_of_a_restart_and_its_end_leaves_an_old_part_or_nothing(worlds):
    for world in worlds:
        world.config.segment_bytes = 1500
        log = world.open_logs()
        world.fill(log, 60, epoch=1)
        assert not try_restart(log, 30)
        world.recovery_point_round(100_000)
        try_restart(log, 30)

        world.disk.crash()
        log = world.open_logs()

        assert log.flaw_offset == -1
        assert log.log_start_offset == 30
        assert world.offsets(log) == list(range(30, int(log.log_end_offset)))
