"""Damage to what was durable: reported, nothing cut, what lies before it stays readable."""

from __future__ import annotations

import pytest

from tarry.base.errors import CorruptData, StorageError
from tarry.log.retention import delete_old_segments


@pytest.fixture
def clean(world):
    """A log of several segments that was stopped cleanly."""
    world.config.segment_bytes = 1500
    log = world.open_logs()
    world.fill(log, 60)
    world.logs.close_cleanly()
    return log


def contents(world):
    return {
        name: world.disk.open(f"orders-0/{name}").read(0, 1 << 30) for name in world.names(".log")
    }


def is_readable_up_to(world, log, offset):
    """Reads before the flaw go on, one at it fails, and so does an append."""
    end = log.end_position()
    seen = []
    at = log.log_start_offset
    while at < offset:
        region = log.read(at, end, 1 << 30, True)
        headers = world.headers_in(region.file.read(region.position, region.size))
        seen += [header.base_offset for header, _ in headers]
        at = headers[-1][0].last_offset + 1
    assert seen == list(range(log.log_start_offset, offset))
    for later in (offset, max(offset, log.log_end_offset - 1)):
        with pytest.raises((StorageError, CorruptData)):
            log.read(later, end, 1 << 30, True)
    with pytest.raises(StorageError, match=f"flaw at offset {offset}"):
        world.append(log)
    return True


def test_a_missing_segment_is_a_flaw_and_nothing_is_cut(world, clean, caplog):
    missing = clean.segments[2]
    world.disk.remove(f"{missing.path}.log")
    before = contents(world)

    log = world.open_logs()

    assert log.flaw_offset == missing.base_offset
    assert "is missing" in log.recovery_report.flaw_reason
    assert f"damaged at offset {missing.base_offset}" in caplog.text
    assert log.log_end_offset == 60
    assert is_readable_up_to(world, log, missing.base_offset)
    assert contents(world) == before


def test_a_missing_last_segment_is_a_flaw(world, clean):
    world.disk.remove(f"{clean.active.path}.log")

    log = world.open_logs()

    assert log.log_end_offset == 60
    assert is_readable_up_to(world, log, clean.active.base_offset)


def test_a_file_shorter_than_its_recovery_point_is_a_flaw(world, clean):
    active = clean.active
    batch = active.size // (60 - active.base_offset)
    world.disk.open(f"{active.path}.log").truncate(active.size - 10)
    before = contents(world)

    log = world.open_logs()

    assert active.size == batch * (60 - active.base_offset)
    assert log.flaw_offset == 59
    assert log.log_end_offset == 60
    assert is_readable_up_to(world, log, 59)
    assert contents(world) == before


def test_an_older_segment_that_has_become_shorter_is_noticed_when_it_is_read(world, clean):
    second = clean.segments[1]
    third = clean.segments[2].base_offset
    world.disk.open(f"{second.path}.log").truncate(second.size - 10)

    log = world.open_logs()

    assert log.flaw_offset == -1
    with pytest.raises(CorruptData):
        log.read(second.base_offset, log.end_position(), 1 << 30, True)
    assert is_readable_up_to(world, log, third - 1)


def test_a_damaged_header_is_noticed_when_it_is_met(world, clean):
    first = clean.segments[0]
    batch = first.size // clean.segments[1].base_offset
    world.disk.flip_bit(f"{first.path}.log", 2 * batch + 16, 4)

    log = world.open_logs()
    with pytest.raises(CorruptData):
        log.read(2, log.end_position(), 1, True)

    assert is_readable_up_to(world, log, 2)


def test_a_batch_that_begins_at_a_wrong_offset_puts_no_blame_on_the_one_before(world, clean):
    first = clean.segments[0]
    batch = first.size // clean.segments[1].base_offset
    world.disk.flip_bit(f"{first.path}.log", 2 * batch + 7, 4)

    log = world.open_logs()
    with pytest.raises(CorruptData, match="offset 18 where 2 had to come"):
        log.read(2, log.end_position(), 1, True)

    assert is_readable_up_to(world, log, 2)


def test_a_wrong_crc_met_on_the_walk_for_a_lost_snapshot_is_a_flaw(world, clean):
    first = clean.segments[0]
    batch = first.size // clean.segments[1].base_offset
    world.disk.flip_bit(f"{first.path}.log", 3 * batch + 70)
    for name in world.names(".snapshot"):
        world.disk.remove(f"orders-0/{name}")
    before = contents(world)

    log = world.open_logs()

    assert log.flaw_offset == 3
    assert "CRC" in log.recovery_report.flaw_reason
    assert is_readable_up_to(world, log, 3)
    assert contents(world) == before


