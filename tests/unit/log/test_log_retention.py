"""Retention: what is due goes, the rest stays; files go when the new start is durable."""

from __future__ import annotations

from tarry.log.retention import delete_old_segments

DAY_MS = 24 * 60 * 60 * 1000


def filled(world, *timestamps):
    """One segment per timestamp."""
    world.config.segment_bytes = 100
    log = world.open_logs()
    for timestamp in timestamps:
        world.append(log, timestamp)
    log.write()
    world.flush(log)
    assert len(log.segments) == len(timestamps)
    return log


def delete(world, log, now_wall_ms, high_watermark):
    """Retention and the recovery point that carries it out; how many segments went."""
    before = len(world.names(".log"))
    count = delete_old_segments(log, now_wall_ms, high_watermark)
    world.recovery_point_round(0)
    assert before - len(world.names(".log")) == count
    return count


def test_segments_go_when_their_largest_timestamp_is_too_old(world):
    log = filled(world, 1000, 2000, 3000, 4000)
    world.config.retention_ms = 500

    assert delete(world, log, 2500, 4) == 1
    assert delete(world, log, 2501, 4) == 1
    world.recovery_point_round(1000)
    assert log.log_start_offset == 2
    assert world.offsets(log) == [2, 3]


def test_a_young_segment_keeps_the_older_ones_behind_it(world):
    log = filled(world, 1000, 9000, 1000, 1000)
    world.config.retention_ms = 500

    assert delete(world, log, 5000, 4) == 1
    world.recovery_point_round(1000)
    assert log.log_start_offset == 1


def test_a_timestamp_in_the_future_keeps_its_segment(world):
    log = filled(world, 10**15, 2000)
    world.config.retention_ms = 0

    assert delete(world, log, 5000, 2) == 0


def test_the_active_segment_rolls_when_all_of_it_is_due(world):
    log = filled(world, 1000, 2000)
    world.config.retention_ms = 500

    assert delete(world, log, DAY_MS, 2) == 2
    world.recovery_point_round(1000)
    assert (log.log_start_offset, log.log_end_offset) == (2, 2)
    assert log.size_bytes == 0
    world.append(log, 3000)
    log.write()
    assert world.offsets(log) == [2]


def test_an_emptied_log_knows_its_end_after_a_restart(world):
    log = filled(world, 1000, 2000)
    world.config.retention_ms = 500
    delete(world, log, DAY_MS, 2)
    assert world.names(".log") == []

    log = world.open_logs()

    assert (log.log_start_offset, log.log_end_offset) == (2, 2)
    assert log.flaw_offset == -1


def test_an_empty_active_segment_is_not_rolled_again(world):
    log = filled(world, 1000)
    world.config.retention_ms = 500
    delete(world, log, DAY_MS, 1)

    assert delete(world, log, 2 * DAY_MS, 1) == 0


def test_nothing_above_the_high_watermark_goes(world):
    log = filled(world, 1000, 2000, 3000)
    world.config.retention_ms = 0

    assert delete(world, log, DAY_MS, 1) == 1
    assert delete(world, log, DAY_MS, 1) == 0
    assert delete(world, log, DAY_MS, 2) == 1


def test_retention_without_limit_keeps_everything(world):
    log = filled(world, 1000, 2000)
    world.config.retention_ms = -1
    world.config.retention_bytes = -1

    assert delete(world, log, 10**15, 2) == 0


def test_the_oldest_go_while_what_is_left_still_reaches_the_size(world):
    log = filled(world, *[10**12] * 5)
    size = log.segments[0].size
    world.config.retention_bytes = 2 * size + 1

    assert delete(world, log, 10**12, 5) == 2
    world.config.retention_bytes = 2 * size
    assert delete(world, log, 10**12, 5) == 1
    world.recovery_point_round(1000)
    assert log.size_bytes == 2 * size


def test_records_without_timestamps_go_by_the_time_of_their_append(world):
    world.now_wall_ms = 10_000
    log = filled(world, -1, -1)
    world.config.retention_ms = 500

    assert delete(world, log, 10_500, 2) == 0
    assert delete(world, log, 10_501, 2) == 2


