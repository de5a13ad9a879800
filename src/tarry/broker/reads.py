"""Reading partitions for a fetch: limits, epochs, and what one partition answers.

A fetch is read when it comes and, if it waited, once more when its wait ends.  The reader is a
consumer: it sees records below the high watermark.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.log.segments import LogPosition
from tarry.partition.state import Partition
from tarry.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from tarry.records.batch import BatchHeader, decode_batch_header
from tarry.wire.compression import ZSTD
from tarry.wire.reader import Window, window_of
from tarry.wire.writer import ChunkList

# A fetch below this version cannot name zstd (KIP-110).
FETCH_VERSION_OF_ZSTD = 10
VERSION_OF_LEADERS = 12
EMPTY: Window = window_of(b"")


class FetchStatus:
    """One partition that a fetch asks for."""

    def __init__(self, partition: Partition | None, asked: FetchPartition, gone_code: int) -> None:
        self.partition = partition
        self.asked = asked
        # What is answered if the partition is not here, or no longer.
        self.gone_code = gone_code
        # Where the fetch offset lies; looked up when there first is something to read.
        self.start: LogPosition | None = None

    def leadership_error(self) -> int:
        """The error that this partition's leadership gives the fetch now."""
        partition = self.partition
        if partition is None or partition.is_closed:
            return self.gone_code
        return epoch_error(partition, self.asked.current_leader_epoch)


class FetchTopic:
    """The partitions of one topic in a fetch, in the order asked."""

    def __init__(self, topic: str, topic_id: bytes) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.statuses: list[FetchStatus] = []


class FetchLimits:
    """What a fetch may return at most, and on which terms."""

    def __init__(self, max_bytes: int, api_version: int, *, is_committed: bool) -> None:
        self.max_bytes = max_bytes
        self.api_version = api_version
        self.is_committed = is_committed


class FetchReading:
    """The outcome of one reading: the response, its record bytes, and whether to wait is vain."""

    def __init__(self, response: FetchResponse) -> None:
        self.response = response
        self.size: i64 = 0
        self.has_error = False


def epoch_error(partition: Partition, current_leader_epoch: int) -> int:
    """KIP-320: a client that knows another leader epoch must look again before it reads."""
    if current_leader_epoch < 0 or current_leader_epoch == partition.leader_epoch:
        return errors.NONE
    if current_leader_epoch < partition.leader_epoch:
        return errors.FENCED_LEADER_EPOCH
    return errors.UNKNOWN_LEADER_EPOCH


def read_topics(topics: list[FetchTopic], limits: FetchLimits) -> FetchReading:
    """Read every partition asked for, within the limits; the first batch even if too large."""
    response = FetchResponse()
    reading = FetchReading(response)
    left: i64 = limits.max_bytes
    for topic in topics:
        answers: list[PartitionData] = []
        for status in topic.statuses:
            answer = PartitionData(partition_index=status.asked.partition)
            answers.append(answer)
            size = _read_status(status, answer, left, limits, at_least_one=reading.size == 0)
            if size < 0:
                reading.has_error = True
                continue
            reading.size += size
            left = max(left - size, 0)
        response.responses.append(
            FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=answers)
        )
    return reading


def _read_status(
    status: FetchStatus,
    answer: PartitionData,
    left: i64,
    limits: FetchLimits,
    *,
    at_least_one: bool,
) -> i64:
    """Fill in one partition's answer; the size of its records, or -1 if waiting is vain."""
    error_code = status.leadership_error()
    if error_code != errors.NONE:
        _refuse(answer, error_code, status.partition, limits.api_version)
        return -1
    partition = status.partition
    assert partition is not None
    offset = status.asked.fetch_offset
    log = partition.log
    if offset < log.log_start_offset or offset > log.log_end_offset:
        _refuse(answer, errors.OFFSET_OUT_OF_RANGE, None)
        return -1
    if log.has_flaw_before(offset):
        # Also at the end, where nothing is missing yet: nothing will ever come there.
        _refuse(answer, errors.KAFKA_STORAGE_ERROR, None)
        return -1
    answer.high_watermark = partition.high_watermark
    answer.last_stable_offset = partition.last_stable_offset()
    answer.log_start_offset = log.log_start_offset
    answer.preferred_read_replica = -1
    answer.aborted_transactions = [] if limits.is_committed else None
    # An empty record set is zero bytes, never null: librdkafka refuses null
    # (docs/explanation/protocol-traps.md, 9).
    answer.records = EMPTY
    if _diverges(status, partition, answer):
        return -1
    if offset >= partition.high_watermark:
        return 0
    size_max: i64 = min(left, status.asked.partition_max_bytes)
    return _read_records(partition, offset, answer, size_max, limits, at_least_one=at_least_one)


def _read_records(
    partition: Partition,
    offset: int,
    answer: PartitionData,
    size_max: i64,
    limits: FetchLimits,
    *,
    at_least_one: bool,
) -> i64:
    if size_max <= 0 and not at_least_one:
        return 0
    try:
        region = partition.log.read(
            offset, partition.high_watermark_position, max(size_max, 0), at_least_one
        )
        if region is None:
            return 0
        if limits.api_version < FETCH_VERSION_OF_ZSTD and _holds_zstd(
            region.file.read(region.position, region.size)
        ):
            _refuse(answer, errors.UNSUPPORTED_COMPRESSION_TYPE, None)
            return -1
    except (StorageError, CorruptData):
        _refuse(answer, errors.KAFKA_STORAGE_ERROR, None)
        return -1
    answer.records = ChunkList([region], region.size)
    return region.size


def _refuse(
    answer: PartitionData, error_code: int, partition: Partition | None, api_version: int = 0
) -> None:
    answer.error_code = error_code
    answer.high_watermark = -1
    answer.last_stable_offset = -1
    answer.log_start_offset = -1
    answer.preferred_read_replica = -1
    answer.aborted_transactions = None
    answer.records = EMPTY
    if partition is not None and not partition.is_closed and api_version >= VERSION_OF_LEADERS:
        # KIP-951: tell the client the leader that it should know.
        answer.current_leader = LeaderIdAndEpoch(
            leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
        )


def _diverges(status: FetchStatus, partition: Partition, answer: PartitionData) -> bool:
    """KIP-595: a reader whose last epoch ended before its offset read what is no more."""
    last_epoch = status.asked.last_fetched_epoch
    if last_epoch < 0:
        return False
    epoch, end_offset = partition.log.end_offset_for_epoch(last_epoch)
    if epoch < 0:
        _refuse(answer, errors.OFFSET_OUT_OF_RANGE, None)
        return True
    if epoch == last_epoch and end_offset >= status.asked.fetch_offset:
        return False
    answer.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return True


def _holds_zstd(data: bytes) -> bool:
    position: i64 = 0
    while position + 61 <= len(data):
        header: BatchHeader = decode_batch_header(data, position)
        if header.codec == ZSTD:
            return True
        position += header.size
    return False
