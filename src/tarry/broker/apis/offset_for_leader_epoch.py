"""OffsetForLeaderEpoch (key 23): the end of a leader epoch, by which a reader notices a
truncation.
"""

from __future__ import annotations

from collections.abc import Iterator

from tarry.base import errors
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import once_each
from tarry.broker.reads import refusal
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics, missing_code
from tarry.partition.reader import CONSUMER
from tarry.partition.topic import ReadableTopic
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


def handle(
    long_answers: LongAnswers,
    topics: Topics,
    context: RequestContext,
    request: OffsetForLeaderEpochRequest,
) -> Message | None:
    """Answer each partition with the largest epoch up to the asked one, and the end of that
    epoch.
    """
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, topics, request))


def _steps(
    answer: LongAnswer, topics: Topics, request: OffsetForLeaderEpochRequest
) -> Iterator[int]:
    answer.open(OffsetForLeaderEpochResponse())
    asked = yield from once_each(
        ((topic.topic, topic.partitions) for topic in request.topics),
        lambda partition: partition.partition,
    )
    for name, partitions in asked.items():
        answer.open(OffsetForLeaderTopicResult(topic=name))
        for partition in partitions.values():
            answer.add(_end_offset(topics.readable(name), partition))
            yield 1
        answer.close()


def _end_offset(hosted: ReadableTopic | None, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    answer = EpochEndOffset(partition=asked.partition, leader_epoch=-1, end_offset=-1)
    partition = hosted.partition(asked.partition) if hosted is not None else None
    gone_code = missing_code(hosted, asked.partition)
    answer.error_code = refusal(partition, asked.current_leader_epoch, gone_code, CONSUMER)
    if answer.error_code != errors.NONE or partition is None:
        return answer
    if asked.leader_epoch == partition.leadership.leader_epoch:
        answer.leader_epoch = partition.leadership.leader_epoch
        answer.end_offset = partition.log.written_end_offset
        return answer
    latest_epoch = partition.log.leader_epochs.latest_epoch
    if partition.leadership.followers is None and 0 <= latest_epoch < asked.leader_epoch:
        # Without followers an epoch enters the log with its first batch, so later epochs may be
        # missing.
        if asked.leader_epoch < partition.leadership.leader_epoch:
            answer.leader_epoch = latest_epoch
            answer.end_offset = partition.log.written_end_offset
        return answer
    answer.leader_epoch, answer.end_offset = partition.log.end_offset_for_epoch(asked.leader_epoch)
    return answer
