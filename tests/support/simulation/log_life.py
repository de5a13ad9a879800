"""A log by itself on a simulated disk: what its owner does over crashes, whatever is in it."""

from __future__ import annotations

import random
from collections.abc import Callable

from tarry.base.doors import LogFile
from tarry.base.errors import StorageError
from tarry.log.config import LogConfig
from tarry.log.logs import Logs
from tarry.log.state import LogListener
from tarry.records.batch import BatchHeader
from tarry.simulation.disk import PowerLoss, SimulatedDisk

TOPIC_ID = bytes(15) + b"\x07"


class Batches(LogListener):
    """Derived state: base offset and last offset delta of every batch."""

    def __init__(self) -> None:
        super().__init__()
        self.deltas: dict[int, int] = {}

    def reset(self) -> None:
        self.deltas = {}

    def load_snapshot(self, data: bytes) -> bool:
        rows = [row.split(":") for row in data.decode().split(",")]
        self.deltas = {int(base): int(delta) for base, delta in rows}
        return True

    def take_snapshot(self) -> bytes | None:
        return ",".join(f"{base}:{delta}" for base, delta in self.deltas.items()).encode() or None

    def on_recovered_batch(self, header: BatchHeader) -> None:
        self.deltas[header.base_offset] = header.last_offset_delta


def start_over_power_losses(
    disk: SimulatedDisk, drawn: random.Random, open_log: Callable[[], object], operations_max: int
) -> None:
    """Open a log; the power may fail meanwhile, again and again, within so many operations."""
    while True:
        if drawn.randrange(3) == 0:
            disk.crash_after(drawn.randrange(operations_max))
        try:
            open_log()
            break
        except PowerLoss:
            disk.crash()
    disk.heal()


class LogLife:
    """One log and its owner's work; `segment_bytes`: segments are larger by up to so much."""

    def __init__(self, seed: int, segment_bytes: int) -> None:
        self.random = random.Random(seed)
        self.disk = SimulatedDisk(self.random)
        self.disk.defers_removals = self.random.randrange(2) == 0
        self.config = LogConfig()
        self.config.index_interval_bytes = self.random.randrange(400)
        self.config.segment_bytes = 300 + self.random.randrange(segment_bytes)
        self.config.segment_index_bytes = 8 * (3 + self.random.randrange(10))
        self.now_ms = 1_000
        self.epoch = 0
        self.made = 0

    def open(self) -> None:
        self.flush_id = -1
        self.flush_offset = -1
        self.round_flush_id = -1
        self.logs = Logs(self.disk)
        self.logs.load()
        self.batches = Batches()
        self.log = self.logs.open("t-0", TOPIC_ID, self.config, self.batches)
        self.logs.settle()

    def next_value(self) -> tuple[bytes, int]:
        """A value that there was never before, and its timestamp."""
        self.made += 1
        value = b"v%d-" % self.made + b"." * (5, 50, 700)[self.random.randrange(3)]
        return value, 1000 + self.made - self.random.randrange(5)

    def write(self) -> None:
        try:
            self.log.write()
        except StorageError:
            assert self.log.log_end_offset == self.log.written_end_offset
        end_offset = self.log.log_end_offset
        deltas = self.batches.deltas
        self.batches.deltas = {base: deltas[base] for base in deltas if base < end_offset}

    def write_or_fail(self) -> None:
        """Write; one of ten writes fails."""
        if self.random.randrange(10) == 0:
            self.disk.fail_writes()
        self.write()
        self.disk.heal()

    def begin_flush(self) -> None:
        self.write()
        if self.flush_id < 0 and self.log.is_dirty:
            files: list[LogFile] = []
            directories: dict[str, None] = {}
            self.flush_offset = self.log.collect_flush(files, directories)
            self.flush_id = self.disk.begin_flush(files, list(directories))

    def end_flush(self) -> None:
        if self.flush_id >= 0:
            assert self.disk.complete_flush(self.flush_id).error == ""
            self.flush_id = -1
            self.log.flushed(self.flush_offset)

    def save_recovery_points(self) -> None:
        """Begin a round of recovery points, or take it one step further."""
        points = self.logs.recovery_points
        if self.round_flush_id < 0:
            self.write()
            self.round_flush_id = points.begin(self.now_ms)
        else:
            assert self.disk.complete_flush(self.round_flush_id).error == ""
            self.round_flush_id = points.on_flushed(self.round_flush_id)

    def lose(self) -> None:
        if self.random.randrange(2) == 0:
            self.disk.crash()
        else:
            self.disk.kill()

    def restart(self) -> None:
        """Start again, perhaps with the power failing in recovery."""
        start_over_power_losses(self.disk, self.random, self.open, 14)
        self.after_start()

    def after_start(self) -> None:
        """What must hold after each start."""
        assert self.log.flaw_offset < 0, self.log.flaw_reason
        assert self.log.flushed_offset == self.log.log_end_offset
