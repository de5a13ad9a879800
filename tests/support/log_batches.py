"""The batches of a log, as its readers get them."""

from __future__ import annotations

from collections.abc import Iterator

from tarry.log.log import Log
from tarry.records.batch import BatchHeader, decode_batch_header

_EVERYTHING = 1 << 30


def batches_of(log: Log, offset: int = -1) -> Iterator[tuple[BatchHeader, bytes]]:
    """Each written batch, from the one that holds `offset` or follows it."""
    offset = max(offset, log.log_start_offset)
    end = log.end_position()
    while (region := log.read(offset, end, _EVERYTHING, True)) is not None:
        data = region.file.read(region.position, region.size)
        position = 0
        while position < len(data):
            header = decode_batch_header(data, position)
            yield header, data[position : position + header.size]
            position += header.size
            offset = int(header.last_offset) + 1
