"""Compaction of one log: segments are copied without the records that a rule drops.

A pass maps a part of the log, as much as the rule has room for.  Then it copies the log from its
begin to the end of the map, or the segments that the rule has chosen, without the records that the
rule drops (`rule`).  New segments replace the old ones a few at a time, each time by a swap that
after a crash is complete or not begun (`checkpoint`).  Passes follow each other until the rule has
nothing left to do.

Everything is done in steps with a bounded effort; flushes end as events.  The bytes that are read
were durable, so a batch that does not match its CRC is a flaw of the log, if the rule has CRCs
checked.  A batch that matches and still cannot be opened stays unchanged, and its records replace
no others.  Hot.
"""

from __future__ import annotations

import logging
from typing import Final

from mypy_extensions import i64

from tarry.base.doors import LogFile
from tarry.base.errors import CorruptData, StorageError
from tarry.log.batch_walk import BatchWalk
from tarry.log.compaction.checkpoint import (
    COMPACTION_FILE,
    TEMPORARY_SUFFIX,
    CompactionCheckpoint,
)
from tarry.log.compaction.effort import BATCH_UNITS, KIB_UNITS, SOURCE_UNITS, Effort
from tarry.log.compaction.output import CompactedSegment
from tarry.log.compaction.rule import BatchWork, CompactionRule
from tarry.log.log import Log
from tarry.log.segment import Segment
from tarry.records.batch import BatchHeader

logger = logging.getLogger("tarry.log")

# Results of `step` and `on_flushed` if there is no flush to wait for.
GO_ON: Final = -1
DONE: Final = -2

# Bytes of one read of a source: cold data on a slow disk must not hold up a turn for long.
BLOCK_BYTES: Final = 256 * 1024
# Bytes written and not flushed: with more, the kernel makes the writing thread wait for the device.
UNFLUSHED_BYTES_MAX: Final = 8 * 1024 * 1024
# Entries of the map that are dropped in one step: a few milliseconds.
CLEARED_ENTRIES: Final = 10_000

_MAPPING: Final = 0
_COPYING: Final = 1
_FLUSHING_BYTES: Final = 2
_FLUSHING_FILES: Final = 3
_SWAP_BEGUN: Final = 4
_FLUSHING_SWAP: Final = 5
_CLEARING: Final = 6
_DONE: Final = 7
_WEIGHING: Final = 8


