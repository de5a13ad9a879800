"""CreatePartitions (key 37): topics grow; durable and in the metadata before the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.broker.request import RequestContext
from tarry.broker.topic_writes import TopicWrite, change_topics
from tarry.cluster.partition_decisions import GrowthWanted, decide_create_partitions
from tarry.cluster.topic_decisions import TopicOutcome
from tarry.protocol.message import Message
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker


def handle(
    broker: Broker, context: RequestContext, request: CreatePartitionsRequest
) -> Message | None:
    """Let grow what can grow; with `validate_only` say only what would."""
    wanted = [_wanted(topic) for topic in request.topics]
    decision = decide_create_partitions(broker.store.latest, wanted)
    write = TopicWrite(context, decision, _response, request.timeout_ms)
    return change_topics(broker, write, validate_only=request.validate_only)


def _wanted(topic: CreatePartitionsTopic) -> GrowthWanted:
    if topic.assignments is None:
        return GrowthWanted(topic.name, topic.count)
    return GrowthWanted(topic.name, topic.count, [each.broker_ids for each in topic.assignments])


def _response(outcomes: list[TopicOutcome]) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=outcome.name or "",
                error_code=outcome.error_code,
                error_message=outcome.message,
            )
            for outcome in outcomes
        ]
    )
