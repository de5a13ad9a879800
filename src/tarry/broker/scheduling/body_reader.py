"""Reading of bodies from a partition's companion log, checked against what its notes say.  Hot."""

from __future__ import annotations

import logging
from typing import Final

from mypy_extensions import i64

from tarry.base.errors import CorruptData
from tarry.base.limits import SCHEDULE_FLAWS_KEPT
from tarry.broker.scheduling.opened_bodies import OpenedBodies
from tarry.log.batch_walk import Flaw
from tarry.partition.reader import CONSUMER
from tarry.partition.replicated_log import ReplicatedLog
from tarry.records.batch import NO_PRODUCER_ID, checked_header
from tarry.records.numbering import numbered
from tarry.schedule.opened import OpenedBody
from tarry.schedule.pending import WHOLE, Body
from tarry.schedule.recurring.bodies import RecurringBody

logger = logging.getLogger("tarry.broker")

# A region of one batch, whatever its size.
_WHOLE_BATCH: Final = 0
# Of a batch that stays uncompressed.
_NO_CODEC: Final = 0


class BodyReader:
    """Reader of one companion log.

    `bytes_read` counts what was read from the disk.  `damaged_batches` are the offsets of damaged
    batches of several places: none of their places can be read.
    """

    def __init__(self, companion: ReplicatedLog, opened: OpenedBodies) -> None:
        self.bytes_read = 0
        self.damaged_batches: dict[int, None] = {}
        self._companion = companion
        self._opened = opened
        # Damaged batches of which the broker's log was told.
        self._told = 0

    def read(self, body: Body) -> bytes:
        """Read a body that is released as it came; `StorageError`, `CorruptData`."""
        data = self._read_batch(body.s_offset, body.size)
        header = checked_header(data, 0)
        if header.base_offset != body.s_offset or header.size != len(data):
            raise CorruptData(f"another batch lies at offset {body.s_offset}")
        return data

    def read_due(self, body: Body) -> bytes:
        """Read a body as it is released when it is due; `StorageError`, `CorruptData`."""
        if body.place == WHOLE:
            return self.read(body)
        if not isinstance(body, RecurringBody):
            return self._read_place(body, body.due_ms)
        config = self._companion.leadership.records.config
        return self._opened_batch(body).instance_of(
            body.place, body.instance_ms, config.compression_codec, config.compression_level
        )

    def read_uncompressed(self, body: Body) -> bytes:
        """Read a place of a batch as it was sent, so that it can be a place again; `StorageError`,
        `CorruptData`.
        """
        opened = self._opened_batch(body)
        return opened.batch_of(body.place, body.record_count, None, _NO_CODEC, 0)

    def batch_of(self, body: Body) -> bytes:
        """Read what waits, as a batch without a producer; `StorageError`, `CorruptData`."""
        if body.place == WHOLE:
            return numbered(self.read(body), NO_PRODUCER_ID, -1, -1)
        return self._read_place(body, None)

    def _read_place(self, body: Body, due_ms: int | None) -> bytes:
        """Read a place in the codec of the topic; a header tells `due_ms`, if that is given."""
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
        return self._open(body.batch_offset) if opened is None else opened

    def tell_damaged(self, error: CorruptData) -> None:
        """Tell the broker's log of a batch that is due and damaged; of the first ones alone."""
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

    def _open(self, offset: int) -> OpenedBody:
        try:
            opened = OpenedBody(self._read_batch(offset, _WHOLE_BATCH))
            if opened.base_offset != offset:
                raise CorruptData(f"another batch lies at offset {offset}")
        except CorruptData:
            self.damaged_batches[offset] = None
            raise
        self._opened.keep(self._companion, opened)
        return opened

    def _read_batch(self, offset: int, size: int) -> bytes:
        companion = self._companion
        log = companion.log
        end = companion.readable_end(CONSUMER)
        try:
            region = log.read(offset, end, size, True)
        except Flaw:
            if log.has_flaw_before(offset):
                raise
            # It lies behind the batch, and the log is read up to there now.
            region = log.read(offset, end, size, True)
        if region is None:
            raise CorruptData(f"the batch at offset {offset} is not there")
        region_size: i64 = region.size
        data = region.file.read(region.position, min(region_size, size) if size else region_size)
        self.bytes_read += len(data)
        return data
