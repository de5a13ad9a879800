"""Produce (key 0): append batches and answer when they count.  Hot.

Each partition is checked and appended on its own.  The answer is given after the turn's write at
the earliest, so that a write that fails is never acknowledged, and with acks=-1 (or acks=1 under
`flush.policy=commit`) when the records can no longer be lost.  With acks=0 nothing is answered, but
the connection's next request that is no produce waits as if it were: it sees the records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.broker.delayed.produce import DelayedProduce, ProduceStatus
from tarry.broker.request import RequestContext
from tarry.partition.leader import AppendResult, append_as_leader
from tarry.partition.topic import HostedTopic
from tarry.protocol.message import Message
from tarry.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tarry.wire.reader import Window

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

# KIP-516: from here on a produce names topics by id.
VERSION_OF_TOPIC_IDS: Final = 13

# Who wants no answer says nothing of how long it may take.
UNACKNOWLEDGED_MS_MAX: Final = 30_000


def handle(broker: Broker, context: RequestContext, request: Message) -> Message | None:
    """Append what can be appended; the answer follows from the broker's settling."""
    assert isinstance(request, ProduceRequest)
    response = ProduceResponse()
    statuses: list[ProduceStatus] = []
    broker.produce_number += 1
    must_wait = False
    for asked_topic in request.topic_data:
        topic_answer = TopicProduceResponse(name=asked_topic.name, topic_id=asked_topic.topic_id)
        response.responses.append(topic_answer)
        hosted: HostedTopic | None
        if context.api_version >= VERSION_OF_TOPIC_IDS:
            hosted = broker.topics_by_id.get(asked_topic.topic_id)
        else:
            hosted = broker.topics.get(asked_topic.name)
        for asked in asked_topic.partition_data:
            answer = PartitionProduceResponse(index=asked.index)
            topic_answer.partition_responses.append(answer)
            status = _produce_partition(broker, context, request, hosted, asked, answer)
            statuses.append(status)
            must_wait = must_wait or status.is_pending
    timeout_ms = max(request.timeout_ms, 0)
    if request.acks == 0:
        if _is_refused_unacknowledged(context, statuses):
            return None
        if not must_wait:
            context.respond_nothing()
            return None
        timeout_ms = UNACKNOWLEDGED_MS_MAX
    if not must_wait:
        return response
    broker.settle_after_write(
        DelayedProduce(context, request.acks, statuses, response, broker.now_ms + timeout_ms)
    )
    return None


def _produce_partition(
    broker: Broker,
    context: RequestContext,
    request: ProduceRequest,
    hosted: HostedTopic | None,
    asked: PartitionProduceData,
    answer: PartitionProduceResponse,
) -> ProduceStatus:
    answer.base_offset = -1
    answer.log_append_time_ms = -1
    answer.log_start_offset = -1
    if request.acks < -1 or request.acks > 1:
        answer.error_code = errors.INVALID_REQUIRED_ACKS
        return ProduceStatus(None, 0, answer)
    partition = hosted.partition(asked.index) if hosted is not None else None
    if partition is None:
        by_id = context.api_version >= VERSION_OF_TOPIC_IDS and hosted is None
        answer.error_code = errors.UNKNOWN_TOPIC_ID if by_id else errors.UNKNOWN_TOPIC_OR_PARTITION
        return ProduceStatus(None, 0, answer)
    if hosted is not None and hosted.is_internal:
        answer.error_code = errors.INVALID_TOPIC_EXCEPTION
        answer.error_message = f"{hosted.name} is written by the broker alone"
        return ProduceStatus(None, 0, answer)
    if partition.produce_number == broker.produce_number:
        answer.error_code = errors.INVALID_REQUEST
        answer.error_message = "a produce names each partition once"
        return ProduceStatus(None, 0, answer)
    partition.produce_number = broker.produce_number
    records = asked.records
    if not isinstance(records, Window):
        answer.error_code = errors.INVALID_RECORD
        answer.error_message = "a produce needs one record batch for each partition"
        return ProduceStatus(None, 0, answer)
    result = append_as_leader(partition, records, request.acks, context.api_version, broker.clock)
    if result.has_opened:
        broker.opened_batches += 1
    if result.error_code != errors.NONE:
        _refuse(answer, result)
        if result.error_code == errors.CORRUPT_MESSAGE:
            # Bytes that change on their way are a fault of a network or a memory: worth a line.
            context.report(f"a batch for {partition.name} came damaged: {result.message}")
        return ProduceStatus(None, 0, answer)
    if result.is_appended:
        broker.flushes.touch(partition)
    answer.base_offset = result.base_offset
    answer.log_append_time_ms = result.log_append_time_ms
    answer.log_start_offset = partition.log.log_start_offset
    return ProduceStatus(partition, result.required_offset, answer)


def _refuse(answer: PartitionProduceResponse, result: AppendResult) -> None:
    answer.error_code = result.error_code
    answer.error_message = result.message
    if result.record_errors is not None:
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=sentence)
            for index, sentence in result.record_errors
        ]


def _is_refused_unacknowledged(context: RequestContext, statuses: list[ProduceStatus]) -> bool:
    for status in statuses:
        if status.answer.error_code != errors.NONE:
            # With acks=0 a closed connection is the only way to say that records were refused,
            # so that the client looks at the metadata again.  Kafka does the same.
            context.close_connection(
                f"a produce with acks=0 was refused: {errors.error_name(status.answer.error_code)}"
            )
            return True
    return False