def test_a_flaw_keeps_a_torn_tail_from_being_cut(world, clean):
    world.disk.remove(f"{clean.segments[1].path}.log")
    world.disk.open(f"{clean.active.path}.log").append([b"torn"])
    before = contents(world)

    log = world.open_logs()

    assert log.recovery_report.torn_bytes == 0
    assert log.log_end_offset == 60
    assert contents(world) == before


def test_a_flawed_log_keeps_its_old_recovery_point(world, clean):
    world.disk.remove(f"{clean.segments[1].path}.log")
    log = world.open_logs()
    rows = dict(world.logs.recovery_points.rows)

    world.logs.close_cleanly()

    assert world.open_logs().flaw_offset == log.flaw_offset
    assert world.logs.recovery_points.rows == rows


def test_a_device_that_fails_to_read_is_no_flaw(world, clean):
    log = world.open_logs()
    world.disk.fail_reads(1)

    with pytest.raises(StorageError):
        world.read_all(log, 200)

    assert log.flaw_offset == -1
    assert world.offsets(log) == list(range(60))


def test_a_device_that_fails_to_read_during_recovery_stops_appends(world):
    log = world.open()
    world.fill(log, 5)
    world.disk.fail_reads(1, ".log")

    log = world.open()

    assert log.flaw_offset == 0
    assert world.open().flaw_offset == -1


def test_a_search_by_time_says_when_a_flaw_hides_the_answer(world, clean):
    world.disk.remove(f"{clean.segments[2].path}.log")
    log = world.open_logs()
    before, after = clean.segments[1].max_timestamp, clean.segments[2].max_timestamp

    assert log.offset_for_time(before, 60)[1] < log.flaw_offset
    with pytest.raises((StorageError, CorruptData)):
        log.offset_for_time(after, 60)


def test_a_flawed_log_deletes_nothing(world, clean):
    world.disk.remove(f"{clean.segments[2].path}.log")
    log = world.open_logs()
    world.config.retention_ms = 0

    assert delete_old_segments(log, 10**15, 60) == 0


def test_an_active_file_that_became_shorter_behind_our_back_stops_appends(world, clean):
    log = world.open_logs()
    log.active.close()
    world.disk.open(f"{log.active.path}.log").truncate(log.active.size - 10)

    with pytest.raises(StorageError):
        world.append(log)

    assert log.flaw_offset == 59
    assert not log.has_tail
    assert is_readable_up_to(world, log, 59)


def test_a_file_that_disappears_under_a_tail_fails_the_write(world, clean):
    log = world.open_logs()
    world.append(log)
    log.active.close()
    world.disk.remove(f"{log.active.path}.log")

    with pytest.raises(StorageError):
        log.write()

    assert log.log_end_offset == 60
    assert log.flaw_offset == log.active.base_offset
    assert not log.has_tail


def test_a_flaw_that_is_met_under_a_tail_cuts_nothing(world):
    log = world.open_logs()
    world.fill(log, 400)
    path = f"{log.active.path}.log"
    size = world.disk.open(path).size
    world.disk.flip_bit(path, 20 * (size // 400) + 9, 3)
    world.append(log)
    with pytest.raises(CorruptData):
        log.read(20, log.end_position(), 1, True)
    before = contents(world)

    with pytest.raises(StorageError, match="flaw at offset 20"):
        log.write()

    assert contents(world) == before
    assert log.log_end_offset == 400
    assert not log.has_tail
    assert is_readable_up_to(world, log, 20)


def test_after_a_clean_stop_damage_past_the_recovery_point_is_no_torn_tail(world):
    """A flawed log gets no new recovery point, but all of it was flushed."""
    log = world.open_logs()
    world.fill(log, 40)
    world.recovery_point_round(100_000)
    world.fill(log, 20)
    world.disk.flip_bit(f"{log.active.path}.log", 50 * (log.active.size // 60) + 16)
    log.active.newest.clear()
    with pytest.raises(CorruptData):
        log.read(50, log.end_position(), 1, True)
    world.logs.close_cleanly()
    before = contents(world)

    log = world.open_logs()

    assert log.recovery_report.torn_bytes == 0
    assert is_readable_up_to(world, log, 50)
    assert contents(world) == before
