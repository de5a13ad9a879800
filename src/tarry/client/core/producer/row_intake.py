"""Intake of rows: puts runs of a table's rows into the open batches of their partitions.

A run is the rows that one batch takes at once.  It refers to a batch and places in it, so that the
end of a batch costs the same for one row as for a thousand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.client.core.producer.accumulator import Accumulator
from tarry.client.core.producer.batch import ProducerBatch
from tarry.client.core.producer.core import ProducerCore
from tarry.client.core.producer.partitioner import ANY_PARTITION
from tarry.client.core.topic import Topic
from tarry.client.errors import UnknownTopic
from tarry.link.errors import ClientError
from tarry.records.from_columns import HEAD_BYTES_MAX, RecordRows, append_rows

# Company of the rows of a part, with which they may share a batch: any other records; the rows of
# the same part alone; or of these only the ones with the same timestamp.
WITH_OTHERS: Final = 0
APART: Final = 1
APART_BY_TIME: Final = 2

# Memory of a batch beside its records, in bytes, about.  Rows apart may need a batch for each of
# them, and `buffer.memory` bounds these too.
BATCH_OVERHEAD: Final = 1_024


class SentRows:
    """Rows `first` to `last` of a batch; reads the state of the batch or its pieces when asked."""

    def __init__(self, batch: ProducerBatch, first: int, last: int) -> None:
        self.batch = batch
        self.first = first
        self.last = last
        # Failed batches whose rows count as seen.
        self._asked: dict[ProducerBatch, None] = {}

    @property
    def row_count(self) -> int:
        return self.last - self.first + 1

    def parts(self) -> Iterator[tuple[ProducerBatch, int, int]]:
        """Yield the batches that the rows are in now, each with its first row there and their
        number."""
        yield from _parts(self.batch, self.first, self.last)

    @property
    def is_done(self) -> bool:
        return all(batch.is_done for batch, _, _ in self.parts())

    def open_place(self) -> int:
        """Return the place of a row that is not done yet; -1 if all are done."""
        place = self.first
        for batch, _, count in self.parts():
            if not batch.is_done:
                return place
            place += count
        return -1

    @property
    def error(self) -> ClientError | None:
        """Error of the first failed rows, None if none failed; reading it counts as having seen
        it."""
        found: ClientError | None = None
        # A set, because several runs of the rows may be in one batch.
        failed: dict[ProducerBatch, None] = {}
        for batch, _, count in self.parts():
            if batch.error is not None:
                found = found or batch.error
                failed[batch] = None
                if batch not in self._asked:
                    batch.unseen_failures -= count
        self._asked.update(failed)
        return found

    @property
    def offset(self) -> int:
        """Offset of the first row; -1 while it is not known, and with acks=0."""
        batch, first, _ = next(self.parts())
        return batch.offset_at(first)

    @property
    def s_offset(self) -> int:
        """Number that names the first row while it is parked; -1 if it was not."""
        batch, first, _ = next(self.parts())
        return batch.s_offset_at(first)


def _parts(batch: ProducerBatch, first: int, last: int) -> Iterator[tuple[ProducerBatch, int, int]]:
    if batch.pieces is None:
        yield batch, first, last - first + 1
        return
    for piece in sorted(batch.pieces, key=lambda one: one.first):
        low, high = max(first, piece.first), min(last, piece.last)
        if low <= high:
            start = piece.start - piece.first
            yield from _parts(piece.batch, start + low, start + high)


class RowIntake:
    """Intake of the rows of one part of a table."""

    def __init__(
        self, core: ProducerCore, topic: str, rows: RecordRows, company: int = WITH_OTHERS
    ) -> None:
        self._core = core
        self.topic = topic
        self.rows = rows
        self._company = company
        # Rows of one time that are being taken: places that begin at `_same_first` of `_places`.
        self._places = b""
        self._same = b""
        self._same_first = 0

    def append(self, partition: int, places: bytes, first: int, now_ms: int) -> SentRows | None:
        """Append as many rows as one batch takes; return None if there is no room: wait for it.

        `partition` -1 means the partition that records without a key go to.  With the same
        `places`, `first` never goes back.
        """
        core = self._core
        if core.sender.failure is not None:
            raise core.sender.failure.with_traceback(None)
        accumulator = core.accumulator
        rows = self.rows
        row = int.from_bytes(places[first * 4 : first * 4 + 4], "little")
        size = int(rows.body_bytes(row)) + HEAD_BYTES_MAX
        if not accumulator.has_room(size):
            return None
        known = self._known()
        chosen = core.partitioner.choose(known, None) if partition == ANY_PARTITION else partition
        queue = accumulator.queue(self.topic, chosen)
        if self._company != WITH_OTHERS:
            accumulator.close(queue)
        if self._company == APART_BY_TIME:
            places, first = self._of_one_time(places, first)
        batch_bytes = core.producer_settings.batch_bytes
        if queue.open is None or queue.open.size + size > batch_bytes:
            accumulator.open_batch(queue, now_ms)
        batch = queue.open
        assert batch is not None
        assert batch.builder is not None
        room = core.producer_settings.buffer_bytes - accumulator.buffered_bytes
        before = int(batch.builder.size)
        limit = min(batch_bytes, before + max(room, size))
        count = int(append_rows(batch.builder, rows, places, first, limit))
        size = int(batch.builder.size) - before
        if self._company != WITH_OTHERS:
            size += BATCH_OVERHEAD
        sent = _count_rows(accumulator, batch, count, size)
        if (first + count) * 4 < len(places) or self._company != WITH_OTHERS:
            # The next row did not fit, or nothing else may join these.
            accumulator.close(queue)
        return sent

    def _of_one_time(self, places: bytes, first: int) -> tuple[bytes, int]:
        """Return the places of rows with the same timestamp, and where `first` is among them.

        They are kept for the next batches: to look for their end again for each would cost the
        square of their number.
        """
        if places is not self._places or first * 4 >= self._same_first * 4 + len(self._same):
            time = self._time_at(places, first)
            end = first + 1
            while end * 4 < len(places) and self._time_at(places, end) == time:
                end += 1
            self._places, self._same_first = places, first
            self._same = places[first * 4 : end * 4]
        return self._same, first - self._same_first

    def _time_at(self, places: bytes, place: int) -> bytes:
        row = int.from_bytes(places[place * 4 : place * 4 + 4], "little")
        return self.rows.timestamps[row * 8 : row * 8 + 8]

    def _known(self) -> Topic:
        known = self._core.metadata.topic(self.topic)
        if known is None:
            raise UnknownTopic(f"topic {self.topic!r} is not there any more")
        return known


def _count_rows(accumulator: Accumulator, batch: ProducerBatch, count: int, size: int) -> SentRows:
    first = batch.count
    batch.count += count
    accumulator.appended += count
    batch.payload_bytes += size
    accumulator.buffered_bytes += size
    return SentRows(batch, first, batch.count - 1)