class Compaction:
    """Compaction of a log by a rule, up to `target_offset`, where a segment begins."""

    def __init__(self, log: Log, target_offset: i64, rule: CompactionRule) -> None:
        self.log = log
        self.target_offset: i64 = target_offset
        self.rule = rule
        # Offset up to which the log is mapped; and the one up to which it is to be mapped.
        self.end_offset: i64 = -1
        self._map_end: i64 = rule.map_end(target_offset)
        self.passes = 0
        # Effort spent on mapping and weighing, before anything is copied.
        self.looked_units: i64 = 0
        self.is_abandoned = False
        self.bytes_before: i64 = 0
        self.bytes_after: i64 = 0
        self.records_dropped: i64 = 0
        self.keyless_dropped: i64 = 0
        # Base offsets of batches that cannot be opened.
        self._unreadable: dict[int, None] = {}
        self._phase: i64 = _CLEARING
        self._sources: list[Segment] = []
        self._source: i64 = 0
        self._walk: BatchWalk | None = None
        self._batch: BatchWork | None = None
        self._output: CompactedSegment | None = None
        self._checkpoint: CompactionCheckpoint | None = None
        # The mapped part behind the target must not be cut off meanwhile either.
        log.compaction.target_offset = self._map_end

    @property
    def is_swap_begun(self) -> bool:
        """True if the new segments may count already, so that the swap must be completed."""
        return self._phase in (_SWAP_BEGUN, _FLUSHING_SWAP)

    def step(self, effort: Effort, now_wall_ms: i64) -> i64:
        """Continue while effort is left; return the id of a flush to wait for, GO_ON or DONE.

        Raises `Flaw` for damage, and `StorageError`.  Then the caller must call `abandon` before it
        drops the compaction; but a swap that has begun must be tried again.
        """
        while effort.units > 0:
            if self._phase == _CLEARING:
                effort.spend_bytes(CLEARED_ENTRIES, KIB_UNITS * 128)
                if self.rule.try_clear(CLEARED_ENTRIES):
                    self._begin_pass()
            elif self._phase in (_MAPPING, _WEIGHING):
                self.looked_units += effort.units
                if self._phase == _MAPPING:
                    self._map(effort, now_wall_ms)
                else:
                    self._weigh(effort, now_wall_ms)
                self.looked_units -= effort.units
            elif self._phase == _COPYING:
                flush_id = self._copy(effort)
                if flush_id >= 0:
                    return flush_id
            elif self._phase == _SWAP_BEGUN:
                return self._flush_swap()
            elif self._phase == _DONE:
                return DONE
            else:
                return GO_ON
        return GO_ON

    def on_flushed(self) -> i64:
        """Continue after the awaited flush; return the next flush's id, or GO_ON."""
        if self._phase == _FLUSHING_BYTES:
            self._phase = _COPYING
        elif self._phase == _FLUSHING_FILES:
            path = f"{self.log.directory}/{COMPACTION_FILE}"
            self.log.disk.rename(path + TEMPORARY_SUFFIX, path)
            self._phase = _SWAP_BEGUN
            return self._flush_swap()
        elif self._phase == _FLUSHING_SWAP:
            self._swap()
        return GO_ON

    def abandon(self) -> None:
        """Give up: the log stays as after the last swap, and `step` continues to DONE."""
        assert not self.is_swap_begun or self.log.is_closed
        output = self._output
        self._output = None
        # Only the map is left, which is dropped a part at a time.
        self.is_abandoned = True
        self._phase = _CLEARING
        self._walk = None
        self._batch = None
        self._end()
        if output is not None and not self.log.is_closed:
            output.discard()

    def _end(self) -> None:
        self.log.compaction.target_offset = -1
        if not self.log.is_closed:
            self.log.condemn_below_start()

    # --- Mapping.

    def _begin_pass(self) -> None:
        start_offset = self.rule.begin_pass(self.target_offset)
        if self.is_abandoned or start_offset < 0:
            self._phase = _DONE
            self._end()
            return
        self.passes += 1
        self.end_offset = start_offset
        self._begin_sources(self._segments_between(start_offset, self._map_end), _MAPPING)

    def _segments_between(self, offset: i64, end_offset: i64) -> list[Segment]:
        """Return the segment that holds `offset` and those behind it that begin before the end."""
        found: list[Segment] = []
        for segment in self.log.segments_from(offset):
            if segment.base_offset < end_offset:
                found.append(segment)
        return found

    def _begin_sources(self, sources: list[Segment], phase: i64) -> None:
        """Begin to read these segments."""
        self._sources = sources
        self._source = 0
        self._walk = None
        self._batch = None
        self._phase = phase

    def _map(self, effort: Effort, now_wall_ms: i64) -> None:
        """Map one batch, or as much of it as the effort allows."""
        batch = self._batch
        if batch is None:
            header = self._next_header(effort)
            if header is None:
                self._source += 1
                self._walk = None
                if self._source >= len(self._sources):
                    self._end_mapping(self._map_end, now_wall_ms)
                return
            if header.last_offset < self.end_offset:
                return
            if header.last_offset >= self._map_end:
                self._end_mapping(self._map_end, now_wall_ms)
                return
            if not self.rule.has_room(header):
                self._end_mapping(header.base_offset, now_wall_ms)
                return
            if header.base_offset not in self._unreadable:
                walk = self._walk
                assert walk is not None
                batch = self.rule.mapped(header, walk, effort)
            if batch is None:
                self.end_offset = header.last_offset + 1
                return
            self._batch = batch
        try:
            if batch.try_map(effort):
                self.end_offset = batch.header.last_offset + 1
                self._batch = None
        except CorruptData as error:
            self._skip(batch, error)

    def _end_mapping(self, end_offset: i64, now_wall_ms: i64) -> None:
        self.end_offset = end_offset
        sources = self._segments_between(0, min(end_offset, self.target_offset))
        if self.rule.must_weigh():
            self._begin_sources(sources, _WEIGHING)
        else:
            self._begin_copying(self.rule.choose(sources), now_wall_ms)

    def _skip(self, batch: BatchWork, error: CorruptData) -> None:
        """Skip a batch that cannot be opened; begin the pass again if some of it was mapped."""
        header = batch.header
        logger.warning(
            "%s: the batch at offset %d is kept as it is, it cannot be opened: %s",
            self.log.directory,
            header.base_offset,
            error,
        )
        self._unreadable[header.base_offset] = None
        self._batch = None
        self.end_offset = header.last_offset + 1
        if batch.has_mapped:
            self._phase = _CLEARING

    def _next_header(self, effort: Effort) -> BatchHeader | None:
        """Read the next batch's header in the present source; None at its end, `Flaw` if it is
        damaged.
        """
        source = self._sources[self._source]
        if source.written_size == 0:
            return None
        walk = self._walk
        if walk is None:
            effort.spend(SOURCE_UNITS)
            position: i64 = 0
            if self._phase == _MAPPING and source.base_offset < self.end_offset:
                position = source.find(self.end_offset, source.written_size)
            walk = source.walk(position, source.written_size)
            walk.checks_crc = self.rule.checks_crc
            walk.block_bytes = BLOCK_BYTES
            self._walk = walk
        header = source.next_header(walk)
        if header is not None:
            effort.spend(BATCH_UNITS)
            effort.spend_bytes(header.size, KIB_UNITS)
        return header

    # --- Weighing.

    def _weigh(self, effort: Effort, now_wall_ms: i64) -> None:
        """Weigh one batch."""
        if self._source >= len(self._sources):
            self._begin_copying(self.rule.choose(self._sources), now_wall_ms)
            return
        if self._walk is None:
            self.rule.begin_weighing(self._sources[self._source])
        header = self._next_header(effort)
        if header is None:
            self._source += 1
            self._walk = None
            return
        walk = self._walk
        assert walk is not None
        self.rule.meet(header)
        self.rule.weigh(header, walk, effort)

    # --- Copying.

    def _begin_copying(self, sources: list[Segment], now_wall_ms: i64) -> None:
        self.rule.begin_copying(now_wall_ms)
        self._output = None
        self._begin_sources(sources, _COPYING if sources else _CLEARING)

    def _begin_output(self) -> CompactedSegment:
        log = self.log
        log.compaction.generation += 1
        source = self._sources[self._source]
        size_left = self.rule.size_left(source)
        if log.disk.free_bytes() < size_left:
            # Producers need the remaining room more than compaction does.
            raise StorageError(f"{log.directory}: no room for another {size_left} bytes")
        output = CompactedSegment(log, source.base_offset, log.compaction.generation)
        is_taken = self._try_take(output, source)
        assert is_taken
        self._output = output
        return output

    def _try_take(self, output: CompactedSegment, source: Segment) -> bool:
        # Each source is followed by a segment, since the log's last one is never taken.
        end_offset = self.log.segments_from(source.base_offset)[1].base_offset
        return output.try_take(source, end_offset, self.rule.size_left(source))

    def _copy(self, effort: Effort) -> i64:
        """Copy one batch, or as much of it as the effort allows; return a flush id, or GO_ON."""
        output = self._output
        if output is None:
            output = self._begin_output()
        batch = self._batch
        if batch is None:
            if self._walk is None:
                self.rule.begin_source(self._sources[self._source])
            header = self._next_header(effort)
            if header is None:
                return self._end_source(output)
            output.last_header = header
            self.rule.meet(header)
            if header.last_offset < self.log.log_start_offset:
                self._leave_out(output, header)
                return GO_ON
            walk = self._walk
            assert walk is not None
            if header.base_offset < self.end_offset and header.base_offset not in self._unreadable:
                batch = self.rule.kept(header, walk, effort)
            if batch is None:
                output.add_stored(header, walk.block, walk.place_in_block())
                return self._maybe_flush_bytes(output)
            self._batch = batch
        try:
            if not batch.try_keep(effort):
                return GO_ON
        except CorruptData:
            # The batch is in the clean part: those of the dirty part are known from the mapping.
            self._unreadable[batch.header.base_offset] = None
            output.add_stored(batch.header, batch.block, batch.at)
            self._batch = None
            return GO_ON
        self._batch = None
        self._take(output, batch)
        return self._maybe_flush_bytes(output)

    def _take(self, output: CompactedSegment, batch: BatchWork) -> None:
        """Write the result of a batch to the new segment."""
        header = batch.header
        self.records_dropped += batch.dropped_count
        self.keyless_dropped += batch.keyless_count
        encoded = batch.encoded
        if encoded is not None:
            output.add_encoded(header, encoded, batch.max_timestamp)
        elif batch.is_kept:
            output.add_stored(header, batch.block, batch.at)
        else:
            self._leave_out(output, header)

    def _leave_out(self, output: CompactedSegment, header: BatchHeader) -> None:
        """Drop a batch; keep it without records if what its header says must stay."""
        if self.rule.keeps_header(header):
            output.add_emptied(header, self.rule.emptied(header))
        else:
            output.has_changed = True

    def _maybe_flush_bytes(self, output: CompactedSegment) -> i64:
        if output.unflushed_bytes < UNFLUSHED_BYTES_MAX:
            return GO_ON
        output.write()
        flush_id = self.log.disk.begin_flush([output.files[0]], [])
        output.unflushed_bytes = 0
        self._phase = _FLUSHING_BYTES
        return flush_id

    # --- Swapping.

    def _end_source(self, output: CompactedSegment) -> i64:
        """End a copied source; continue with the next one, in this new segment or in another."""
        self._source += 1
        self._walk = None
        is_last = self._source >= len(self._sources)
        if not is_last and self._try_take(output, self._sources[self._source]):
            return GO_ON
        header = output.last_header
        if output.size == 0 and header is not None:
            output.add_emptied(header, self.rule.placeholder(header))
        if not output.has_changed and len(output.sources) == 1 and not self._must_note(is_last):
            self._output = None
            output.discard()
            self._phase = _CLEARING if is_last else _COPYING
            return GO_ON
        output.finish()
        files: list[LogFile] = list(output.files)
        files.append(self._write_checkpoint(output, is_last))
        flush_id = self.log.disk.begin_flush(files, [self.log.directory])
        self._phase = _FLUSHING_FILES
        return flush_id

    def _must_note(self, is_last: bool) -> bool:
        """Return True if a checkpoint must be written because the pass has ended."""
        cleaned_offset = self.rule.cleaned_offset(self.end_offset)
        return is_last and cleaned_offset != self.log.compaction.cleaned_offset

    def _write_checkpoint(self, output: CompactedSegment, is_last: bool) -> LogFile:
        log = self.log
        checkpoint = CompactionCheckpoint()
        checkpoint.generation = output.generation
        checkpoint.cleaned_offset = log.compaction.cleaned_offset
        if is_last:
            checkpoint.cleaned_offset = self.rule.cleaned_offset(self.end_offset)
        checkpoint.end_offset = max(log.compaction.end_offset, output.end_offset)
        for segment in log.segments:
            if segment is output.sources[0]:
                checkpoint.rows.append(output.row())
            elif segment not in output.sources and segment.base_offset < checkpoint.end_offset:
                checkpoint.rows.append(segment.row())
        self._checkpoint = checkpoint
        path = f"{log.directory}/{COMPACTION_FILE}{TEMPORARY_SUFFIX}"
        file = log.disk.open(path, create=True)
        file.truncate(0)
        file.append([checkpoint.encode()])
        return file

    def _flush_swap(self) -> i64:
        flush_id = self.log.disk.begin_flush([], [self.log.directory])
        self._phase = _FLUSHING_SWAP
        return flush_id

    def _swap(self) -> None:
        """Swap: rename the new segment's files, and put it into the log in memory."""
        log = self.log
        output = self._output
        checkpoint = self._checkpoint
        assert output is not None
        assert checkpoint is not None
        output.rename()
        segment = Segment(log.files, log.directory, output.segment.base_offset, log.config)
        segment.cover(output.row())
        segment.has_file = True
        segment.has_gaps = True
        log.replace_segments(output.sources, segment)
        for path in output.replaced:
            log.disk.begin_remove(path)
        for source in output.sources[1:]:
            for path in source.file_paths():
                log.disk.begin_remove(path)
        state = log.compaction
        state.take_over(state.generation, checkpoint.cleaned_offset, checkpoint.end_offset)
        state.swaps += 1
        self.bytes_before += output.source_bytes
        self.bytes_after += output.size
        self._output = None
        self._phase = _COPYING if self._source < len(self._sources) else _CLEARING
