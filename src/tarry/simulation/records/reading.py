"""Reading of an answer to Fetch, and the checks that every reader makes at once.

The first batch holds the offset that was asked for, each batch follows the one before it without
a gap, and nothing lies at or past the high watermark of the same answer.  Whole batches that were
read before are compared byte by byte and not decoded again.  A batch that does not match its CRC is
not handed out, nor any batch behind it: the reader fetches from there again, as real clients do.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData, error_name
from tarry.protocol.messages.fetch import PartitionData
from tarry.records.batch import decode_batch_header, has_valid_crc
from tarry.records.record import decode_records
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.history import Place, ReadRecord, Watermarks, place_name
from tarry.simulation.exchange import ObservedExchange
from tarry.wire.reader import Window

_RECORD_BYTES_MAX: Final = 1 << 20

# Errors that a reader may get in a world with faults; any other error is a violation.
_EXPECTED: Final = (
    errors.NONE,
    errors.OFFSET_OUT_OF_RANGE,
    errors.UNKNOWN_TOPIC_ID,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.FENCED_LEADER_EPOCH,
    errors.KAFKA_STORAGE_ERROR,
)


def read_answer(
    context: RunContext,
    place: Place,
    fetch_offset: int,
    answer: PartitionData,
    exchange: ObservedExchange,
    reader: str = "",
) -> int:
    """Note one partition's answer in the history; return the offset to go on from.

    If `reader` is given, the records are noted as handed out to it.
    """
    if answer.error_code != errors.NONE:
        if answer.error_code not in _EXPECTED:
            context.history.violate(
                f"a fetch from offset {fetch_offset} of {place_name(place)} got "
                f"{error_name(answer.error_code)}"
            )
        if answer.error_code == errors.FENCED_LEADER_EPOCH:
            context.leader_epochs.pop(place, None)
        return fetch_offset
    diverging = answer.diverging_epoch
    if diverging is not None and diverging.end_offset >= 0:
        context.history.violate(
            f"a fetch from offset {fetch_offset} of {place_name(place)} was told that epoch "
            f"{diverging.epoch} ended at {diverging.end_offset}, "
            "though the record before it had been read"
        )
        return fetch_offset
    watermarks = Watermarks(place, exchange)
    watermarks.high_watermark = answer.high_watermark
    watermarks.log_start_offset = answer.log_start_offset
    context.history.watermarks.append(watermarks)
    if not isinstance(answer.records, Window):
        context.history.violate(f"the records of {place_name(place)} are null, not empty")
        return fetch_offset
    data = answer.records.to_bytes()
    try:
        return _read_batches(context, place, fetch_offset, answer.high_watermark, data, reader)
    except CorruptData as error:
        context.history.violate(
            f"a fetch from offset {fetch_offset} of {place_name(place)} got bytes that are no "
            f"batch: {error}"
        )
        return fetch_offset


def _read_batches(
    context: RunContext,
    place: Place,
    fetch_offset: int,
    high_watermark: int,
    data: bytes,
    reader: str,
) -> int:
    history = context.history
    position = 0
    next_offset = -1
    while position < len(data):
        header = decode_batch_header(data, position)
        batch = data[position : position + header.size]
        if len(batch) < header.size:
            history.violate(f"{place_name(place)}: a batch is cut at {len(batch)} bytes")
            break
        if not has_valid_crc(batch, 0, header):
            context.take_damage(f"the batch at offset {header.base_offset} of {place_name(place)}")
            break
        if next_offset < 0:
            if not header.base_offset <= fetch_offset <= header.last_offset:
                history.violate(
                    f"a fetch from offset {fetch_offset} of {place_name(place)} got the batch "
                    f"{header.base_offset} to {header.last_offset}"
                )
        elif header.base_offset != next_offset:
            history.violate(
                f"offset {next_offset} of {place_name(place)} is followed by {header.base_offset}"
            )
        if header.last_offset >= high_watermark:
            history.violate(
                f"offset {header.last_offset} of {place_name(place)} was read, and the high "
                f"watermark is {high_watermark}"
            )
        if not history.is_known_batch(place, header.base_offset, batch):
            for record in decode_records(batch, size_max=_RECORD_BYTES_MAX):
                value = record.value if record.value is not None else b""
                history.read(
                    place, ReadRecord(record.offset, record.timestamp, value, header.leader_epoch)
                )
        if header.record_count != header.last_offset - header.base_offset + 1:
            history.violate(
                f"the batch {header.base_offset} to {header.last_offset} of {place_name(place)}, "
                f"which is not compacted, has {header.record_count} records"
            )
        next_offset = header.last_offset + 1
        if reader:
            history.hand_out(reader, place, max(header.base_offset, fetch_offset), next_offset)
        position += header.size
    return max(next_offset, fetch_offset)
