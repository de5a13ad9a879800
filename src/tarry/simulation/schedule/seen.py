"""Records of the two logs of a scheduled partition, with the times at which they were seen.

An entry is released as a whole: it has some of the records of a batch, or all.  The note before
the batch says which; the name of an entry is the s-offset of its first record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tarry.records.batch import BatchHeader
from tarry.records.record import decode_records
from tarry.schedule.notes import EACH_ITS_OWN, ScheduledNote, read_note
from tarry.schedule.release_identity import NO_S_OFFSET, released_s_offset
from tarry.simulation.schedule.ledger import UNSAID

# Calendar of a leader at an append which the run has not seen.  It lies before all other times.
UNSEEN_MS: Final = 0

_BATCH_BYTES_MAX: Final = 1 << 30


class SightedBatch(NamedTuple):
    """Committed batch of a log, with the world's time and the leader's calendar when it was
    first seen."""

    data: bytes
    seen_ms: int
    wall_ms: int


class SeenRecord(NamedTuple):
    """Record of a committed batch."""

    offset: int
    value: bytes
    seen_ms: int
    wall_ms: int
    # s-offset of its entry; -1 if it was not parked.
    s_offset: int


def parked_records(batches: Iterable[SightedBatch]) -> list[SeenRecord]:
    """Return the records of a companion log with these batches, in their order."""
    found: list[SeenRecord] = []
    note: ScheduledNote | None = None
    for batch in batches:
        header = BatchHeader(batch.data, 0)
        if header.is_control:
            read = read_note(batch.data, 0, header)
            note = read if isinstance(read, ScheduledNote) else None
            continue
        base_offset = int(header.base_offset)
        entries = [base_offset] * int(header.record_count)
        if note is not None and note.due_ms == EACH_ITS_OWN:
            entries = [
                base_offset + place.first for place in note.places for _ in range(place.count)
            ]
        found += _records(batch, entries)
    return found


def released_records(batches: Iterable[SightedBatch]) -> list[SeenRecord]:
    """Return the records of a partition with these batches, in their order."""
    found: list[SeenRecord] = []
    for batch in batches:
        header = BatchHeader(batch.data, 0)
        s_offset = int(released_s_offset(header))
        entry = UNSAID if s_offset == NO_S_OFFSET else s_offset
        found += _records(batch, [entry] * int(header.record_count))
    return found


def _records(batch: SightedBatch, entries: list[int]) -> list[SeenRecord]:
    records = decode_records(batch.data, size_max=_BATCH_BYTES_MAX)
    return [
        SeenRecord(one.offset, one.value or b"", batch.seen_ms, batch.wall_ms, entry)
        for one, entry in zip(records, entries, strict=True)
    ]
