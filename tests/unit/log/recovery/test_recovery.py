"""Recovery: what lies past the recovery point is scanned, a torn tail is cut and reported."""

from __future__ import annotations

import logging

import pytest
from tests.support.recovery import has_found_nothing

from tarry.base.errors import StorageError
from tarry.log.index.epoch_index import EPOCH_FILE, EpochIndex

LOG_0 = "orders-0/00000000000000000000.log"


def raw(world, path):
    return world.disk.open(path).read(0, 1 << 30)


def write_raw(world, path, content):
    file = world.disk.open(path, create=True)
    file.truncate(0)
    file.append([content])
    world.disk.flush([file], ["orders-0"])


@pytest.fixture
def covered(world):
    """A log whose recovery point covers 40 of its 60 flushed batches."""
    world.config.segment_bytes = 1500
    log = world.open_logs()
    world.fill(log, 40)
    world.recovery_point_round(100_000)
    assert log.recovery_point.offset == 40
    world.fill(log, 20)
    return log


def test_a_new_log_is_empty(world):
    log = world.open()

    assert (log.log_start_offset, log.log_end_offset, log.flushed_offset) == (0, 0, 0)
    assert log.end_position().offset == 0
    assert world.disk.paths("orders-0") == []
    assert has_found_nothing(log)


def test_an_empty_log_is_empty_again(world):
    world.open()

    assert world.open().log_end_offset == 0


def test_only_what_lies_past_the_recovery_point_is_scanned(world, covered):
    total = covered.size_bytes
    world.disk.kill()

    log = world.open_logs()

    assert log.log_end_offset == 60
    assert 0 < log.recovery_report.scanned_bytes < total / 2
    assert log.recovery_report.walked_bytes == 0
    assert world.listener.recovered == list(range(40, 60))
    assert world.offsets(log) == list(range(60))


def test_a_scan_makes_the_same_indexes_again(world, covered):
    before = [
        (s.loaded().offsets.encode_from(0), s.max_timestamp, s.max_timestamp_offset)
        for s in covered.segments
    ]
    world.disk.kill()

    log = world.open_logs()

    assert [
        (s.loaded().offsets.encode_from(0), s.max_timestamp, s.max_timestamp_offset)
        for s in log.segments
    ] == before


def test_index_entries_past_the_recovery_point_are_not_trusted(world, covered):
    active = covered.active
    active.indexes.save([])
    path = f"{active.path}.index"
    write_raw(world, path, b"\x7f" * 8 * 20)
    world.disk.kill()

    log = world.open_logs()
    world.recovery_point_round(200_000)

    assert world.offsets(log) == list(range(60))
    assert raw(world, path) == log.active.loaded().offsets.encode_from(0)


@pytest.mark.parametrize("cut", [1, 60, 61, 90, 150])
def test_a_torn_tail_is_cut_and_reported_with_its_size(world, caplog, cut):
    log = world.open()
    world.fill(log, 5)
    size = log.active.size // 5
    world.disk.open(LOG_0).truncate(5 * size - cut)
    kept = 5 - (cut + size - 1) // size

    with caplog.at_level(logging.WARNING, "tarry.log"):
        log = world.open()

    torn = 5 * size - cut - kept * size
    assert log.log_end_offset == kept
    assert log.recovery_report.torn_bytes == torn
    assert log.recovery_report.torn_offset == kept
    assert world.disk.open(LOG_0).size == kept * size
    assert not torn or f"a torn tail of {torn} bytes was cut off at offset {kept}" in caplog.text
    assert not log.is_dirty


@pytest.mark.parametrize("position", [8, 10, 16, 17, 25, 60, 75])
def test_a_changed_byte_past_the_recovery_point_ends_the_log_there(world, position):
    log = world.open()
    world.fill(log, 5)
    size = log.active.size // 5
    world.disk.flip_bit(LOG_0, 3 * size + position, 2)

    log = world.open()

    assert log.log_end_offset == 3
    assert log.recovery_report.torn_bytes == 2 * size
    world.fill(log, 2)
    assert world.offsets(log) == [0, 1, 2, 3, 4]


def test_zeros_at_the_end_are_a_torn_tail(world):
    log = world.open()
    world.fill(log, 3)
    world.disk.open(LOG_0).append([bytes(500)])

    log = world.open()

    assert log.log_end_offset == 3
    assert log.recovery_report.torn_bytes == 500


def test_a_segment_that_is_missing_past_the_recovery_point_ends_the_log(world):
    world.config.segment_bytes = 300
    log = world.open()
    world.fill(log, 12)
    missing = log.segments[2].base_offset
    world.disk.remove(f"orders-0/{missing:020d}.log")

    log = world.open()

    assert log.log_end_offset == missing
    assert log.recovery_report.torn_bytes > 0
    assert world.names(".log") == [f"{s.base_offset:020d}.log" for s in log.segments]
    world.fill(log, 12)
    assert world.offsets(log) == list(range(log.log_end_offset))


