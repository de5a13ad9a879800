"""DescribeConfigs (key 32): settings of topics and of this broker, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.base.setting import shown
from tarry.broker.request import RequestContext
from tarry.cluster.config_entries import ConfigEntry, broker_entries, topic_entries
from tarry.cluster.topic_names import name_fault
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

RESOURCE_TOPIC: Final = 2
RESOURCE_BROKER: Final = 4

# Kafka's names of the other types, for the sentence.
OTHER_RESOURCES: Final = {
    8: "a broker's loggers",
    16: "client metrics",
    32: "groups",
}


def handle(broker: Broker, context: RequestContext, request: Message) -> Message | None:
    """Answer every resource on its own, one that is named again only once."""
    assert isinstance(request, DescribeConfigsRequest)
    response = DescribeConfigsResponse()
    resources: dict[tuple[int, str], DescribeConfigsResource] = {}
    for resource in request.resources:
        resources.setdefault((resource.resource_type, resource.resource_name), resource)
    for resource in resources.values():
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        result.error_code, message, entries = _entries(broker, resource)
        result.error_message = message
        result.configs = [
            _config(entry, request) for entry in entries if _is_asked(entry, resource)
        ]
        response.results.append(result)
    return response


def _entries(
    broker: Broker, resource: DescribeConfigsResource
) -> tuple[int, str, list[ConfigEntry]]:
    """Error code, its sentence, and all settings of the resource."""
    if resource.resource_type == RESOURCE_TOPIC:
        return _topic(broker, resource.resource_name)
    if resource.resource_type == RESOURCE_BROKER:
        return _broker(broker, resource.resource_name)
    kind = OTHER_RESOURCES.get(resource.resource_type)
    if kind is None:
        message = f"there is no resource type {resource.resource_type}"
    else:
        message = f"settings of {kind} are not there yet"
    return errors.INVALID_REQUEST, message, []


def _topic(broker: Broker, name: str) -> tuple[int, str, list[ConfigEntry]]:
    fault = name_fault(name)
    if fault:
        return errors.INVALID_TOPIC_EXCEPTION, fault, []
    topic = broker.cluster.topic(name)
    if topic is None:
        return errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'", []
    return errors.NONE, "", topic_entries(topic.configs, broker.settings)


def _broker(broker: Broker, name: str) -> tuple[int, str, list[ConfigEntry]]:
    if not name:
        # What is set for all brokers of the cluster at run time: nothing can be.
        return errors.NONE, "", []
    if not (name.isascii() and name.isdigit() and len(name) <= 10):
        return errors.INVALID_REQUEST, f"a broker's id is a number, not '{shown(name)}'", []
    if int(name) != broker.broker_id:
        return (
            errors.INVALID_REQUEST,
            f"broker {broker.broker_id} knows its own settings, not those of broker {name}",
            [],
        )
    return errors.NONE, "", broker_entries(broker.settings)


def _is_asked(entry: ConfigEntry, resource: DescribeConfigsResource) -> bool:
    """No keys, null or an empty list, ask for all of them."""
    keys = resource.configuration_keys
    return not keys or entry.key in keys


def _config(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=entry.key,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        config_type=entry.kafka_type,
        documentation=entry.documentation if request.include_documentation else None,
    )
    if request.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=key, value=value, source=source)
            for key, value, source in entry.synonyms
        ]
    return result
