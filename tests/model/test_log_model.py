"""The log against a list of batches: failed writes, flushes, crashes, cuts, retention, restarts.

What the log calls durable is never lost; what it gives at an offset is what was appended there;
after a crash it keeps a prefix of what was written, ending between batches; epochs, times and the
listener agree with the batches that are kept.
"""

from __future__ import annotations

import random

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.support.recovery import has_found_nothing

from tarry.base.errors import StorageError
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.log.logs import Logs
from tarry.log.recovery.truncation import try_truncate
from tarry.log.retention import delete_old_segments
from tarry.log.state import LOWERING, LogListener
from tarry.records.batch import BatchHeader
from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records
from tarry.simulation.disk import PowerLoss, SimulatedDisk

DIRECTORY = "t-0"
TOPIC_ID = bytes(15) + b"\x07"


class ModelBatch:
    """One batch as it was appended."""

    def __init__(self, base_offset: int, epoch: int, timestamps: list[int], value: bytes) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset + len(timestamps)
        self.epoch = epoch
        self.timestamps = timestamps
        self.value = value


class Offsets(LogListener):
    """Derived state: the base offset of every batch."""

    def __init__(self) -> None:
        super().__init__()
        self.known: list[int] = []

    def reset(self) -> None:
        self.known = []

    def load_snapshot(self, data: bytes) -> bool:
        self.known = [int(text) for text in data.split()]
        return True

    def take_snapshot(self) -> bytes | None:
        return " ".join(map(str, self.known)).encode() if self.known else None

    def on_recovered_batch(self, header: BatchHeader) -> None:
        self.known.append(header.base_offset)


