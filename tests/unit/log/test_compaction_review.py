"""Compaction of logs that are unlike others: many tiny segments, times out of the ordinary."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tarry.log.compacted_segment import SOURCES_MAX
from tarry.log.effort import SOURCE_UNITS, STEP_UNITS
from tarry.records.batch import HEADER_SIZE, decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.records.rebuild import RebuiltBatch
from tarry.wire.compression import GZIP

sys.path.insert(0, str(Path(__file__).parents[2]))

from compaction_scene import CompactionScene


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
