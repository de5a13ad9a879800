"""Reading of logs for a fetch of a consumer or a replica: the limits, and what can be read.

`FetchStatus.look` says of one log why it is refused, where the reader's log diverges from it, or
how many bytes it adds.  The first look at a fetch and the condition of a waiting one use it, and
the answer uses the same refusals.  The answer is built once, when the fetch ends.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base import errors
from tarry.base.doors import Chunk, FileRegion
from tarry.base.errors import CorruptData, StorageError
from tarry.base.limits import FETCHED_LOGS_MAX
from tarry.broker.metadata.leader_hints import LeaderHints
from tarry.broker.request import RequestContext
from tarry.log.log import Log
from tarry.log.segments import LogPosition
from tarry.partition.reader import COMMITTED_CONSUMER, CONSUMER, LogReader
from tarry.partition.replicated_log import ReplicatedLog, WatchKey
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

# Result of a look that refuses the log; it ends the fetch.
REFUSED: Final = -1
# Result of a look that ends the fetch: a read stays in one segment, and the reader's end is in a
# later one, so waiting adds nothing.
COMPLETE: Final = -2


def reader_of(isolation_level: int) -> LogReader:
    """Return the kind of consumer that fetches with this isolation level."""
    return COMMITTED_CONSUMER if isolation_level == READ_COMMITTED else CONSUMER


def refusal(
    partition: ReplicatedLog | None, known_epoch: int, gone_code: int, reader: LogReader
) -> int:
    """Return the error for a reader with this leader epoch; NONE if it may read.

    `gone_code` is the error if the partition is not here.
    """
    if partition is None or partition.is_closed:
        return gone_code
    leadership = partition.leadership
    if leadership.gone_code != errors.NONE:
        return leadership.gone_code
    if reader.is_replica:
        if known_epoch < 0:
            # A replica without a leader epoch may follow another leader.
            return errors.UNKNOWN_LEADER_EPOCH
    elif leadership.rests():
        return errors.NOT_LEADER_OR_FOLLOWER
    return leadership.epoch_error(known_epoch)


def parting(log: Log, asked: FetchPartition, reader: LogReader) -> EpochEndOffset | None:
    """Return where the log diverges from the reader's, by epochs; None if it does not (KIP-595).

    The result is the largest epoch here up to the reader's last one, with its end.  The logs
    diverge if that epoch is smaller than the reader's, or ended before the reader's offset.  A
    result with epoch -1 means that no epoch is known: a consumer can only start again then.
    """
    last_epoch = asked.last_fetched_epoch
    if last_epoch < 0:
        return None
    epoch, end_offset = log.end_offset_for_epoch(last_epoch)
    latest: int = log.leader_epochs.latest_epoch
    if last_epoch > latest and reader.is_replica:
        epoch, end_offset = max(latest, 0), log.log_end_offset
    if epoch == last_epoch and end_offset >= asked.fetch_offset:
        return None
    return EpochEndOffset(epoch=epoch, end_offset=end_offset)


class FetchLimits:
    """Limits of a fetch: the kind of reader, and how many bytes it returns at least and at most."""

    def __init__(self, reader: LogReader, min_bytes: int, max_bytes: int, api_version: int) -> None:
        self.reader = reader
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.api_version = api_version


class FetchStatus:
    """Status of one log that a fetch asks for.

    `own_code` is an error that refuses this reader although its leader epoch is right, or NONE.
    """

    def __init__(
        self,
        partition: ReplicatedLog | None,
        asked: FetchPartition,
        gone_code: int,
        own_code: int = errors.NONE,
    ) -> None:
        self.partition = partition
        self.asked = asked
        # Error that is answered if the partition is not here.
        self.gone_code = gone_code
        self._own_code = own_code
        # Result of the last look: an error, or the end of the reader's last epoch if the logs
        # diverge.
        self.error_code: int = errors.NONE
        self.diverging: EpochEndOffset | None = None
        # Position of the fetch offset in the segment of the reader's end.  It is looked up when
        # there is first something to read, and holds as long as the end is in that segment.
        self.start: LogPosition | None = None

    def look(self, limits: FetchLimits, *, is_first: bool) -> i64:
        """Return the bytes that the partition adds to the fetch now, or REFUSED or COMPLETE.

        If `is_first`, no partition before it has any bytes, and its first batch is returned
        whatever the batch's size.
        """
        if self.is_refused(limits.reader):
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
            # If compaction has removed the last batches, nothing is left to read from the offset
            # on.
            size: i64 = max(end.position - start.position, 0)
            if limit < size and is_first and limit < limits.min_bytes:
                size_max: i64 = min(limit, max(limits.max_bytes, 0))
                region = log.read(offset, end, size_max, True, start)
                return max(limit, region.size) if region is not None else 0
        except (StorageError, CorruptData):
            self.error_code = errors.KAFKA_STORAGE_ERROR
            return REFUSED
        return min(size, limit)

    def read(self, end: LogPosition, size_max: i64, *, at_least_one: bool) -> ChunkList | None:
        """Return whole batches from the fetch offset on, up to the reader's end."""
        partition = self.partition
        assert partition is not None
        start = self.start
        if start is not None and start.segment_base_offset != end.segment_base_offset:
            start = None
        region = partition.log.read(self.asked.fetch_offset, end, size_max, at_least_one, start)
        return None if region is None else ChunkList([region], region.size)

    @property
    def has_refused(self) -> bool:
        """Return whether the last look refused the log."""
        return self.error_code != errors.NONE or self.diverging is not None

    def is_refused(self, reader: LogReader) -> bool:
        """Return whether this reader is refused now; the attributes have the reason."""
        self.error_code = self._error(reader)
        return self.has_refused

    def _error(self, reader: LogReader) -> int:
        """Return the error for this fetch; if there is none, `diverging` may have been set."""
        # This is not done in `is_refused`: compiled, that would still see its own None after this
        # call.
        self.diverging = None
        asked = self.asked
        partition = self.partition
        error_code = refusal(partition, asked.current_leader_epoch, self.gone_code, reader)
        if error_code != errors.NONE:
            return error_code
        if self._own_code != errors.NONE:
            return self._own_code
        assert partition is not None
        log = partition.log
        offset = asked.fetch_offset
        if offset < 0:
            return errors.OFFSET_OUT_OF_RANGE
        # Divergence is checked first, as in Kafka: it tells a reader more than OFFSET_OUT_OF_RANGE.
        found = parting(log, asked, reader)
        if found is not None:
            if found.epoch < 0 and not reader.is_replica:
                return errors.OFFSET_OUT_OF_RANGE
            self.diverging = found
            return errors.NONE
        end_offset = log.written_end_offset if reader.is_replica else log.log_end_offset
        if offset < log.log_start_offset or offset > end_offset:
            return errors.OFFSET_OUT_OF_RANGE
        if log.has_flaw_before(offset):
            # The end of the log is refused too, since no record can ever follow the flaw.
            return errors.KAFKA_STORAGE_ERROR
        return errors.NONE


