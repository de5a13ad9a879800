"""DeleteRecords (key 21): partitions lose their oldest records; the answer comes when that is
durable.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.delayed.delete_records import (
    NO_LOW_WATERMARK,
    AwaitedDeletion,
    DelayedDeleteRecords,
    DeletionStatus,
)
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.duties.record_deletions import RecordDeletions
from tarry.broker.once import once_each
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics, missing_code
from tarry.cluster.state.topic_names import is_internal
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol.message import Message
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
)

# Offset that stands for the high watermark.
HIGH_WATERMARK: Final = -1

# Kafka answers from memory, so clients may send a time-out of 0.  Here the answer waits for a round
# of recovery points, which takes milliseconds.
TIMEOUT_MS_MIN: Final = 1_000


def handle(
    long_answers: LongAnswers,
    topics: Topics,
    deletions: RecordDeletions,
    context: RequestContext,
    request: DeleteRecordsRequest,
) -> Message | None:
    """Move the log start of each partition, or refuse; if a partition is named twice, the last
    entry counts.
    """
    answer = LongAnswer(context, must_end=True)
    return long_answers.begin(answer, _steps(long_answers, topics, deletions, context, request))


def _steps(
    long_answers: LongAnswers,
    topics: Topics,
    deletions: RecordDeletions,
    context: RequestContext,
    request: DeleteRecordsRequest,
) -> Iterator[int]:
    asked = yield from once_each(
        ((topic.name, topic.partitions) for topic in request.topics),
        lambda each: each.partition_index,
        is_last_meant=True,
    )
    deadline_ms = context.now_ms + max(request.timeout_ms, TIMEOUT_MS_MIN)
    results: dict[str, list[DeleteRecordsPartitionResult]] = {}
    statuses: list[DeletionStatus] = []
    for name, rows in asked.items():
        answers: list[DeleteRecordsPartitionResult] = []
        if rows:
            results[name] = answers
        yield 1
        for index, each in rows.items():
            yield 1
            answer = DeleteRecordsPartitionResult(index, NO_LOW_WATERMARK)
            answers.append(answer)
            partition, error_code = _partition(topics, name, index)
            if partition is None:
                answer.error_code = error_code
                continue
            high_watermark = partition.high_watermark
            start_offset = high_watermark if each.offset == HIGH_WATERMARK else each.offset
            if not 0 <= start_offset <= high_watermark:
                answer.error_code = errors.OFFSET_OUT_OF_RANGE
                continue
            statuses.append(DeletionStatus(partition, start_offset, answer))
            if start_offset > partition.log.log_start_offset:
                deletions.request(partition, start_offset)
    deletion = AwaitedDeletion(long_answers, context, statuses, results)
    operation = DelayedDeleteRecords(deadline_ms, deletion)
    context.operation = operation
    if not operation.try_complete():
        deletions.watch(operation, deletion.keys())


def _partition(topics: Topics, name: str, index: int) -> tuple[ReplicatedLog | None, int]:
    """Return the partition whose records may be deleted, or why there is none."""
    hosted = topics.get(name)
    partition = hosted.partition(index) if hosted is not None else None
    if hosted is None and topics.readable(name) is not None:
        # A virtual topic only shows records that wait.  The answer has no field for a sentence.
        return None, errors.INVALID_TOPIC_EXCEPTION
    if partition is None:
        return None, missing_code(hosted, index)
    if is_internal(name):
        return None, errors.INVALID_TOPIC_EXCEPTION
    # A topic with an empty cleanup.policy can be cut, as in Kafka since 4.2.
    if partition.config.has_compaction and not partition.config.has_deletion:
        # A compacted log keeps the last record of every key, also against a client's wish.
        return None, errors.POLICY_VIOLATION
    return partition, errors.NONE
