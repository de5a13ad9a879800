"""All logs of a broker: start, recovery points while it runs, clean stop."""

from __future__ import annotations

import random

import pytest
from tests.support.recovery import has_found_nothing

from tarry.base.errors import StorageError, TooManyOpenFiles
from tarry.log.identity import IDENTITY_FILE
from tarry.log.logs import Logs
from tarry.log.recovery.point_writer import FILES_PER_ROUND_MAX, RECOVERY_POINT_AGE_MS
from tarry.log.recovery.points import (
    CLEAN_MARKER,
    RECOVERY_POINTS_FILE,
    RecoveryPoint,
    decode_recovery_points,
    encode_recovery_points,
    uncovered_row,
)
from tarry.simulation.disk import SimulatedDisk

DIRECTORY = "orders-0"
OTHER_ID = bytes(range(1, 17))
TOPIC_ID = bytes(range(16))


def rows(world):
    return decode_recovery_points(world.disk.open(RECOVERY_POINTS_FILE).read(0, 1 << 20))


def test_after_a_clean_stop_nothing_is_scanned(world):
    world.config.segment_bytes = 1500
    log = world.open_logs()
    world.fill(log, 60, epoch=3)
    world.logs.close_cleanly()
    world.disk.crash()

    log = world.open_logs()

    assert world.logs.was_clean
    assert has_found_nothing(log)
    assert log.recovery_report.walked_bytes == 0
    assert world.listener.recovered == []
    assert world.listener.offsets == list(range(60))
    assert log.leader_epochs.epochs == [3]
    assert not log.is_dirty
    assert world.offsets(log) == list(range(60))


def test_a_log_goes_on_after_a_clean_stop(world):
    log = world.open_logs()
    world.fill(log, 5)
    world.logs.close_cleanly()

    log = world.open_logs()
    world.fill(log, 5)
    world.logs.close_cleanly()

    assert world.offsets(world.open_logs()) == list(range(10))


def test_the_clean_marker_counts_once(world):
    world.open_logs()
    world.logs.close_cleanly()
    assert CLEAN_MARKER in world.disk.paths()

    world.open_logs()
    assert world.logs.was_clean
    world.disk.crash()

    world.open_logs()
    assert not world.logs.was_clean


def test_a_clean_stop_that_fails_leaves_no_marker(world):
    log = world.open_logs()
    world.fill(log, 5)
    world.disk.fail_flushes(1, RECOVERY_POINTS_FILE)

    with pytest.raises(StorageError):
        world.logs.close_cleanly()

    assert CLEAN_MARKER not in world.disk.paths()


def test_a_log_that_has_changed_gets_a_recovery_point_after_a_while(world):
    log = world.open_logs()
    world.fill(log, 5)

    assert world.recovery_point_round(RECOVERY_POINT_AGE_MS - 1) == 0
    assert world.recovery_point_round(RECOVERY_POINT_AGE_MS) == 3
    assert rows(world)[DIRECTORY].recovery_offset == 5
    assert world.recovery_point_round(2 * RECOVERY_POINT_AGE_MS) == 0


def test_a_log_that_has_grown_much_gets_one_at_once(world):
    log = world.open_logs()
    for _ in range(17):
        world.append(log, value=b"v" * (1 << 20))
    log.write()

    assert world.recovery_point_round(1) == 3
    assert rows(world)[DIRECTORY].recovery_offset == 17


def test_a_recovery_point_makes_durable_what_it_relies_on(world):
    log = world.open_logs()
    world.fill(log, 20, flush=False)
    world.recovery_point_round(RECOVERY_POINT_AGE_MS)

    world.disk.crash()
    log = world.open_logs()

    assert log.log_end_offset == 20
    assert log.recovery_report.scanned_bytes == 0
    assert log.active.indexes.saved_offsets > 0
    assert world.offsets(log) == list(range(20))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_a_crash_in_any_step_leaves_recovery_points_that_hold(world, steps, seed):
    world.disk._random = random.Random(seed)
    world.config.segment_bytes = 1500
    log = world.open_logs()
    world.fill(log, 20, epoch=1)
    world.recovery_point_round(100_000)
    world.fill(log, 20, epoch=2)
    flush_id = world.logs.recovery_points.begin(200_000)
    for _ in range(steps):
        world.disk.complete_flush(flush_id)
        flush_id = world.logs.recovery_points.on_flushed(flush_id)

    world.disk.crash()
    log = world.open_logs()

    assert log.flaw_offset == -1
    assert world.offsets(log) == list(range(40))
    assert world.listener.offsets == list(range(40))
    assert (log.leader_epochs.epochs, log.leader_epochs.start_offsets) == ([1, 2], [0, 20])
    assert (log.recovery_report.scanned_bytes == 0) == (log.recovery_point.offset == 40)


