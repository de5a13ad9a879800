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
from tarry.log.recovery.points import RECOVERY_POINTS_FILE, RecoveryPoint, decode_recovery_points
from tarry.log.recovery.verification import VerifiedLog, verify_log
from tarry.partition.producers import ProducerStates
from tarry.partition.state import ProducerListener
from tarry.records.builder import BatchBuilder
from tarry.simulation.disk import SimulatedDisk

DIRECTORY = "orders-0"
TOPIC_ID = bytes(15) + b"\x07"
FIRST = f"{DIRECTORY}/00000000000000000000"


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
    assert "bytes from here on cannot be read" in finding.problem


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


def test_damage_below_the_recovery_point_is_damage_after_a_crash_too() -> None:
    scene = Scene()
    scene.fill(20)
    scene.save_recovery_points()
    scene.disk.crash()
    scene.disk.flip_bit(f"{FIRST}.log", 100, 1)

    found = scene.verify(was_clean=False)

    assert found.is_damaged
    # What is behind a damaged segment is read all the same.
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
