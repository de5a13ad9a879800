"""Gap batches: what a consumer of scheduled records gets in place of batches that wait no more.

A consumer goes on behind the last offset of a batch.  An empty one, as compaction leaves it, is not
enough where an answer has no other: librdkafka takes it for a batch that had no room, asks for ever
more bytes and then gives up.  Clients skip a control batch of a type that they do not know.  Its
one record has the last offset too, since kafkajs goes by the records.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from tarry.records.batch import decode_batch_header
from tarry.records.builder import NO_HEADERS, write_bytes
from tarry.records.rebuild import RebuiltBatch
from tarry.schedule.notes import GapNote
from tarry.wire.varint import write_varint

# Offsets that one batch can stand for.
GAP_OFFSETS_MAX: Final = 2**31 - 1


def gap_batch(first: i64, last: i64, leader_epoch: i64, now_wall_ms: i64) -> bytes:
    """Return a batch without a record for consumers, from one offset to another."""
    note = GapNote()
    header = decode_batch_header(note.encode(now_wall_ms), 0)
    header.base_offset = first
    header.last_offset_delta = last - first
    header.leader_epoch = leader_epoch
    body = BytesWriter()
    write_varint(body, header.last_offset_delta)
    write_bytes(body, note.key())
    write_bytes(body, note.value())
    body.write(NO_HEADERS)
    fields = body.getvalue()
    record = BytesWriter()
    # Before the offset stand the attributes and the time, which is the batch's: a zero each.
    write_varint(record, 2 + len(fields))
    record.append(0)
    record.append(0)
    record.write(fields)
    rebuilt = RebuiltBatch(header)
    rebuilt.record_count = 1
    rebuilt.content = record.getvalue()
    return rebuilt.encode()