def test_the_time_of_their_append_survives_a_restart(world):
    world.now_wall_ms = 10_000
    log = filled(world, -1, -1)
    world.recovery_point_round(100_000)
    world.config.retention_ms = 500
    log = world.open_logs()

    assert delete(world, log, 10_501, 2) == 2


def test_files_go_only_when_the_new_start_is_durable(world):
    log = filled(world, 1000, 2000, 3000)
    world.config.retention_ms = 500

    delete_old_segments(log, 2800, 3)
    assert len(world.names(".log")) == 3
    assert log.log_start_offset == 0
    world.recovery_point_round(1000)

    assert log.log_start_offset == 2
    assert world.names(".log") == ["00000000000000000002.log"]


def test_readers_see_the_new_start_only_when_it_is_durable(world):
    log = filled(world, 1000, 2000, 3000)
    world.config.retention_ms = 500

    delete_old_segments(log, 2800, 3)
    before = log.log_start_offset
    world.recovery_point_round(1000)

    assert (before, log.log_start_offset) == (0, 2)


def test_a_crash_before_that_brings_the_segments_back(world):
    log = filled(world, 1000, 2000, 3000)
    world.config.retention_ms = 500
    delete_old_segments(log, 2800, 3)
    flush_id = world.logs.recovery_points.begin(1000)
    assert flush_id >= 0

    world.disk.crash()

    assert world.open_logs().log_start_offset == 0


def test_the_log_start_never_goes_back_once_it_is_durable(world):
    log = filled(world, 1000, 2000, 3000)
    world.disk.defers_removals = True
    log.advance_log_start_offset(2)
    world.recovery_point_round(1000)

    world.disk.crash()
    log = world.open_logs()

    assert log.log_start_offset == 2
    assert world.offsets(log) == [2]
    assert world.names(".log") == ["00000000000000000002.log"]


def test_the_log_start_may_lie_inside_a_segment(world):
    world.config.segment_bytes = 1 << 30
    log = world.open_logs()
    world.fill(log, 10)
    log.advance_log_start_offset(4)
    world.recovery_point_round(100_000)

    log = world.open_logs()

    assert log.log_start_offset == 4
    assert world.offsets(log) == list(range(4, 10))


def emptied_and_rolled_in_a_round(world):
    """A recovery point ends in segment 0, all of which it deletes; segment 1 begins meanwhile."""
    log = world.open_logs()
    world.fill(log, 1)
    log.ask_for_start(1)
    points = world.logs.recovery_points
    flush_id = points.begin(0)
    log.roll()
    world.fill(log, 1)
    while flush_id >= 0:
        world.disk.complete_flush(flush_id)
        flush_id = points.on_flushed(flush_id)
    assert log.log_start_offset == 1
    return log


def test_a_segment_that_the_recovery_point_names_stays(world):
    emptied_and_rolled_in_a_round(world)
    world.disk.kill()

    log = world.open_logs()

    assert log.flaw_offset == -1
    assert log.log_start_offset == 1
    assert world.offsets(log) == [1]


def test_a_segment_that_only_an_older_recovery_point_named_goes(world):
    emptied_and_rolled_in_a_round(world)

    world.recovery_point_round(1)

    assert world.names(".log") == ["00000000000000000001.log"]


def test_the_log_start_does_not_go_back(world):
    log = filled(world, 1000, 2000, 3000)

    log.advance_log_start_offset(2)
    log.advance_log_start_offset(1)

    assert log.log_start_offset == 2


def test_epochs_follow_the_log_start(world):
    world.config.segment_bytes = 100
    log = world.open_logs()
    world.fill(log, 2, epoch=1)
    world.fill(log, 2, epoch=3)

    log.advance_log_start_offset(3)

    assert log.leader_epochs.epochs == [3]
    assert log.leader_epochs.start_offsets == [3]


def test_nothing_goes_while_a_tail_waits(world):
    log = filled(world, 1000, 2000)
    world.config.retention_ms = 0
    world.append(log, 3000)

    assert delete_old_segments(log, DAY_MS, 2) == 0
