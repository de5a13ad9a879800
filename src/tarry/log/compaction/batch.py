"""Batch of a compaction: it is opened, its records are judged, and it is rebuilt if some go.

Each part is done in steps, so that neither many records nor much compressed content hold up a
turn.  A batch from which no record is taken stays unchanged, byte for byte.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.errors import CorruptData
from tarry.log.compaction.effort import COMPRESSED_KIB_UNITS, KIB_UNITS, OPENED_KIB_UNITS, Effort
from tarry.log.compaction.key_map import KeyMap
from tarry.log.compaction.record_scan import RecordScan, Retiming, can_retime, latest_timestamp
from tarry.log.compaction.rule import BatchWork
from tarry.records.batch import CODEC_MASK, HEADER_SIZE, BatchHeader
from tarry.records.rebuild import RebuiltBatch, has_delete_horizon
from tarry.wire.compression import compress
from tarry.wire.gzip_members import OPENED_BYTES
from tarry.wire.reader import MalformedData
from tarry.wire.stepwise import STEP_BYTES, StepwiseCompressor, StepwiseDecompressor

# Size to which a batch may be decompressed here.  A batch that was produced while its topic was
# compacted has been opened before, with a smaller limit.
CONTENT_BYTES_MAX: Final = 256 * 1024 * 1024

_OPENING: Final = 0
_SCANNING: Final = 1
_RETIMING: Final = 2
_COMPRESSING: Final = 3
_DONE: Final = 4


class KeepRules:
    """Rules of one pass for tombstones: how long they stay."""

    def __init__(self, keys: KeyMap, now_wall_ms: i64, delete_retention_ms: i64) -> None:
        self.keys = keys
        self.now_wall_ms: i64 = now_wall_ms
        self.horizon_ms: i64 = min(now_wall_ms + min(delete_retention_ms, 1 << 60), 1 << 61)

    def drops_tombstones(self, header: BatchHeader) -> bool:
        return has_delete_horizon(header) and header.base_timestamp <= self.now_wall_ms


class BatchCompaction(BatchWork):
    """Work on a batch with keys, by `rules`.  All flaws are `CorruptData`."""

    def __init__(self, header: BatchHeader, block: bytes, at: i64, rules: KeepRules) -> None:
        super().__init__(header, block, at)
        self._rules = rules
        self._step: i64 = _OPENING
        self._opening: StepwiseDecompressor | None = None
        self._scan: RecordScan | None = None
        self._retiming: Retiming | None = None
        self._rebuilt: RebuiltBatch | None = None
        self._content = b""
        self._compressor: StepwiseCompressor | None = None
        self._compressed_bytes: i64 = 0

    def try_map(self, effort: Effort) -> bool:
        try:
            if self._step == _OPENING and not self._try_open(effort):
                return False
            scan = self._scan
            assert scan is not None
            return scan.try_map(self._rules.keys, effort)
        except MalformedData as error:
            raise CorruptData(str(error)) from None

    @property
    def has_mapped(self) -> bool:
        return self._scan is not None

    def try_keep(self, effort: Effort) -> bool:
        try:
            while self._step != _DONE:
                if effort.units <= 0 or not self._try_step(effort):
                    return False
        except MalformedData as error:
            raise CorruptData(str(error)) from None
        return True

    def _try_step(self, effort: Effort) -> bool:
        if self._step == _OPENING:
            return self._try_open(effort)
        if self._step == _SCANNING:
            return self._try_scan(effort)
        if self._step == _RETIMING:
            return self._try_retime(effort)
        return self._try_compress(effort)

    def _try_open(self, effort: Effort) -> bool:
        header = self.header
        start = self.at + HEADER_SIZE
        end = self.at + header.size
        if (header.attributes & CODEC_MASK) == 0:
            self._scan = RecordScan(self.block, start, end, header)
            self._step = _SCANNING
            return True
        opening = self._opening
        if opening is None:
            opening = StepwiseDecompressor(
                header.codec, memoryview(self.block)[start:end], CONTENT_BYTES_MAX
            )
            self._opening = opening
        while not opening.step():
            effort.spend_bytes(opening.cost_bytes, OPENED_KIB_UNITS)
            if effort.units <= 0:
                return False
        content = opening.content
        effort.spend_bytes(min(opening.cost_bytes, OPENED_BYTES), OPENED_KIB_UNITS)
        self._opening = None
        self._scan = RecordScan(content, 0, len(content), header)
        self._step = _SCANNING
        return True

    def _try_scan(self, effort: Effort) -> bool:
        header = self.header
        rules = self._rules
        scan = self._scan
        assert scan is not None
        if not scan.try_keep(rules.keys, rules.drops_tombstones(header), effort):
            return False
        must_retime = (
            scan.has_tombstone
            and not has_delete_horizon(header)
            # Otherwise its tombstones stay for ever: older records of their keys must not come
            # back.
            and can_retime(header, scan, rules.horizon_ms)
        )
        self.dropped_count = scan.dropped_count
        self.keyless_count = scan.keyless_count
        self._step = _DONE
        if scan.kept_count == 0:
            self.is_kept = False
            return True
        if scan.dropped_count == 0 and not must_retime:
            return True
        rebuilt = RebuiltBatch(header)
        rebuilt.record_count = scan.kept_count
        rebuilt.max_timestamp = latest_timestamp(header, scan)
        self.max_timestamp = rebuilt.max_timestamp
        self._rebuilt = rebuilt
        self._content = b"".join(scan.kept)
        effort.spend_bytes(len(self._content), KIB_UNITS)
        if must_retime:
            rebuilt.set_delete_horizon(rules.horizon_ms)
            self._retiming = Retiming(self._content, header.base_timestamp, rules.horizon_ms)
            self._step = _RETIMING
            return True
        self._begin_encoding(effort)
        return True

    def _try_retime(self, effort: Effort) -> bool:
        retiming = self._retiming
        assert retiming is not None
        if not retiming.step(effort):
            return False
        self._content = retiming.content()
        self._begin_encoding(effort)
        return True

    def _begin_encoding(self, effort: Effort) -> None:
        codec = self.header.codec
        if codec == 0:
            self._encode(self._content)
        elif len(self._content) <= STEP_BYTES:
            effort.spend_bytes(len(self._content), COMPRESSED_KIB_UNITS)
            self._encode(compress(codec, self._content))
        else:
            self._compressor = StepwiseCompressor(codec)
            self._step = _COMPRESSING

    def _try_compress(self, effort: Effort) -> bool:
        compressor = self._compressor
        assert compressor is not None
        content = self._content
        while self._compressed_bytes < len(content):
            if effort.units <= 0:
                return False
            start = self._compressed_bytes
            compressor.add(content[start : start + STEP_BYTES])
            self._compressed_bytes = start + STEP_BYTES
            effort.spend_bytes(STEP_BYTES, COMPRESSED_KIB_UNITS)
        self._encode(compressor.finish())
        return True

    def _encode(self, content: bytes) -> None:
        rebuilt = self._rebuilt
        assert rebuilt is not None
        rebuilt.content = content
        self.encoded = rebuilt.encode()
        self._step = _DONE
