"""A compacted log on a simulated disk, and what was written to it.

`written` is the oracle's memory: every record by offset as it was appended.  `compact` drives a
compaction as the broker does, one small step at a time, with a hook before each.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.support.log_batches import batches_of

from tarry.log.compaction.cleanable import find_cleanable
from tarry.log.compaction.compaction import DONE, Compaction
from tarry.log.compaction.effort import Effort
from tarry.log.compaction.key_rule import KeyRule
from tarry.log.config import LogConfig
from tarry.log.log import Log
from tarry.log.logs import Logs
from tarry.log.state import LogListener
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import ProducerListener
from tarry.records.batch import BatchHeader, decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.records.rebuild import has_delete_horizon
from tarry.records.record import Record, decode_records
from tarry.simulation.disk import SimulatedDisk

DIRECTORY = "keys-0"
TOPIC_ID = bytes(15) + b"\x07"
EVERYTHING = 1 << 30
BUFFER_BYTES = 1 << 20
START_WALL_MS = 1_800_000_000_000

# (key, value): a value of None is a tombstone.
KeyValue = tuple[bytes | None, bytes | None]


class Written:
    """One record as it was appended."""

    def __init__(self, offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value


class CompactionScene:
    """One log, its disk, its producers, a calendar."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        self.disk = SimulatedDisk(self.random)
        self.config = LogConfig()
        self.config.has_compaction = True
        self.config.has_deletion = False
        self.config.segment_bytes = 2_000
        self.config.index_interval_bytes = 100
        self.config.delete_retention_ms = 1_000
        self.now_wall_ms = START_WALL_MS
        self.now_ms = 1_000
        self.buffer_bytes = BUFFER_BYTES
        self.make_rule = KeyRule
        # Leader epoch of the next batches.
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        # For each batch of a producer: producer id and last offset.
        self.produced: list[tuple[int, int]] = []
        self.written: dict[int, Written] = {}
        # Tombstones by offset, with the time from which on a compaction must take them away.
        self.tombstones_due_ms: dict[int, int] = {}
        self.open()

    def open(self) -> None:
        self.logs = Logs(self.disk)
        self.logs.load()
        self.producers = ProducerStates(1 << 40)
        listener: LogListener = ProducerListener(self.producers)
        self.log: Log = self.logs.open(DIRECTORY, TOPIC_ID, self.config, listener)
        self.logs.settle()

    # --- Writing.

    def append(
        self,
        *records: KeyValue,
        codec: int = 0,
        producer_id: int = -1,
        timestamp: int = START_WALL_MS,
        attributes: int = 0,
    ) -> int:
        """One batch to the tail; its base offset."""
        builder = BatchBuilder()
        base_offset = self.log.log_end_offset
        for delta, (key, value) in enumerate(records):
            builder.append(timestamp + delta, key, value)
            self.written[base_offset + delta] = Written(
                base_offset + delta, timestamp + delta, key, value
            )
        sequence = -1
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(records)
            self.produced.append((producer_id, base_offset + len(records) - 1))
        data = builder.build(
            codec,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            attributes=attributes,
        )
        self.log.append_bytes(data, self.epoch, self.now_wall_ms)
        self.producers.update(decode_batch_header(data, 0), base_offset, 0)
        return base_offset

    def roll(self, timestamp: int = START_WALL_MS) -> None:
        """Let a new segment begin, durable recovery point included, so that all before is ripe.

        The new segment begins with a record of this timestamp.
        """
        segment_bytes = self.config.segment_bytes
        self.flush()
        self.config.segment_bytes = 1
        self.append((b"the last segment's", b"v"), timestamp=timestamp)
        self.config.segment_bytes = segment_bytes
        self.flush()
        self.save_recovery_point()

    def flush(self) -> None:
        self.log.write()
        self.producers.settle()
        files = []
        directories: dict[str, None] = {}
        offset = self.log.collect_flush(files, directories)
        self.disk.flush(files, list(directories))
        self.log.flushed(offset)

    def save_recovery_point(self) -> None:
        self.now_ms += 100_000
        flush_id = self.logs.recovery_points.begin(self.now_ms)
        while flush_id >= 0:
            assert self.disk.complete_flush(flush_id).error == ""
            flush_id = self.logs.recovery_points.on_flushed(flush_id)

    # --- Compaction.

    def begin(self) -> Compaction:
        log = self.log
        cleanable = find_cleanable(log, log.active.base_offset, self.now_wall_ms)
        producer_ends = self.producers.last_offsets(log.flushed_offset)
        rule = self.make_rule(log, producer_ends, self.buffer_bytes)
        return Compaction(log, cleanable.end_offset, rule)

    def compact(
        self, units: int = 5, before_step: Callable[[Compaction], None] | None = None
    ) -> Compaction:
        """Compact all that can be, in steps of so much effort."""
        compaction = self.begin()
        while True:
            if before_step is not None:
                before_step(compaction)
            flush_id = compaction.step(Effort(units), self.now_wall_ms)
            while flush_id >= 0:
                assert self.disk.complete_flush(flush_id).error == ""
                flush_id = compaction.on_flushed()
            if flush_id == DONE:
                self.note_compacted(compaction, self.now_wall_ms)
                return compaction

    def note_compacted(self, compaction: Compaction, began_wall_ms: int) -> None:
        """A compaction that began at that time is over: no tombstone may be there too long."""
        if compaction.passes == 0 or compaction.is_abandoned:
            return
        left_ms = self.now_wall_ms + self.config.delete_retention_ms
        kept: dict[int, int] = {}
        for header, data in self.batches():
            if not has_delete_horizon(header):
                # A batch that cannot be opened or rebuilt stays as it is.
                continue
            for record in decode_records(data, size_max=EVERYTHING):
                if record.value is None and record.offset < self.log.compaction.cleaned_offset:
                    due_ms = self.tombstones_due_ms.get(record.offset, left_ms)
                    assert due_ms > began_wall_ms, (record.offset, record.key)
                    kept[record.offset] = due_ms
        self.tombstones_due_ms = kept

    # --- Reading.

    def batches(self, offset: int = -1) -> Iterator[tuple[BatchHeader, bytes]]:
        """Batches as readers get them, from the one that holds `offset` or follows it."""
        return batches_of(self.log, offset)

    def records(self, offset: int = -1) -> list[Record]:
        return [
            record
            for _, data in self.batches(offset)
            for record in decode_records(data, size_max=EVERYTHING)
            if record.offset >= offset
        ]

    def places(self) -> list[tuple[int, bytes | None]]:
        return [(record.offset, record.key) for record in self.records()]

    def names(self) -> list[str]:
        return [path.rpartition("/")[2] for path in self.disk.paths(DIRECTORY)]

    # --- What must hold.

    def check_records(self) -> None:
        """Each record that is there is one that was written, at its offset and with its time."""
        offset_before = -1
        for record in self.records():
            written = self.written[record.offset]
            assert (record.key, record.value) == (written.key, written.value)
            assert record.timestamp == written.timestamp
            assert record.offset > offset_before
            offset_before = record.offset

    def last_by_key(self, end_offset: int) -> dict[bytes, Written]:
        """The oracle: the last record of every key below an offset."""
        last: dict[bytes, Written] = {}
        for offset in range(end_offset):
            written = self.written[offset]
            if written.key is not None:
                last[written.key] = written
        return last

    def check_last_values(self, *, tombstones_may_be_gone: bool = False) -> None:
        """No key has lost its last record, nor got an older one back."""
        found = {record.key: record.offset for record in self.records()}
        for key, written in self.last_by_key(self.log.written_end_offset).items():
            if written.offset < self.log.log_start_offset:
                continue
            if key not in found:
                assert tombstones_may_be_gone and written.value is None, (key, written.offset)
                continue
            assert found[key] == written.offset, key

    def check_young_records(self) -> None:
        """No record goes before it has the age of `min.compaction.lag.ms`."""
        if self.config.min_compaction_lag_ms == 0:
            return
        young_ms = self.now_wall_ms - self.config.min_compaction_lag_ms
        offsets = {record.offset for record in self.records()}
        for written in self.written.values():
            if written.timestamp > young_ms and written.offset >= self.log.log_start_offset:
                assert written.offset in offsets, written.offset

    def check_producers(self) -> None:
        """The last batch of every producer is known, as far as the log reaches back."""
        end_offset = self.log.written_end_offset
        self.produced = [batch for batch in self.produced if batch[1] < end_offset]
        last_offsets = dict(self.produced)
        known = self.producers.last_offsets(end_offset)
        for producer_id, last_offset in last_offsets.items():
            if last_offset >= self.log.segments[0].base_offset:
                assert known.get(producer_id) == last_offset, producer_id

    def check_is_compact(self) -> None:
        """Below the cleaned offset no key has two records."""
        seen: dict[bytes | None, int] = {}
        for record in self.records():
            if record.offset < self.log.compaction.cleaned_offset:
                assert record.key is not None
                assert record.key not in seen, (record.key, seen.get(record.key), record.offset)
                seen[record.key] = record.offset
