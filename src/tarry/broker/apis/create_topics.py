"""CreateTopics (key 19): decide, make durable, then answer.

Every topic of a request has an answer of its own; those that can be created are created together.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from tarry.base import errors
from tarry.base.settings import Settings
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.request import RequestContext
from tarry.cluster.config_entries import topic_entries
from tarry.cluster.topic_decisions import TopicResult, TopicWanted
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

# KIP-525: from here on the answer tells partitions, replicas and settings.
VERSION_OF_DETAILS: Final = 5


def handle(
    changes: MetadataChanges, context: RequestContext, request: CreateTopicsRequest
) -> Message | None:
    """Create what can be created; with `validate_only` say only what would be."""
    return changes.ask_for_many(
        context,
        changes.creations([_wanted(topic) for topic in request.topics]),
        partial(_response, changes.settings, context),
        request.timeout_ms,
        validate_only=request.validate_only,
    )


def _wanted(topic: CreatableTopic) -> TopicWanted:
    return TopicWanted(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(each.partition_index, each.broker_ids) for each in topic.assignments],
        [(each.name, each.value) for each in topic.configs],
    )


def _response(
    settings: Settings, context: RequestContext, outcomes: list[TopicResult]
) -> CreateTopicsResponse:
    for outcome in outcomes:
        if outcome.error_code == errors.INVALID_TOPIC_EXCEPTION:
            context.report(f"invalid topic name: {outcome.message}")
    return CreateTopicsResponse(
        topics=[_result(settings, context, outcome) for outcome in outcomes]
    )


def _result(
    settings: Settings, context: RequestContext, outcome: TopicResult
) -> CreatableTopicResult:
    result = CreatableTopicResult(name=outcome.name or "", error_message=outcome.message)
    result.error_code = outcome.error_code
    created = outcome.created
    if outcome.error_code != errors.NONE or created is None:
        return result
    result.topic_id = created.topic_id
    result.num_partitions = len(created.partitions)
    result.replication_factor = len(created.partitions[0].replicas)
    if context.api_version >= VERSION_OF_DETAILS:
        result.configs = [
            CreatableTopicConfigs(
                name=entry.key,
                value=entry.value,
                read_only=entry.is_read_only,
                config_source=entry.source,
            )
            for entry in topic_entries(created.configs, settings)
        ]
    return result
