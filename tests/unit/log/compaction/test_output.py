"""Segments that compaction writes: how many it opens in a step, and replaces in a swap."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.support.compaction_scene import CompactionScene

from tarry.log.compaction.effort import SOURCE_UNITS, STEP_UNITS
from tarry.log.compaction.output import SOURCES_MAX


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
