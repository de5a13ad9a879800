"""DeleteRecords (key 21): partitions lose their oldest records, durably before the answer."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.delayed.delete_records import (
    NO_LOW_WATERMARK,
    AwaitedDeletion,
    DelayedDeleteRecords,
    DeletionStatus,
)
from tarry.broker.duties.record_deletions import RecordDeletions
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics, missing_code
from tarry.cluster.topic_names import is_internal
from tarry.partition.state import Partition
from tarry.protocol.message import Message
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

# As an offset: all that may be read now.
HIGH_WATERMARK: Final = -1

# Kafka answers from memory, so that clients may allow it no time at all; here the answer comes
# after a round of recovery points, which takes milliseconds.
TIMEOUT_MS_MIN: Final = 1_000


def handle(
    topics: Topics,
    deletions: RecordDeletions,
    context: RequestContext,
    request: DeleteRecordsRequest,
) -> Message | None:
    """Move the log starts that can be moved; of a partition named twice the last entry counts."""
    response = DeleteRecordsResponse()
    statuses: list[DeletionStatus] = []
    for name, offsets in _asked(request).items():
        answers: list[DeleteRecordsPartitionResult] = []
        for index, offset in offsets.items():
            answer = DeleteRecordsPartitionResult(index, NO_LOW_WATERMARK)
            answers.append(answer)
            partition, error_code = _partition(topics, name, index)
            if partition is None:
                answer.error_code = error_code
                continue
            start_offset = partition.high_watermark if offset == HIGH_WATERMARK else offset
            if not 0 <= start_offset <= partition.high_watermark:
                answer.error_code = errors.OFFSET_OUT_OF_RANGE
                continue
            statuses.append(DeletionStatus(partition, start_offset, answer))
        if answers:
            response.topics.append(DeleteRecordsTopicResult(name, answers))
    deadline_ms = context.now_ms + max(request.timeout_ms, TIMEOUT_MS_MIN)
    for status in statuses:
        if status.start_offset > status.partition.log.log_start_offset:
            deletions.request(status.partition, status.start_offset)
    deletion = AwaitedDeletion(context, statuses, response)
    operation = DelayedDeleteRecords(deadline_ms, deletion)
    context.operation = operation
    if not operation.try_complete():
        deletions.watch(operation, deletion.keys())
    return None


def _asked(request: DeleteRecordsRequest) -> dict[str, dict[int, int]]:
    """Return the offsets by topic and partition, in the order in which they are first named."""
    asked: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = asked.setdefault(topic.name, {})
        for each in topic.partitions:
            offsets[each.partition_index] = each.offset
    return asked


def _partition(topics: Topics, name: str, index: int) -> tuple[Partition | None, int]:
    """Return the partition whose records may be deleted, or why there is none."""
    hosted = topics.get(name)
    partition = hosted.partition(index) if hosted is not None else None
    if partition is None:
        return None, missing_code(hosted, index)
    if is_internal(name):
        return None, errors.INVALID_TOPIC_EXCEPTION
    if not partition.config.has_deletion:
        # What is compacted keeps the last record of every key, whatever anybody asks for.
        return None, errors.POLICY_VIOLATION
    return partition, errors.NONE
