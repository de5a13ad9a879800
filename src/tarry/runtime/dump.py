"""Dump: the content of a log's files, row by row, as plain values.

It shows what Apache Kafka's DumpLogSegments shows: batches with their headers, on request their
records, the entries of both indexes, the producers of a snapshot.  It also shows the small files
that only Tarry has.  `decode` adds the meaning of records of groups and of the metadata log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from tarry.base.errors import CorruptData, TarryError
from tarry.broker.group_kinds import served_kinds
from tarry.cluster.state.records import decode_record as decode_metadata_record
from tarry.log.batch_walk import SCAN_BLOCK_BYTES, UNKNOWN_OFFSET, BatchWalk
from tarry.log.compaction.checkpoint import COMPACTION_FILE, decode_compaction
from tarry.log.identity import IDENTITY_FILE
from tarry.log.index.epoch_index import EPOCH_FILE, decode_epochs
from tarry.log.index.offset_index import OffsetIndex
from tarry.log.index.time_index import TimeIndex
from tarry.log.recovery.points import RECOVERY_POINTS_FILE, decode_recovery_points
from tarry.log.recovery.verification import BATCH_BYTES_MAX
from tarry.log.segment import SegmentRow
from tarry.partition.producers import ProducerStates
from tarry.records.batch import DELETE_HORIZON_BIT, BatchHeader, has_valid_crc
from tarry.records.record import Record, decode_records
from tarry.runtime.files import OsLogFile
from tarry.wire.compression import NAMES
from tarry.wire.crc32c import crc32c

Row = dict[str, Any]

_SEGMENT_FILE: Final = re.compile(
    r"(\d{20})\.(log|index|timeindex|snapshot)(\.\d+\.cleaned|\.deleted)?", re.ASCII
)
_GROUPS_TOPIC: Final = "__consumer_offsets"
_METADATA_TOPIC: Final = "__cluster_metadata"
_GROUP_KINDS: Final = served_kinds()


class Undumpable(TarryError):
    """File of an unknown kind."""


def is_dumpable(name: str) -> bool:
    """Return true if a file of this name can be shown."""
    return _SEGMENT_FILE.fullmatch(name) is not None or name in _SMALL_FILES


def dump_file(file: OsLogFile, *, records: bool, decode: bool) -> Iterator[Row]:
    """Yield the rows of a file, whose kind follows from its path; a row of the kind `flaw` ends the
    readable part.
    """
    name = os.path.basename(file.path)
    topic = os.path.basename(os.path.dirname(os.path.abspath(file.path))).rpartition("-")[0]
    match = _SEGMENT_FILE.fullmatch(name)
    if match is not None and match[2] == "log":
        return _segment_rows(file, _decoder(topic) if decode else None, records=records)
    content = file.read(0, file.size)
    if match is not None:
        return _FILES[match[2]](content, int(match[1]))
    if name in _SMALL_FILES:
        return _SMALL_FILES[name](content)
    raise Undumpable(
        f"{file.path} is no file of a log: name one of .log, .index, .timeindex, .snapshot, "
        f"{', '.join(_SMALL_FILES)}"
    )


# --- Segments


def _segment_rows(
    file: OsLogFile, decode: Callable[[Record], Row | None] | None, *, records: bool
) -> Iterator[Row]:
    walk = BatchWalk(file, 0, file.size, UNKNOWN_OFFSET)
    # Only a verification can tell whether a gap is damage.
    walk.has_gaps = True
    walk.block_bytes = SCAN_BLOCK_BYTES
    while (header := walk.next()) is not None:
        data = walk.batch_bytes(header)
        is_valid = has_valid_crc(data, 0, header)
        yield _batch_row(header, int(walk.batch_position), is_valid=is_valid)
        if not (records or decode) or not is_valid:
            continue
        try:
            for record in decode_records(data, size_max=BATCH_BYTES_MAX):
                yield _record_row(header, record, decode)
        except CorruptData as error:
            yield _flaw(str(error), int(header.base_offset), int(walk.batch_position))
    if walk.flaw:
        yield _flaw(walk.flaw, int(walk.flaw_offset), int(walk.flaw_position))


def _flaw(problem: str, offset: int = -1, position: int = -1) -> Row:
    return {"kind": "flaw", "offset": offset, "position": position, "problem": problem}


def _batch_row(header: BatchHeader, position: int, *, is_valid: bool) -> Row:
    has_horizon = header.attributes & DELETE_HORIZON_BIT != 0
    return {
        "kind": "batch",
        "base_offset": int(header.base_offset),
        "last_offset": int(header.last_offset),
        "records": int(header.record_count),
        "base_sequence": int(header.base_sequence),
        "last_sequence": int(header.last_sequence),
        "producer_id": int(header.producer_id),
        "producer_epoch": int(header.producer_epoch),
        "leader_epoch": int(header.leader_epoch),
        "is_transactional": header.is_transactional,
        "is_control": header.is_control,
        "delete_horizon_ms": int(header.base_timestamp) if has_horizon else None,
        "position": position,
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "max_timestamp": int(header.max_timestamp),
        "size": int(header.size),
        "magic": int(header.magic),
        "codec": _codec_name(int(header.codec)),
        "crc": int(header.crc),
        "is_valid": is_valid,
    }


def _codec_name(codec: int) -> str:
    return NAMES[codec] if codec < len(NAMES) else str(codec)


def _record_row(
    header: BatchHeader, record: Record, decode: Callable[[Record], Row | None] | None
) -> Row:
    delta = record.offset - int(header.base_offset)
    row: Row = {
        "kind": "record",
        "offset": record.offset,
        "timestamp": record.timestamp,
        "sequence": int(header.base_sequence) + delta if header.base_sequence >= 0 else -1,
        "key": record.key,
        "value": record.value,
        "headers": record.headers,
    }
    if decode is not None:
        row["decoded"] = decode(record)
    return row


def _decoder(topic: str) -> Callable[[Record], Row | None] | None:
    """Return the function that decodes the records which the broker itself writes to a topic."""
    return {_GROUPS_TOPIC: _group_row, _METADATA_TOPIC: _metadata_row}.get(topic)


def _group_row(record: Record) -> Row | None:
    decoded = None if record.key is None else _GROUP_KINDS.decode(record.key, record.value)
    return None if decoded is None else {"kind": type(decoded).__name__, **_plain(decoded)}


def _metadata_row(record: Record) -> Row | None:
    decoded = None if record.value is None else decode_metadata_record(record.value)
    return None if decoded is None else _plain(decoded)


def _plain(struct: msgspec.Struct) -> Row:
    plain = msgspec.to_builtins(struct)
    assert isinstance(plain, dict)
    return plain


# --- Files beside the segments


def _index_rows(content: bytes, base_offset: int) -> Iterator[Row]:
    index = OffsetIndex(base_offset)
    index.load(content, len(content) // int(index.entry_bytes()))
    for entry in range(int(index.count)):
        yield {
            "kind": "index",
            "offset": int(index.offset_at(entry)),
            "position": int(index.position_at(entry)),
        }
    yield from _rest(len(content) % int(index.entry_bytes()))


def _time_index_rows(content: bytes, base_offset: int) -> Iterator[Row]:
    index = TimeIndex(base_offset)
    index.load(content, len(content) // int(index.entry_bytes()))
    for entry in range(int(index.count)):
        yield {
            "kind": "timeindex",
            "timestamp": int(index.timestamp_at(entry)),
            "offset": int(index.offset_at(entry)),
        }
    yield from _rest(len(content) % int(index.entry_bytes()))


def _rest(size: int) -> Iterator[Row]:
    if size:
        yield _flaw(f"{size} bytes at its end are no entry")


def _snapshot_rows(content: bytes, offset: int) -> Iterator[Row]:
    producers = ProducerStates(1 << 31)
    data = content[4:]
    is_valid = len(content) >= 4 and crc32c(data) == int.from_bytes(content[:4], "big")
    if not is_valid or not producers.load_snapshot(data):
        yield _flaw("the CRC does not match, or it is no snapshot of producers", offset)
        return
    for producer_id, batch in producers.kept_batches():
        yield {
            "kind": "producer",
            "producer_id": producer_id,
            "producer_epoch": int(batch.epoch),
            "first_sequence": int(batch.base_sequence),
            "last_sequence": int(batch.last_sequence),
            "last_offset": int(batch.last_offset),
            "offset_delta": int(batch.last_offset - batch.base_offset),
            "timestamp": int(batch.timestamp),
        }


_FILES: Final[dict[str, Callable[[bytes, int], Iterator[Row]]]] = {
    "index": _index_rows,
    "timeindex": _time_index_rows,
    "snapshot": _snapshot_rows,
}

_DAMAGED: Final = "the CRC does not match"


def _epoch_rows(content: bytes) -> Iterator[Row]:
    epochs = decode_epochs(content)
    if epochs is None:
        yield _flaw(_DAMAGED)
        return
    for epoch, start_offset in zip(epochs.epochs, epochs.start_offsets, strict=True):
        yield {"kind": "epoch", "leader_epoch": epoch, "start_offset": start_offset}


def _recovery_point_rows(content: bytes) -> Iterator[Row]:
    points = decode_recovery_points(content)
    if points is None:
        yield _flaw(_DAMAGED)
        return
    for one in points.values():
        yield {
            "kind": "recovery point",
            "directory": one.directory,
            "topic_id": one.identity,
            "log_start_offset": one.log_start_offset,
            "recovery_offset": one.recovery_offset,
            "snapshot_offset": one.snapshot_offset if one.snapshot_offset >= 0 else None,
            "high_watermark": one.high_watermark_hint if one.high_watermark_hint >= 0 else None,
            "segments": [_segment_row(row) for row in one.segments],
        }


def _segment_row(row: SegmentRow) -> Row:
    return {
        "base_offset": row.base_offset,
        "size": row.size,
        "max_timestamp": row.max_timestamp,
        "offset_entries": row.offset_entries,
        "time_entries": row.time_entries,
    }


def _compaction_rows(content: bytes) -> Iterator[Row]:
    found = decode_compaction(content)
    if found is None:
        yield _flaw(_DAMAGED)
        return
    yield {
        "kind": "compaction",
        "generation": found.generation,
        "cleaned_offset": found.cleaned_offset,
        "end_offset": found.end_offset,
        "segments": [_segment_row(row) for row in found.rows],
    }


def _identity_rows(content: bytes) -> Iterator[Row]:
    for line in content.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(": ")
        yield {"kind": "identity", "field": key, "text": value}


_SMALL_FILES: Final[dict[str, Callable[[bytes], Iterator[Row]]]] = {
    EPOCH_FILE: _epoch_rows,
    RECOVERY_POINTS_FILE: _recovery_point_rows,
    COMPACTION_FILE: _compaction_rows,
    IDENTITY_FILE: _identity_rows,
}