def test_an_empty_segment_at_the_end_is_used_again(world):
    log = world.open()
    world.fill(log, 3)
    write_raw(world, "orders-0/00000000000000000003.log", b"")

    log = world.open()
    world.fill(log, 2)

    assert [segment.base_offset for segment in log.segments] == [0, 3]
    assert world.offsets(log) == [0, 1, 2, 3, 4]


def test_a_segment_that_lies_inside_another_is_left_over_and_removed(world):
    log = world.open()
    world.fill(log, 6)
    write_raw(world, "orders-0/00000000000000000004.log", b"left over")

    log = world.open()

    assert log.log_end_offset == 6
    assert world.names(".log") == ["00000000000000000000.log"]
    assert log.recovery_report.removed_segments == ("orders-0/00000000000000000004",)


def test_batches_of_an_earlier_epoch_end_the_log(world):
    """They are left over from before a truncation that the crash undid in part."""
    log = world.open()
    world.fill(log, 3, epoch=5)
    stale = bytearray(world.batch(1000))
    stale[0:8] = (3).to_bytes(8, "big")
    stale[12:16] = (4).to_bytes(4, "big")
    world.disk.open(LOG_0).append([bytes(stale)])

    assert world.open().log_end_offset == 3


def test_epochs_are_derived_from_the_batches_again(world):
    log = world.open()
    world.fill(log, 3, epoch=1)
    world.fill(log, 3, epoch=4)

    log = world.open()

    assert log.leader_epochs.epochs == [1, 4]
    assert log.leader_epochs.start_offsets == [0, 3]


def test_epochs_come_from_their_file_below_the_recovery_point(world):
    log = world.open_logs()
    world.fill(log, 3, epoch=1)
    world.fill(log, 3, epoch=4)
    world.recovery_point_round(100_000)
    world.fill(log, 3, epoch=6)

    log = world.open_logs()

    assert EPOCH_FILE in world.names()
    assert log.leader_epochs.epochs == [1, 4, 6]
    assert log.leader_epochs.start_offsets == [0, 3, 6]
    assert log.recovery_report.walked_bytes == 0


@pytest.mark.parametrize("content", [None, b"", b"damaged"])
def test_a_lost_epoch_file_is_made_anew_from_the_batches(world, content):
    log = world.open_logs()
    world.fill(log, 3, epoch=1)
    world.fill(log, 3, epoch=4)
    world.recovery_point_round(100_000)
    world.disk.remove(f"orders-0/{EPOCH_FILE}")
    if content is not None:
        write_raw(world, f"orders-0/{EPOCH_FILE}", content)

    log = world.open_logs()

    assert log.leader_epochs.epochs == [1, 4]
    assert log.leader_epochs.start_offsets == [0, 3]
    assert log.recovery_report.walked_bytes > 0


def epoch_file(epoch):
    """An epoch file in which this epoch begins at offset 0."""
    index = EpochIndex()
    index.assign(epoch, 0)
    return index.encode()


def test_an_epoch_file_that_is_older_than_a_cut_takes_no_batch_away(world):
    """The log was cut to its start, and a batch of an earlier leader came: the file on the disk
    still has the epoch that the cut took."""
    log = world.open_logs()
    world.fill(log, 2, epoch=1)
    write_raw(world, f"orders-0/{EPOCH_FILE}", epoch_file(5))

    log = world.open_logs()

    assert log.log_end_offset == 2
    assert (log.leader_epochs.epochs, log.leader_epochs.start_offsets) == ([1], [0])


def test_the_epoch_of_an_empty_logs_start_stays(world):
    world.open_logs()
    write_raw(world, f"orders-0/{EPOCH_FILE}", epoch_file(5))

    log = world.open_logs()

    assert (log.leader_epochs.epochs, log.leader_epochs.start_offsets) == ([5], [0])


def test_the_listener_gets_its_snapshot_and_what_came_after(world, covered):
    log = world.open_logs()

    assert world.listener.offsets == list(range(60))
    assert world.listener.recovered == list(range(40, 60))
    assert log.recovery_point.snapshot_offset == 40


def test_a_damaged_snapshot_is_replaced_by_an_older_one(world, covered):
    world.recovery_point_round(200_000)
    assert world.names(".snapshot") == [f"{o:020d}.snapshot" for o in (40, 60)]
    world.disk.flip_bit("orders-0/00000000000000000060.snapshot", 9)

    log = world.open_logs()

    assert world.listener.offsets == list(range(60))
    assert world.listener.recovered == list(range(40, 60))
    assert log.recovery_report.scanned_bytes == 0
    assert log.recovery_report.walked_bytes > 0


