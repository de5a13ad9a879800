"""A log whose files were damaged on the medium: it never gives what was not written.

Indexes, snapshots and recovery points are hints: with any of them damaged everything is read as
before.  Damaged batches end what can be read, or are given as they are and betrayed by their CRC.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings, strategies as st

from tarry.base.errors import CorruptData, StorageError
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.log.logs import Logs
from tarry.log.state import LogListener
from tarry.records.batch import MAGIC_V2, BatchHeader, has_valid_crc
from tarry.records.builder import BatchBuilder
from tarry.simulation.disk import SimulatedDisk

DIRECTORY = "t-0"
BATCHES = 120


class Counter(LogListener):
    """Derived state: how many batches there are."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def reset(self) -> None:
        self.count = 0

    def load_snapshot(self, data: bytes) -> bool:
        self.count = int(data)
        return True

    def take_snapshot(self) -> bytes | None:
        return str(self.count).encode()

    def on_recovered_batch(self, header: BatchHeader) -> None:
        self.count += 1


def config() -> LogConfig:
    made = LogConfig()
    made.segment_bytes = 3000
    made.index_interval_bytes = 200
    return made


def opened(disk: SimulatedDisk, listener: Counter) -> Log:
    logs = Logs(disk)
    logs.load()
    log = logs.open(DIRECTORY, bytes(16), config(), listener)
    logs.settle()
    return log


def built(disk: SimulatedDisk, *, is_clean: bool) -> tuple[list[bytes], list[int]]:
    """A log of several segments; the batches' bodies and the records' timestamps."""
    chance = random.Random(4)
    listener = Counter()
    logs = Logs(disk)
    logs.load()
    log = logs.open(DIRECTORY, bytes(16), config(), listener)
    bodies: list[bytes] = []
    times: list[int] = []
    for number in range(BATCHES):
        timestamp = 1000 + number + chance.randrange(30)
        builder = BatchBuilder()
        builder.append(timestamp, None, b"%d" % number + b"." * chance.randrange(150))
        batch = builder.build()
        bodies.append(batch[16:])
        times.append(timestamp)
        log.append_bytes(batch, 3, 1000)
        log.write()
        listener.count += 1
        if number == BATCHES // 2:
            flush_id = logs.recovery_points.begin(100_000)
            while flush_id >= 0:
                disk.complete_flush(flush_id)
                flush_id = logs.recovery_points.on_flushed(flush_id)
    if is_clean:
        logs.close_cleanly()
    else:
        disk.kill()
    return bodies, times


def damage(disk: SimulatedDisk, chance: random.Random, suffix: str, flips: int) -> None:
    """Turn over bits of the files with this suffix, or cut one short."""
    paths = [
        path
        for path in [*disk.paths(DIRECTORY), *disk.paths()]
        if path.endswith(suffix) and not path.endswith("/")
    ]
    for _ in range(flips):
        path = chance.choice(paths)
        size = disk.open(path).size
        if size == 0:
            continue
        if chance.randrange(6) == 0:
            disk.open(path).truncate(chance.randrange(size))
        else:
            disk.flip_bit(path, chance.randrange(size), chance.randrange(8))


def bodies_read(log: Log) -> list[tuple[int, bytes]]:
    """(base offset, body) of every batch up to the end, the flaw or a wrong CRC."""
    found = []
    offset = log.log_start_offset
    end = log.end_position()
    try:
        while (region := log.read(offset, end, 500, True)) is not None:
            data = region.file.read(region.position, region.size)
            position = 0
            while position < len(data):
                header = BatchHeader(data, position)
                is_sound = has_valid_crc(data, position, header) and header.magic == MAGIC_V2
                if header.base_offset != offset or not is_sound:
                    # A reader goes no further: such bytes are given as they are.
                    return found
                found.append((offset, data[position + 16 : position + header.size]))
                offset = header.last_offset + 1
                position += header.size
    except (StorageError, CorruptData):
        assert log.flaw_offset >= 0
    return found


@pytest.mark.parametrize(
    "suffix", [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint", "recovery-points"]
)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), flips=st.integers(1, 8), is_clean=st.booleans())
def test_damaged_hints_change_nothing(suffix: str, seed: int, flips: int, is_clean: bool) -> None:
    chance = random.Random(seed)
    disk = SimulatedDisk(chance)
    bodies, times = built(disk, is_clean=is_clean)
    damage(disk, chance, suffix, flips)
    listener = Counter()

    log = opened(disk, listener)

    assert log.flaw_offset == -1
    assert log.log_end_offset == BATCHES
    assert listener.count == BATCHES
    assert log.leader_epochs.epochs == [3]
    assert bodies_read(log) == list(enumerate(bodies))
    for timestamp in range(990, 1160, 7):
        found = log.offset_for_time(timestamp, BATCHES)
        later = [offset for offset in range(BATCHES) if times[offset] >= timestamp]
        assert (found and found[1]) == (later[0] if later else None)
    assert log.max_timestamp_offset(BATCHES)[1] == times.index(max(times))


@settings(max_examples=150)
@given(seed=st.integers(0, 2**32), flips=st.integers(1, 4), is_clean=st.booleans())
def test_damaged_batches_are_never_taken_for_others(seed: int, flips: int, is_clean: bool) -> None:
    chance = random.Random(seed)
    disk = SimulatedDisk(chance)
    bodies, _ = built(disk, is_clean=is_clean)
    damage(disk, chance, ".log", flips)

    log = opened(disk, Counter())
    found = bodies_read(log)

    assert all(bodies[offset] == body for offset, body in found)
    assert [offset for offset, _ in found] == sorted({offset for offset, _ in found})
    if is_clean:
        assert log.recovery_report.torn_bytes == 0
    else:
        # Bytes that the recovery point covers are never cut.
        assert log.log_end_offset > BATCHES // 2


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32), flips=st.integers(1, 12))
def test_damage_anywhere_raises_nothing_but_storage_errors(seed: int, flips: int) -> None:
    chance = random.Random(seed)
    disk = SimulatedDisk(chance)
    built(disk, is_clean=chance.randrange(2) == 0)
    damage(disk, chance, "", flips)

    log = opened(disk, Counter())
    bodies_read(log)
    for timestamp in (1000, 1100):
        try:
            log.offset_for_time(timestamp, log.written_end_offset)
            log.max_timestamp_offset(log.written_end_offset)
        except (StorageError, CorruptData):
            assert log.flaw_offset >= 0