class ScheduledFetchStatus(FetchStatus):
    """Status of a companion log that a consumer fetches as a partition of a virtual topic: it
    returns the batches that wait.
    """

    def read(self, end: LogPosition, size_max: i64, *, at_least_one: bool) -> ChunkList | None:
        partition = self.partition
        assert partition is not None
        parking = partition.leadership.parking
        assert parking is not None
        offset = self.asked.fetch_offset
        return parking.read_waiting(offset, end, int(size_max), at_least_one=at_least_one)

    def _error(self, reader: LogReader) -> int:
        error_code = super()._error(reader)
        partition = self.partition
        if error_code != errors.NONE or partition is None:
            return error_code
        parking = partition.leadership.parking
        return errors.NOT_LEADER_OR_FOLLOWER if parking is None else parking.reading_code()


class FetchTopic:
    """The partitions of one topic in a fetch, in the order of the request."""

    def __init__(self, topic: str, topic_id: bytes) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.statuses: list[FetchStatus] = []


class Fetch:
    """Fetch request: its reader, its partitions and its limits."""

    def __init__(
        self,
        context: RequestContext,
        topics: list[FetchTopic],
        limits: FetchLimits,
        hints: LeaderHints,
    ) -> None:
        self.context = context
        self.topics = topics
        self.limits = limits
        self._hints = hints

    def keys(self) -> list[WatchKey]:
        """Return the partitions that the fetch may wait for."""
        keys: list[WatchKey] = []
        for topic in self.topics:
            for status in topic.statuses:
                partition = status.partition
                if partition is not None:
                    keys.append(partition.watch_key)
        return keys

    def is_enough(self) -> bool:
        """Return whether the fetch must be answered now: there are enough bytes, or waiting adds
        none.
        """
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
        """Return whether the fetch would wait in vain, because an old client is refused the
        batches there.
        """
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
                total += read_status(status, answer, left, limits, at_least_one=total == 0)
                is_any_refused = is_any_refused or answer.error_code != errors.NONE
            response.responses.append(
                FetchableTopicResponse(
                    topic=topic.topic, topic_id=topic.topic_id, partitions=answers
                )
            )
        if is_any_refused:
            self._hints.add_to_fetch(self.context, response)
        return response


