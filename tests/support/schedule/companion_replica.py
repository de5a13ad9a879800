"""A replica of a companion log on a simulated disk: written or copied, compacted, rebuilt."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.support.log_batches import batches_of

from tarry.base.doors import LogFile
from tarry.log.compaction.cleanable import find_closed
from tarry.log.compaction.compaction import DONE, Compaction
from tarry.log.compaction.effort import Effort
from tarry.log.config import LogConfig
from tarry.log.copying import append_copy
from tarry.log.log import Log
from tarry.log.logs import Logs
from tarry.partition.producers import ProducerStates
from tarry.partition.replicated_log import ProducerListener
from tarry.records.batch import HEADER_SIZE, BatchHeader, decode_batch_header
from tarry.schedule.keeping import CompanionRule, PartitionFacts
from tarry.schedule.notes import read_note
from tarry.schedule.rebuild import Rebuild
from tarry.simulation.disk import SimulatedDisk
from tarry.wire.reader import window_of

_DIRECTORY = "orders-0.schedule"
_TOPIC_ID = bytes(15) + b"\x07"
BUFFER_BYTES = 1 << 20


class CompanionReplica:
    """One replica; nothing is appended that is not written and flushed at once."""

    def __init__(self, seed: int, segment_bytes: int = 3_000) -> None:
        self.disk = SimulatedDisk(random.Random(seed))
        self.config = LogConfig()
        self.config.has_deletion = False
        self.config.segment_bytes = segment_bytes
        self.config.index_interval_bytes = 100
        self.buffer_bytes = BUFFER_BYTES
        # Up to here it knows that the log counts, and the partition's records.
        self.s_high_watermark = 0
        self.p_high_watermark = 0
        self.compactions = 0
        self.refusals: list[str] = []
        self._now_ms = 1_000
        self.open()

    def open(self) -> None:
        """Open the log, as a start does."""
        self.logs = Logs(self.disk)
        self.logs.load()
        self.producers = ProducerStates(1 << 40)
        listener = ProducerListener(self.producers)
        self.log: Log = self.logs.open(_DIRECTORY, _TOPIC_ID, self.config, listener)
        self.logs.settle()

    @property
    def end(self) -> int:
        return int(self.log.log_end_offset)

    def append(self, batch: bytes, epoch: int) -> int:
        """Append a batch as a leader does; its base offset."""
        base_offset = int(self.log.append_bytes(batch, epoch, 0))
        header = decode_batch_header(batch, 0)
        self.producers.update(header, base_offset, 0)
        self._flush()
        return base_offset

    def copy_from(self, leader: CompanionReplica, count: int) -> None:
        """Copy the next batches that the leader has, so many at most."""
        for header, data in leader.batches(self.end):
            if count == 0:
                break
            count -= 1
            append_copy(self.log, window_of(data), header, 0)
            self.producers.follow(header, 0)
        self._flush()

    def _flush(self) -> None:
        self.log.write()
        self.producers.settle()
        files: list[LogFile] = []
        directories: dict[str, None] = {}
        offset = self.log.collect_flush(files, directories)
        self.disk.flush(files, list(directories))
        self.log.flushed(offset)

    def batches(self, offset: int = -1) -> Iterator[tuple[BatchHeader, bytes]]:
        """Batches as readers get them, from the one that holds `offset` or follows it."""
        return batches_of(self.log, offset)

    # --- Compaction.

    def cover(self) -> None:
        """Let a recovery point cover all that is written."""
        self._flush()
        self._now_ms += 100_000
        flush_id = self.logs.recovery_points.begin(self._now_ms)
        while flush_id >= 0:
            assert self.disk.complete_flush(flush_id).error == ""
            flush_id = self.logs.recovery_points.on_flushed(flush_id)

    def rule(self, facts: PartitionFacts) -> CompanionRule:
        ends = self.producers.kept_ends(self.log.flushed_offset)
        return CompanionRule(self.log, facts, self.s_high_watermark, ends, self.buffer_bytes)

    def begin(self, facts: PartitionFacts) -> Compaction | None:
        closed = find_closed(self.log, self.s_high_watermark)
        if closed.dirty_bytes == 0:
            return None
        return Compaction(self.log, closed.end_offset, self.rule(facts))

    def compact(self, facts: PartitionFacts, units: int = 2_500) -> Compaction | None:
        """Compact what can be; None if there is no closed segment."""
        self.cover()
        before = self.log.compaction.swaps
        compaction = self.begin(facts)
        if compaction is None:
            return None
        while True:
            flush_id = compaction.step(Effort(units), 0)
            while flush_id >= 0:
                assert self.disk.complete_flush(flush_id).error == ""
                flush_id = compaction.on_flushed()
            if flush_id == DONE:
                self.compactions += int(self.log.compaction.swaps > before)
                rule = compaction.rule
                assert isinstance(rule, CompanionRule)
                if rule.refusal:
                    self.refusals.append(rule.refusal)
                return compaction

    # --- The rebuild.

    def begin_rebuild(self) -> Rebuild:
        """Read the log as a new leader does."""
        rebuild = Rebuild()
        for header, data in self.batches():
            offset = int(header.base_offset)
            if header.is_control:
                rebuild.add_note(offset, read_note(data, 0, header))
            elif len(data) == HEADER_SIZE:
                rebuild.add_emptied(offset)
            else:
                epoch = int(header.leader_epoch)
                rebuild.add_body(offset, epoch, int(header.record_count), len(data))
        assert rebuild.flaws == []
        return rebuild
