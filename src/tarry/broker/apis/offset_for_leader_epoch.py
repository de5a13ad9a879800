"""OffsetForLeaderEpoch (key 23): where a leader epoch ended, so that a reader sees a truncation."""

from __future__ import annotations

from tarry.base import errors
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics, missing_code
from tarry.protocol.message import Message
from tarry.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)


def handle(
    topics: Topics, context: RequestContext, request: OffsetForLeaderEpochRequest
) -> Message | None:
    """Answer each partition with the largest epoch not above the asked one, and its end."""
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        hosted = topics.get(topic.topic)
        answers: list[EpochEndOffset] = []
        for asked in topic.partitions:
            answer = EpochEndOffset(partition=asked.partition, leader_epoch=-1, end_offset=-1)
            answers.append(answer)
            partition = hosted.partition(asked.partition) if hosted is not None else None
            if partition is None:
                answer.error_code = missing_code(hosted, asked.partition)
                continue
            answer.error_code = partition.epoch_error(asked.current_leader_epoch)
            if answer.error_code == errors.NONE and not partition.may_act():
                answer.error_code = errors.NOT_LEADER_OR_FOLLOWER
            if answer.error_code != errors.NONE:
                continue
            if asked.leader_epoch == partition.leader_epoch:
                answer.leader_epoch = partition.leader_epoch
                answer.end_offset = partition.log.written_end_offset
                continue
            latest_epoch = partition.log.leader_epochs.latest_epoch
            if partition.followers is None and 0 <= latest_epoch < asked.leader_epoch:
                # Without followers an epoch is in the log from its first batch on only.
                if asked.leader_epoch < partition.leader_epoch:
                    answer.leader_epoch = latest_epoch
                    answer.end_offset = partition.log.written_end_offset
                continue
            answer.leader_epoch, answer.end_offset = partition.log.end_offset_for_epoch(
                asked.leader_epoch
            )
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return response