class PartialRead:
    """Read of a fetch, some partitions at a time, in the order of the request.

    Once the bound on bytes, or on partitions with records, is reached, further partitions are
    answered with their ends alone; their records come with the next fetch.
    """

    def __init__(self, context: RequestContext, limits: FetchLimits, hints: LeaderHints) -> None:
        self._context = context
        self._limits = limits
        self._hints = hints
        self._total: i64 = 0
        self._regions: i64 = 0

    def read(self, topic: FetchTopic, start: int, end: int) -> FetchResponse:
        """Read the partitions of a topic at the positions from `start` to `end`; return an
        answer for them.
        """
        limits = self._limits
        answers: list[PartitionData] = []
        is_any_refused = False
        for status in topic.statuses[start:end]:
            answer = PartitionData(partition_index=status.asked.partition)
            answers.append(answer)
            left: i64 = max(limits.max_bytes - self._total, 0)
            if self._regions >= FETCHED_LOGS_MAX:
                left = 0
            size = read_status(status, answer, left, limits, at_least_one=self._total == 0)
            self._total += size
            self._regions += 1 if size > 0 else 0
            is_any_refused = is_any_refused or answer.error_code != errors.NONE
        part = FetchableTopicResponse(
            topic=topic.topic, topic_id=topic.topic_id, partitions=answers
        )
        response = FetchResponse(responses=[part])
        if is_any_refused:
            self._hints.add_to_fetch(self._context, response)
        return response


def read_status(
    status: FetchStatus,
    answer: PartitionData,
    left: i64,
    limits: FetchLimits,
    *,
    at_least_one: bool,
) -> i64:
    """Fill in the answer for one log; return the bytes of its records."""
    is_refused = status.is_refused(limits.reader)
    partition = status.partition
    if status.error_code != errors.NONE:
        refuse(answer, status.error_code, partition, limits)
        return 0
    assert partition is not None
    put_ends(answer, partition, limits.reader)
    if is_refused:
        answer.diverging_epoch = status.diverging
        return 0
    offset = status.asked.fetch_offset
    end = partition.readable_end(limits.reader)
    size_max: i64 = max(min(left, status.asked.partition_max_bytes), 0)
    if offset >= end.offset or (size_max == 0 and not at_least_one):
        return 0
    try:
        found = status.read(end, size_max, at_least_one=at_least_one)
        if found is None:
            return 0
        if limits.api_version < FETCH_VERSION_OF_ZSTD and _holds_zstd(found.chunks):
            refuse(answer, errors.UNSUPPORTED_COMPRESSION_TYPE, partition, limits)
            return 0
    except (StorageError, CorruptData):
        refuse(answer, errors.KAFKA_STORAGE_ERROR, partition, limits)
        return 0
    answer.records = found
    return found.size


def put_ends(answer: PartitionData, partition: ReplicatedLog, reader: LogReader) -> None:
    """Fill in the ends of a log, without records."""
    answer.high_watermark = partition.high_watermark
    answer.last_stable_offset = partition.last_stable_end().offset
    if partition.is_behind_epoch() and not reader.is_replica:
        # An earlier leader may have acknowledged all records up to there, and none of them is
        # removed while this broker leads.  A client that was told a lower end would go back to it.
        answer.high_watermark = answer.last_stable_offset = partition.epoch_start
    answer.log_start_offset = partition.log.log_start_offset
    answer.preferred_read_replica = -1
    answer.aborted_transactions = [] if reader.is_committed else None
    # An empty record set is zero bytes, never null: librdkafka refuses null
    # (docs/explanation/protocol-traps.md, 9).
    answer.records = EMPTY


def refuse(
    answer: PartitionData, error_code: int, partition: ReplicatedLog | None, limits: FetchLimits
) -> None:
    """Fill in a refusal, with the leader that a client should know."""
    answer.error_code = error_code
    answer.high_watermark = -1
    answer.last_stable_offset = -1
    answer.log_start_offset = -1
    answer.preferred_read_replica = -1
    answer.aborted_transactions = None
    answer.records = EMPTY
    is_epoch_error = error_code in (errors.FENCED_LEADER_EPOCH, errors.UNKNOWN_LEADER_EPOCH)
    if limits.reader.is_replica and error_code == errors.NOT_LEADER_OR_FOLLOWER:
        is_epoch_error = True
    if is_epoch_error and partition is not None and limits.api_version >= VERSION_OF_LEADERS:
        # KIP-951: the answer names the leader that the client should know.
        leadership = partition.leadership
        answer.current_leader = LeaderIdAndEpoch(
            leader_id=leadership.leader_id, leader_epoch=leadership.leader_epoch
        )


def _holds_zstd(chunks: list[Chunk]) -> bool:
    for chunk in chunks:
        if not isinstance(chunk, FileRegion):
            # The chunk was built here, and is not compressed.
            continue
        data = chunk.file.read(chunk.position, chunk.size)
        position: i64 = 0
        while position + 61 <= len(data):
            header: BatchHeader = decode_batch_header(data, position)
            if header.codec == ZSTD:
                return True
            position += header.size
    return False
