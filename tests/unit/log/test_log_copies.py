"""Copies: batches with the leader's offsets and epochs, gaps, epochs without one, log starts."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tarry.base.errors import CorruptData, StorageError
from tarry.log.copying import append_copy
from tarry.log.recovery.point_writer import has_changed
from tarry.log.segment import GAPS_FILE
from tarry.records.batch import BatchHeader
from tarry.wire.reader import window_of

FAR = 1 << 31


def copy(world, log, offset: int, epoch: int = 1, *timestamps: int) -> None:
    """One batch from the leader's log, at `offset`, to the tail."""
    built = world.batch(*(timestamps or (1000,)))
    data = offset.to_bytes(8, "big") + built[8:12] + epoch.to_bytes(4, "big") + built[16:]
    append_copy(log, window_of(data), BatchHeader(data, 0), world.now_wall_ms)
    world.listener.offsets.append(offset)


def copied(world, log, *offsets: int, epoch: int = 1) -> None:
    for offset in offsets:
        copy(world, log, offset, epoch)
    log.write()
    world.flush(log)


def test_a_copy_keeps_its_offset_and_its_epoch(world):
    log = world.open_logs()

    copied(world, log, 0, 1, 7, epoch=4)
    copied(world, log, 8, 30, epoch=6)

    assert world.offsets(log) == [0, 1, 7, 8, 30]
    assert log.log_end_offset == log.flushed_offset == 31
    assert log.leader_epochs.epochs == [4, 6]
    assert log.end_offset_for_epoch(5) == (4, 8)


@pytest.mark.parametrize("segment_bytes", [1 << 20, 300])
def test_a_read_in_a_gap_gives_the_batch_behind_it(world, segment_bytes):
    world.config.segment_bytes = segment_bytes
    log = world.open_logs()
    batches = [3, 4, 9, 10, 20, 31, 32, 50]
    copied(world, log, *batches)

    for again in (False, True):
        for offset in range(51):
            expected = next((base for base in batches if base >= offset), None)
            found = world.read_from(log, offset, 1)
            assert (found[0].offset if found else None) == expected
            assert log.position_of(offset).offset == offset
        if not again:
            log = world.open_logs()


def test_segments_follow_each_other_though_batches_do_not(world):
    world.config.segment_bytes = 300
    log = world.open_logs()

    copied(world, log, *range(5, 500, 37))

    segments = log.segments
    assert len(segments) > 3
    for segment, following in pairwise(segments):
        last = max(base for base in range(5, 500, 37) if base < following.base_offset)
        assert following.base_offset == last + 1
        assert segment.has_gaps


@pytest.mark.parametrize(
    ("offset", "epoch"), [(9, 3), (0, 3), (10, 2)], ids=["overlaps", "is old", "has an old epoch"]
)
def test_a_batch_that_cannot_follow_is_refused(world, offset, epoch):
    log = world.open_logs()
    copied(world, log, 9, epoch=3)

    with pytest.raises(CorruptData, match="cannot follow"):
        copy(world, log, offset, epoch)

    assert log.log_end_offset == 10
    assert not log.has_tail


def test_a_failed_write_takes_copies_gaps_and_epochs_back(world):
    world.config.segment_bytes = 300
    log = world.open_logs()
    copied(world, log, 0, 1)
    for offset in (5, 6, 60, 61, 62, 90):
        copy(world, log, offset, 2)

    world.disk.fail_writes(1, "62.log")
    with pytest.raises(StorageError):
        log.write()

    world.disk.heal()
    assert (log.log_end_offset, log.leader_epochs.epochs) == (2, [1])
    assert log.has_undurable_cut
    with pytest.raises(StorageError, match="not durable yet"):
        copy(world, log, 5, 2)
    world.flush(log)
    copied(world, log, 5, 6, 60, epoch=3)
    assert world.offsets(log) == [0, 1, 5, 6, 60]


