"""Checkers of records: acknowledged and read records stay, and times lead to their records."""

from __future__ import annotations

from tarry.simulation.clients.history import (
    ACKNOWLEDGED,
    MAX_TIMESTAMP,
    FinalPartition,
    ReadRecord,
    RunHistory,
    TimeLookup,
    place_name,
)


def check_reads(history: RunHistory) -> list[str]:
    """Check that each record read was sent, and that no later crash takes it back (A27, A4)."""
    sentences: list[str] = []
    sent = {
        (batch.place, record.value): record for batch in history.batches for record in batch.records
    }
    for place, reads in history.reads.items():
        final = history.finals.get(place)
        for offset in sorted(reads):
            record = reads[offset]
            if (place, record.value) not in sent:
                sentences.append(
                    f"offset {offset} of {place_name(place)} holds {record.value[:40]!r}, which "
                    "nobody sent there"
                )
            if final is not None and offset >= final.end_offset:
                sentences.append(
                    f"offset {offset} of {place_name(place)} was read and is gone: the partition "
                    f"ends at {final.end_offset}"
                )
                break
    return sentences


def check_acknowledged(history: RunHistory) -> list[str]:
    """Check that each acknowledged record is at its offset at the end (A1, A2, A13, A14, A23)."""
    sentences: list[str] = []
    for batch in history.batches:
        final = history.finals.get(batch.place)
        if batch.outcome != ACKNOWLEDGED or final is None:
            continue
        reads = history.reads.get(batch.place, {})
        for delta, sent in enumerate(batch.records):
            offset = batch.base_offset + delta
            if offset < final.log_start_offset:
                continue
            found = reads.get(offset)
            if offset >= final.end_offset or found is None:
                sentences.append(
                    f"{sent.value[:20]!r} was acknowledged at offset {offset} of "
                    f"{place_name(batch.place)} and is not there"
                )
                break
            if found.value != sent.value:
                sentences.append(
                    f"{sent.value[:20]!r} was acknowledged at offset {offset} of "
                    f"{place_name(batch.place)}, which holds {found.value[:20]!r}"
                )
                break
    return sentences


def check_handed_out(history: RunHistory) -> list[str]:
    """Check that a reader gets every record between two that it got.

    The topics are not compacted, and no transaction is aborted.
    """
    return [
        f"{reader} was handed out offset {end} of {place_name(place)} right after {start - 1}"
        for (reader, place), runs in history.handed_out.items()
        for run in runs
        for start, end in run.gaps
    ]


def check_times(history: RunHistory) -> list[str]:
    """Check that ListOffsets for a time finds the first record at or after it, or the newest."""
    sentences: list[str] = []
    for lookup in history.time_lookups:
        final = history.finals.get(lookup.place)
        if final is None:
            continue
        if lookup.asked == MAX_TIMESTAMP and 0 <= lookup.offset < final.log_start_offset:
            # A batch whose first records were deleted still counts with all its records.
            continue
        expected = _first_from(history, final, lookup)
        found = None if lookup.offset < 0 else lookup.offset
        wanted = None if expected is None else expected.offset
        if found != wanted:
            sentences.append(
                f"ListOffsets of {place_name(lookup.place)} for time {lookup.asked} gave offset "
                f"{found}, and it is {wanted}"
            )
        elif expected is not None and lookup.timestamp != expected.timestamp:
            sentences.append(
                f"ListOffsets of {place_name(lookup.place)} for time {lookup.asked} gave time "
                f"{lookup.timestamp}, and the record has {expected.timestamp}"
            )
    return sentences


def _first_from(
    history: RunHistory, final: FinalPartition, lookup: TimeLookup
) -> ReadRecord | None:
    reads = history.reads.get(lookup.place, {})
    if lookup.asked == MAX_TIMESTAMP:
        kept = [at for at in sorted(reads) if final.log_start_offset <= at < final.end_offset]
        return max((reads[at] for at in kept), key=lambda record: record.timestamp, default=None)
    for offset in range(final.log_start_offset, final.end_offset):
        record = reads.get(offset)
        if record is not None and record.timestamp >= lookup.asked:
            return record
    return None
