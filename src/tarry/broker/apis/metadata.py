"""Metadata (key 3): brokers and topics, by name or id; and topics that come into being by it.

A topic that is not there is made if the broker (`auto.create.topics.enable`) and the request
consent; the answer then waits until it is there, so that the client need not ask twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.broker.cluster_answers import (
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    address_for,
    offline_replicas,
)
from tarry.broker.metadata_writes import MetadataWrite, propose_or_wait
from tarry.broker.request import RequestContext
from tarry.cluster.state import PartitionState, TopicState
from tarry.cluster.topic_decisions import TopicWanted, decide_create_topics
from tarry.cluster.topic_names import is_internal, name_fault
from tarry.protocol.message import ZERO_UUID, Message
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

# Before this version there is no null, and an empty list asks for all topics.
VERSION_OF_NULL_TOPICS: Final = 1
# Versions 10 and 11 have a topic id in the request, but it was not to be used (KIP-516).
VERSION_OF_TOPIC_IDS: Final = 12

# How long an answer waits for the topics that it makes.
CREATION_MS_MAX: Final = 5_000


class CreatedByMetadata(MetadataWrite):
    """Waits until the topics that a client asked for are made, then answers."""

    def __init__(self, broker: Broker, context: RequestContext, request: MetadataRequest) -> None:
        super().__init__(broker.now_ms + CREATION_MS_MAX)
        self.broker = broker
        self.context = context
        self.request = request
        # Topics that cannot be made, and why.
        self.refused: dict[str, int] = {}

    def on_complete(self) -> None:
        self.tell_changes()
        self.context.respond(_answer(self.broker, self.context, self.request, self.refused))


def handle(broker: Broker, context: RequestContext, request: MetadataRequest) -> Message | None:
    """Answer at once, or when the topics to be made are there."""
    if request.topics is not None and not _is_well_formed(request.topics, context.api_version):
        return _malformed(request.topics)
    missing = _missing(broker, request) if request.allow_auto_topic_creation else []
    if not missing or not broker.settings.auto_create_topics_enable:
        return _answer(broker, context, request, {})
    view = broker.store.latest
    decision = decide_create_topics(
        view, [TopicWanted(name) for name in missing], broker.settings, broker.random
    )
    write = CreatedByMetadata(broker, context, request)
    for outcome in decision.outcomes:
        # One that is there already for decisions is about to be: it is waited for.
        if outcome.error_code not in (errors.NONE, errors.TOPIC_ALREADY_EXISTS):
            write.refused[outcome.name or ""] = outcome.error_code
    context.operation = write
    write.note_changes(view, context, decision.records)
    propose_or_wait(broker, decision.records, write)
    return None


def _is_well_formed(topics: list[MetadataRequestTopic], api_version: int) -> bool:
    if api_version >= VERSION_OF_TOPIC_IDS:
        return all(topic.name is not None or topic.topic_id != ZERO_UUID for topic in topics)
    return all(topic.name is not None and topic.topic_id == ZERO_UUID for topic in topics)


def _malformed(topics: list[MetadataRequestTopic]) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                error_code=errors.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id
            )
            for topic in topics
        ],
        error_code=errors.INVALID_REQUEST,
    )


def _missing(broker: Broker, request: MetadataRequest) -> list[str]:
    """Topics asked for by a possible name that are not there."""
    names = {
        topic.name: None
        for topic in request.topics or []
        if topic.name is not None and topic.topic_id == ZERO_UUID
    }
    return [
        name
        for name in names
        if broker.cluster.topic(name) is None and not name_fault(name) and not is_internal(name)
    ]


# -- the answer


def _answer(
    broker: Broker, context: RequestContext, request: MetadataRequest, refused: dict[str, int]
) -> MetadataResponse:
    host, port = address_for(broker, context)
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=broker.broker_id, host=host, port=port, rack=broker.settings.broker_rack
            )
        ],
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.broker_id,
        topics=_topics(broker, context, request, refused),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.error_code == errors.NONE:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    return response


def _topics(
    broker: Broker, context: RequestContext, request: MetadataRequest, refused: dict[str, int]
) -> list[MetadataResponseTopic]:
    cluster = broker.cluster
    asked = request.topics
    if asked is None or (not asked and context.api_version < VERSION_OF_NULL_TOPICS):
        return [_described(broker, cluster.topics[name]) for name in sorted(cluster.topics)]
    topics: dict[tuple[str | None, bytes], MetadataResponseTopic] = {}
    for each in asked:
        name = each.name if each.topic_id == ZERO_UUID else None
        key = (name, each.topic_id)
        if key not in topics:
            topics[key] = _topic(broker, context, name, each.topic_id, refused)
    return list(topics.values())


def _topic(
    broker: Broker,
    context: RequestContext,
    name: str | None,
    topic_id: bytes,
    refused: dict[str, int],
) -> MetadataResponseTopic:
    if name is None:
        topic = broker.cluster.topic_by_id(topic_id)
        error_code = errors.UNKNOWN_TOPIC_ID
    else:
        topic = broker.cluster.topic(name)
        error_code = refused.get(name, errors.UNKNOWN_TOPIC_OR_PARTITION)
        fault = name_fault(name)
        if fault:
            error_code = errors.INVALID_TOPIC_EXCEPTION
            context.report(f"invalid topic name: {fault}")
    if topic is not None:
        return _described(broker, topic)
    return MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
    )


def _described(broker: Broker, topic: TopicState) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[_partition(broker, topic.name, partition) for partition in topic.partitions],
    )


def _partition(broker: Broker, topic: str, partition: PartitionState) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=partition.index,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        offline_replicas=offline_replicas(broker, topic, partition.index),
    )