@pytest.mark.parametrize("failed_after", [0, 1, 2])
def test_a_recovery_point_holds_though_a_write_fails_during_its_round(worlds, failed_after):
    for world in worlds:
        log = world.open_logs()
        world.fill(log, 20, epoch=1)
        points = world.logs.recovery_points
        flush_id = points.begin(RECOVERY_POINT_AGE_MS)
        for step in range(3):
            if step == failed_after:
                for _ in range(3):
                    log.append_bytes(world.batch(9_000), 2, world.now_wall_ms)
                world.disk.fail_writes()
                with pytest.raises(StorageError):
                    log.write()
            world.disk.complete_flush(flush_id)
            flush_id = points.on_flushed(flush_id)
        assert rows(world)[DIRECTORY].recovery_offset == 20

        world.disk.crash()
        log = world.open_logs()

        # Bytes of the failed write were never acknowledged: a crash may bring them back.
        assert log.flaw_offset == -1
        assert world.offsets(log)[:20] == list(range(20))
        assert log.leader_epochs.epochs[0] == 1
        assert world.listener.offsets == world.offsets(log)


def test_what_is_appended_during_a_round_waits_for_the_next(world):
    log = world.open_logs()
    world.fill(log, 5)
    flush_id = world.logs.recovery_points.begin(RECOVERY_POINT_AGE_MS)
    world.fill(log, 5)
    while flush_id >= 0:
        world.disk.complete_flush(flush_id)
        flush_id = world.logs.recovery_points.on_flushed(flush_id)

    assert rows(world)[DIRECTORY].recovery_offset == 5
    assert world.recovery_point_round(2 * RECOVERY_POINT_AGE_MS) == 3
    assert rows(world)[DIRECTORY].recovery_offset == 10


def test_a_round_is_not_begun_while_one_is_under_way(world):
    log = world.open_logs()
    world.fill(log, 5)
    assert world.logs.recovery_points.begin(RECOVERY_POINT_AGE_MS) >= 0

    assert world.logs.recovery_points.begin(10 * RECOVERY_POINT_AGE_MS) == -1


def test_a_flush_of_somebody_else_means_nothing(world):
    log = world.open_logs()
    world.fill(log, 5)
    flush_id = world.logs.recovery_points.begin(RECOVERY_POINT_AGE_MS)

    assert world.logs.recovery_points.on_flushed(flush_id + 1) == -1
    assert world.logs.recovery_points.on_flushed(flush_id) > flush_id


class CountingDisk(SimulatedDisk):
    """Notes how many files each flush covers, the waiting one too."""

    def __init__(self):
        super().__init__()
        self.covered = []
        # So many flushes are refused because too many files are open.
        self.refusals = 0

    def begin_flush(self, files, directories):
        if self.refusals > 0:
            self.refusals -= 1
            raise TooManyOpenFiles(f"{directories}: too many files are open")
        self.covered.append(len(files))
        return super().begin_flush(files, directories)


def many_logs(world, count, batches, segment_bytes):
    world.disk = CountingDisk()
    world.config.segment_bytes = segment_bytes
    world.logs = Logs(world.disk)
    world.logs.load()
    opened = [world.logs.open(f"orders-{n}", b"", world.config, None) for n in range(count)]
    world.logs.settle()
    for log in opened:
        world.fill(log, batches)
    world.disk.covered.clear()


@pytest.mark.parametrize(("count", "batches", "segment_bytes"), [(150, 1, 1 << 20), (12, 30, 300)])
def test_many_logs_or_files_take_several_rounds(world, count, batches, segment_bytes):
    many_logs(world, count, batches, segment_bytes)

    flushes = world.recovery_point_round(RECOVERY_POINT_AGE_MS)

    # The files of one log stay together, so a round may have so many more.
    most_of_one = 4 * batches
    assert flushes > 3
    assert max(world.disk.covered) < FILES_PER_ROUND_MAX + most_of_one
    assert len(rows(world)) == count


@pytest.mark.parametrize(("count", "batches", "segment_bytes"), [(150, 1, 1 << 20), (12, 30, 300)])
@pytest.mark.parametrize("refusals", [1, 3])
def test_a_round_that_was_refused_its_flush_is_followed_by_whole_ones(
    world, count, batches, segment_bytes, refusals
):
    many_logs(world, count, batches, segment_bytes)
    world.disk.refusals = refusals

    for number in range(1, refusals + 1):
        assert world.recovery_point_round(number * RECOVERY_POINT_AGE_MS) == 0
    world.disk.covered.clear()
    world.recovery_point_round((refusals + 1) * RECOVERY_POINT_AGE_MS)

    most_of_one = 4 * batches
    assert len(rows(world)) == count
    assert max(world.disk.covered) < FILES_PER_ROUND_MAX + most_of_one


