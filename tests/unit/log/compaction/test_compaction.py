"""Compaction of a log: what stays, in which form, and what readers see of it."""

from __future__ import annotations

import pytest
from tests.support.compaction_scene import DIRECTORY, START_WALL_MS, CompactionScene

from tarry.base.errors import StorageError
from tarry.log.batch_walk import Flaw
from tarry.log.compaction.cleanable import find_cleanable
from tarry.log.compaction.compaction import DONE
from tarry.log.compaction.effort import Effort
from tarry.log.compaction.rule import CompactionRule
from tarry.log.copying import append_copy
from tarry.log.index.epoch_index import EPOCH_FILE, EpochIndex
from tarry.records.batch import (
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    decode_batch_header,
    with_log_append_time,
)
from tarry.records.builder import BatchBuilder
from tarry.records.rebuild import RebuiltBatch
from tarry.records.record import decode_records
from tarry.wire.compression import GZIP, NAMES
from tarry.wire.crc32c import crc32c
from tarry.wire.reader import window_of

CONTROL = 0x20


@pytest.fixture
def scene() -> CompactionScene:
    return CompactionScene()


# --- What stays.


def test_the_last_record_of_each_key_stays_at_its_offset(scene):
    scene.append((b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    scene.append((b"c", b"1"), (b"b", b"2"))
    scene.roll()

    scene.compact()

    assert scene.places()[:-1] == [(2, b"a"), (3, b"c"), (4, b"b")]
    assert [record.value for record in scene.records()][:-1] == [b"2", b"1", b"2"]


@pytest.mark.parametrize("codec", range(len(NAMES)), ids=NAMES)
def test_a_batch_keeps_its_codec_offsets_epoch_and_times(scene, codec):
    value = bytes(200)
    scene.append((b"a", value), (b"b", value), (b"c", value), codec=codec, timestamp=5_000)
    scene.append((b"b", value), codec=codec)
    scene.roll()

    scene.compact()

    header, data = next(scene.batches())
    assert (header.base_offset, header.last_offset, header.record_count) == (0, 2, 2)
    assert header.codec == codec
    assert header.max_timestamp == 5_002
    records = decode_records(data, size_max=10_000)
    assert [(record.offset, record.timestamp) for record in records] == [(0, 5_000), (2, 5_002)]


def test_the_largest_time_of_a_batch_follows_what_is_left(scene):
    scene.append((b"a", b"1"), (b"b", b"1"), timestamp=5_000)
    scene.append((b"b", b"2"), timestamp=1_000)
    scene.roll()

    scene.compact()

    header, _ = next(scene.batches())
    assert header.max_timestamp == 5_000


def test_a_batch_that_loses_nothing_stays_byte_for_byte(scene):
    scene.append((b"a", b"1"), (b"b", b"1"), codec=4)
    scene.append((b"c", b"1"))
    scene.append((b"c", b"2"))
    scene.roll()
    before = [data for _, data in scene.batches()]

    scene.compact()

    after = [data for _, data in scene.batches()]
    assert after == [before[0], before[2], before[3]]


def test_headers_of_records_stay(scene):
    builder = BatchBuilder()
    builder.append(1, b"a", b"1", [("trace", b"7"), ("trace", None)])
    builder.append(1, b"b", b"1", [])
    scene.log.append_bytes(builder.build(3), 0, scene.now_wall_ms)
    scene.append((b"b", b"2"))
    scene.roll()

    scene.compact()

    assert scene.records()[0].headers == [("trace", b"7"), ("trace", None)]


def test_control_batches_stay_whole(scene):
    scene.append((b"first of its epoch", b"1"))
    scene.append((b"a", b"1"))
    scene.append((b"a", b"marker"), attributes=CONTROL)
    scene.append((b"a", b"2"))
    scene.roll()

    scene.compact()

    assert [header.base_offset for header, _ in scene.batches()] == [0, 2, 3, 4]


def test_records_without_a_key_go(scene):
    scene.append((None, b"from before the topic was compacted"), (b"a", b"1"))
    scene.roll()

    compaction = scene.compact()

    assert scene.places()[:-1] == [(1, b"a")]
    assert compaction.keyless_dropped == 1


def test_keys_longer_than_what_is_kept_of_them_are_told_apart(scene):
    long_key = b"k" * 5_000
    scene.append((long_key + b"1", b"1"), (long_key + b"2", b"1"), (long_key + b"1", b"2"))
    scene.roll()

    scene.compact()

    assert [offset for offset, _ in scene.places()] == [1, 2, 3]


def test_a_segment_never_becomes_empty(scene):
    """Else a reader in it would find nothing to go on from, and neither would a start."""
    scene.append((b"a", b"1"))
    scene.roll()
    scene.config.segment_bytes = 1
    scene.append((b"a", b"2"))
    scene.roll()

    scene.compact()

    assert all(segment.size > 0 for segment in scene.log.segments)
    assert (2, b"a") in scene.places()
    assert (0, b"a") not in scene.places()


# --- What is too young.


def test_the_dirty_part_ends_before_the_first_young_segment_though_older_ones_follow(scene):
    scene.config.min_compaction_lag_ms = 1_000
    for timestamp in (START_WALL_MS - 5_000, START_WALL_MS, START_WALL_MS - 5_000):
        scene.append((b"a", b"1"), (b"b", b"1"), timestamp=timestamp)
        scene.append((b"a", b"2"), timestamp=timestamp)
        scene.roll(START_WALL_MS - 5_000)
    scene.now_wall_ms += 500

    cleanable = find_cleanable(scene.log, scene.log.active.base_offset, scene.now_wall_ms)
    scene.compact()

    assert (cleanable.end_offset, scene.log.compaction.cleaned_offset) == (3, 3)
    assert [offset for offset, _ in scene.places()] == [1, 2, *range(3, 12)]


# --- Tombstones.


def test_a_tombstone_stays_for_its_time_and_takes_older_values_along(scene):
    scene.append((b"a", b"1"), (b"b", b"1"))
    scene.append((b"a", None))
    scene.roll()

    scene.compact()

    assert scene.places()[:2] == [(1, b"b"), (2, b"a")]
    header, _ = list(scene.batches())[1]
    assert header.attributes & DELETE_HORIZON_BIT
    assert header.base_timestamp == START_WALL_MS + scene.config.delete_retention_ms
    scene.check_records()


@pytest.mark.parametrize("codec", range(len(NAMES)), ids=NAMES)
def test_a_delete_horizon_changes_no_time_of_a_record(scene, codec):
    scene.append((b"a", None), (b"b", b"1"), (b"c", None), timestamp=7_000, codec=codec)
    scene.roll()

    scene.compact()

    times = [(record.offset, record.timestamp) for record in scene.records()]
    assert times[:3] == [(0, 7_000), (1, 7_001), (2, 7_002)]


@pytest.mark.parametrize(("passed_ms", "is_there"), [(999, True), (1_000, False), (9_000, False)])
def test_a_tombstone_goes_when_its_time_has_come(scene, passed_ms, is_there):
    scene.append((b"a", b"1"), (b"a", None), (b"b", b"1"))
    scene.roll()
    scene.compact()
    scene.now_wall_ms += passed_ms
    scene.append((b"c", b"1"))
    scene.roll()

    scene.compact()

    assert ((1, b"a") in scene.places()) == is_there
    assert (2, b"b") in scene.places()


def test_the_time_of_a_tombstone_does_not_begin_anew_with_every_pass(scene):
    scene.append((b"a", b"1"), (b"a", None), (b"b", b"1"))
    scene.roll()
    for key in (b"c", b"d", b"e"):
        scene.compact()
        scene.now_wall_ms += 400
        scene.append((key, b"1"))
        scene.roll()

    scene.compact()

    assert [key for _, key in scene.places()[:2]] == [b"b", b"c"]


def test_a_tombstone_of_a_record_time_long_past_has_its_time_all_the_same(scene):
    """It counts from when it was compacted first: a reader may be that late."""
    scene.append((b"a", b"1"), (b"a", None), timestamp=1)
    scene.roll()

    scene.compact()

    assert scene.places()[0] == (1, b"a")


# --- Producers.


def test_the_last_batch_of_a_producer_stays_without_records(scene):
    scene.append((b"a", b"1"), producer_id=5)
    scene.append((b"a", b"2"), (b"b", b"2"), producer_id=5)
    scene.append((b"a", b"3"), (b"b", b"3"))
    scene.roll()

    scene.compact()

    header, data = next(scene.batches(1))
    assert (header.base_offset, header.last_offset, header.record_count) == (1, 2, 0)
    assert (header.producer_id, header.base_sequence, header.last_sequence) == (5, 1, 2)
    assert decode_records(data, size_max=100) == []


def test_a_producer_is_known_from_its_empty_batch(scene):
    scene.append((b"a", b"1"), (b"b", b"1"), producer_id=5)
    scene.append((b"a", b"2"), (b"b", b"2"))
    scene.roll()
    scene.compact()
    scene.disk.crash()
    for name in scene.names():
        if name.endswith(".snapshot"):
            scene.disk.remove(f"{DIRECTORY}/{name}")

    scene.open()

    again = BatchBuilder()
    again.append(1, b"a", b"1")
    again.append(1, b"b", b"1")
    header = decode_batch_header(again.build(producer_id=5, producer_epoch=0, base_sequence=0), 0)
    assert scene.producers.check(header).is_duplicate


def test_an_empty_batch_goes_when_its_producer_has_written_again(scene):
    scene.append((b"first of its epoch", b"1"))
    scene.append((b"a", b"1"), producer_id=5)
    scene.append((b"a", b"2"))
    scene.roll()
    scene.compact()
    scene.append((b"x", b"1"), producer_id=5)
    scene.roll()

    scene.compact()

    assert [header.base_offset for header, _ in scene.batches(1)] == [2, 3, 4, 5]


# --- Leader epochs.


def test_a_follower_of_a_compacted_log_knows_where_each_leader_epoch_began(scene):
    for scene.epoch in (3, 5, 6):
        scene.append((b"a", b"1"), (b"b", b"1"))
        scene.append((b"a", b"2"), (b"b", b"2"))
    scene.roll()
    scene.compact()
    follower = CompactionScene()

    for header, data in scene.batches():
        append_copy(follower.log, window_of(data), header, scene.now_wall_ms)

    assert scene.log.leader_epochs.start_offsets == [0, 4, 8]
    for epochs in (follower.log.leader_epochs, recovered_epochs(scene)):
        assert epochs.epochs == [3, 5, 6]
        assert epochs.start_offsets == [0, 4, 8]


def copied_epochs(scene: CompactionScene, start_offset: int = 0) -> list[int]:
    """Where leader epochs begin in a new copy, by the batches alone."""
    follower = CompactionScene()
    follower.log.begin_anew(start_offset)
    follower.flush()
    for header, data in scene.batches(scene.log.log_start_offset):
        append_copy(follower.log, window_of(data), header, scene.now_wall_ms)
    return follower.log.leader_epochs.start_offsets


def test_the_batch_that_holds_the_log_start_stays_for_its_leader_epoch(scene):
    scene.epoch = 4
    scene.append(*[(b"a", b"4")] * 10)
    scene.epoch = 5
    scene.append((b"a", b"5"))
    scene.append(*[(b"a", b"5")] * 9)
    scene.append((b"a", b"last"))
    scene.roll()
    scene.log.advance_log_start_offset(15)

    scene.compact()

    assert copied_epochs(scene, start_offset=11) == [11]


@pytest.mark.interpreted
def test_where_the_first_batch_of_a_leader_epoch_is_gone_the_next_one_stays(scene, monkeypatch):
    """An older release has dropped the first one."""
    for scene.epoch in (4, 5):
        for _ in range(10):
            scene.append((b"a", b"v"))
    scene.append((b"a", b"last"))
    scene.roll()
    with monkeypatch.context() as older:
        older.setattr(CompactionRule, "keeps_header", lambda self, header: False)
        scene.compact()
    before = copied_epochs(scene)
    for _ in range(2):
        scene.append((b"a", b"newer"))
        scene.roll()

        scene.compact()

    assert copied_epochs(scene) == before


def recovered_epochs(scene: CompactionScene) -> EpochIndex:
    """Leader epochs after a start that has lost their file."""
    scene.disk.crash()
    scene.disk.remove(f"{DIRECTORY}/{EPOCH_FILE}")
    scene.open()
    return scene.log.leader_epochs


def test_an_empty_batch_alone_lets_no_segment_be_written_again(scene):
    scene.append((b"a", b"1"))
    scene.append((b"a", b"2"))
    scene.roll()
    scene.compact()
    swaps = scene.log.compaction.swaps
    scene.append((b"c", b"1"))
    scene.roll()

    scene.compact()

    first = scene.log.segments[0]
    assert first.size > HEADER_SIZE
    assert scene.log.compaction.swaps == swaps + 1, "only to note how far the log is clean"


# --- Readers.


def test_a_reader_inside_a_gap_gets_what_follows(scene):
    for number in range(20):
        scene.append((b"a", b"%d" % number))
    scene.roll()

    scene.compact()

    for offset in range(20):
        assert scene.records(offset)[0].offset == 19


def test_a_region_that_is_being_sent_is_sent_to_its_end(scene):
    scene.append((b"a", b"1"))
    scene.append((b"a", b"2"))
    scene.roll()
    region = scene.log.read(0, scene.log.end_position(), 1 << 20, True)
    assert region is not None
    before = region.file.read(region.position, region.size)

    scene.compact()

    assert region.file.read(region.position, region.size) == before


def test_reads_in_the_middle_of_a_compaction_see_every_last_value(scene):
    for number in range(150):
        scene.append((b"k%d" % (number % 7), b"%d" % number), (b"x", None))
    scene.roll()

    scene.compact(units=3, before_step=lambda _: scene.check_last_values())

    scene.check_is_compact()


def test_a_search_by_time_finds_what_is_left(scene):
    for number in range(60):
        scene.append((b"k%d" % (number % 5), b"v" * 50), timestamp=10_000 + 10 * number)
    scene.roll()

    scene.compact()

    log = scene.log
    for timestamp in range(9_990, 10_620, 5):
        late = [record for record in scene.records() if record.timestamp >= timestamp]
        found = log.offset_for_time(timestamp, log.written_end_offset)
        assert found is not None
        assert found[:2] == (late[0].timestamp, late[0].offset)


def test_the_latest_time_is_that_of_a_record_that_is_there(scene):
    scene.append((b"a", b"1"), timestamp=9_000, producer_id=5)
    scene.append((b"a", b"2"), timestamp=8_000)
    scene.written.clear()
    scene.config.segment_bytes = 1
    scene.append((b"z", b"1"), timestamp=7_000)
    scene.flush()
    scene.save_recovery_point()

    scene.compact()

    found = scene.log.max_timestamp_offset(scene.log.written_end_offset)
    assert found is not None
    assert found[:2] == (8_000, 1)


# --- Segments.


def test_small_segments_become_one(scene):
    scene.config.segment_bytes = 1_000
    for number in range(200):
        scene.append((b"k%d" % (number % 3), b"v" * 50))
    scene.roll()
    before = len(scene.log.segments)

    scene.compact()
    scene.append((b"k0", b"once more"))
    scene.roll()
    scene.compact()

    assert before > 10
    assert len(scene.log.segments) == 2
    assert [segment.size <= 1_000 for segment in scene.log.segments] == [True, True]


def test_the_files_left_are_those_of_the_segments(scene):
    for number in range(100):
        scene.append((b"k%d" % (number % 3), b"v" * 50))
    scene.roll()

    scene.compact()

    bases = [f"{segment.base_offset:020d}" for segment in scene.log.segments]
    assert [name for name in scene.names() if name.endswith(".log")] == [
        f"{base}.log" for base in bases
    ]
    assert not [name for name in scene.names() if name.endswith((".cleaned", ".tmp"))]


def test_a_clean_start_after_compaction_scans_nothing(scene):
    for number in range(100):
        scene.append((b"k%d" % (number % 3), b"v" * 50))
    scene.roll()
    scene.compact()
    kept = scene.places()
    scene.logs.close_cleanly()

    scene.open()

    assert scene.places() == kept
    assert scene.log.recovery_report.scanned_bytes == 0
    assert scene.log.recovery_report.walked_bytes == 0
    assert scene.log.compaction.cleaned_offset == 100


def test_records_below_the_log_start_are_left_out(scene):
    for number in range(50):
        scene.append((b"k%d" % number, b"v" * 50))
    scene.roll()
    scene.log.advance_log_start_offset(30)

    scene.compact()

    assert [offset for offset, _ in scene.places()] == list(range(30, 51))
    assert scene.log.segments[0].size < 30 * 120


def test_segments_below_the_log_start_are_given_up_when_compaction_is_over(scene):
    scene.config.segment_bytes = 500
    for number in range(50):
        scene.append((b"k%d" % number, b"v" * 50))
    scene.roll()
    segments = len(scene.log.segments)
    compaction = scene.begin()
    compaction.step(Effort(3), scene.now_wall_ms)
    scene.log.advance_log_start_offset(40)
    kept_meanwhile = len(scene.log.segments)

    compaction.abandon()

    assert kept_meanwhile == segments
    assert len(scene.log.segments) < segments
    assert scene.log.segments[0].base_offset <= 40


# --- Bounds.


def test_a_full_key_map_makes_several_passes_of_it(scene):
    scene.buffer_bytes = 160 * 20
    for number in range(300):
        scene.append((b"k%d" % (number % 90), b"v"))
    scene.roll()
    counts = []

    compaction = scene.compact(before_step=lambda it: counts.append(it.rule.keys.count))

    assert compaction.passes > 3
    assert max(counts) <= 20
    scene.check_last_values()
    scene.check_is_compact()


def test_a_batch_with_more_keys_than_the_map_takes_is_compacted_all_the_same(scene):
    scene.buffer_bytes = 1
    scene.append(*[(b"k%d" % number, b"1") for number in range(50)])
    scene.append(*[(b"k%d" % number, b"2") for number in range(50)])
    scene.roll()

    scene.compact()

    scene.check_is_compact()
    scene.check_last_values()


@pytest.mark.parametrize("codec", range(len(NAMES)), ids=NAMES)
def test_a_large_batch_is_compacted_in_many_steps(scene, codec):
    """3 MB of content: opening, records and compression each take more than one step."""
    scene.config.segment_bytes = 100 << 20
    scene.append(
        *[(b"k%d" % number, b"%05d" % number * 60) for number in range(10_000)], codec=codec
    )
    scene.append(*[(b"k%d" % number, b"new") for number in range(0, 10_000, 2)], codec=codec)
    scene.append((b"k1", None))
    scene.roll()
    steps = []

    scene.compact(units=2_000, before_step=steps.append)

    assert len(steps) > 10
    scene.check_records()
    scene.check_last_values()
    scene.check_is_compact()


# --- Damage and refusal.


def test_a_damaged_batch_is_a_flaw_and_nothing_is_swapped(scene):
    scene.append((b"a", b"v" * 100))
    scene.append((b"a", b"2"))
    scene.roll()
    scene.disk.flip_bit(f"{DIRECTORY}/{0:020d}.log", 90)
    before = scene.names()

    with pytest.raises(Flaw):
        scene.compact()

    assert scene.names() == before


def test_a_batch_that_cannot_be_opened_stays_and_takes_nothing_away(scene):
    scene.append((b"a", b"1"), (b"b", b"1"), (b"c", b"1"))
    builder = BatchBuilder()
    builder.append(1, b"a", b"2")
    builder.append(1, b"b", b"2")
    whole = bytearray(builder.build())
    whole[-5] = 0x7E  # a key that goes beyond its record
    unreadable = with_right_crc(bytes(whole))
    scene.log.append_bytes(unreadable, 0, scene.now_wall_ms)
    scene.append((b"c", b"2"))
    scene.roll()

    scene.compact()

    kept = list(scene.batches())
    assert [(header.base_offset, header.record_count) for header, _ in kept[:3]] == [
        (0, 2),
        (3, 2),
        (5, 1),
    ]
    assert kept[1][1][17:] == unreadable[17:]


def test_batches_that_cannot_be_unfolded_do_not_begin_the_map_anew(scene):
    """Nothing of them was noted; with many of them it would never come to an end."""
    scene.append((b"first of its epoch", b"1"))
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
    assert readable == [0, 33, 35, 37, 39, 41]


def test_a_full_disk_leaves_the_log_as_it_was(scene):
    for number in range(100):
        scene.append((b"k%d" % (number % 3), b"v" * 50))
    scene.roll()
    kept = scene.places()
    compaction = scene.begin()
    scene.disk.capacity_bytes = scene.disk.used_bytes() + 10

    with pytest.raises(StorageError):
        while True:
            compaction.step(Effort(50), scene.now_wall_ms)
    compaction.abandon()
    scene.disk.heal()

    assert scene.places() == kept
    assert not [name for name in scene.names() if name.endswith(".cleaned")]
    scene.compact()
    scene.check_is_compact()


def test_what_an_attempt_left_behind_is_removed_at_the_next_start(scene):
    for number in range(100):
        scene.append((b"k%d" % (number % 3), b"v" * 50))
    scene.roll()
    kept = scene.places()
    compaction = scene.begin()
    while not [name for name in scene.names() if name.endswith(".cleaned")]:
        compaction.step(Effort(5), scene.now_wall_ms)
    scene.disk.kill()

    scene.open()

    assert scene.places() == kept
    assert not [name for name in scene.names() if name.endswith(".cleaned")]


def with_right_crc(batch: bytes) -> bytes:
    return batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]


def test_what_is_given_up_drops_its_keys_in_steps_and_ends(scene):
    scene.config.segment_bytes = 1 << 20
    for first in range(0, 30_000, 1_000):
        scene.append(*[(b"%d" % number, b"") for number in range(first, first + 1_000)])
    scene.buffer_bytes = 100 << 20
    scene.roll()
    compaction = scene.begin()
    while compaction.rule.keys.count < 25_000:
        compaction.step(Effort(2_000), scene.now_wall_ms)

    compaction.abandon()
    counts = [compaction.rule.keys.count]
    while compaction.step(Effort(1), scene.now_wall_ms) != DONE:
        counts.append(compaction.rule.keys.count)

    assert len(counts) > 2
    assert compaction.rule.keys.count == 0
    assert not scene.log.compaction.is_under_way


def test_compaction_leaves_producers_the_room_that_is_left(scene):
    for number in range(100):
        scene.append((b"k%d" % (number % 3), b"v" * 50))
    scene.roll()
    compaction = scene.begin()
    scene.disk.capacity_bytes = scene.disk.used_bytes() + 1_000

    with pytest.raises(StorageError, match="no room"):
        while True:
            compaction.step(Effort(50), scene.now_wall_ms)

    assert not [name for name in scene.names() if name.endswith(".cleaned")]


@pytest.mark.parametrize("timestamp", [-(1 << 62), (1 << 62) + 5])
def test_a_tombstone_whose_time_is_absurd_stays_as_it_is(scene, timestamp):
    """No horizon can be set that its time could be told from."""
    scene.append((b"a", None), (b"b", b"1"), timestamp=timestamp)
    scene.append((b"b", b"2"))
    scene.roll()

    scene.compact()

    scene.check_records()
    assert scene.places()[0] == (0, b"a")


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


@pytest.mark.parametrize("codec", range(len(NAMES)), ids=NAMES)
def test_records_of_a_batch_with_the_brokers_time_keep_it(scene, codec):
    builder = BatchBuilder()
    for key, value in ((b"a", None), (b"b", b"1"), (b"c", b"1")):
        builder.append(7_000, key, value)
    window = window_of(builder.build(codec))
    stamped = with_log_append_time(window, decode_batch_header(window.data, 0), 9_000)
    scene.log.append_bytes(stamped.data, 0, scene.now_wall_ms)
    scene.append((b"b", b"2"))
    scene.roll()

    scene.compact()

    records = scene.records()[:2]
    assert [(record.offset, record.timestamp) for record in records] == [(0, 9_000), (2, 9_000)]
    header, _ = next(scene.batches())
    assert header.is_log_append_time
