"""ListConfigResources (key 74): the resources that have settings.

Groups with settings of their own are listed, as in Kafka.  Client metrics are not listed: Tarry
keeps no settings for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.base import errors
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.metadata.cluster_view import ClusterView
from tarry.broker.metadata.config_changes import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from tarry.broker.request import RequestContext
from tarry.broker.topics import Topics
from tarry.protocol.message import Message
from tarry.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

# Before version 1 the API lists client metrics alone (KIP-714, KIP-1142).
VERSION_OF_TYPES: Final = 1
TYPES: Final = (
    RESOURCE_GROUP,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
)


def handle(
    long_answers: LongAnswers,
    topics: Topics,
    view: ClusterView,
    context: RequestContext,
    request: ListConfigResourcesRequest,
) -> Message | None:
    """List the resources of the types asked for; no type asks for all types."""
    asked = request.resource_types or list(TYPES)
    if context.api_version < VERSION_OF_TYPES:
        asked = [RESOURCE_CLIENT_METRICS]
    if any(each not in TYPES for each in asked):
        return ListConfigResourcesResponse(error_code=errors.UNSUPPORTED_VERSION)
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, topics, view, dict.fromkeys(asked)))


def _steps(
    answer: LongAnswer, topics: Topics, view: ClusterView, asked: dict[int, None]
) -> Iterator[int]:
    answer.open(ListConfigResourcesResponse())
    for each in TYPES:
        if each in asked:
            for name in _names(topics, view, each):
                answer.add(ConfigResource(name, each))
                yield 1


def _names(topics: Topics, view: ClusterView, resource_type: int) -> list[str]:
    if resource_type in (RESOURCE_BROKER_LOGGER, RESOURCE_BROKER):
        return [str(broker_id) for broker_id in view.broker_ids]
    if resource_type == RESOURCE_TOPIC:
        return topics.names()
    if resource_type == RESOURCE_GROUP:
        return sorted(view.state.group_configs)
    return []
