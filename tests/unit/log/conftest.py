"""A log on a simulated disk, with the little a test has to say about it."""

from __future__ import annotations

import random

import pytest

from tarry.log.config import LogConfig
from tarry.log.identity import LogIdentity
from tarry.log.log import Log
from tarry.log.logs import Logs
from tarry.log.open_files import OpenFiles
from tarry.log.recovery.listing import Listing
from tarry.log.recovery.points import RecoveryPoint
from tarry.log.recovery.recovery import recover_log, settle_logs
from tarry.log.state import LogListener
from tarry.records.batch import BatchHeader, decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.records.record import Record, decode_records
from tarry.simulation.disk import SimulatedDisk

DIRECTORY = "orders-0"
TOPIC_ID = bytes(range(16))
EVERYTHING = 1 << 30


class Batches(LogListener):
    """A listener whose state is the base offsets of all batches."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets: list[int] = []
        self.recovered: list[int] = []
        self.is_empty = False

    def reset(self) -> None:
        self.offsets = []
        self.recovered = []

    def load_snapshot(self, data: bytes) -> bool:
        self.offsets = [int(text) for text in data.decode().split()]
        return True

    def take_snapshot(self) -> bytes | None:
        return None if self.is_empty else " ".join(map(str, self.offsets)).encode()

    def on_recovered_batch(self, header: BatchHeader) -> None:
        self.offsets.append(header.base_offset)
        self.recovered.append(header.base_offset)


class LogWorld:
    """One disk, one log, and its owner's part of the work."""

    def __init__(self, seed: int = 7) -> None:
        self.disk = SimulatedDisk(random.Random(seed))
        self.config = LogConfig()
        self.config.index_interval_bytes = 200
        self.listener = Batches()
        self.logs = Logs(self.disk)
        self.recovery_point: RecoveryPoint | None = RecoveryPoint(DIRECTORY, "")
        self.now_wall_ms = 1_000_000

    def open(self, *, was_clean: bool = False) -> Log:
        """Open the log by itself, with the recovery point in `recovery_point`."""
        log = recover_log(
            OpenFiles(self.disk),
            Listing(self.disk, DIRECTORY),
            self.config,
            self.listener,
            self.recovery_point,
            was_clean,
            identity=LogIdentity(DIRECTORY, b""),
        )
        settle_logs(self.disk, [log])
        return log

    def open_logs(self) -> Log:
        """Open it as a broker does."""
        self.logs = Logs(self.disk)
        self.logs.load()
        log = self.logs.open(DIRECTORY, TOPIC_ID, self.config, self.listener)
        self.logs.settle()
        return log

    def append(
        self, log: Log, *timestamps: int, epoch: int = 0, value: bytes = b"v" * 40, codec: int = 0
    ) -> int:
        """One batch to the tail, a record per timestamp (one record if none is given)."""
        batch = self.batch(*(timestamps or (1000,)), value=value, codec=codec)
        base_offset = log.append_bytes(batch, epoch, self.now_wall_ms)
        self.listener.offsets.append(base_offset)
        return base_offset

    def fill(self, log: Log, count: int, *, epoch: int = 0, flush: bool = True) -> None:
        """`count` batches of one record, each 10 ms later; written, and flushed if asked."""
        for number in range(count):
            self.append(log, 1000 + 10 * (log.log_end_offset + number), epoch=epoch)
        log.write()
        if flush:
            self.flush(log)

    def flush(self, log: Log) -> None:
        files = []
        directories: dict[str, None] = {}
        offset = log.collect_flush(files, directories)
        self.disk.flush(files, list(directories))
        log.flushed(offset)

    def recovery_point_round(self, now_ms: int) -> int:
        """A whole round of recovery points; how many flushes it took."""
        flushes = 0
        flush_id = self.logs.recovery_points.begin(now_ms)
        while flush_id >= 0:
            flushes += 1
            self.disk.complete_flush(flush_id)
            flush_id = self.logs.recovery_points.on_flushed(flush_id)
        return flushes

    @staticmethod
    def batch(*timestamps: int, value: bytes = b"v" * 40, codec: int = 0) -> bytes:
        """A batch with a record for each timestamp."""
        builder = BatchBuilder()
        for timestamp in timestamps:
            builder.append(timestamp, b"k", value, [])
        return builder.build(codec)

    @staticmethod
    def headers_in(data: bytes) -> list[tuple[BatchHeader, int]]:
        """Every batch's header with its position; the data holds whole batches."""
        found = []
        position = 0
        while position < len(data):
            header = decode_batch_header(data, position)
            found.append((header, position))
            position += header.size
        assert position == len(data)
        return found

    def read_all(self, log: Log, size_max: int = EVERYTHING) -> list[Record]:
        """All records from the log's start to the written end."""
        return self.read_from(log, log.log_start_offset, size_max)

    def read_from(self, log: Log, offset: int, size_max: int = EVERYTHING) -> list[Record]:
        records: list[Record] = []
        end = log.end_position()
        while True:
            region = log.read(offset, end, size_max, True)
            if region is None:
                return records
            data = region.file.read(region.position, region.size)
            assert len(data) == region.size
            for header, position in self.headers_in(data):
                batch = data[position : position + header.size]
                records += [
                    record
                    for record in decode_records(batch, size_max=1 << 20)
                    if record.offset >= offset
                ]
                offset = header.last_offset + 1

    def offsets(self, log: Log) -> list[int]:
        return [record.offset for record in self.read_all(log)]

    def names(self, suffix: str = "") -> list[str]:
        """Names in the log's directory."""
        names = [path.rpartition("/")[2] for path in self.disk.paths(DIRECTORY)]
        return [name for name in names if name.endswith(suffix)]


@pytest.fixture
def world() -> LogWorld:
    return LogWorld()


@pytest.fixture
def worlds() -> list[LogWorld]:
    """As many worlds as show what a crash may leave of a few operations: a seed each."""
    return [LogWorld(seed) for seed in range(60)]
