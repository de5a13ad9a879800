"""ListOffsets (key 2): the offset of the beginning, of the end, or of a timestamp.

Special timestamps: -1 the end, -2 the beginning, -3 the largest timestamp (KIP-734), -4 the
beginning of the local log, -5 the end of the tiered log (KIP-405), -6 the beginning of what waits
to be tiered (KIP-1023).  Nothing is tiered here.  Spark's connector sends many requests, so -1 and
-2 never read from the disk.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import ELEMENTS_PER_UNIT
from tarry.broker.reads import reader_of, refusal
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics, missing_code
from tarry.partition.reader import LogReader
from tarry.partition.replicated_log import RECORDS, ReplicatedLog, key_of
from tarry.partition.topic import ReadableTopic
from tarry.protocol.message import ZERO_UUID, Message
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

VERSION_OF_LEADER_EPOCHS: Final = 4
VERSION_OF_NOT_AVAILABLE: Final = 5
# First version in which each special timestamp may be asked for.
VERSION_OF: Final = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}


# A search by time reads from the disk and may decompress a large batch, so one search fills the
# work of a turn.
SEARCH_UNITS: Final = 500

# Partitions by topic; None for a partition that the request names twice.
Asked = dict[str, dict[int, ListOffsetsPartition | None]]


def handle(
    long_answers: LongAnswers, topics: Topics, context: RequestContext, request: ListOffsetsRequest
) -> Message | None:
    """Answer every partition by itself; a partition that is named twice is refused once."""
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, topics, request))


def _steps(answer: LongAnswer, topics: Topics, request: ListOffsetsRequest) -> Iterator[int]:
    answer.open(ListOffsetsResponse())
    reader = reader_of(request.isolation_level)
    is_replica = request.replica_id >= 0
    asked = yield from _asked(request.topics)
    for name, partitions in asked.items():
        answer.open(ListOffsetsTopicResponse(name=name))
        for index, each in partitions.items():
            found = ListOffsetsPartitionResponse(partition_index=index)
            found.timestamp = -1
            found.offset = -1
            found.leader_epoch = -1
            is_search = _answer(
                topics, name, each, found, reader, answer.api_version, is_replica=is_replica
            )
            if answer.api_version < VERSION_OF_LEADER_EPOCHS:
                found.leader_epoch = -1
            answer.add(found)
            yield SEARCH_UNITS if is_search else 1
        answer.close()


def _asked(topics: list[ListOffsetsTopic]) -> Generator[int, None, Asked]:
    asked: Asked = {}
    for topic in topics:
        rows = asked.setdefault(topic.name, {})
        for each in topic.partitions:
            rows[each.partition_index] = None if each.partition_index in rows else each
        yield 1 + len(topic.partitions) // ELEMENTS_PER_UNIT
    return asked


def _answer(
    topics: Topics,
    name: str,
    asked: ListOffsetsPartition | None,
    answer: ListOffsetsPartitionResponse,
    reader: LogReader,
    api_version: int,
    *,
    is_replica: bool,
) -> bool:
    """Put the answer for a partition into `answer`; a replica may ask for its companion log.

    Return whether a search by time was needed.
    """
    index, which = answer.partition_index, RECORDS
    topic: ReadableTopic | None
    if is_replica:
        topic = hosted = topics.get(name)
        _topic_id, index, which = key_of(ZERO_UUID, index)
        partition = None if hosted is None else hosted.partition(index) and hosted.log(index, which)
    else:
        topic = topics.readable(name)
        partition = None if topic is None else topic.partition(index)
    if asked is None:
        answer.error_code = errors.INVALID_REQUEST
    elif partition is None:
        answer.error_code = missing_code(topic, index)
    else:
        return _look_up(partition, asked, answer, reader, api_version)
    return False


def _look_up(
    partition: ReplicatedLog,
    asked: ListOffsetsPartition,
    answer: ListOffsetsPartitionResponse,
    reader: LogReader,
    api_version: int,
) -> bool:
    gone_code = errors.UNKNOWN_TOPIC_OR_PARTITION
    answer.error_code = refusal(partition, asked.current_leader_epoch, gone_code, reader)
    if answer.error_code != errors.NONE:
        return False
    timestamp = asked.timestamp
    if timestamp < 0 and api_version < VERSION_OF.get(timestamp, 0):
        answer.error_code = errors.UNSUPPORTED_VERSION
        return False
    if partition.is_behind_epoch() and timestamp not in (EARLIEST, EARLIEST_LOCAL):
        # KIP-207: the high watermark of a new leader may lie below one that consumers have seen.
        answer.error_code = errors.OFFSET_NOT_AVAILABLE
        if api_version < VERSION_OF_NOT_AVAILABLE:
            answer.error_code = errors.LEADER_NOT_AVAILABLE
        return False
    end_offset = partition.readable_end(reader).offset
    if timestamp == LATEST:
        answer.offset = end_offset
        answer.leader_epoch = partition.leadership.leader_epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        answer.offset = partition.log.log_start_offset
        answer.leader_epoch = partition.log.epoch_at(answer.offset)
    elif timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        pass
    elif timestamp < MAX_TIMESTAMP:
        answer.error_code = errors.UNSUPPORTED_VERSION
    else:
        _search(partition, timestamp, end_offset, answer)
        return True
    return False


def _search(
    partition: ReplicatedLog, timestamp: int, end_offset: int, answer: ListOffsetsPartitionResponse
) -> None:
    try:
        if timestamp == MAX_TIMESTAMP:
            found = partition.log.max_timestamp_offset(end_offset)
        else:
            found = partition.log.offset_for_time(timestamp, end_offset)
    except (StorageError, CorruptData):
        answer.error_code = errors.KAFKA_STORAGE_ERROR
        return
    if found is not None:
        answer.timestamp, answer.offset, answer.leader_epoch = found