class LogMachine(RuleBasedStateMachine):
    """`batches` is what the log has to hold; those below `durable` survive everything."""

    log: Log

    @initialize(
        seed=st.integers(0, 2**32),
        segment_bytes=st.sampled_from([400, 1000, 4000]),
        interval=st.sampled_from([0, 150, 500]),
    )
    def start(self, seed: int, segment_bytes: int, interval: int) -> None:
        self.disk = SimulatedDisk(random.Random(seed))
        self.config = LogConfig()
        self.config.segment_bytes = segment_bytes
        self.config.index_interval_bytes = interval
        self.config.retention_ms = -1
        self.batches: list[ModelBatch] = []
        # Everything that was ever appended at an offset, for what a crash may bring back.
        self.history: dict[int, list[ModelBatch]] = {}
        self.durable = 0
        self.log_start = 0
        self.epoch = 0
        self.count = 0
        self.now_ms = 0
        self.round_id = -1
        self.flush: tuple[int, int] | None = None
        self.open()

    def open(self) -> None:
        self.logs = Logs(self.disk, open_files_max=3)
        self.logs.load()
        self.listener = Offsets()
        self.log = self.logs.open(DIRECTORY, TOPIC_ID, self.config, self.listener)
        self.logs.settle()
        self.round_id = -1
        self.flush = None
        self.epoch += 1

    @property
    def end_offset(self) -> int:
        return self.batches[-1].end_offset if self.batches else self.log_start

    # --- Appending.

    @precondition(lambda self: not self.log.is_being_cut)
    @rule(
        timestamps=st.lists(st.integers(0, 300), min_size=1, max_size=4),
        size=st.sampled_from([0, 40, 300, 2500]),
    )
    def append(self, timestamps: list[int], size: int) -> None:
        self.count += 1
        value = b"%d-" % self.count + b"." * size
        builder = BatchBuilder()
        for timestamp in timestamps:
            builder.append(timestamp, None, value)
        base_offset = self.log.append_bytes(builder.build(), self.epoch, 1000)
        assert base_offset == self.end_offset
        batch = ModelBatch(base_offset, self.epoch, timestamps, value)
        self.batches.append(batch)
        self.history.setdefault(base_offset, []).append(batch)

    @rule()
    def write(self) -> None:
        self.log.write()
        self.settle_listener()

    @precondition(lambda self: self.log.has_tail)
    @rule()
    def write_that_fails(self) -> None:
        self.disk.fail_writes(1)
        try:
            self.log.write()
        except StorageError:
            while self.end_offset > self.log.written_end_offset:
                self.batches.pop()
        self.disk.heal()
        self.settle_listener()
        assert self.log.log_end_offset == self.end_offset

    def settle_listener(self) -> None:
        """What a partition does when its tail was written."""
        known = self.listener.known
        newest = known[-1] if known else -1
        known += [b.base_offset for b in self.batches if b.base_offset > newest]

    # --- Becoming durable.

    @precondition(lambda self: self.flush is None)
    @rule()
    def begin_flush(self) -> None:
        files: list = []
        directories: dict[str, None] = {}
        offset = self.log.collect_flush(files, directories)
        self.flush = (self.disk.begin_flush(files, list(directories)), offset)

    @precondition(lambda self: self.flush is not None)
    @rule()
    def end_flush(self) -> None:
        flush_id, offset = self.flush
        self.flush = None
        self.disk.complete_flush(flush_id)
        self.log.flushed(offset)
        self.durable = max(self.durable, self.log.flushed_offset)

    @precondition(lambda self: self.round_id < 0 and not self.log.has_tail)
    @rule()
    def begin_checkpoint(self) -> None:
        self.now_ms += 100_000
        self.round_id = self.logs.recovery_points.begin(self.now_ms)

    @precondition(lambda self: self.round_id >= 0 and not self.log.has_tail)
    @rule()
    def end_checkpoint_step(self) -> None:
        self.disk.complete_flush(self.round_id)
        self.round_id = self.logs.recovery_points.on_flushed(self.round_id)
        self.follow_log_start()

    def follow_log_start(self) -> None:
        assert self.log.log_start_offset >= self.log_start
        self.log_start = self.log.log_start_offset

    # --- Losing something.

    @rule(operations=st.none() | st.integers(0, 12))
    def crash(self, operations: int | None) -> None:
        """Power fails, and perhaps once more while the log is opened again."""
        self.disk.crash()
        if operations is not None:
            self.disk.crash_after(operations)
        while True:
            try:
                self.open()
                break
            except PowerLoss:
                self.disk.crash()
        self.disk.heal()
        self.take_over_recovered()

    @rule()
    def kill(self) -> None:
        """kill -9: what was written is still there."""
        expected = self.log.written_end_offset
        self.disk.kill()
        self.open()
        assert self.log.log_end_offset == expected
        self.take_over_recovered()

    def take_over_recovered(self) -> None:
        assert self.log.flaw_offset == -1, self.log.flaw_reason
        assert self.log.log_end_offset >= self.durable
        assert self.log.flushed_offset == self.log.log_end_offset
        kept = []
        for base_offset, _, value in self.stored():
            if base_offset < self.durable:
                known = [b for b in self.batches if b.base_offset == base_offset]
            else:
                known = self.history[base_offset]
            kept += [b for b in known if b.value == value]
        self.follow_log_start()
        self.batches = [b for b in self.batches if b.end_offset <= self.log_start] + kept
        self.durable = self.log.log_end_offset
        assert self.end_offset == self.durable

    @precondition(lambda self: not self.log.has_tail)
    @rule()
    def stop_cleanly(self) -> None:
        self.logs.close_cleanly()
        self.disk.crash()
        expected = self.log.written_end_offset
        self.open()
        assert self.logs.was_clean
        assert self.log.log_end_offset == expected
        assert has_found_nothing(self.log)
        self.take_over_recovered()

    @precondition(lambda self: not self.log.has_tail and self.round_id < 0)
    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        first = max(self.log_start, self.log.coming_start_offset)
        offset = first + int(share * (self.end_offset - first))
        while not try_truncate(self.log, offset):
            if self.log.cut.state == LOWERING:
                self.begin_checkpoint()
                while self.round_id >= 0:
                    self.end_checkpoint_step()
        assert self.log.log_end_offset <= max(offset, self.log_start)
        while self.batches and self.end_offset > self.log.log_end_offset:
            self.batches.pop()
        self.durable = min(self.durable, self.log.log_end_offset)
        self.epoch += 1
        self.flush = None

    @precondition(lambda self: not self.log.has_tail)
    @rule(size=st.integers(0, 5000))
    def retain(self, size: int) -> None:
        self.config.retention_bytes = size
        delete_old_segments(self.log, 10**15, self.log.flushed_offset)
        self.config.retention_bytes = -1

    # --- What always holds.

    def stored(self) -> list[tuple[int, int, bytes]]:
        """(base offset, end offset, value) of every batch that a reader sees."""
        found = []
        end = self.log.end_position()
        offset = self.log.log_start_offset
        while (region := self.log.read(offset, end, 700, True)) is not None:
            data = region.file.read(region.position, region.size)
            position = 0
            while position < len(data):
                header = BatchHeader(data, position)
                records = decode_records(data[position : position + header.size], size_max=1 << 20)
                assert [r.offset for r in records] == list(
                    range(header.base_offset, header.last_offset + 1)
                )
                found.append((header.base_offset, header.last_offset + 1, records[0].value))
                offset = header.last_offset + 1
                position += header.size
        return found

    @invariant()
    def readers_see_what_was_written(self) -> None:
        expected = [
            (b.base_offset, b.end_offset, b.value)
            for b in self.batches
            if b.end_offset > self.log_start and b.end_offset <= self.log.written_end_offset
        ]
        assert self.stored() == expected

    @invariant()
    def the_ends_are_in_order(self) -> None:
        log = self.log
        assert log.log_start_offset == self.log_start
        assert log.log_start_offset <= log.flushed_offset <= log.written_end_offset
        assert log.written_end_offset <= log.log_end_offset
        assert log.log_end_offset == max(self.end_offset, self.log_start)
        assert log.flushed_offset >= self.durable

    @invariant()
    def epochs_are_those_of_the_batches(self) -> None:
        for batch in self.batches:
            if batch.base_offset >= self.log_start:
                assert self.log.epoch_at(batch.base_offset) == batch.epoch

    @invariant()
    def the_listener_knows_every_batch(self) -> None:
        first = self.log.segments[0].base_offset
        written = self.log.written_end_offset
        assert [o for o in self.listener.known if first <= o < written] == [
            b.base_offset for b in self.batches if first <= b.base_offset < written
        ]

    @invariant()
    def times_are_found_exactly(self) -> None:
        records = [
            (timestamp, batch.base_offset + delta)
            for batch in self.batches
            if batch.end_offset <= self.log.written_end_offset
            for delta, timestamp in enumerate(batch.timestamps)
            if batch.base_offset + delta >= self.log_start
        ]
        end = self.log.written_end_offset
        for timestamp in (0, 77, 150, 299):
            found = self.log.offset_for_time(timestamp, end)
            expected = next((record for record in records if record[0] >= timestamp), None)
            assert (found and found[:2]) == expected
        latest = self.log.max_timestamp_offset(end)
        if records and self.log_start in [b.base_offset for b in self.batches]:
            assert latest is not None
            assert latest[:2] == max(records, key=lambda record: (record[0], -record[1]))


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=40)
