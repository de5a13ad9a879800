"""Starts over a compacted log: by its checkpoint, an older recovery point, or over damage."""

from __future__ import annotations

import pytest
from tests.support.compaction_scene import DIRECTORY, CompactionScene

from tarry.base.errors import StorageError
from tarry.log.compaction.checkpoint import (
    COMPACTION_FILE,
    CompactionCheckpoint,
    decode_compaction,
)
from tarry.log.compaction.effort import Effort
from tarry.log.recovery.point_writer import has_changed
from tarry.log.recovery.points import RECOVERY_POINTS_FILE, RecoveryPoint
from tarry.log.segment import SegmentRow


def row(base_offset: int, size: int = 100, entries: int = 0) -> SegmentRow:
    return SegmentRow([base_offset, size, 5, base_offset, 7, entries, entries])


@pytest.fixture
def scene() -> CompactionScene:
    """Six segments, compacted to fewer, and written to since."""
    scene = CompactionScene()
    scene.config.segment_bytes = 700
    for number in range(60):
        scene.append((b"k%d" % (number % 40), b"v" * 50))
    scene.roll()
    scene.compact()
    scene.append((b"k0", b"since then"))
    scene.flush()
    assert len(scene.log.segments) > 3
    return scene


def test_what_the_file_says_is_read_back():
    checkpoint = CompactionCheckpoint()
    checkpoint.generation = 9
    checkpoint.cleaned_offset = 400
    checkpoint.end_offset = 500
    checkpoint.rows = [row(0), row(300)]

    found = decode_compaction(checkpoint.encode())

    assert found is not None
    assert found.encode() == checkpoint.encode()


@pytest.mark.parametrize("position", range(0, 60, 7))
def test_a_flipped_bit_is_seen(position):
    checkpoint = CompactionCheckpoint()
    checkpoint.rows = [row(0), row(300)]
    data = bytearray(checkpoint.encode())

    data[position] ^= 4

    assert decode_compaction(bytes(data)) is None


def test_below_its_end_the_newer_file_says_which_segments_there_are():
    point = RecoveryPoint(DIRECTORY, "")
    point.segments = [row(0), row(100), row(200), row(500), row(600)]
    checkpoint = CompactionCheckpoint()
    checkpoint.end_offset = 500
    checkpoint.rows = [row(0, size=40), row(200, entries=3)]
    point.segments[2] = row(200, entries=4)

    rows = checkpoint.covered_rows(point)

    assert [(each.base_offset, each.size, each.offset_entries) for each in rows] == [
        (0, 40, 0),
        # The same segment: the recovery point is newer for its indexes.
        (200, 100, 4),
        (500, 100, 0),
        (600, 100, 0),
    ]


def test_a_segment_of_the_same_size_is_not_taken_for_the_same():
    point = RecoveryPoint(DIRECTORY, "")
    point.segments = [SegmentRow([0, 100, 5, 3, 7, 0, 0]), row(500)]
    checkpoint = CompactionCheckpoint()
    checkpoint.end_offset = 500
    checkpoint.rows = [SegmentRow([0, 100, 9, 8, 7, 0, 0])]

    rows = checkpoint.covered_rows(point)

    assert (rows[0].max_timestamp, rows[0].max_timestamp_offset) == (9, 8)


def test_segments_below_the_log_start_do_not_come_back():
    point = RecoveryPoint(DIRECTORY, "")
    point.log_start_offset = 350
    point.segments = [row(300), row(500)]
    checkpoint = CompactionCheckpoint()
    checkpoint.end_offset = 500
    checkpoint.rows = [row(0), row(200), row(300)]

    rows = checkpoint.covered_rows(point)

    assert [each.base_offset for each in rows] == [300, 500]


def test_a_start_over_an_older_recovery_point_finds_the_new_segments(scene):
    places = scene.places()
    point = scene.logs.recovery_points.rows[DIRECTORY]
    assert point.count(":") / 6 > len(scene.log.segments)

    scene.disk.crash()
    scene.open()

    assert scene.places() == places
    assert scene.log.compaction.cleaned_offset == 60
    assert scene.log.flaw_offset == -1


