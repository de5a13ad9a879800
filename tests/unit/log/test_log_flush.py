"""What a flush covers: bytes, names, and only what was there when it began."""

from __future__ import annotations


def collect(log):
    files = []
    directories: dict[str, None] = {}
    offset = log.collect_flush(files, directories)
    return offset, files, list(directories)


def test_what_is_appended_during_a_flush_is_not_covered_by_it(world):
    log = world.open()
    world.fill(log, 3, flush=False)
    offset, files, directories = collect(log)
    flush_id = world.disk.begin_flush(files, directories)
    world.fill(log, 2, flush=False)

    world.disk.complete_flush(flush_id)
    log.flushed(offset)

    assert (log.flushed_offset, log.written_end_offset) == (3, 5)
    assert log.is_dirty


def test_a_flush_of_everything_leaves_nothing_dirty(world):
    log = world.open()
    world.fill(log, 3)

    assert log.flushed_offset == 3
    assert not log.is_dirty
    assert collect(log)[1:] == ([], [])


def test_the_first_flush_covers_the_names_of_segment_and_directory(world):
    log = world.logs.open("orders-0", b"", world.config, None)
    world.fill(log, 3, flush=False)

    _, files, directories = collect(log)

    assert [file.path for file in files] == ["orders-0/00000000000000000000.log"]
    assert directories == ["orders-0", ""]


def test_a_later_flush_covers_bytes_only(world):
    log = world.open()
    world.fill(log, 3)
    world.fill(log, 3, flush=False)

    assert collect(log)[2] == []


def test_a_roll_makes_the_directory_flush_again(world):
    log = world.open()
    world.fill(log, 3)
    world.config.segment_bytes = 100
    world.fill(log, 2, flush=False)

    _, files, directories = collect(log)

    assert [file.path[-24:] for file in files] == [f"{base:020d}.log" for base in (3, 4)]
    assert directories == ["orders-0"]


def test_a_name_made_during_a_flush_is_not_covered_by_it(world):
    log = world.open()
    world.config.segment_bytes = 100
    world.fill(log, 1, flush=False)
    offset, _, _ = collect(log)
    world.fill(log, 1, flush=False)

    log.flushed(offset)

    assert collect(log)[2] == ["orders-0"]


def test_flushed_records_survive_every_crash(world):
    log = world.open()
    world.config.segment_bytes = 700
    world.fill(log, 40)
    world.fill(log, 40, flush=False)

    world.disk.crash()
    log = world.open()

    assert log.log_end_offset >= 40
    assert world.offsets(log) == list(range(log.log_end_offset))
    assert not log.is_dirty


def test_what_recovery_keeps_after_a_kill_is_durable_then(world):
    log = world.open()
    world.config.segment_bytes = 700
    world.fill(log, 40, flush=False)
    world.disk.kill()
    log = world.open()
    assert log.log_end_offset == 40

    world.disk.crash()

    assert world.offsets(world.open()) == list(range(40))
