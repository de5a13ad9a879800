"""Finished batches: rows of tables become encoded record batches by partition, to be kept in files.

The batches have no producer yet (`records/numbering`).  Rows of a partition keep their order.  Rows
without a key go to one partition until its batch is full, and then to the next partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tarry.client.arrow.outgoing_rows import OutgoingRows
from tarry.client.errors import RecordTooLarge
from tarry.client.settings import ProducerSettings
from tarry.records.builder import BatchBuilder
from tarry.records.from_columns import HEAD_BYTES_MAX, RecordRows, append_rows
from tarry.wire.compression import GZIP, NONE


class FinishedBatch(NamedTuple):
    """Batch of one partition, encoded."""

    partition: int
    record_count: int
    timestamp_max: int
    data: bytes


class BatchPacker:
    """Packer of the rows of one topic; `drain` returns the batches that are not full at the end."""

    def __init__(
        self, topic: str, partition_count: int, settings: ProducerSettings, batch_bytes: int
    ) -> None:
        self.topic = topic
        self.partition_count = partition_count
        self._settings = settings
        self._batch_bytes = batch_bytes
        self._open: dict[int, BatchBuilder] = {}
        # Partition that rows without a key go to at present.
        self.any_partition = 0
        # Size above which a batch is compressed even if the settings have no codec; None to
        # compress none.
        self.plain_bytes_max: int | None = None
        # Most records of a batch; None: only its bytes are bounded.
        self.records_max: int | None = None

    def pack(self, table: object, now_wall_ms: int) -> Iterator[FinishedBatch]:
        """Pack the rows of a table, and yield the batches that have become full."""
        rows = OutgoingRows(table)
        rows.check_partitions(self.partition_count)
        for part in rows.parts(now_wall_ms):
            self._check_size(part)
            yield from self._pack_part(part)

    def drain(self) -> Iterator[FinishedBatch]:
        """Yield the batches that are not full."""
        for partition in sorted(self._open):
            yield self._finish(partition)

    def _check_size(self, part: RecordRows) -> None:
        size_max = self._settings.request_bytes_max
        row, size = part.largest()
        if size > size_max:
            raise RecordTooLarge(
                f"topic {self.topic}: row {row} of a part of the table takes {size} bytes as a "
                f"record, and max.request.size is {size_max}"
            )

    def _pack_part(self, part: RecordRows) -> Iterator[FinishedBatch]:
        count = self.partition_count
        for index, places in enumerate(part.split(count, self._settings.partitioner == "crc32")):
            first = 0
            while first * 4 < len(places):
                partition = index if index < count else self.any_partition
                builder = self._open.get(partition)
                if builder is None:
                    builder = self._open[partition] = BatchBuilder()
                taken = self._with_room(builder, places, first)
                first += int(append_rows(builder, part, taken, first, self._batch_bytes))
                is_full = (
                    builder.size + HEAD_BYTES_MAX >= self._batch_bytes
                    or builder.count == self.records_max
                )
                if first * 4 < len(places) or is_full:
                    # The batch is full, or has no room for the next row.
                    yield self._finish(partition)
                    if index == count:
                        self.any_partition = (partition + 1) % count

    def _with_room(self, builder: BatchBuilder, places: bytes, first: int) -> bytes:
        """Return the places of rows up to the last one that `records_max` leaves room for."""
        if self.records_max is None:
            return places
        return places[: (first + self.records_max - int(builder.count)) * 4]

    def _finish(self, partition: int) -> FinishedBatch:
        builder = self._open.pop(partition)
        data = builder.build(self._settings.codec, level=self._settings.codec_level)
        largest = self.plain_bytes_max
        if largest is not None and len(data) > largest and self._settings.codec == NONE:
            data = builder.build(GZIP)
        return FinishedBatch(partition, int(builder.count), int(builder.max_timestamp), data)
