"""Identity of a released batch: which body of the companion log it is.

The record in the partition is the commit of a release.  Therefore its batch says which body it is:
the producer id is -1, and base sequence and producer epoch are the s-offset, the body's offset in
the companion log: 31 bits and 15 bits.  No client writes such a batch.  KafkaJS without idempotence
sends producer id -1 with the epoch 0 and the sequence 0, which would be s-offset 0.  No body has
this offset: it is that of a companion log's first note.

A recurring body is released again and again.  The epoch of such a release has its sign bit set, so
that an old version of Tarry, which knows no recurring bodies, does not take the first instance for
the end of its body.  The instance's due time is its record's timestamp; the batch's base timestamp
has it even where a topic stamps records when they are appended.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.records.batch import NO_PRODUCER_ID, SEQUENCE_MAX, BatchHeader
from tarry.records.numbering import numbered

_SEQUENCE_BITS: Final = 31
# The epoch's sign bit.
_INSTANCE: Final = -0x8000
# Largest s-offset: a million appends a second reach it after two years.
S_OFFSET_MAX: Final = (1 << 46) - 1

# S-offset of a batch that is no release.
NO_S_OFFSET: Final = -1


def released_batch(body: bytes, s_offset: i64) -> bytes:
    """Return the batch that a body becomes when it is released; its records are not opened.

    The partition's log sets base offset and leader epoch.
    """
    assert s_offset > 0
    assert s_offset <= S_OFFSET_MAX
    return numbered(body, NO_PRODUCER_ID, s_offset >> _SEQUENCE_BITS, s_offset & SEQUENCE_MAX)


def instance_batch(record: bytes, s_offset: i64) -> bytes:
    """Return the batch that an instance of a recurring body becomes when it is released."""
    assert s_offset > 0
    assert s_offset <= S_OFFSET_MAX
    epoch: i64 = (s_offset >> _SEQUENCE_BITS) + _INSTANCE
    # Clients without idempotence send producer id -1 with the epoch -1.
    assert epoch < -1
    return numbered(record, NO_PRODUCER_ID, epoch, s_offset & SEQUENCE_MAX)


def is_instance(header: BatchHeader) -> bool:
    """Return whether a released batch is an instance of a recurring body."""
    return int(header.producer_epoch) < 0


def released_s_offset(header: BatchHeader) -> i64:
    """Return the s-offset of the body that this batch has released; `NO_S_OFFSET` if it is no
    release."""
    if header.producer_id != NO_PRODUCER_ID or header.is_control:
        return NO_S_OFFSET
    epoch: i64 = header.producer_epoch
    sequence: i64 = header.base_sequence
    if epoch < -1 and sequence >= 0:
        return ((epoch - _INSTANCE) << _SEQUENCE_BITS) | sequence
    if epoch < 0 or sequence < 0 or (epoch == 0 and sequence == 0):
        return NO_S_OFFSET
    return (epoch << _SEQUENCE_BITS) | sequence


def release_fault(header: BatchHeader) -> str:
    """Return why a client's batch is refused that would pass for a release; "" if it would not."""
    if released_s_offset(header) == NO_S_OFFSET:
        return ""
    return (
        f"producer id -1 with the epoch {header.producer_epoch} and the sequence "
        f"{header.base_sequence}: in a topic with scheduled records such a batch is a released one"
    )
