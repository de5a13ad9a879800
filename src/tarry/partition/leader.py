"""Checks by the leader of a produced batch before its append, in Kafka's order and with its codes.

A batch that can never be accepted gets INVALID_RECORD, INVALID_TIMESTAMP or MESSAGE_TOO_LARGE.
CORRUPT_MESSAGE is kept for bytes that changed on their way, since clients send those again
(docs/explanation/protocol-traps.md, 18).  Hot.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_be
from mypy_extensions import i64

from tarry.base import errors
from tarry.base.errors import StorageError
from tarry.base.limits import DUE_MS_MAX
from tarry.base.turn import Turn
from tarry.log.config import INT64_MAX, LogConfig
from tarry.partition.leadership import BatchWishes, ParkingDoor
from tarry.partition.paired_check import PairedCheck
from tarry.partition.producers import NO_WRITER, ProducerCheck
from tarry.partition.replicated_log import COMPANION, ReplicatedLog
from tarry.records.batch import (
    ATTRIBUTES,
    CODEC_MASK,
    HEADER_SIZE,
    MAX_TIMESTAMP,
    NO_TIMESTAMP,
    BatchCheck,
    BatchHeader,
    check_batch,
    decode_batch_header,
    with_log_append_time,
)
from tarry.records.record_limits import ANY_SIZE, check_record_limits
from tarry.wire.compression import ZSTD
from tarry.wire.reader import Window, window_of

# Lower limit of timestamps that allows every timestamp.
ANY_TIME: Final = -INT64_MAX
# First Produce version that may carry zstd (KIP-110).
PRODUCE_VERSION_OF_ZSTD: Final = 7


class AppendResult:
    """Result of the append of one batch.

    `log` has the batch, from this append or an earlier one: the partition's own log, or the
    companion log, in which the batch waits until it is due.  In the companion log `base_offset`
    is -1: the batch has no offset in the partition yet.  The answer waits until everything below
    `required_offset` counts in that log (0: it need not wait).
    """

    def __init__(self, error_code: int, message: str | None = None) -> None:
        self.error_code = error_code
        self.message = message
        self.log: ReplicatedLog | None = None
        self.base_offset = -1
        # Of a batch that was parked: its offset in the companion log.
        self.s_offset = -1
        self.required_offset = 0
        self.log_append_time_ms = NO_TIMESTAMP
        self.is_appended = False
        # True if a compressed batch was opened for the checks, which costs by the size of its
        # content.
        self.has_opened = False
        self.record_errors: list[tuple[int, str]] | None = None
        # How long the client is to pause.
        self.throttle_ms = 0


def append_as_leader(
    partition: ReplicatedLog,
    window: Window,
    acks: int,
    api_version: int,
    turn: Turn,
    writer: i64 = NO_WRITER,
) -> AppendResult:
    """Check one produced batch and append it to the log's tail, or return the error.

    `writer` is the connection that brought the batch, for the share of its producer ids.
    """
    if acks == -1 and partition.leadership.is_under_min_isr():
        return too_few_replicas(partition)
    check = check_batch(window, partition.config.max_message_bytes)
    if check.error_code == errors.NONE:
        refused = refusal(partition, check, api_version)
        if refused is not None:
            return refused
        check_limits(partition.config, check, turn.now_wall_ms)
    return append_checked(partition, check, turn, writer)


def append_checked(
    partition: ReplicatedLog,
    check: BatchCheck,
    turn: Turn,
    writer: i64,
    wishes: BatchWishes | None = None,
) -> AppendResult:
    """Append a checked batch, or return the error that its checks found.

    `wishes` are the due times and ids in the headers of its records, if these were read.
    """
    header = check.header
    parking = partition.leadership.parking
    if check.error_code != errors.NONE:
        result = AppendResult(check.error_code, check.message)
        result.record_errors = check.record_errors
        if check.error_code == errors.INVALID_TIMESTAMP and parking is not None:
            # The settings for due times may have changed since the first try was parked.
            assert header is not None
            known = _known_in_either(partition, header)
            if known is not None and known.error_code == errors.NONE:
                result = known
            else:
                parking.on_refused(header)
        result.has_opened = check.was_opened
        return result
    assert header is not None
    if parking is not None:
        result = _append_or_park(partition, parking, check, wishes, turn, writer)
    elif partition.config.has_delay:
        result = AppendResult(
            errors.KAFKA_STORAGE_ERROR,
            f"the log of the scheduled records of {partition.name} could not be made yet",
        )
    else:
        result = _append(partition, check.window, header, turn, writer)
    result.has_opened = check.was_opened
    return result


def _append_or_park(
    partition: ReplicatedLog,
    parking: ParkingDoor,
    check: BatchCheck,
    wishes: BatchWishes | None,
    turn: Turn,
    writer: i64,
) -> AppendResult:
    """Append a batch that is due now; park any other, whole, in the companion log."""
    companion = partition.leadership.logs[COMPANION]
    header = check.header
    assert header is not None
    known = _known_in_either(partition, header)
    if known is not None and known.error_code == errors.NONE:
        # A retry is a duplicate, even if the settings would refuse the batch now.
        return known
    note = parking.note_for(check, wishes, turn.now_wall_ms)
    if check.error_code != errors.NONE:
        if check.error_code == errors.KAFKA_STORAGE_ERROR:
            # The client sends the batch again, and must not have later ones accepted before.
            companion.producers.refuse(header)
        else:
            parking.on_refused(header)
        result = AppendResult(int(check.error_code), check.message)
        result.record_errors = check.record_errors
        return result
    if known is not None:
        return known
    # `note_for` may have replaced the batch by an opened one.
    header = check.header
    assert header is not None
    other = partition if note else companion
    if header.has_producer_id and (reason := other.undone_write):
        # The batch may be a retry of one that could not be written there.  If it were acknowledged
        # now, a crash could bring the first one back: the records would be there twice.
        companion.producers.refuse(header)
        return AppendResult(errors.KAFKA_STORAGE_ERROR, f"{reason}; send the batch again")
    if not note:
        return _add(partition, check.window, header, turn, writer)
    # A parked batch keeps its producer id and sequence, so that a retry of it is recognized.
    result = _add(companion, window_of(note), decode_batch_header(note, 0), turn, NO_WRITER)
    if result.error_code != errors.NONE:
        companion.producers.refuse(header)
        return result
    result = _add(companion, check.window, header, turn, writer)
    if result.error_code == errors.NONE:
        parking.on_parked(header, result.base_offset)
        result.throttle_ms = parking.throttle_ms()
        result.s_offset = result.base_offset
        result.base_offset = -1
    return result


def _known_in_either(partition: ReplicatedLog, header: BatchHeader) -> AppendResult | None:
    """Return the answer to a batch that either log has already, or that is out of sequence; None
    if the batch may be appended.
    """
    if header.producer_id < 0:
        return None
    companion = partition.leadership.logs[COMPANION]
    paired = PairedCheck(header)
    known = paired.run(partition.producers, companion.producers)
    if known.error_code != errors.NONE:
        return AppendResult(known.error_code, known.message)
    if not known.is_duplicate:
        return None
    result = _duplicate(companion if paired.is_in_second else partition, known)
    if paired.is_in_second:
        result.s_offset = result.base_offset
        result.base_offset = -1
        result.log_append_time_ms = NO_TIMESTAMP
    return result


def append_own(partition: ReplicatedLog, batches: list[bytes], turn: Turn) -> AppendResult:
    """Append batches that this broker built, without checking their records.

    Append all of them, or none if one is too large for the topic.  The result has the offset of
    the first record, and as `required_offset` the one behind the last.
    """
    if any(len(each) > partition.config.max_message_bytes for each in batches):
        return AppendResult(errors.MESSAGE_TOO_LARGE)
    if partition.log.flaw_offset >= 0:
        return AppendResult(errors.KAFKA_STORAGE_ERROR)
    result = AppendResult(errors.NONE)
    result.base_offset = partition.log.log_end_offset
    result.required_offset = partition.log.log_end_offset
    for each in batches:
        appended = _append(
            partition, window_of(each), decode_batch_header(each, 0), turn, NO_WRITER
        )
        result.error_code = appended.error_code
        if appended.error_code != errors.NONE:
            return result
        result.is_appended = True
        result.required_offset = appended.required_offset
    return result


def append_of_any_size(log: ReplicatedLog, batch: bytes, turn: Turn) -> AppendResult:
    """Append a batch of any size: a note of this broker, or records accepted before."""
    return _add(log, window_of(batch), decode_batch_header(batch, 0), turn, NO_WRITER)


def too_few_replicas(partition: ReplicatedLog) -> AppendResult:
    """Refuse a produce with acks=all while not enough replicas are in sync."""
    leadership = partition.leadership
    return AppendResult(
        errors.NOT_ENOUGH_REPLICAS,
        f"of {len(leadership.replicas)} replicas {len(leadership.isr)} are in sync and "
        f"min.insync.replicas is {partition.config.min_insync_replicas}",
    )


def check_limits(config: LogConfig, check: BatchCheck, wall_ms: int) -> None:
    """Set the error of `check` if a record is not allowed in this topic."""
    earliest, latest = ANY_TIME, INT64_MAX
    latest_setting = "message.timestamp.after.max.ms"
    if not config.is_log_append_time:
        earliest = wall_ms - config.message_timestamp_before_max_ms
        latest = _latest_time(config, wall_ms)
        if config.has_delay_by_timestamp:
            latest_setting = "delay.max.ms" if latest < DUE_MS_MAX else "the calendar"
    check_record_limits(
        check,
        earliest,
        latest,
        is_key_required=config.has_compaction,
        record_bytes_max=config.max_decompressed_message_bytes,
        latest_setting=latest_setting,
    )


def may_open(config: LogConfig, window: Window, wall_ms: int) -> bool:
    """Return True if `check_limits` may decompress this batch; reads only its header."""
    start = window.start
    if window.end - start < HEADER_SIZE or not window.data[start + ATTRIBUTES + 1] & CODEC_MASK:
        return False
    if config.has_compaction or config.max_decompressed_message_bytes < ANY_SIZE:
        return True
    if config.is_log_append_time:
        return False
    largest: int = read_i64_be(window.data, start + MAX_TIMESTAMP)
    is_late = largest > _latest_time(config, wall_ms)
    return wall_ms >= config.message_timestamp_before_max_ms or is_late


def _latest_time(config: LogConfig, wall_ms: int) -> int:
    """Return the latest timestamp that the topic allows a producer."""
    if config.has_delay_by_timestamp:
        return min(wall_ms + config.delay_max_ms, DUE_MS_MAX)
    # The setting's largest value means any time; the sum must not exceed INT64_MAX.
    return min(wall_ms + config.message_timestamp_after_max_ms, INT64_MAX)


def refusal(partition: ReplicatedLog, check: BatchCheck, api_version: int) -> AppendResult | None:
    """Return the refusal of a sound batch, whatever its records are; None if it may be appended."""
    header = check.header
    assert header is not None
    if header.size > partition.config.max_message_bytes:
        return AppendResult(
            errors.MESSAGE_TOO_LARGE,
            f"the batch has {header.size} bytes and max.message.bytes of "
            f"{partition.leadership.topic} is {partition.config.max_message_bytes}",
        )
    if header.codec == ZSTD and api_version < PRODUCE_VERSION_OF_ZSTD:
        return AppendResult(
            errors.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7 or later"
        )
    if header.is_transactional:
        return AppendResult(errors.INVALID_TXN_STATE, "this broker has no transactions yet")
    if partition.log.flaw_offset >= 0:
        return AppendResult(
            errors.KAFKA_STORAGE_ERROR,
            f"the log of {partition.name} has a flaw at offset {partition.log.flaw_offset}; "
            "restore it from a backup or delete the topic",
        )
    return None


def _append(
    partition: ReplicatedLog, window: Window, header: BatchHeader, turn: Turn, writer: i64
) -> AppendResult:
    if header.producer_id >= 0:
        known = partition.producers.check(header)
        if known.error_code != errors.NONE:
            return AppendResult(known.error_code, known.message)
        if known.is_duplicate:
            return _duplicate(partition, known)
    return _add(partition, window, header, turn, writer)


def _duplicate(log: ReplicatedLog, known: ProducerCheck) -> AppendResult:
    result = AppendResult(errors.NONE)
    result.log = log
    result.base_offset = known.base_offset
    result.required_offset = known.last_offset + 1
    result.log_append_time_ms = known.append_time_ms
    return result


def _add(
    log: ReplicatedLog, window: Window, header: BatchHeader, turn: Turn, writer: i64
) -> AppendResult:
    """Append a batch to the tail of this log; its sequence was checked."""
    result = AppendResult(errors.NONE)
    result.log = log
    if log.config.is_log_append_time:
        window = with_log_append_time(window, header, turn.now_wall_ms)
        result.log_append_time_ms = turn.now_wall_ms
    try:
        epoch = log.leadership.leader_epoch
        base_offset = log.log.append(window, header, epoch, turn.now_wall_ms)
    except StorageError as error:
        # The first append after a start reads indexes, which may fail.
        log.producers.refuse(header)
        return AppendResult(errors.KAFKA_STORAGE_ERROR, str(error))
    if header.producer_id >= 0:
        log.producers.update(header, base_offset, turn.now_ms, writer)
    result.base_offset = base_offset
    result.required_offset = base_offset + header.last_offset_delta + 1
    result.is_appended = True
    return result
