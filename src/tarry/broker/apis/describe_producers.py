"""DescribeProducers (key 61): the idempotent producers that a partition knows."""

from __future__ import annotations

from tarry.base import errors
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics, missing_code
from tarry.cluster.topic_names import name_fault
from tarry.partition.producers import NO_COORDINATOR_EPOCH
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(
    topics: Topics, context: RequestContext, request: DescribeProducersRequest
) -> Message | None:
    """Answer each partition once, however often it is named; a repeated one costs nothing."""
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return DescribeProducersResponse(
        topics=[
            TopicResponse(name, [_partition(topics, name, index) for index in indexes])
            for name, indexes in asked.items()
        ]
    )


def _partition(topics: Topics, name: str, index: int) -> PartitionResponse:
    answer = PartitionResponse(partition_index=index)
    fault = name_fault(name)
    if fault:
        answer.error_code = errors.INVALID_TOPIC_EXCEPTION
        answer.error_message = fault
        return answer
    hosted = topics.get(name)
    partition = None if hosted is None else hosted.partition(index)
    if partition is None:
        answer.error_code = missing_code(hosted, index)
        answer.error_message = f"there is no partition {index} of a topic '{name}' here"
        return answer
    answer.active_producers = [
        ProducerState(
            producer_id=producer_id,
            producer_epoch=epoch,
            last_sequence=last_sequence,
            last_timestamp=last_timestamp,
            coordinator_epoch=NO_COORDINATOR_EPOCH,
        )
        for producer_id, epoch, last_sequence, last_timestamp in partition.producers.active()
    ]
    return answer
