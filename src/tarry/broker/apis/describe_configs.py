"""DescribeConfigs (key 32): settings of topics, of this broker, of its loggers and of groups.

Each setting says where it comes from.  The coordinator of a group adds its notes about the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tarry.base import errors
from tarry.base.doors import LogLevels
from tarry.base.settings import Settings
from tarry.broker import loggers
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.groups.memory import NOTES_KEY, note_entries
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.metadata.config_changes import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from tarry.broker.once import ELEMENTS_PER_UNIT
from tarry.broker.replication.calendars import CALENDARS_KEY, Calendars, calendar_entries
from tarry.broker.request import RequestContext
from tarry.cluster.configs.config_changes import ConfigRefusal
from tarry.cluster.configs.config_decisions import broker_named
from tarry.cluster.configs.config_entries import (
    DescribedConfig,
    broker_entries,
    client_metrics_entries,
    cluster_entries,
    group_entries,
    logger_entries,
    note_configs,
    topic_entries,
)
from tarry.cluster.state.records import EVERY_BROKER
from tarry.cluster.state.scheduled_topics import ScheduledTopicState, readable_topic
from tarry.cluster.state.state import ClusterState
from tarry.cluster.state.topic_names import name_fault
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

# Estimated size of one setting in an answer with its documentation and synonyms, in bytes.
CONFIG_BYTES: Final = 512


class ConfigSources(NamedTuple):
    """Sources of the settings that this API describes."""

    state: ClusterState
    settings: Settings
    groups: GroupCoordinator
    levels: LogLevels
    calendars: Calendars


def handle(
    long_answers: LongAnswers,
    sources: ConfigSources,
    context: RequestContext,
    request: DescribeConfigsRequest,
) -> Message | None:
    """Describe each resource by itself; a resource that is named twice is described once."""
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, sources, request))


def _steps(
    answer: LongAnswer, sources: ConfigSources, request: DescribeConfigsRequest
) -> Iterator[int]:
    answer.open(DescribeConfigsResponse())
    resources: dict[tuple[int, str], DescribeConfigsResource] = {}
    for resource in request.resources:
        resources.setdefault((resource.resource_type, resource.resource_name), resource)
    yield len(request.resources) // ELEMENTS_PER_UNIT
    for resource in resources.values():
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            if resource.resource_type == RESOURCE_GROUP:
                entries = _group(sources, resource)
            elif _asks_for_calendars(resource):
                entries = _calendars(sources, resource)
            else:
                entries = _entries(sources.state, sources.settings, sources.levels, resource)
        except ConfigRefusal as refusal:
            result.error_code = refusal.error_code
            result.error_message = refusal.message
        else:
            result.error_message = ""
            result.configs = _asked(entries, resource, request)
        if not answer.has_room(CONFIG_BYTES * len(result.configs)):
            result.configs = []
            result.error_code = errors.INVALID_REQUEST
            result.error_message = "the answer would be too large; describe less at once"
        answer.add(result)
        yield 1 + len(resource.configuration_keys or ()) // ELEMENTS_PER_UNIT


def _entries(
    state: ClusterState, settings: Settings, levels: LogLevels, resource: DescribeConfigsResource
) -> list[DescribedConfig]:
    """Return all settings of the resource; raise `ConfigRefusal` if there is no such resource."""
    resource_type, name = resource.resource_type, resource.resource_name
    if resource_type == RESOURCE_TOPIC:
        return _topic(state, settings, name)
    if resource_type == RESOURCE_BROKER:
        if broker_named(name, settings) == EVERY_BROKER:
            return cluster_entries(state.configs_of_broker(EVERY_BROKER))
        return broker_entries(settings)
    if resource_type == RESOURCE_BROKER_LOGGER:
        loggers.check_broker(name, settings)
        return logger_entries(loggers.levels(levels))
    if resource_type == RESOURCE_CLIENT_METRICS:
        if not name:
            raise ConfigRefusal(errors.INVALID_REQUEST, "client metrics must be named")
        return client_metrics_entries()
    raise ConfigRefusal(errors.INVALID_REQUEST, f"there is no resource type {resource_type}")


def _group(sources: ConfigSources, resource: DescribeConfigsResource) -> list[DescribedConfig]:
    name = resource.resource_name
    if not name:
        raise ConfigRefusal(errors.INVALID_REQUEST, "a group must be named")
    if NOTES_KEY in (resource.configuration_keys or ()):
        return note_configs(note_entries(sources.groups, name))
    return group_entries(sources.state.group_configs.get(name, {}))


def _asks_for_calendars(resource: DescribeConfigsResource) -> bool:
    is_broker = resource.resource_type == RESOURCE_BROKER
    return is_broker and CALENDARS_KEY in (resource.configuration_keys or ())


def _calendars(sources: ConfigSources, resource: DescribeConfigsResource) -> list[DescribedConfig]:
    """Return how far the calendars of other brokers are from this broker's, if asked by name."""
    if broker_named(resource.resource_name, sources.settings) == EVERY_BROKER:
        raise ConfigRefusal(errors.INVALID_REQUEST, "calendars are compared by one broker: name it")
    return note_configs(calendar_entries(sources.calendars))


def _topic(state: ClusterState, settings: Settings, name: str) -> list[DescribedConfig]:
    fault = name_fault(name)
    if fault:
        raise ConfigRefusal(errors.INVALID_TOPIC_EXCEPTION, fault)
    topic = readable_topic(state, name)
    if topic is None:
        raise ConfigRefusal(errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    # A virtual topic has the settings of the topic whose records it shows.
    is_virtual = isinstance(topic, ScheduledTopicState)
    return topic_entries(topic.configs, settings, is_read_only=is_virtual)


def _asked(
    entries: list[DescribedConfig],
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
) -> list[DescribeConfigsResourceResult]:
    """Return the entries that the request asks for; null or an empty list of keys asks for all."""
    keys = dict.fromkeys(resource.configuration_keys or ())
    if resource.resource_type == RESOURCE_GROUP and NOTES_KEY in keys:
        keys = {}
    if _asks_for_calendars(resource):
        keys = {}
    return [_config(entry, request) for entry in entries if not keys or entry.key in keys]


def _config(
    entry: DescribedConfig, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
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
