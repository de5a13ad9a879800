"""Gap batches: what a consumer gets in place of batches that an answer leaves out.

A consumer continues behind the last offset of a batch.  An empty batch, as compaction leaves it, is
not enough if an answer has no other (docs/explanation/protocol-traps.md, 27).  Clients skip a
control batch of an unknown type.  Its one record has the last offset too, because kafkajs takes the
offset from the records.  Hot.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from tarry.records.batch import CONTROL_BIT, decode_batch_header
from tarry.records.builder import NO_HEADERS, BatchBuilder, write_bytes
from tarry.records.rebuild import RebuiltBatch
from tarry.wire.varint import write_varint

# Number of offsets that one gap batch can cover.
GAP_OFFSETS_MAX: Final = 2**31 - 1


def gap_batch(
    first: i64, last: i64, *, leader_epoch: i64, timestamp: i64, key: bytes, value: bytes
) -> bytes:
    """Return a control batch that covers the offsets from `first` to `last`."""
    builder = BatchBuilder()
    builder.append(timestamp, key, value)
    header = decode_batch_header(builder.build(attributes=CONTROL_BIT), 0)
    header.base_offset = first
    header.last_offset_delta = last - first
    header.leader_epoch = leader_epoch
    body = BytesWriter()
    # Attributes, and the difference to the batch's time.
    body.append(0)
    body.append(0)
    write_varint(body, header.last_offset_delta)
    write_bytes(body, key)
    write_bytes(body, value)
    body.write(NO_HEADERS)
    fields = body.getvalue()
    record = BytesWriter()
    write_varint(record, len(fields))
    record.write(fields)
    rebuilt = RebuiltBatch(header)
    rebuilt.record_count = 1
    rebuilt.content = record.getvalue()
    return rebuilt.encode()
