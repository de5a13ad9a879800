"""Reading partitions for a fetch: what it asks for, on which terms, and what is there.

`FetchStatus.look` says of one partition why it is refused or how many bytes it adds.  The first
look at a fetch and the condition of one that waits go by it, and the answer by the same refusals.
The answer is built once, when the fetch ends.  Hot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mypy_extensions import i64

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.broker.request import RequestContext
from tarry.log.segments import LogPosition
from tarry.partition.state import COMMITTED_CONSUMER, CONSUMER, Partition, PartitionKey, ReaderKind
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
FETCH_VERSION_OF_ZSTD: Final = 10
VERSION_OF_LEADERS: Final = 12
READ_COMMITTED: Final = 1
EMPTY: Window = window_of(b"")

# What a look finds instead of bytes.  Either ends the fetch.
REFUSED: Final = -1
# A read stays in one segment, and the reader's end lies in a later one: waiting adds nothing.
COMPLETE: Final = -2


def reader_of(isolation_level: int) -> ReaderKind:
    """Return the kind of consumer that asks with this isolation level."""
    return COMMITTED_CONSUMER if isolation_level == READ_COMMITTED else CONSUMER


class FetchLimits:
    """Terms of a fetch: for which reader, and how little and how much it may return."""

    def __init__(
        self, reader: ReaderKind, min_bytes: int, max_bytes: int, api_version: int
    ) -> None:
        self.reader = reader
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.api_version = api_version


class FetchStatus:
    """Status of one partition that a fetch asks for."""

    def __init__(self, partition: Partition | None, asked: FetchPartition, gone_code: int) -> None:
        self.partition = partition
        self.asked = asked
        # What is answered if the partition is not here, or no longer.
        self.gone_code = gone_code
        # Why the last look found it refused: an error, or where the reader's last epoch ended.
        self.error_code: int = errors.NONE
        self.diverging: EpochEndOffset | None = None
        # Where the fetch offset lies in the segment of the reader's end; looked up when there
        # first is something to read, and true as long as that segment is the end's.
        self.start: LogPosition | None = None

    def look(self, limits: FetchLimits, *, is_first: bool) -> i64:
        """Return the bytes that the partition adds to the fetch now, REFUSED or COMPLETE.

        `is_first`: no partition before it has any, so its first batch is returned whatever its
        size.
        """
        if self.is_refused():
            return REFUSED
        partition = self.partition
        assert partition is not None
        offset = self.asked.fetch_offset
        end = partition.readable_end(limits.reader)
        if offset >= end.offset:
            return 0
        if offset < end.segment_base_offset:
            return COMPLETE
        log = partition.log
        limit: i64 = max(self.asked.partition_max_bytes, 0)
        try:
            start = self.start
            if start is None or start.segment_base_offset != end.segment_base_offset:
                start = log.position_of(offset)
                if start.segment_base_offset != end.segment_base_offset:
                    return COMPLETE
                self.start = start
            # No batch is left from the offset on, if compaction took the last: nothing to read.
            size: i64 = max(end.position - start.position, 0)
            if limit < size and is_first and limit < limits.min_bytes:
                size_max: i64 = min(limit, max(limits.max_bytes, 0))
                region = log.read(offset, end, size_max, True, start)
                return max(limit, region.size) if region is not None else 0
        except (StorageError, CorruptData):
            self.error_code = errors.KAFKA_STORAGE_ERROR
            return REFUSED
        return min(size, limit)

    def is_refused(self) -> bool:
        """Return whether the partition is refused to this fetch now; say why in the attributes."""
        self.error_code = self._error()
        return self.error_code != errors.NONE or self.diverging is not None

    def _error(self) -> int:
        """Return the error for this fetch; without one, `diverging` may have been set."""
        # Not in `is_refused`: compiled, that would believe its own None after this call.
        self.diverging = None
        partition = self.partition
        if partition is None or partition.is_closed:
            return self.gone_code
        if partition.gone_code != errors.NONE:
            return partition.gone_code
        if partition.door.is_lease_over and not partition.may_act():
            return errors.NOT_LEADER_OR_FOLLOWER
        asked = self.asked
        error_code = partition.epoch_error(asked.current_leader_epoch)
        if error_code != errors.NONE:
            return error_code
        offset = asked.fetch_offset
        log = partition.log
        if offset < log.log_start_offset or offset > log.log_end_offset:
            return errors.OFFSET_OUT_OF_RANGE
        if log.has_flaw_before(offset):
            # Also at the end, where nothing is missing yet: nothing will ever come there.
            return errors.KAFKA_STORAGE_ERROR
        last_epoch = asked.last_fetched_epoch
        if last_epoch < 0:
            return errors.NONE
        # KIP-595: a reader whose last epoch ended before its offset read what is no more.
        epoch, end_offset = log.end_offset_for_epoch(last_epoch)
        if epoch < 0:
            return errors.OFFSET_OUT_OF_RANGE
        if epoch != last_epoch or end_offset < offset:
            self.diverging = EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return errors.NONE


class FetchTopic:
    """The partitions of one topic in a fetch, in the order asked."""

    def __init__(self, topic: str, topic_id: bytes) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.statuses: list[FetchStatus] = []


class Fetch:
    """Fetch request: by whom, of what, on which terms."""

    def __init__(
        self, context: RequestContext, topics: list[FetchTopic], limits: FetchLimits
    ) -> None:
        self.context = context
        self.topics = topics
        self.limits = limits
        # Names leaders in an answer that refuses; None where there is one broker.
        self.add_hints: Callable[[RequestContext, FetchResponse], None] | None = None

    def keys(self) -> list[PartitionKey]:
        """Return the partitions that the fetch may wait for."""
        keys: list[PartitionKey] = []
        for topic in self.topics:
            for status in topic.statuses:
                partition = status.partition
                if partition is not None:
                    keys.append(partition.key)
        return keys

    def is_enough(self) -> bool:
        """Return whether the fetch is to be answered now: with enough bytes, or in spite of few."""
        limits = self.limits
        readable: i64 = 0
        for topic in self.topics:
            for status in topic.statuses:
                size = status.look(limits, is_first=readable == 0)
                if size < 0:
                    return True
                readable += size
                if readable >= limits.min_bytes:
                    return True
        return False

    def holds_zstd(self) -> bool:
        """Return whether an old client is refused batches that are there, so waits in vain."""
        for topic in self.read().responses:
            for answer in topic.partitions:
                if answer.error_code == errors.UNSUPPORTED_COMPRESSION_TYPE:
                    return True
        return False

    def read(self) -> FetchResponse:
        """Read every partition within the limits; the first batch even if it is too large."""
        response = FetchResponse()
        limits = self.limits
        total: i64 = 0
        is_any_refused = False
        for topic in self.topics:
            answers: list[PartitionData] = []
            for status in topic.statuses:
                answer = PartitionData(partition_index=status.asked.partition)
                answers.append(answer)
                left: i64 = max(limits.max_bytes - total, 0)
                total += _read_status(status, answer, left, limits, at_least_one=total == 0)
                is_any_refused = is_any_refused or answer.error_code != errors.NONE
            response.responses.append(
                FetchableTopicResponse(
                    topic=topic.topic, topic_id=topic.topic_id, partitions=answers
                )
            )
        if is_any_refused and self.add_hints is not None:
            self.add_hints(self.context, response)
        return response


def _read_status(
    status: FetchStatus,
    answer: PartitionData,
    left: i64,
    limits: FetchLimits,
    *,
    at_least_one: bool,
) -> i64:
    """Fill in one partition's answer; return the bytes of its records."""
    is_refused = status.is_refused()
    partition = status.partition
    if status.error_code != errors.NONE:
        _refuse(answer, status.error_code, partition, limits.api_version)
        return 0
    assert partition is not None
    answer.high_watermark = partition.high_watermark
    answer.last_stable_offset = partition.last_stable_end().offset
    if partition.is_behind_epoch():
        # An earlier leader may have acknowledged all that is there, and nothing of it goes any more
        # while this one leads.  A client that was told less would take its offset for the end.
        answer.high_watermark = answer.last_stable_offset = partition.epoch_start
    answer.log_start_offset = partition.log.log_start_offset
    answer.preferred_read_replica = -1
    answer.aborted_transactions = [] if limits.reader.is_committed else None
    # An empty record set is zero bytes, never null: librdkafka refuses null
    # (docs/explanation/protocol-traps.md, 9).
    answer.records = EMPTY
    if is_refused:
        answer.diverging_epoch = status.diverging
        return 0
    offset = status.asked.fetch_offset
    end = partition.readable_end(limits.reader)
    size_max: i64 = max(min(left, status.asked.partition_max_bytes), 0)
    if offset >= end.offset or (size_max == 0 and not at_least_one):
        return 0
    start = status.start
    if start is not None and start.segment_base_offset != end.segment_base_offset:
        start = None
    try:
        region = partition.log.read(offset, end, size_max, at_least_one, start)
        if region is None:
            return 0
        if limits.api_version < FETCH_VERSION_OF_ZSTD and _holds_zstd(
            region.file.read(region.position, region.size)
        ):
            _refuse(answer, errors.UNSUPPORTED_COMPRESSION_TYPE, partition, limits.api_version)
            return 0
    except (StorageError, CorruptData):
        _refuse(answer, errors.KAFKA_STORAGE_ERROR, partition, limits.api_version)
        return 0
    answer.records = ChunkList([region], region.size)
    return region.size


def _refuse(
    answer: PartitionData, error_code: int, partition: Partition | None, api_version: int
) -> None:
    answer.error_code = error_code
    answer.high_watermark = -1
    answer.last_stable_offset = -1
    answer.log_start_offset = -1
    answer.preferred_read_replica = -1
    answer.aborted_transactions = None
    answer.records = EMPTY
    is_epoch_error = error_code in (errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH)
    if is_epoch_error and partition is not None and api_version >= VERSION_OF_LEADERS:
        # KIP-951: tell the client the leader that it should know.
        answer.current_leader = LeaderIdAndEpoch(
            leader_id=partition.leader_id, leader_epoch=partition.leader_epoch
        )


def _holds_zstd(data: bytes) -> bool:
    position: i64 = 0
    while position + 61 <= len(data):
        header: BatchHeader = decode_batch_header(data, position)
        if header.codec == ZSTD:
            return True
        position += header.size
    return False
