"""Reading of bodies from a partition's companion log, each checked against its note.  Hot."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Final

from mypy_extensions import i64

from tarry.base.errors import CorruptData, StorageError
from tarry.base.limits import SCHEDULE_FLAWS_KEPT
from tarry.broker.scheduling.opened_bodies import OpenedBodies
from tarry.log.batch_walk import Flaw
from tarry.log.segments import limit_of
from tarry.partition.reader import CONSUMER
from tarry.partition.replicated_log import ReplicatedLog
from tarry.records.batch import (
    HEADER_SIZE,
    MAGIC_V2,
    NO_PRODUCER_ID,
    BatchHeader,
    checked_header,
)
from tarry.records.numbering import numbered
from tarry.schedule.entries import NO_POSITION
from tarry.schedule.opened import OpenedBody, open_body
from tarry.schedule.pending import WHOLE, Body
from tarry.schedule.recurring.bodies import RecurringBody

logger = logging.getLogger("tarry.broker")

# Size to ask for where the size of the batch is not known: the region is one batch.
_WHOLE_BATCH: Final = 0
# Codec of a batch that stays uncompressed.
_NO_CODEC: Final = 0
# Bytes that are read for the note before a body: a note without ids is smaller.
_NOTE_BYTES: Final = 128
# Bytes that are read first where the size of the batch is not known: most notes and the batch's
# header fit.
_FIRST_BYTES: Final = 4 * 1024


class BodyReader:
    """Reader of one companion log.

    `bytes_read` counts the bytes read from the disk.  `damaged_batches` are the offsets of damaged
    batches of several places: none of their places can be read.
    """

    def __init__(self, companion: ReplicatedLog, opened: OpenedBodies) -> None:
        self.bytes_read = 0
        self.damaged_batches: dict[int, None] = {}
        self._companion = companion
        self._opened = opened
        # Position in its segment of the batch that was read last; -1 if it was not at its hint.
        self._batch_position: i64 = -1
        # Number of damaged batches that were reported in the broker's log.
        self._told = 0

    def read(self, body: Body) -> bytes:
        """Read a body that is a whole batch, as it was sent; `StorageError`, `CorruptData`."""
        data = self._read_at_hint(body, body.size)
        if not data:
            data = self._read_batch(body.s_offset, body.size)
        try:
            header = checked_header(data, 0)
            if header.base_offset != body.s_offset or header.size != len(data):
                raise CorruptData(f"another batch lies at offset {body.s_offset}")
        except CorruptData:
            self._look_behind(body.s_offset)
            raise
        return data

    def read_due(self, body: Body) -> bytes:
        """Read a body in the form in which it is released; `StorageError`, `CorruptData`."""
        if body.place == WHOLE:
            return self.read(body)
        if not isinstance(body, RecurringBody):
            return self._read_place(body, body.due_ms)
        config = self._companion.leadership.records.config
        return self._opened_batch(body).instance_of(
            body.place, body.instance_ms, config.compression_codec, config.compression_level
        )

    def read_uncompressed(self, body: Body) -> bytes:
        """Read a place of a batch as it was sent and uncompressed, so that it can be parked again
        as a place; `StorageError`, `CorruptData`.
        """
        opened = self._opened_batch(body)
        return opened.batch_of(body.place, body.record_count, None, _NO_CODEC, 0)

    def batch_of(self, body: Body) -> bytes:
        """Read a waiting body as a batch without a producer; `StorageError`, `CorruptData`."""
        if body.place == WHOLE:
            return numbered(self.read(body), NO_PRODUCER_ID, -1, -1)
        return self._read_place(body, None)

    def _read_place(self, body: Body, due_ms: int | None) -> bytes:
        """Read a place in the codec of the topic; a header is added with `due_ms`, if given."""
        config = self._companion.leadership.records.config
        return self._opened_batch(body).batch_of(
            body.place,
            body.record_count,
            due_ms,
            config.compression_codec,
            config.compression_level,
        )

    def _opened_batch(self, body: Body) -> OpenedBody:
        opened = self._opened.get(self._companion, body.batch_offset)
        if opened is None:
            opened = self._read_pieces(body)
        return self._open(body) if opened is None else opened

    def _read_pieces(self, body: Body) -> OpenedBody | None:
        """Read the pieces of a batch that have the records of `body`; None if the batch has no
        outline, or something else lies there now."""
        companion = self._companion
        offset = body.batch_offset
        outline = self._opened.outline(companion, offset)
        if outline is None:
            return None
        log = companion.log
        end = companion.readable_end(CONSUMER)
        opened: OpenedBody | None = None
        start, stop = outline.range_of(body.place, body.record_count)
        if (
            stop > start
            and log.log_start_offset < offset < end.offset
            and not log.has_flaw_before(offset)
        ):
            segment = log.segment_order.holding(offset - 1)
            if outline.file_position + stop <= limit_of(segment, end):
                segment.files.used(segment)
                position = int(outline.file_position + start)
                data = segment.file().read(position, int(stop - start))
                self.bytes_read += len(data)
                if len(data) == stop - start:
                    opened = outline.opened(data, body.place)
        if opened is None:
            self._opened.drop_outline(companion, offset)
        return opened

    def tell_damaged(self, error: CorruptData) -> None:
        """Report a damaged batch that is due in the broker's log; only the first ones are named."""
        self._told += 1
        if self._told <= SCHEDULE_FLAWS_KEPT:
            logger.error(
                "the scheduled records of %s: a batch that is due is damaged and was not released: "
                "%s. It is tried again when the broker starts anew, and until then the log of what "
                "waits keeps it and all that came after it; deleting the topic frees that",
                self._companion.leadership.records.name,
                error,
            )
        elif self._told == SCHEDULE_FLAWS_KEPT + 1:
            logger.error(
                "the scheduled records of %s: more batches are damaged; no more of them are named",
                self._companion.leadership.records.name,
            )

    def forget(self) -> None:
        """Forget the batches that were read: the schedule has ended."""
        self._opened.forget(self._companion)

    def _open(self, body: Body) -> OpenedBody:
        offset = body.batch_offset
        try:
            data = self._read_at_hint(body, _WHOLE_BATCH)
            position = self._batch_position
            opened = open_body(data or self._read_batch(offset, _WHOLE_BATCH), position)
            if opened.base_offset != offset:
                raise CorruptData(f"another batch lies at offset {offset}")
        except CorruptData:
            self.damaged_batches[offset] = None
            self._look_behind(offset)
            raise
        self._opened.keep(self._companion, opened)
        return opened

    def _read_at_hint(self, body: Body, size: int) -> bytes:
        """Return the body's batch, read at the position that its note had when it was parked; b""
        if the batch is not there, since compaction has moved it or the disk is damaged.
        """
        log = self._companion.log
        offset = body.batch_offset
        self._batch_position = -1
        if body.position == NO_POSITION or log.has_flaw_before(offset):
            return b""
        end = self._companion.readable_end(CONSUMER)
        if not log.log_start_offset < offset < end.offset:
            return b""
        segment = log.segment_order.holding(offset - 1)
        limit: i64 = limit_of(segment, end)
        position: i64 = body.position
        if limit - position < 2 * HEADER_SIZE:
            return b""
        segment.files.used(segment)
        file = segment.file()
        first_bytes = _NOTE_BYTES + size if size else _FIRST_BYTES
        data = file.read(body.position, min(first_bytes, int(limit - position)))
        note = _header_in(data, 0, offset - 1)
        if note is None or not note.is_control:
            self.bytes_read += len(data)
            return b""
        note_size: i64 = note.size
        if note_size + HEADER_SIZE > limit - position:
            return b""
        if len(data) < note_size + HEADER_SIZE:
            self.bytes_read += len(data)
            data = file.read(
                body.position, int(min(note_size + HEADER_SIZE + size, limit - position))
            )
        batch = _header_in(data, note_size, offset)
        if batch is None or (size and batch.size != size):
            self.bytes_read += len(data)
            return b""
        batch_end: i64 = note_size + batch.size
        if batch_end > limit - position:
            return b""
        if len(data) < batch_end:
            self.bytes_read += len(data)
            data = data[:note_size] + file.read(
                int(position + note_size), int(batch_end - note_size)
            )
        self.bytes_read += len(data)
        self._batch_position = position + note_size
        return data[note_size:batch_end]

    def _look_behind(self, offset: int) -> None:
        """Let the log note a flaw if no batch begins where the damaged one at `offset` seems to
        end.  A start could not read behind the flaw, so nothing may be parked there.
        """
        log = self._companion.log
        if offset + 1 < log.written_end_offset:
            with suppress(Flaw, StorageError):
                log.position_of(offset + 1)

    def _read_batch(self, offset: int, size: int) -> bytes:
        companion = self._companion
        log = companion.log
        end = companion.readable_end(CONSUMER)
        try:
            region = log.read(offset, end, size, True)
        except Flaw:
            if log.has_flaw_before(offset):
                raise
            # The flaw lies behind the batch, and the log now ends before the flaw: read again.
            region = log.read(offset, end, size, True)
        if region is None:
            raise CorruptData(f"the batch at offset {offset} is not there")
        region_size: i64 = region.size
        data = region.file.read(region.position, min(region_size, size) if size else region_size)
        self.bytes_read += len(data)
        return data


def _header_in(data: bytes, position: i64, base_offset: i64) -> BatchHeader | None:
    """Return the header at this position; None if it is not that of a batch at `base_offset`."""
    if len(data) - position < HEADER_SIZE:
        return None
    header = BatchHeader(data, position)
    if header.magic != MAGIC_V2 or header.base_offset != base_offset or header.size < HEADER_SIZE:
        return None
    return header