def test_a_start_without_recovery_points_reads_the_compacted_log_whole(scene):
    places = scene.places()
    scene.disk.flip_bit(RECOVERY_POINTS_FILE, 10)
    scene.disk.kill()

    scene.open()

    assert scene.places() == places
    assert scene.log.flaw_offset == -1
    assert scene.log.compaction.cleaned_offset == 60


def test_a_damaged_compaction_checkpoint_makes_no_record_unreadable(scene, caplog):
    scene.save_recovery_point()
    places = scene.places()
    scene.disk.flip_bit(f"{DIRECTORY}/{COMPACTION_FILE}", 10)
    scene.disk.kill()

    scene.open()

    assert scene.places() == places
    assert f"{COMPACTION_FILE} is damaged" in caplog.text
    assert scene.log.compaction.cleaned_offset == 0
    scene.roll()
    scene.compact()
    scene.check_is_compact()


def begin_swap(scene: CompactionScene) -> None:
    """Compact until a new checkpoint counts whose files have no names yet."""
    scene.append((b"k5", b"once more"))
    scene.roll()
    compaction = scene.begin()
    while not compaction.is_swap_begun:
        flush_id = compaction.step(Effort(50), scene.now_wall_ms)
        while flush_id >= 0 and not compaction.is_swap_begun:
            assert scene.disk.complete_flush(flush_id).error == ""
            flush_id = compaction.on_flushed()
    scene.disk.complete_flushes()


def test_a_checkpoint_that_cannot_be_read_now_refuses_the_start_and_loses_nothing(scene):
    begin_swap(scene)
    places = scene.places()
    names = scene.names()
    scene.disk.kill()
    scene.disk.fail_reads(1, COMPACTION_FILE)

    with pytest.raises(StorageError):
        scene.open()

    assert scene.names() == names
    scene.open()
    assert scene.log.flaw_offset == -1
    assert len(scene.places()) <= len(places)
    scene.check_last_values()
    assert not [name for name in scene.names() if name.endswith(".cleaned")]


def test_files_that_a_damaged_checkpoint_may_have_named_are_kept(scene, caplog):
    begin_swap(scene)
    cleaned = [name for name in scene.names() if name.endswith(".cleaned")]
    scene.disk.flip_bit(f"{DIRECTORY}/{COMPACTION_FILE}", 10)
    scene.disk.kill()

    scene.open()

    assert cleaned
    assert [f"{name}-kept" for name in cleaned] == [
        name for name in scene.names() if "cleaned" in name
    ]
    assert "is kept as" in caplog.text


def test_indexes_that_are_lost_are_made_anew(scene):
    places = scene.places()
    for name in scene.names():
        if name.endswith(("index", "timeindex")):
            scene.disk.remove(f"{DIRECTORY}/{name}")
    scene.disk.kill()

    scene.open()

    assert scene.places() == places
    for offset, _ in places:
        assert scene.records(offset)[0].offset == offset


def test_a_gap_that_compaction_did_not_make_is_still_damage(scene):
    """The segments behind its end are as the producers wrote them."""
    scene.save_recovery_point()
    last = scene.log.active.path
    data = scene.disk.open(f"{last}.log").read(0, 1 << 20)
    size = int.from_bytes(data[8:12], "big") + 12
    scene.disk.remove(f"{last}.log")
    file = scene.disk.open(f"{last}.log", create=True)
    file.append([data[size:] + data[:size]])
    scene.disk.kill()

    scene.open()
    with pytest.raises(Exception, match="offset"):
        scene.records(scene.log.active.base_offset)
    assert scene.log.flaw_offset >= 0


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
    is_changed = has_changed(scene.log)
    scene.disk.flip_bit(f"{DIRECTORY}/{COMPACTION_FILE}", 10)
    scene.disk.kill()
    scene.open()

    assert not is_changed
    assert scene.log.flaw_offset == -1
    assert scene.places() == places