@pytest.mark.parametrize("keeps_power", [True, False])
def test_a_crash_keeps_what_was_flushed_with_its_gaps(worlds, keeps_power):
    for world in worlds:
        world.config.segment_bytes = 300
        log = world.open_logs()
        copied(world, log, 0, 3, 50, 51, 99)
        for offset in (120, 121, 150, 170, 171):
            copy(world, log, offset, 2)
        log.write()

        if keeps_power:
            world.disk.kill()
        else:
            world.disk.crash()
        log = world.open_logs()

        found = world.offsets(log)
        assert log.flaw_offset == -1
        assert found[:5] == [0, 3, 50, 51, 99]
        # Never one without those before it.
        assert found[5:] == [120, 121, 150, 170, 171][: len(found) - 5]
        assert world.listener.offsets == found


def test_a_gap_wider_than_an_index_reaches_begins_a_segment(world):
    log = world.open_logs()
    copied(world, log, 0, 1)

    copied(world, log, FAR + 10, FAR + 11)
    copied(world, log, 3 * FAR)

    assert [int(each.base_offset) for each in log.segments] == [0, FAR + 10, 3 * FAR]
    assert world.offsets(log) == [0, 1, FAR + 10, FAR + 11, 3 * FAR]
    world.disk.crash()
    log = world.open_logs()
    assert world.offsets(log) == [0, 1, FAR + 10, FAR + 11, 3 * FAR]
    assert log.log_end_offset == 3 * FAR + 1


def test_a_log_that_begins_with_a_wide_gap_is_sound_when_its_snapshot_is_lost(world):
    log = world.open_logs()
    world.flush(log)
    copied(world, log, FAR + 10, FAR + 11)
    assert [int(each.base_offset) for each in log.segments] == [0, FAR + 10]
    world.logs.close_cleanly()
    world.disk.remove(f"{log.directory}/{FAR + 12:020d}.snapshot")

    log = world.open_logs()

    assert log.flaw_offset == -1
    assert world.listener.offsets == world.offsets(log) == [FAR + 10, FAR + 11]


def test_a_wide_gap_waits_until_what_is_before_it_is_durable(world):
    log = world.open_logs()
    copy(world, log, 0)

    with pytest.raises(StorageError, match="has to be flushed before"):
        copy(world, log, FAR + 10)

    log.write()
    assert world.offsets(log) == [0]


def test_a_log_without_gaps_has_no_file_that_says_so(world):
    log = world.open_logs()
    copied(world, log, 0, 1, 2)
    assert GAPS_FILE not in world.names()

    copied(world, log, 9)

    assert GAPS_FILE in world.names()


def test_an_epoch_begins_without_a_batch(world):
    log = world.open_logs()
    copied(world, log, 0, 1, epoch=3)

    log.assign_epoch(7)

    assert log.end_offset_for_epoch(6) == (3, 2)
    assert log.end_offset_for_epoch(7) == (7, 2)
    assert has_changed(log)
    # The log says so itself once there is a batch of it.
    world.recovery_point_round(100_000)
    world.disk.crash()
    log = world.open_logs()
    assert log.end_offset_for_epoch(3) == (3, 2)


def test_the_leaders_log_start_comes_with_a_recovery_point(world):
    world.config.segment_bytes = 300
    log = world.open_logs()
    copied(world, log, *range(0, 60, 4))

    log.follow_start(30)
    assert log.log_start_offset == 0
    world.recovery_point_round(100_000)

    assert log.log_start_offset == 30
    assert world.offsets(log) == list(range(32, 60, 4))
    world.disk.crash()
    log = world.open_logs()
    assert log.log_start_offset == 30


def test_a_log_start_behind_the_end_is_followed_up_to_the_end(world):
    log = world.open_logs()
    copied(world, log, 0, 1)

    log.follow_start(500)
    world.recovery_point_round(100_000)

    assert log.log_start_offset == log.log_end_offset == 2


@pytest.mark.parametrize(("hint", "found"), [(2, 2), (-1, -1), (500, 3)])
def test_recovery_points_keep_how_far_records_were_committed(world, hint, found):
    log = world.open_logs()
    copied(world, log, 0, 1, 2)

    log.high_watermark_hint = hint
    world.recovery_point_round(100_000)
    world.disk.crash()

    assert world.open_logs().high_watermark_hint == found