def test_a_clean_stop_holds_few_files_open_at_once(world):
    many_logs(world, 300, 1, 1 << 20)

    world.logs.close_cleanly()

    assert sum(world.disk.covered) > 2 * FILES_PER_ROUND_MAX
    assert max(world.disk.covered) < FILES_PER_ROUND_MAX + 4
    assert len(rows(world)) == 300


def test_a_full_disk_costs_a_recovery_point_and_nothing_else(world, caplog):
    log = world.open_logs()
    world.fill(log, 20)
    world.disk.capacity_bytes = 0

    assert world.recovery_point_round(RECOVERY_POINT_AGE_MS) == 0
    assert "no recovery point for orders-0" in caplog.text
    world.disk.capacity_bytes = None
    world.disk.fail_writes(1, RECOVERY_POINTS_FILE)
    assert world.recovery_point_round(2 * RECOVERY_POINT_AGE_MS) == 1
    assert world.recovery_point_round(3 * RECOVERY_POINT_AGE_MS) == 3

    log = world.open_logs()
    assert log.recovery_report.scanned_bytes == 0
    assert world.offsets(log) == list(range(20))


def test_only_the_last_two_snapshots_are_kept(world):
    log = world.open_logs()
    for now in range(1, 5):
        world.fill(log, 5)
        world.recovery_point_round(now * RECOVERY_POINT_AGE_MS)

    assert world.names(".snapshot") == [f"{o:020d}.snapshot" for o in (15, 20)]


def test_the_directory_says_whose_it_is_with_the_first_bytes(world):
    log = world.open_logs()
    assert IDENTITY_FILE not in world.names()
    world.fill(log, 1)

    world.disk.crash()

    content = world.disk.open(f"{DIRECTORY}/{IDENTITY_FILE}").read(0, 100)
    assert content == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\ncrc32c: 491ca7be\n"


def test_a_topic_of_the_same_name_never_sees_its_predecessors_data(world, caplog):
    log = world.open_logs()
    world.fill(log, 5)
    world.logs.close_cleanly()

    world.logs.load()
    log = world.logs.open(DIRECTORY, OTHER_ID, world.config, world.listener)

    assert log.log_end_offset == 0
    assert world.disk.paths(DIRECTORY) == []
    assert "belongs to topic id AAECAwQFBgcICQoLDA0ODw" in caplog.text
    assert world.disk.exists(f"{DIRECTORY}.AAECAwQFBgcICQoLDA0ODw-stray/00000000000000000000.log")


def test_a_flipped_bit_makes_no_directory_somebody_elses(world):
    log = world.open_logs()
    world.fill(log, 5)
    for position in range(10, 60):
        world.disk.flip_bit(f"{DIRECTORY}/{IDENTITY_FILE}", position, 1)
        log = world.open_logs()
        assert log.log_end_offset == 5
        world.disk.flip_bit(f"{DIRECTORY}/{IDENTITY_FILE}", position, 1)


def test_a_row_of_another_topic_is_not_taken_for_this_one(world):
    log = world.open_logs()
    world.fill(log, 5)
    world.recovery_point_round(RECOVERY_POINT_AGE_MS)
    world.logs.forget(log)
    world.disk.rename(DIRECTORY, f"{DIRECTORY}.gone-delete")
    log = world.logs.open(DIRECTORY, OTHER_ID, world.config, None)
    world.fill(log, 2)

    world.logs.load()
    log = world.logs.open(DIRECTORY, OTHER_ID, world.config, None)

    assert (log.log_end_offset, log.flaw_offset) == (2, -1)


def test_a_directory_without_a_name_is_taken_as_it_is(world):
    log = world.open_logs()
    world.fill(log, 5)
    world.disk.remove(f"{DIRECTORY}/{IDENTITY_FILE}")

    log = world.open_logs()
    world.fill(log, 1)

    assert world.offsets(log) == list(range(6))
    assert IDENTITY_FILE in world.names()


def test_the_row_of_a_forgotten_log_goes_with_the_next_round(world):
    log = world.open_logs()
    world.fill(log, 5)
    world.recovery_point_round(RECOVERY_POINT_AGE_MS)

    world.logs.forget(log)
    assert world.recovery_point_round(RECOVERY_POINT_AGE_MS + 1) == 3

    assert rows(world) == {}
    assert world.recovery_point_round(RECOVERY_POINT_AGE_MS + 2) == 0


def test_a_log_that_is_forgotten_during_a_round_has_no_row(world):
    log = world.open_logs()
    world.fill(log, 5)
    flush_id = world.logs.recovery_points.begin(RECOVERY_POINT_AGE_MS)

    world.logs.forget(log)
    while flush_id >= 0:
        world.disk.complete_flush(flush_id)
        flush_id = world.logs.recovery_points.on_flushed(flush_id)

    assert rows(world) == {}


