"""Recompression of a produced batch, in steps: it is checked, opened if its records' headers may
hold due times, and rebuilt in the codec of its topic's `compression.type`.

As in Kafka, the records are decompressed, checked and compressed again.  Offsets, times, keys,
headers and all producer fields stay; the CRC is new.  Steps keep a large batch from holding up a
turn.  A compressed batch whose records a setting limits is only read, in the same steps.  A batch
that has the codec already, or whose topic sets none, is appended as it is.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base import errors
from tarry.base.errors import CorruptData
from tarry.base.limits import OPENED_BATCH_BYTES_MAX
from tarry.base.turn import Turn
from tarry.log.compaction.effort import OPENED_KIB_UNITS, RECORD_UNITS, Effort
from tarry.partition.leader import (
    AppendResult,
    append_checked,
    check_limits,
    may_open,
    refusal,
    too_few_replicas,
)
from tarry.partition.leadership import BatchWishes, ParkingDoor
from tarry.partition.replicated_log import ReplicatedLog
from tarry.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    BatchHeader,
    check_batch,
    take_walk,
)
from tarry.records.rebuild import RebuiltBatch
from tarry.records.walk import StepwiseWalk
from tarry.wire.compression import compress, cost_per_kib
from tarry.wire.reader import Window
from tarry.wire.stepwise import STEP_BYTES, StepwiseCompressor, StepwiseDecompressor

# Records that one step walks over.
_WALKED_RECORDS: Final = 500
# Bytes that one step compresses at a slow level: 6 ms.
_SLOW_STEP_BYTES: Final = 64 * 1024
_SLOW_KIB_UNITS: Final = 50

_OPENING: Final = 0
_WALKING: Final = 1
_READING: Final = 2
_COMPRESSING: Final = 3
_DONE: Final = 4


class Recompression:
    """Recompression of the batch in `window`, before its append to a partition."""

    def __init__(
        self, partition: ReplicatedLog, window: Window, api_version: int, wall_ms: int
    ) -> None:
        config = partition.config
        self.partition = partition
        self.codec: i64 = config.compression_codec
        self.level: int = config.compression_level
        self.check = check_batch(window, config.max_message_bytes)
        self._wall_ms = wall_ms
        self._refusal: AppendResult | None = None
        self._step: i64 = _DONE
        self._content = b""
        self._opening: StepwiseDecompressor | None = None
        self._walk: StepwiseWalk | None = None
        # Due times and ids that the records' headers ask for; None in a topic without them.
        self._wishes: BatchWishes | None = None
        self._parking: ParkingDoor | None = None
        parking = partition.leadership.parking
        if parking is not None and parking.reads_headers():
            self._parking = parking
        self._compressor: StepwiseCompressor | None = None
        self._compressed_bytes: i64 = 0
        check = self.check
        if check.error_code != errors.NONE:
            return
        self._refusal = refusal(partition, check, api_version)
        if self._refusal is not None:
            return
        header = self._header()
        if header.codec == 0 or not (self._is_looked_into() or may_open(config, window, wall_ms)):
            # `check_batch` has walked over the records of an uncompressed batch.
            check_limits(config, check, wall_ms)
            if not self._is_looked_into():
                return
        if check.error_code == errors.NONE:
            self._step = _OPENING

    @property
    def is_done(self) -> bool:
        """True if all steps are done and only the append is left."""
        return self._step == _DONE

    @property
    def new_bytes(self) -> i64:
        """Size of the batch as it will be appended, and of its records if they are held open."""
        wishes = self._wishes
        return self.check.window.size + (0 if wishes is None else wishes.held_bytes)

    @property
    def place_count(self) -> int:
        """Number of due times and ids of its records, if their headers were read."""
        wishes = self._wishes
        return 0 if wishes is None else wishes.place_count

    @property
    def units_at_most(self) -> i64:
        """Cost of the steps that are left; -1 if it is unknown before the decompression."""
        if self._step == _DONE:
            return 0
        size: i64 = len(self._content)
        if self._step == _OPENING:
            if self._header().codec != 0:
                return -1
            size = self.check.window.size
        units: i64 = self._kib_units() if self._is_made_anew() else 0
        if self._parking is not None:
            units += OPENED_KIB_UNITS
        return (size * units) >> 10

    def try_finish(self, effort: Effort) -> bool:
        """Go on as far as the effort reaches; True when it may be appended."""
        while self._step != _DONE:
            if effort.units <= 0:
                return False
            if self._step == _OPENING:
                self._open(effort)
            elif self._step == _WALKING:
                self._go_through(effort)
            elif self._step == _READING:
                self._read_headers(effort)
            else:
                self._compress(effort)
        return True

    def append(self, acks: int, turn: Turn, writer: i64) -> AppendResult:
        """Append the batch that the steps have made, or return the error."""
        partition = self.partition
        if acks == -1 and partition.leadership.is_under_min_isr():
            return too_few_replicas(partition)
        refused = self._refusal
        if refused is not None:
            return refused
        result = append_checked(partition, self.check, turn, writer, self._wishes)
        # The effort of the steps has been charged already.
        result.has_opened = False
        return result

    def refuse_too_large(self, message: str) -> None:
        """Refuse the batch because of its size."""
        self._refusal = AppendResult(errors.MESSAGE_TOO_LARGE, message)
        self._end()

    def _header(self) -> BatchHeader:
        header = self.check.header
        assert header is not None
        return header

    def _open(self, effort: Effort) -> None:
        header = self._header()
        if header.codec == 0:
            # Copy the records only now: a batch that waits for its steps holds no copy.
            window = self.check.window
            self._content = window.data[window.start + HEADER_SIZE : window.end]
            self._begin()
            return
        opening = self._opening
        if opening is None:
            window = self.check.window
            folded = memoryview(window.data)[window.start + HEADER_SIZE : window.end]
            opening = StepwiseDecompressor(header.codec, folded, OPENED_BATCH_BYTES_MAX)
            self._opening = opening
        try:
            is_open = opening.step()
        except CorruptData as error:
            # The decompressed size is unknown: charge the largest one, which fills a step.
            effort.spend_bytes(OPENED_BATCH_BYTES_MAX, OPENED_KIB_UNITS)
            self.check.refuse(errors.INVALID_RECORD, f"the records cannot be opened: {error}")
            self._end()
            return
        effort.spend_bytes(opening.cost_bytes, OPENED_KIB_UNITS)
        if not is_open:
            return
        content = opening.content
        self._opening = None
        self._content = content
        self._walk = StepwiseWalk(content, 0, header.record_count)
        self._step = _WALKING

    def _go_through(self, effort: Effort) -> None:
        stepwise = self._walk
        assert stepwise is not None
        effort.spend(_WALKED_RECORDS * RECORD_UNITS)
        if not stepwise.step(_WALKED_RECORDS):
            return
        self._walk = None
        check = self.check
        take_walk(check, self._header(), stepwise.walk)
        if check.error_code != errors.NONE:
            self._end()
            return
        check_limits(self.partition.config, check, self._wall_ms)
        if check.error_code != errors.NONE:
            self._end()
        else:
            self._begin()

    def _is_looked_into(self) -> bool:
        """Return True if, beside the checks, the batch must be recompressed or its headers read."""
        return self._is_made_anew() or self._parking is not None

    def _is_made_anew(self) -> bool:
        return self.codec >= 0 and self._header().codec != self.codec

    def _begin(self) -> None:
        """Begin the steps behind the checks: reading headers, or compressing."""
        parking = self._parking
        if parking is not None:
            self._wishes = parking.wishes_in(self._header(), self._content)
            self._step = _READING
        elif self._is_made_anew():
            self._step = _COMPRESSING
        else:
            self._end()

    def _read_headers(self, effort: Effort) -> None:
        wishes = self._wishes
        assert wishes is not None
        effort.spend(_WALKED_RECORDS * RECORD_UNITS)
        if not wishes.step(_WALKED_RECORDS):
            return
        if self._is_made_anew():
            self._step = _COMPRESSING
        else:
            self._end()

    def _compress(self, effort: Effort) -> None:
        content = self._content
        units = self._kib_units()
        compressor = self._compressor
        if compressor is None:
            if len(content) <= _SLOW_STEP_BYTES:
                effort.spend_bytes(len(content), units)
                self._encode(compress(self.codec, content, self.level))
                return
            compressor = StepwiseCompressor(self.codec, self.level)
            self._compressor = compressor
        step_bytes: i64 = _SLOW_STEP_BYTES if units > _SLOW_KIB_UNITS else STEP_BYTES
        start = self._compressed_bytes
        if start < len(content):
            compressor.add(content[start : start + step_bytes])
            self._compressed_bytes = start + step_bytes
            effort.spend_bytes(step_bytes, units)
            return
        self._encode(compressor.finish())

    def _kib_units(self) -> i64:
        return cost_per_kib(self.codec, self.level)

    def _encode(self, content: bytes) -> None:
        check = self.check
        rebuilt = RebuiltBatch(self._header())
        rebuilt.attributes = (rebuilt.attributes & ~CODEC_MASK) | self.codec
        rebuilt.record_count = self._header().record_count
        rebuilt.content = content
        data = rebuilt.encode()
        check.replace(data)
        config = self.partition.config
        if len(data) > config.max_message_bytes:
            self.refuse_too_large(
                f"made anew as compression.type asks, the batch has {len(data)} bytes and "
                f"max.message.bytes of {self.partition.leadership.topic} is "
                f"{config.max_message_bytes}"
            )
        self._end()

    def _end(self) -> None:
        """Drop everything but the batch to append."""
        self._content = b""
        self._opening = None
        self._walk = None
        self._compressor = None
        self._step = _DONE
