"""CreateTopics (key 19): topics are created; the answer comes once they are durable and applied.

Every topic of a request has an answer of its own.  The topics that can be created are created
together, in as few changes as hold them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from tarry.base import errors
from tarry.base.limits import PARTITIONS_PER_REQUEST_MAX
from tarry.base.settings import Settings
from tarry.broker.delayed.long_answers import LongAnswer
from tarry.broker.metadata.changes import MetadataChanges, too_many
from tarry.broker.once import once
from tarry.broker.request import RequestContext
from tarry.cluster.configs.config_entries import topic_entries
from tarry.cluster.decisions.topic_decisions import TopicResult, TopicWanted
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

# KIP-525: from this version on the answer has partitions, replicas and settings.
VERSION_OF_DETAILS: Final = 5


def handle(
    changes: MetadataChanges, context: RequestContext, request: CreateTopicsRequest
) -> Message | None:
    """Create each topic, or refuse; with `validate_only` only check the request."""
    rows = partial(_rows, changes.settings)
    if len(request.topics) > PARTITIONS_PER_REQUEST_MAX:
        answer = LongAnswer(context)
        names = once((topic.name, None) for topic in request.topics)
        return changes.long_answers.begin(answer, rows(answer, too_many(names)))
    return changes.ask_for_many(
        context,
        changes.creations([_wanted(topic) for topic in request.topics]),
        rows,
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


def _rows(settings: Settings, answer: LongAnswer, outcomes: Iterable[TopicResult]) -> Iterator[int]:
    answer.open(CreateTopicsResponse())
    for outcome in outcomes:
        if outcome.error_code == errors.INVALID_TOPIC_EXCEPTION:
            answer.context.report(f"invalid topic name: {outcome.message}")
        answer.add(_result(settings, answer.api_version, outcome))
        yield 1


def _result(settings: Settings, api_version: int, outcome: TopicResult) -> CreatableTopicResult:
    result = CreatableTopicResult(name=outcome.name or "", error_message=outcome.message)
    result.error_code = outcome.error_code
    created = outcome.created
    if outcome.error_code != errors.NONE or created is None:
        return result
    result.topic_id = created.topic_id
    result.num_partitions = len(created.partitions)
    result.replication_factor = len(created.partitions[0].replicas)
    if api_version >= VERSION_OF_DETAILS:
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
