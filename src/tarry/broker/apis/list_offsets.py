"""ListOffsets (key 2): the offset at the beginning, at the end, or of a time.

Special timestamps: -1 the end, -2 the beginning, -3 the largest timestamp (KIP-734), -4 the
beginning of what is local, -5 the end of what is tiered (KIP-405; nothing is tiered here).
Spark's connector sends many of these, so -1 and -2 never touch the disk.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.broker.reads import reader_of
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics, missing_code
from tarry.partition.state import Partition, ReaderKind
from tarry.protocol.message import Message
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5

VERSION_OF_LEADER_EPOCHS: Final = 4
VERSION_OF_NOT_AVAILABLE: Final = 5
# The first version in which a special timestamp may be asked for.
VERSION_OF: Final = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}


def handle(topics: Topics, context: RequestContext, request: ListOffsetsRequest) -> Message | None:
    """Answer every partition on its own; a partition named twice is refused."""
    response = ListOffsetsResponse()
    reader = reader_of(request.isolation_level)
    for topic in request.topics:
        hosted = topics.get(topic.name)
        seen: dict[int, int] = {}
        for asked in topic.partitions:
            seen[asked.partition_index] = seen.get(asked.partition_index, 0) + 1
        answers: list[ListOffsetsPartitionResponse] = []
        for asked in topic.partitions:
            answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            answer.timestamp = -1
            answer.offset = -1
            answer.leader_epoch = -1
            partition = hosted.partition(asked.partition_index) if hosted is not None else None
            if seen[asked.partition_index] > 1:
                answer.error_code = errors.INVALID_REQUEST
            elif partition is None:
                answer.error_code = missing_code(hosted, asked.partition_index)
            else:
                _look_up(partition, asked, answer, reader, context.api_version)
            if context.api_version < VERSION_OF_LEADER_EPOCHS:
                answer.leader_epoch = -1
            answers.append(answer)
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return response


def _look_up(
    partition: Partition,
    asked: ListOffsetsPartition,
    answer: ListOffsetsPartitionResponse,
    reader: ReaderKind,
    api_version: int,
) -> None:
    answer.error_code = partition.epoch_error(asked.current_leader_epoch)
    if answer.error_code == errors.NONE and not partition.may_act():
        answer.error_code = errors.NOT_LEADER_OR_FOLLOWER
    if answer.error_code != errors.NONE:
        return
    timestamp = asked.timestamp
    if timestamp < 0 and api_version < VERSION_OF.get(timestamp, 0):
        answer.error_code = errors.UNSUPPORTED_VERSION
        return
    if partition.is_behind_epoch() and timestamp not in (EARLIEST, EARLIEST_LOCAL):
        # KIP-207: the end of a new leader may lie below one that readers have seen.
        answer.error_code = errors.OFFSET_NOT_AVAILABLE
        if api_version < VERSION_OF_NOT_AVAILABLE:
            answer.error_code = errors.LEADER_NOT_AVAILABLE
        return
    end_offset = partition.readable_end(reader).offset
    if timestamp == LATEST:
        answer.offset = end_offset
        answer.leader_epoch = partition.leader_epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        answer.offset = partition.log.log_start_offset
        answer.leader_epoch = partition.log.epoch_at(answer.offset)
    elif timestamp == LATEST_TIERED:
        pass
    elif timestamp < MAX_TIMESTAMP:
        answer.error_code = errors.UNSUPPORTED_VERSION
    else:
        _search(partition, timestamp, end_offset, answer)


def _search(
    partition: Partition, timestamp: int, end_offset: int, answer: ListOffsetsPartitionResponse
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
