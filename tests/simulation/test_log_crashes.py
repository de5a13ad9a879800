"""A log by itself, with recovery points and retention, over crashes at any moment.

Faster than whole brokers, so it reaches corners that they seldom do: a failed write before a roll,
a kill -9 between a renaming and its flush, a recovery point given up half way.
"""

from __future__ import annotations

import pytest
from tests.support.simulation.log_life import LogLife

from tarry.log.log import Log
from tarry.log.recovery import point_writer
from tarry.log.retention import delete_old_segments
from tarry.records.batch import BatchHeader, decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records
from tarry.simulation.disk import PowerLoss

TOPIC_ID = bytes(15) + b"\x07"
SEEDS = 400
BLOCK = 100
SHORT_WRITE_SEEDS = 60
EVERYTHING = 1 << 20


class Content:
    """What is in a log from its start to its written end."""

    def __init__(self, log: Log) -> None:
        self.values: dict[int, bytes] = {}
        self.timestamps: dict[int, int] = {}
        self.headers: dict[int, BatchHeader] = {}
        offset = log.log_start_offset
        while offset < log.written_end_offset:
            region = log.read(offset, log.end_position(), 1, True)
            assert region is not None
            data = region.file.read(region.position, region.size)
            header = decode_batch_header(data, 0)
            assert header.base_offset <= offset <= header.last_offset
            self.headers[header.base_offset] = header
            for record in decode_records(data, size_max=EVERYTHING):
                assert record.value is not None
                if record.offset < log.log_start_offset:
                    continue
                self.values[record.offset] = record.value
                self.timestamps[record.offset] = record.timestamp
            offset = header.last_offset + 1


class Run(LogLife):
    """One log that a leader appends to, and what is known to be durable."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, 4000)
        if self.random.randrange(2) == 0:
            self.config.retention_bytes = self.random.randrange(8000)
        self.sent: dict[bytes, None] = {}
        self.written: dict[int, bytes] = {}
        self.durable: dict[int, bytes] = {}
        self.log_start_seen = 0
        self.open()

    # --- What an owner does.

    def append(self) -> None:
        self.gather()
        if self.random.randrange(3) > 0:
            self.write_or_fail()

    def gather(self) -> None:
        """One batch to the tail."""
        builder = BatchBuilder()
        base_offset = self.log.log_end_offset
        count = 1 + self.random.randrange(3)
        for delta in range(count):
            value, timestamp = self.next_value()
            builder.append(timestamp, None, value, [])
            self.written[base_offset + delta] = value
            self.sent[value] = None
        self.log.append_bytes(builder.build(), self.epoch, 1000 + self.made)
        self.batches.deltas[base_offset] = count - 1

    def write(self) -> None:
        super().write()
        end_offset = self.log.log_end_offset
        self.written = {at: self.written[at] for at in self.written if at < end_offset}

    def end_flush(self) -> None:
        if self.flush_id >= 0:
            super().end_flush()
            for offset, value in self.written.items():
                if offset < self.log.flushed_offset:
                    self.durable[offset] = value

    def retain(self) -> None:
        self.write()
        delete_old_segments(self.log, self.now_ms, self.log.flushed_offset)
        self.disk.complete_removals()
        self.log_start_seen = max(self.log_start_seen, self.log.log_start_offset)

    def delete_records(self) -> None:
        """What was flushed is to go, or a part of it; recovery points are due at once."""
        log = self.log
        start = log.flushed_offset
        if self.random.randrange(3) == 0:
            start = self.random.randrange(log.log_start_offset, start + 1)
        log.ask_for_start(start)
        self.save_recovery_points()

    def stumble(self) -> None:
        """All is durable; a write fails half-way, the next one is durable; the power fails."""
        for _ in range(2 + self.random.randrange(3)):
            self.gather()
        self.disk.fail_writes()
        self.write()
        self.disk.heal()
        self.gather()
        self.begin_flush()
        self.end_flush()
        self.disk.crash()
        self.restart()

    def stop(self) -> None:
        """A clean stop; the power may fail in its middle, or right after."""
        self.begin_flush()
        self.end_flush()
        if self.flush_id >= 0 or self.log.is_dirty:
            return
        if self.random.randrange(2) == 0:
            self.disk.crash_after(self.random.randrange(20))
        try:
            self.logs.close_cleanly()
        except PowerLoss:
            self.disk.crash()
            self.restart()
            return
        self.disk.heal()
        self.lose()
        self.open()
        assert self.log.recovery_report.scanned_bytes == 0
        self.after_start()

    # --- What must hold.

    def after_start(self) -> None:
        super().after_start()
        assert self.log.log_start_offset >= self.log_start_seen
        content = self.check()
        for value in content.values.values():
            assert value in self.sent
        known = self.batches.deltas
        assert {base: known.get(base) for base in content.headers} == {
            base: header.last_offset_delta for base, header in content.headers.items()
        }
        # Recovery has flushed what it kept.
        self.written = dict(content.values)
        self.durable.update(content.values)
        self.epoch += 1

    def check(self) -> Content:
        log = self.log
        content = Content(log)
        for offset, value in self.durable.items():
            if offset >= log.log_start_offset:
                assert content.values.get(offset) == value
        for _ in range(4 if content.values else 0):
            self.look_inside(content)
        return content

    def look_inside(self, content: Content) -> None:
        log = self.log
        offset = log.log_start_offset + self.random.randrange(len(content.values))
        region = log.read(offset, log.end_position(), 1, True)
        assert region is not None
        header = decode_batch_header(region.file.read(region.position, region.size), 0)
        assert header.base_offset <= offset <= header.last_offset
        epoch, end_offset = log.end_offset_for_epoch(header.leader_epoch)
        assert epoch == header.leader_epoch
        assert end_offset > offset
        timestamp = content.timestamps[offset] + self.random.randrange(3) - 1
        found = log.offset_for_time(timestamp, log.written_end_offset)
        late = [at for at in content.values if content.timestamps[at] >= timestamp]
        assert (None if found is None else found[1]) == (late[0] if late else None)

    def step(self) -> None:
        self.now_ms += self.random.randrange(20)
        kind = self.random.randrange(27)
        if kind < 9:
            self.append()
        elif kind < 14:
            self.begin_flush()
        elif kind < 17:
            self.end_flush()
        elif kind < 19:
            self.lose()
            self.restart()
        elif kind < 22:
            self.save_recovery_points()
        elif kind == 22:
            self.retain()
        elif kind == 23:
            self.stop()
        elif kind == 24:
            self.delete_records()
        else:
            self.write()
            self.check()


@pytest.mark.interpreted
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_a_log_keeps_what_was_flushed_over_any_crash(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A minute between recovery points is too long for so short lives.
    monkeypatch.setattr(point_writer, "RECOVERY_POINT_AGE_MS", 10)
    for seed in range(first, first + BLOCK):
        run = Run(seed)
        for _ in range(10 + run.random.randrange(110)):
            run.step()


@pytest.mark.interpreted
def test_a_log_keeps_what_was_flushed_though_writes_before_it_fell_short() -> None:
    for seed in range(SHORT_WRITE_SEEDS):
        run = Run(seed)
        run.config.segment_bytes = 300 + run.random.randrange(600)
        for _ in range(4):
            run.stumble()
