"""Cuts of compacted logs: a follower that must give up what it had compacted goes on soundly."""

from __future__ import annotations

import pytest
from tests.support.compaction_scene import CompactionScene

from tarry.log.compaction.checkpoint import COMPACTION_FILE
from tarry.log.recovery.truncation import try_restart, try_truncate
from tarry.log.segment import GAPS_FILE
from tarry.log.state import ASKED


def compacted(seed: int = 7) -> CompactionScene:
    """Forty keys, each written four times in batches of one, and compacted."""
    scene = CompactionScene(seed)
    scene.config.segment_bytes = 900
    for _ in range(4):
        for key in range(40):
            scene.append((b"k%d" % key, b"v" * 40))
    scene.roll()
    scene.compact(units=5_000)
    assert scene.log.compaction.end_offset > 100
    return scene


def cut(scene: CompactionScene, offset: int, *, how=try_truncate) -> None:
    for _ in range(50):
        if how(scene.log, offset):
            return
        scene.save_recovery_point()
    raise AssertionError("the cut does not end")


@pytest.mark.parametrize("offset", [150, 131, 60, 0])
def test_a_cut_below_what_was_compacted_makes_its_checkpoint_void(offset):
    scene = compacted()
    before = [place for place in scene.places() if place[0] < offset]

    cut(scene, offset)
    scene.flush()

    assert scene.places() == before
    assert scene.log.log_end_offset == offset
    assert scene.log.compaction.end_offset == 0
    assert COMPACTION_FILE not in scene.names()
    scene.disk.crash()
    scene.open()
    assert scene.log.flaw_offset == -1
    assert scene.places() == before
    assert scene.log.log_end_offset <= offset


def test_a_log_is_compacted_again_after_such_a_cut():
    scene = compacted()
    cut(scene, 131)
    scene.flush()
    for key in range(40):
        scene.append((b"k%d" % key, b"w" * 40))
    scene.roll()
    scene.compact(units=5_000)

    places = scene.places()
    scene.disk.crash()
    scene.open()

    assert scene.places() == places
    assert len(places) == 41


@pytest.mark.parametrize("keeps_power", [True, False])
def test_a_crash_before_such_a_cut_has_ended_finds_a_sound_log(keeps_power):
    for seed in range(30):
        scene = compacted(seed)
        before = scene.places()
        for _ in range(seed % 3 + 1):
            try_truncate(scene.log, 131)
            if seed % 2:
                scene.save_recovery_point()

        if keeps_power:
            scene.disk.kill()
        else:
            scene.disk.crash()
        scene.open()

        assert scene.log.flaw_offset == -1, scene.log.flaw_reason
        found = scene.places()
        assert found == before[: len(found)]
        assert len(found) >= len([place for place in before if place[0] < 131])
        scene.compact(units=5_000)
        scene.check_records()


@pytest.mark.parametrize("offset", [500, 100, 0])
def test_a_restart_forgets_what_was_compacted(offset):
    for seed in range(20):
        scene = compacted(seed)
        assert not try_restart(scene.log, offset)
        scene.save_recovery_point()
        if seed % 2:
            scene.disk.crash()
            scene.open()
            assert scene.log.flaw_offset == -1, scene.log.flaw_reason
            assert scene.log.log_start_offset == offset
        cut(scene, offset, how=try_restart)
        scene.flush()

        scene.disk.crash()
        scene.open()

        assert scene.places() == []
        assert scene.log.log_start_offset == scene.log.log_end_offset == offset
        assert scene.log.compaction.end_offset == 0


def test_a_cut_waits_for_a_compaction_that_reads_what_is_to_go():
    scene = compacted()
    for key in range(40):
        scene.append((b"k%d" % key, b"w" * 40))
    scene.roll()
    compaction = scene.begin()

    assert not try_truncate(scene.log, 131)
    assert scene.log.cut.state == ASKED

    compaction.abandon()
    cut(scene, 131)
    assert scene.log.log_end_offset == 131


def test_gaps_that_only_the_checkpoint_told_of_are_told_by_a_file():
    scene = compacted()
    assert GAPS_FILE not in scene.names()

    cut(scene, 131)

    assert GAPS_FILE in scene.names()
