"""Compaction of logs that are unlike others: many tiny segments, times out of the ordinary."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.support.compaction_scene import DIRECTORY, CompactionScene

from tarry.log.compaction.checkpoint import COMPACTION_FILE
from tarry.log.compaction.effort import SOURCE_UNITS, STEP_UNITS, Effort
from tarry.log.compaction.output import SOURCES_MAX
from tarry.records.batch import HEADER_SIZE, decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.records.rebuild import RebuiltBatch
from tarry.wire.compression import GZIP


@pytest.fixture
def scene() -> CompactionScene:
    return CompactionScene()


def write_tiny_segments(scene: CompactionScene, count: int) -> None:
    """Each batch in a segment of its own, all of which would fit into one."""
    scene.config.segment_bytes = 1
    for number in range(count):
        scene.append((b"k%d" % (number % 10), b"%d" % number))
    scene.roll()
    scene.config.segment_bytes = 1 << 30


def test_a_step_opens_only_so_many_segments(scene):
    write_tiny_segments(scene, 300)
    scene.open()
    opened = [0]

    scene.compact(STEP_UNITS, lambda _: opened.append(len(scene.log.files)))

    steps = [after - before for before, after in pairwise(opened)]
    assert 1 < max(steps) <= STEP_UNITS // SOURCE_UNITS + 1
    assert [offset for offset, _ in scene.places()] == [*range(290, 300), 300]


def test_a_swap_takes_out_only_so_many_segments(scene):
    write_tiny_segments(scene, 300)
    counts = [len(scene.log.segments)]

    scene.compact(STEP_UNITS, lambda _: counts.append(len(scene.log.segments)))

    swaps = [before - after for before, after in pairwise(counts)]
    assert max(swaps) == SOURCES_MAX - 1
    assert len(scene.log.segments) == 300 // SOURCES_MAX + 1


@pytest.mark.parametrize("timestamp", [-(1 << 62), (1 << 63) - 2])
def test_what_was_deleted_does_not_come_back_from_a_batch_with_impossible_times(scene, timestamp):
    """Its own tombstone cannot get a delete horizon, yet what is outdated in it has to go."""
    scene.append((b"deleted", b"old"), (b"gone before", None), timestamp=timestamp)
    scene.append((b"deleted", None))
    scene.roll()

    for _ in range(2):
        scene.compact()
        scene.now_wall_ms += 10 * scene.config.delete_retention_ms
        scene.append((b"another", b"value"))
        scene.roll()
    scene.compact()

    keys = [key for _, key in scene.places()]
    assert b"deleted" not in keys
    assert b"gone before" in keys
    scene.check_records()


def test_times_that_no_number_holds_do_not_stop_compaction(scene):
    """A batch that was never opened was believed what its header says."""
    builder = BatchBuilder()
    builder.append(0, b"a", b"1")
    builder.append(1 << 62, b"b", b"1")
    sent = builder.build(GZIP)
    rebuilt = RebuiltBatch(decode_batch_header(sent, 0))
    rebuilt.base_timestamp = 3 << 61
    rebuilt.record_count = 2
    rebuilt.content = sent[HEADER_SIZE:]
    scene.log.append_bytes(rebuilt.encode(), 0, scene.now_wall_ms)
    scene.append((b"a", b"2"))
    scene.roll()

    scene.compact()

    header, _ = next(scene.batches())
    assert (header.record_count, header.max_timestamp) == (1, (1 << 63) - 1)


def test_gaps_are_known_though_a_damaged_checkpoint_was_replaced_in_the_middle(scene):
    """The first swap writes a new file, which must tell of the segments behind it as well."""
    for number in range(400):
        scene.append((b"%d" % (number if number % 10 == 0 else -1), bytes(100)))
    scene.roll()
    scene.compact()
    scene.save_recovery_point()
    scene.disk.flip_bit(f"{DIRECTORY}/{COMPACTION_FILE}", 10)
    scene.disk.kill()
    scene.open()
    scene.append((b"0", b"last"))
    scene.roll()

    compaction = scene.begin()
    while scene.log.compaction.swaps == 0:
        flush_id = compaction.step(Effort(5), scene.now_wall_ms)
        while flush_id >= 0:
            assert scene.disk.complete_flush(flush_id).error == ""
            flush_id = compaction.on_flushed()
    scene.disk.kill()
    scene.open()

    scene.check_last_values()
    assert scene.log.flaw_offset == -1


def test_an_idle_log_gets_a_recovery_point_of_its_compacted_segments(scene):
    """Else it stood and fell with one file, as long as nobody writes."""
    scene.config.segment_bytes = 200
    for number in range(20):
        scene.append((b"k%d" % (number % 5), bytes(100)))
    scene.roll()
    scene.compact()
    places = scene.places()

    scene.save_recovery_point()
    has_changed = scene.log.has_changed
    scene.disk.flip_bit(f"{DIRECTORY}/{COMPACTION_FILE}", 10)
    scene.disk.kill()
    scene.open()

    assert not has_changed
    assert scene.log.flaw_offset == -1
    assert scene.places() == places


def test_batches_that_cannot_be_unfolded_do_not_begin_the_map_anew(scene):
    """Nothing of them was noted; with many of them it would never come to an end."""
    for number in range(20):
        scene.append((b"k%d" % (number % 4), b"v"))
        sent = BatchBuilder()
        sent.append(0, b"k%d" % (number % 4), b"v")
        garbage = RebuiltBatch(decode_batch_header(sent.build(GZIP), 0))
        garbage.record_count = 1
        garbage.content = b"nothing that gzip knows"
        scene.log.append_bytes(garbage.encode(), 0, scene.now_wall_ms)
    scene.roll()

    compaction = scene.compact()

    assert compaction.passes == 1
    headers = [header for header, _ in scene.batches()]
    assert sum(header.codec == GZIP for header in headers) == 20
    readable = [header.base_offset for header in headers if header.codec != GZIP]
    assert readable == [32, 34, 36, 38, 40]