def test_opening_a_log_in_a_turn_flushes_nothing(world):
    world.open_logs()
    world.disk.fail_flushes(100)

    log = world.logs.open("new-0", OTHER_ID, world.config, None)
    world.fill(log, 3, flush=False)

    assert world.offsets(log) == [0, 1, 2]


def test_recovery_settles_many_logs_with_few_files_open_at_once(world):
    logs = world.logs
    logs.load()
    for number in range(300):
        world.fill(logs.open(f"orders-{number}", b"", world.config, None), 1, flush=False)
    world.disk.kill()

    world.logs = type(logs)(world.disk, open_files_max=10)
    world.logs.load()
    opened = [world.logs.open(f"orders-{n}", b"", world.config, None) for n in range(300)]
    world.logs.settle()
    world.disk.crash()

    assert all(log.log_end_offset == 1 for log in opened)
    again = type(logs)(world.disk)
    again.load()
    assert again.open("orders-299", b"", world.config, None).log_end_offset == 1


def test_a_clean_stop_makes_the_cut_after_a_failed_write_durable(world):
    log = world.open_logs()
    world.fill(log, 5)
    world.recovery_point_round(RECOVERY_POINT_AGE_MS)
    for _ in range(20):
        world.append(log)
    world.disk.fail_writes(1)
    with pytest.raises(StorageError):
        log.write()

    world.logs.close_cleanly()
    world.disk.crash()

    assert has_found_nothing(world.open_logs())


def test_a_log_that_was_never_written_costs_a_clean_stop_nothing(world):
    world.open_logs()

    assert world.recovery_point_round(10 * RECOVERY_POINT_AGE_MS) == 0
    world.logs.close_cleanly()

    assert world.names() == []
    assert RECOVERY_POINTS_FILE not in world.disk.paths()
    log = world.open_logs()
    assert world.logs.was_clean
    assert has_found_nothing(log)
    world.fill(log, 2)
    world.disk.crash()
    assert world.open_logs().log_end_offset == 2


def begin_again(world):
    """A start that opens another log first, and this one when the broker runs."""
    world.logs = Logs(world.disk)
    world.logs.load()
    world.logs.settle()
    return world.logs.open(DIRECTORY, TOPIC_ID, world.config, world.listener)


def test_a_log_that_had_to_be_read_is_moved_aside_once_the_broker_runs(world, caplog):
    log = world.open_logs()
    world.fill(log, 20)
    world.disk.crash()

    log = begin_again(world)

    assert log.log_end_offset == 0
    assert "was not read when this broker started" in caplog.text
    strays = [path for path in world.disk.paths() if path.endswith("-stray/")]
    assert len(world.disk.paths(strays[0])) > 0
    world.fill(log, 2)
    assert world.offsets(log) == [0, 1]


def test_a_log_whose_recovery_point_tells_all_is_opened_while_the_broker_runs(world):
    log = world.open_logs()
    world.fill(log, 20)
    world.recovery_point_round(RECOVERY_POINT_AGE_MS)
    world.disk.crash()

    log = begin_again(world)

    assert world.offsets(log) == list(range(20))
    assert log.recovery_report.walked_bytes == log.recovery_report.scanned_bytes == 0


def test_a_log_whose_first_segment_is_gone_does_not_seem_to_have_what_was_in_it(world, caplog):
    world.fill(world.open_logs(), 1)
    world.recovery_point_round(RECOVERY_POINT_AGE_MS)
    world.config.segment_bytes = 500
    world.fill(world.logs.open("late-0", TOPIC_ID, world.config, None), 20)
    world.disk.lose_file("late-0/00000000000000000000.log")
    world.disk.crash()
    world.logs = Logs(world.disk)
    world.logs.load()

    log = world.logs.open("late-0", TOPIC_ID, world.config, None)

    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    assert "lacks the batches before offset" in caplog.text


@pytest.mark.parametrize(("hint", "void"), [(-1, 0), (7, 0), (-1, 3), (0, 3)])
def test_a_row_has_more_fields_only_where_there_is_more_to_say(hint, void):
    row = RecoveryPoint("orders-0", "id")
    row.recovery_offset = 9
    row.segments = [uncovered_row(4)]
    row.high_watermark_hint = hint
    row.void_generation = void

    content = encode_recovery_points([row.encode()])

    assert content.startswith(
        b"tarry recovery-points " + (b"1" if (hint, void) == (-1, 0) else b"2")
    )
    found = decode_recovery_points(content)["orders-0"]
    assert (found.high_watermark_hint, found.void_generation) == (hint, void)
    assert found.encode() == row.encode()
