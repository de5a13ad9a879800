"""Verification: a sound log has no finding, and no flipped bit of a stopped one stays unseen."""

from __future__ import annotations

import random

import pytest
from tests.support import compaction_scene as compacted
from tests.support.compaction_scene import START_WALL_MS, CompactionScene

from tarry.log.compaction.compaction import DONE
from tarry.log.compaction.effort import Effort
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.log.logs import Logs
from tarry.log.recovery import resumption
from tarry.log.recovery.points import (
    EMPTY_SNAPSHOT,
    RECOVERY_POINTS_FILE,
    RecoveryPoint,
    decode_recovery_points,
    encode_recovery_points,
    uncovered_row,
)
from tarry.log.recovery.verification import VerifiedLog, verify_log
from tarry.log.small_files import write_file
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import ProducerListener
from tarry.records.builder import BatchBuilder
from tarry.simulation.disk import SimulatedDisk

DIRECTORY = "orders-0"
TOPIC_ID = bytes(15) + b"\x07"
FIRST = f"{DIRECTORY}/00000000000000000000"


class CountedReads:
    """A disk that counts the bytes that are read of each file."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.sizes: dict[str, int] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(self.disk, name)

    def open(self, path: str, *, create: bool = False) -> object:
        file = self.disk.open(path, create=create)
        read = file.read

        def counted(position: int, size_max: int) -> bytes:
            data = read(position, size_max)
            self.sizes[path] = self.sizes.get(path, 0) + len(data)
            return data

        file.read = counted  # type: ignore[method-assign]
        return file


class Scene:
    """One log with several segments, filled from a seed."""

    def __init__(self, seed: int = 3) -> None:
        self.random = random.Random(seed)
        self.disk = SimulatedDisk(self.random)
        self.config = LogConfig()
        self.config.segment_bytes = 1_500
        self.config.index_interval_bytes = 200
        self.sequence = 0
        self.open()

    def open(self) -> None:
        self.logs = Logs(self.disk)
        self.logs.load()
        self.producers = ProducerStates(2**31)
        listener = ProducerListener(self.producers)
        self.log: Log = self.logs.open(DIRECTORY, TOPIC_ID, self.config, listener)
        self.logs.settle()

    def fill(self, count: int, epoch: int = 1) -> None:
        for _ in range(count):
            batch = BatchBuilder()
            for _ in range(1 + self.random.randrange(3)):
                timestamp = 1_700_000_000_000 + self.random.randrange(10_000)
                batch.append(timestamp, b"key", b"v" * self.random.choice([0, 10, 300]), [])
            data = batch.build(self.random.choice([0, 1, 4]))
            self.log.append_bytes(data, epoch, 1_700_000_000_000)
        self.log.write()

    def save_recovery_points(self) -> None:
        flush_id = self.logs.recovery_points.begin(100_000_000)
        while flush_id >= 0:
            self.disk.complete_flush(flush_id)
            flush_id = self.logs.recovery_points.on_flushed(flush_id)

    def verify(self, *, was_clean: bool, points_known: bool = True) -> VerifiedLog:
        row = None
        if points_known and self.disk.exists(RECOVERY_POINTS_FILE):
            rows = decode_recovery_points(self.disk.content(RECOVERY_POINTS_FILE))
            assert rows is not None
            row = rows[DIRECTORY]
        elif points_known:
            row = RecoveryPoint(DIRECTORY, "")
        return verify_log(self.disk, DIRECTORY, row, was_clean=was_clean)


@pytest.fixture
def stopped() -> Scene:
    scene = Scene()
    scene.fill(20)
    scene.save_recovery_points()
    scene.fill(20, epoch=2)
    scene.logs.close_cleanly()
    return scene


def told(found: VerifiedLog) -> list[str]:
    return [f"{one.path}: {one.problem}" for one in found.findings]


def test_a_sound_log_has_no_finding_and_is_counted(stopped: Scene) -> None:
    read: list[int] = []
    found = verify_log(
        stopped.disk,
        DIRECTORY,
        decode_recovery_points(stopped.disk.content(RECOVERY_POINTS_FILE))[DIRECTORY],  # type: ignore[index]
        was_clean=True,
        on_bytes=read.append,
    )

    assert told(found) == []
    assert found.batches == 40
    assert found.records == found.end_offset == stopped.log.written_end_offset
    assert found.segments == len(stopped.log.segments) > 3
    assert sum(read) == found.size_bytes == stopped.log.size_bytes


def test_no_flipped_bit_of_a_stopped_log_stays_unseen(stopped: Scene) -> None:
    disk = stopped.disk
    chance = random.Random(9)
    for path in disk.paths(DIRECTORY):
        size = len(disk.content(path))
        for _ in range(min(size, 12)):
            position, bit = chance.randrange(size), chance.randrange(8)
            disk.flip_bit(path, position, bit)

            found = stopped.verify(was_clean=True)

            assert found.is_damaged, (path, position, bit)
            disk.flip_bit(path, position, bit)
    assert told(stopped.verify(was_clean=True)) == []


def test_no_missing_file_of_a_stopped_log_stays_unseen(stopped: Scene) -> None:
    disk = stopped.disk
    kept = ("partition.metadata", "leader-epoch-checkpoint")
    for path in disk.paths(DIRECTORY):
        size = len(disk.content(path))
        newest = f"{stopped.log.active.base_offset:020d}"
        if not size or path.endswith(kept) or (path.endswith(".snapshot") and newest not in path):
            continue
        away = f"{DIRECTORY}/away"
        disk.rename(path, away)

        found = stopped.verify(was_clean=True)

        disk.rename(away, path)
        if path.endswith(".snapshot"):
            continue
        assert found.is_damaged, path
        assert any("missing" in one.problem for one in found.findings), told(found)


def test_damage_is_told_with_file_offset_and_position(stopped: Scene) -> None:
    batch_2 = stopped.log.segments[0].walk(0, stopped.log.segments[0].size)
    for _ in range(3):
        batch_2.next()
    stopped.disk.flip_bit(f"{FIRST}.log", int(batch_2.batch_position) + 30, 2)

    (finding,) = stopped.verify(was_clean=True).findings

    assert finding.path == f"{FIRST}.log"
    assert finding.offset == batch_2.batch_offset
    assert finding.position == batch_2.batch_position
    assert "the CRC does not match; " in finding.problem
    assert f"cannot be read, up to offset {batch_2.last_offset + 1}" in finding.problem


def places(scene: Scene) -> dict[int, tuple[str, int, int]]:
    """By base offset, where each batch lies: file, position, size."""
    found: dict[int, tuple[str, int, int]] = {}
    for segment in scene.log.segments:
        walk = segment.walk(0, segment.size)
        while (header := walk.next()) is not None:
            place = (f"{segment.path}.log", int(walk.batch_position), int(header.size))
            found[int(header.base_offset)] = place
    return found


# A byte of a batch: of its base offset, its length, its magic, its CRC, its records.
BYTES_OF_BATCH = (5, 9, 10, 16, 18, 57)


@pytest.mark.parametrize("byte", BYTES_OF_BATCH)
@pytest.mark.parametrize("bit", [0, 6])
def test_every_damaged_batch_is_named_and_no_other(stopped: Scene, byte: int, bit: int) -> None:
    batches = places(stopped)
    hurt = sorted(batches)[1::7]
    for offset in hurt:
        path, position, _ = batches[offset]
        stopped.disk.flip_bit(path, position + byte, bit)

    found = stopped.verify(was_clean=True)

    assert len(hurt) >= 5
    named = [(one.path, one.position) for one in found.findings]
    assert named == [batches[offset][:2] for offset in hurt]


def test_two_damaged_batches_in_a_row_and_the_last_one_of_a_segment_are_named(
    stopped: Scene,
) -> None:
    batches = places(stopped)
    first = [offset for offset, place in sorted(batches.items()) if place[0] == f"{FIRST}.log"]
    for offset in (first[1], first[2], first[-1]):
        path, position, _ = batches[offset]
        stopped.disk.flip_bit(path, position + 40, 3)

    findings = stopped.verify(was_clean=True).findings

    assert [one.offset for one in findings] == [first[1], first[2], first[-1]]


def test_where_no_sound_batch_is_near_the_index_says_where_to_go_on(
    stopped: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumption, "SEARCHED_BYTES_MAX", 0)
    batches = places(stopped)
    offset = sorted(batches)[0]
    path, position, _ = batches[offset]
    stopped.disk.flip_bit(path, position + 8, 6)
    later = sorted(batches)[-1]
    stopped.disk.flip_bit(batches[later][0], batches[later][1] + 40, 1)

    findings = stopped.verify(was_clean=True).findings

    assert [one.offset for one in findings] == [offset, later]
    assert "cannot be read, up to offset" in findings[0].problem


def test_a_segment_without_a_sound_batch_is_read_once_and_the_next_one_is_looked_at(
    stopped: Scene,
) -> None:
    second = stopped.log.segments[1]
    for position in range(second.size):
        stopped.disk.flip_bit(f"{second.path}.log", position, 4)
    read = CountedReads(stopped.disk)

    found = verify_log(read, DIRECTORY, None, was_clean=True)  # type: ignore[arg-type]

    assert [one.offset for one in found.findings if one.path.startswith(second.path)] == [
        second.base_offset
    ]
    assert found.end_offset == stopped.log.log_end_offset
    assert read.sizes[f"{second.path}.log"] < 4 * second.size


def test_damage_hides_no_damage_of_the_index(stopped: Scene) -> None:
    batches = places(stopped)
    path, position, _ = batches[0]
    stopped.disk.flip_bit(path, position + 40, 1)
    index = f"{FIRST}.index"
    stopped.disk.flip_bit(index, len(stopped.disk.content(index)) - 1, 1)

    findings = stopped.verify(was_clean=True).findings

    assert [one.path for one in findings] == [path, index]


def test_the_value_of_a_record_that_is_a_batch_is_not_taken_for_one() -> None:
    scene = Scene()
    inner = BatchBuilder()
    inner.append(1_700_000_000_000, b"key", b"value", [])
    outer = BatchBuilder()
    outer.append(1_700_000_000_000, b"key", inner.build(0), [])
    for data in (outer.build(0), inner.build(0)):
        scene.log.append_bytes(data, 1, 1_700_000_000_000)
    scene.log.write()
    scene.save_recovery_points()
    # Its length holds no more, so the next batch is searched for.
    scene.disk.flip_bit(f"{FIRST}.log", 8, 6)

    (finding,) = scene.verify(was_clean=True).findings

    assert finding.problem.endswith("up to offset 1")


def test_records_that_cannot_be_read_are_damage_though_the_crc_is_right() -> None:
    scene = Scene()
    batch = BatchBuilder()
    batch.append(1_700_000_000_000, None, b"value")
    data = bytearray(batch.build(0))
    # Three records are claimed where one is.
    data[57:61] = (3).to_bytes(4, "big")
    data[23:27] = (2).to_bytes(4, "big")
    from tarry.wire.crc32c import crc32c

    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    scene.log.append_bytes(bytes(data), 0, 0)
    scene.log.write()
    scene.logs.close_cleanly()

    (finding,) = scene.verify(was_clean=True).findings

    assert finding.is_damage
    assert finding.problem.startswith("batch: ")


@pytest.mark.parametrize("seed", range(30))
def test_what_a_crash_leaves_is_no_damage(seed: int) -> None:
    scene = Scene(seed)
    scene.fill(scene.random.randrange(20))
    if scene.random.randrange(2):
        scene.save_recovery_points()
    scene.fill(scene.random.randrange(20))
    scene.disk.crash()

    found = scene.verify(was_clean=False)

    assert not found.is_damaged, told(found)
    torn = [one for one in told(found) if "torn tail" in one or "no segment begins at" in one]
    scene.open()
    if scene.log.recovery_report.torn_bytes:
        assert torn
    assert scene.log.log_end_offset == found.end_offset


def told_by_a_start(scene: Scene) -> tuple[bool, int]:
    """Open the log again; whether it has a flaw, and where its end was cut off."""
    scene.open()
    return scene.log.flaw_offset >= 0, scene.log.recovery_report.torn_offset


def told_by_a_report(found: VerifiedLog) -> tuple[bool, int]:
    """Whether the log is damaged, and where a start is going to cut its end off."""
    cuts = [one.offset for one in found.findings if not one.is_damage]
    return found.is_damaged, cuts[0] if cuts else -1


def test_a_batch_of_an_earlier_epoch_beyond_the_recovery_point_is_a_torn_tail() -> None:
    scene = Scene()
    scene.fill(10, epoch=2)
    scene.save_recovery_points()
    scene.fill(10, epoch=2)
    path, position, _ = places(scene)[max(places(scene))]
    # From epoch 2 to 0, which no CRC covers.
    scene.disk.flip_bit(path, position + 15, 1)

    found = scene.verify(was_clean=False)

    assert told_by_a_report(found) == (False, max(places(scene)))
    assert told_by_a_report(found) == told_by_a_start(scene)


def test_without_recovery_points_a_segment_that_went_before_the_last_is_damage() -> None:
    scene = Scene()
    scene.fill(40)
    scene.save_recovery_points()
    gone = scene.log.segments[-2]
    for suffix in (".log", ".index", ".timeindex"):
        scene.disk.remove(gone.path + suffix)
    scene.disk.flip_bit(RECOVERY_POINTS_FILE, 60, 1)

    found = scene.verify(was_clean=False, points_known=False)

    assert told_by_a_report(found) == (True, -1)
    assert told_by_a_report(found) == told_by_a_start(scene)


def test_what_a_log_that_was_begun_anew_has_left_behind_is_removed_after_a_clean_stop_too() -> None:
    scene = Scene()
    scene.fill(20)
    scene.logs.close_cleanly()
    kept = scene.log.segments[1].base_offset
    rows = decode_recovery_points(scene.disk.content(RECOVERY_POINTS_FILE))
    assert rows is not None
    point = rows[DIRECTORY]
    # The log is given up for an empty one that begins inside its first segment.
    point.log_start_offset = point.recovery_offset = kept - 1
    point.segments = [uncovered_row(kept - 1)]
    point.snapshot_offset = EMPTY_SNAPSHOT
    point.void_generation = 1
    write_file(scene.disk, RECOVERY_POINTS_FILE, encode_recovery_points([point.encode()]))

    found = scene.verify(was_clean=True)

    assert told_by_a_report(found) == (False, kept - 1)
    assert told_by_a_report(found) == told_by_a_start(scene)


def test_damage_below_the_recovery_point_is_damage_after_a_crash_too() -> None:
    scene = Scene()
    scene.fill(20)
    scene.save_recovery_points()
    scene.disk.crash()
    scene.disk.flip_bit(f"{FIRST}.log", 100, 1)

    found = scene.verify(was_clean=False)

    assert found.is_damaged
    # Segments behind a damaged one are read all the same.
    assert found.segments > 1


def test_without_recovery_points_only_the_last_segment_may_be_torn(stopped: Scene) -> None:
    last = stopped.log.active
    stopped.disk.flip_bit(f"{last.path}.log", 40, 1)
    is_torn = stopped.verify(was_clean=False, points_known=False)
    stopped.disk.flip_bit(f"{FIRST}.log", 40, 1)
    is_damaged = stopped.verify(was_clean=False, points_known=False)

    assert not is_torn.is_damaged
    assert "torn tail" in told(is_torn)[0]
    assert is_damaged.is_damaged


def test_a_segment_that_went_is_told_with_the_offsets_that_are_missing(stopped: Scene) -> None:
    second, third = stopped.log.segments[1], stopped.log.segments[2]
    for suffix in (".log", ".index", ".timeindex"):
        stopped.disk.remove(second.path + suffix)

    sentences = told(stopped.verify(was_clean=True))

    assert any(f"{second.path}.log: missing" in one for one in sentences)
    gap = f"offsets {second.base_offset} to {third.base_offset - 1} are missing before it"
    assert f"{third.path}.log: {gap}" in sentences


def test_findings_are_bounded() -> None:
    from tarry.log.recovery.verification import FINDINGS_MAX, Finding

    found = VerifiedLog(DIRECTORY)
    for number in range(FINDINGS_MAX + 5):
        found.add(Finding(DIRECTORY, str(number), is_damage=True))

    assert (len(found.findings), found.left_out) == (FINDINGS_MAX, 5)


@pytest.mark.parametrize("seed", range(5))
def test_a_compacted_log_is_sound_and_its_damage_is_found(seed: int) -> None:
    scene = CompactionScene(seed)
    for number in range(120):
        key = b"k%d" % scene.random.randrange(9)
        scene.append((key, b"v" * 40), (key, None), timestamp=START_WALL_MS + number)
    scene.roll()
    scene.compact()
    scene.append((b"later", b"v"))
    scene.flush()
    scene.logs.close_cleanly()
    disk = scene.disk

    def verify() -> VerifiedLog:
        rows = decode_recovery_points(disk.content(RECOVERY_POINTS_FILE))
        assert rows is not None
        return verify_log(disk, compacted.DIRECTORY, rows[compacted.DIRECTORY], was_clean=True)

    assert told(verify()) == []
    assert verify().records == len(scene.records())
    for path in disk.paths(compacted.DIRECTORY):
        size = len(disk.content(path))
        if size:
            position, bit = scene.random.randrange(size), scene.random.randrange(8)
            if path.endswith(".log"):
                # Behind the base offset, which no CRC covers and which may lie in a gap.
                position = 8 + scene.random.randrange(50)
            disk.flip_bit(path, position, bit)
            assert verify().is_damaged, (path, position, bit)
            disk.flip_bit(path, position, bit)


@pytest.mark.parametrize("crash_at", range(0, 40, 3))
def test_a_crash_while_compacting_leaves_no_damage(crash_at: int) -> None:
    scene = CompactionScene(crash_at)
    for number in range(80):
        scene.append((b"k%d" % (number % 7), b"v" * 40))
    scene.roll()
    compaction = scene.begin()
    for _ in range(crash_at):
        flush_id = compaction.step(Effort(5), scene.now_wall_ms)
        while flush_id >= 0:
            scene.disk.complete_flush(flush_id)
            flush_id = compaction.on_flushed()
        if flush_id == DONE:
            break
    scene.disk.crash()
    rows = decode_recovery_points(scene.disk.content(RECOVERY_POINTS_FILE))
    assert rows is not None

    found = verify_log(scene.disk, compacted.DIRECTORY, rows[compacted.DIRECTORY], was_clean=False)

    assert not found.is_damaged, told(found)
    scene.open()
    assert found.records == len(scene.records())