def test_without_any_snapshot_the_listener_hears_of_every_batch(world, covered):
    for name in world.names(".snapshot"):
        world.disk.remove(f"orders-0/{name}")

    world.open_logs()

    assert world.listener.recovered == list(range(60))


def test_a_listener_with_nothing_to_keep_needs_no_snapshot(world):
    world.listener.is_empty = True
    log = world.open_logs()
    world.fill(log, 10)
    world.recovery_point_round(100_000)
    world.fill(log, 5)

    log = world.open_logs()

    assert world.names(".snapshot") == []
    assert world.listener.recovered == list(range(10, 15))
    assert log.recovery_report.walked_bytes == 0


def test_a_snapshot_of_a_round_that_did_not_end_is_removed(world, covered):
    write_raw(world, "orders-0/00000000000000000055.snapshot", b"garbage")

    world.open_logs()

    assert world.listener.offsets == list(range(60))
    assert world.names(".snapshot") == ["00000000000000000040.snapshot"]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_missing_index_files_are_made_anew(world, covered, suffix):
    world.logs.close_cleanly()
    expected = {name: raw(world, f"orders-0/{name}") for name in world.names(suffix)}
    assert len(expected) > 2
    for name in expected:
        world.disk.remove(f"orders-0/{name}")

    log = world.open_logs()
    world.fill(log, 1)
    world.recovery_point_round(300_000)

    assert world.offsets(log) == list(range(61))
    for name, content in expected.items():
        assert raw(world, f"orders-0/{name}")[: len(content)] == content


def test_a_short_index_file_is_made_anew(world, covered):
    world.logs.close_cleanly()
    name = world.names(".index")[1]
    world.disk.open(f"orders-0/{name}").truncate(8)

    log = world.open_logs()

    assert world.offsets(log) == list(range(60))


def test_leftover_files_below_the_log_start_are_removed(world, covered):
    write_raw(world, "orders-0/00000000000000000000.log.kept", raw(world, LOG_0))
    first_kept = covered.segments[2].base_offset
    covered.advance_log_start_offset(first_kept)
    world.recovery_point_round(200_000)
    assert world.names(".log")[0] == f"{first_kept:020d}.log"
    write_raw(world, LOG_0, raw(world, "orders-0/00000000000000000000.log.kept"))

    write_raw(world, "orders-0/00000000000000000001.index", b"left over")
    log = world.open_logs()

    assert log.log_start_offset == first_kept
    assert world.names(".log")[0] == f"{first_kept:020d}.log"
    assert "00000000000000000001.index" not in world.names()


def test_damaged_recovery_points_mean_that_all_is_read(world, covered, caplog):
    world.disk.flip_bit("recovery-points", 30)

    log = world.open_logs()

    assert "recovery-points is damaged" in caplog.text
    assert log.log_end_offset == 60
    assert log.recovery_report.scanned_bytes == log.size_bytes
    assert world.listener.recovered == list(range(60))


def test_with_damaged_recovery_points_only_the_last_segment_may_be_torn(world, covered):
    first, last = covered.segments[0], covered.active
    world.disk.flip_bit("recovery-points", 30)
    world.disk.open(f"{last.path}.log").append([b"torn"])

    assert world.open_logs().recovery_report.torn_bytes == 4

    world.disk.flip_bit(f"{first.path}.log", 200)
    log = world.open_logs()
    assert log.flaw_offset == 1
    assert log.recovery_report.torn_bytes == 0


def test_a_file_that_cannot_be_opened_refuses_the_start_and_is_no_flaw(world, covered):
    world.disk.kill()
    disk_open = world.disk.open

    def refuse(path, *, create=False):
        if path.endswith(".log"):
            raise StorageError(f"{path}: too many open files")
        return disk_open(path, create=create)

    world.disk.open = refuse
    with pytest.raises(StorageError, match="too many open files"):
        world.open_logs()
    del world.disk.open

    log = world.open_logs()
    assert (log.flaw_offset, log.log_end_offset) == (-1, 60)


def test_a_device_that_fails_on_the_walk_for_a_lost_snapshot_is_a_flaw(world, covered):
    world.logs.close_cleanly()
    for name in world.names(".snapshot"):
        world.disk.remove(f"orders-0/{name}")
    world.disk.fail_reads(1, f"{covered.segments[2].base_offset:020d}.log")

    log = world.open_logs()

    assert log.flaw_offset == covered.segments[2].base_offset
    assert "failed to read" in log.recovery_report.flaw_reason
