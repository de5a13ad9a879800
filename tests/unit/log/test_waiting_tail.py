"""A tail waits for its write while the log changes before it: a swap ends, the start advances."""

from __future__ import annotations

import pytest
from tests.support.compaction_scene import CompactionScene

from tarry.base.errors import StorageError
from tarry.log.compaction.compaction import GO_ON
from tarry.log.compaction.effort import Effort


def swap_under_a_tail(scene, first_append):
    """The flush of a swap ends while appended batches wait for their write."""
    for number in range(12):
        scene.append((b"a", b"%d" % number * 40))
    scene.roll()
    compaction = scene.begin()
    flush_id = GO_ON
    while not compaction.is_swap_begun:
        flush_id = compaction.step(Effort(), scene.now_wall_ms)
        if flush_id >= 0:
            assert scene.disk.complete_flush(flush_id).error == ""
            flush_id = compaction.on_flushed()

    first_append()
    segments = len(scene.log.segments)
    assert scene.disk.complete_flush(flush_id).error == ""
    compaction.on_flushed()
    assert scene.log.has_tail
    assert len(scene.log.segments) < segments


def small_segments() -> CompactionScene:
    scene = CompactionScene()
    scene.config.segment_bytes = 300
    return scene


def test_a_reader_at_the_end_is_served_while_a_swap_ends_under_a_tail():
    scene = small_segments()

    swap_under_a_tail(scene, lambda: scene.append((b"b", b"1")))

    log = scene.log
    assert log.position_of(log.written_end_offset).offset == log.written_end_offset
    assert log.read(log.written_end_offset - 1, log.end_position(), 1, True) is not None
    log.write()
    assert [key for _, key in scene.places()] == [b"a", b"the last segment's", b"b"]


def test_a_failed_write_is_undone_though_a_swap_ended_under_its_tail():
    scene = small_segments()

    def append_over_several_segments() -> None:
        for _ in range(9):
            scene.append((b"b", b"1" * 90))

    swap_under_a_tail(scene, append_over_several_segments)
    log = scene.log
    end_offset = log.written_end_offset
    scene.disk.fail_writes(1, f"{log.active.base_offset:020d}")
    with pytest.raises(StorageError):
        log.write()

    assert log.log_end_offset == end_offset
    assert log.active.base_offset < end_offset
    scene.append((b"c", b"1"))
    scene.flush()
    assert [key for _, key in scene.places()] == [b"a", b"the last segment's", b"c"]
    scene.disk.crash()
    scene.open()
    assert [key for _, key in scene.places()] == [b"a", b"the last segment's", b"c"]


@pytest.mark.parametrize("is_written", [True, False])
def test_a_log_start_advances_to_the_end_under_a_tail_that_has_rolled(world, is_written):
    log = world.open()
    world.config.segment_bytes = 500
    world.fill(log, 20, epoch=1)
    assert log.active.base_offset < 20
    world.config.segment_bytes = 1
    for _ in range(2):
        world.append(log, 90_000, epoch=2)

    log.advance_log_start_offset(20)
    if not is_written:
        world.disk.fail_writes(1, f"{21:020d}")
        with pytest.raises(StorageError):
            log.write()

    world.fill(log, 1, epoch=3)
    assert world.offsets(log) == ([20, 21, 22] if is_written else [20])
    assert log.segments[0].base_offset == 20
    assert log.end_offset_for_epoch(1) == (1, 20)
    world.flush(log)
    world.disk.crash()
    assert world.offsets(world.open())[-1] == log.log_end_offset - 1
