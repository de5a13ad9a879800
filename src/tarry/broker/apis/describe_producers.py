"""DescribeProducers (key 61): the idempotent producers that wrote to a partition.

Where records may wait until they are due, a producer's last batch lies in the partition or in its
companion log.  The later one of both counts, of those below the high watermark of their log: by
that a producer that looks back knows what is written for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import once_each
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics, missing_code
from tarry.cluster.state.topic_names import name_fault
from tarry.partition.producers import NO_COORDINATOR_EPOCH
from tarry.partition.replicated_log import COMPANION, ReplicatedLog
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from tarry.records.batch import SEQUENCE_MAX

# Producer id, and of its last batch epoch, last sequence and largest timestamp.
LastBatch = tuple[int, int, int, int]

# Size of one producer in an answer, in bytes.
PRODUCER_BYTES: Final = 33

# Listing a producer takes so small a part of the unit of work in which long answers count.
PRODUCERS_PER_UNIT: Final = 10


def handle(
    long_answers: LongAnswers,
    topics: Topics,
    context: RequestContext,
    request: DescribeProducersRequest,
) -> Message | None:
    """Describe each partition once, however often the request names it."""
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, topics, request))


def _steps(answer: LongAnswer, topics: Topics, request: DescribeProducersRequest) -> Iterator[int]:
    answer.open(DescribeProducersResponse())
    asked = yield from once_each(
        ((topic.name, topic.partition_indexes) for topic in request.topics), int
    )
    for name, indexes in asked.items():
        answer.open(TopicResponse(name))
        yield 1
        for index in indexes:
            partition = PartitionResponse(partition_index=index)
            producers = _producers(topics, name, partition)
            if not answer.has_room(PRODUCER_BYTES * len(producers)):
                producers = []
                partition.error_code = errors.INVALID_REQUEST
                partition.error_message = "the answer would be too large; ask for less at once"
            answer.open(partition)
            yield 1 + len(producers) // PRODUCERS_PER_UNIT
            for producer in producers:
                answer.add(producer)
                yield 1
            answer.close()
        answer.close()


def _producers(topics: Topics, name: str, answer: PartitionResponse) -> list[ProducerState]:
    """Return the producers of a partition, or put into the answer why there are none."""
    index = answer.partition_index
    fault = name_fault(name)
    if fault:
        answer.error_code = errors.INVALID_TOPIC_EXCEPTION
        answer.error_message = fault
        return []
    hosted = topics.get(name)
    partition = None if hosted is None else hosted.partition(index)
    if partition is None:
        answer.error_code = missing_code(hosted, index)
        answer.error_message = f"there is no partition {index} of a topic '{name}' here"
        return []
    return [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=last_sequence,
            last_timestamp=last_timestamp,
            coordinator_epoch=NO_COORDINATOR_EPOCH,
        )
        for producer_id, epoch, last_sequence, last_timestamp in _last_batches(partition)
    ]


def _last_batches(partition: ReplicatedLog) -> list[LastBatch]:
    logs = partition.leadership.logs
    if len(logs) <= COMPANION:
        return partition.producers.active()
    found: dict[int, LastBatch] = {}
    for log in logs:
        for last in log.producers.active_below(log.high_watermark):
            other = found.get(last[0])
            if other is None or _is_later(last, other):
                found[last[0]] = last
    return list(found.values())


def _is_later(last: LastBatch, other: LastBatch) -> bool:
    """Return whether a batch of the same producer came after another one; sequences go round."""
    if last[1] != other[1]:
        return last[1] > other[1]
    return (last[2] - other[2]) & SEQUENCE_MAX <= SEQUENCE_MAX // 2
