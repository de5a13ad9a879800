"""Metadata (key 3): brokers and topics, by name or id; and topics that come into being by it.

A topic that is not there is made if the broker (`auto.create.topics.enable`) and the request
consent; the answer then waits until it is there, so that the client need not ask twice.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.cluster_view import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, ClusterView
from tarry.broker.request import RequestContext
from tarry.cluster.records import PartitionRow
from tarry.cluster.state import ClusterState, TopicState
from tarry.cluster.topic_decisions import TopicResult, TopicWanted
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

# Before this version there is no null, and an empty list asks for all topics.
VERSION_OF_NULL_TOPICS: Final = 1
# Versions 10 and 11 have a topic id in the request, but it was not to be used (KIP-516).
VERSION_OF_TOPIC_IDS: Final = 12

# How long an answer waits for the topics that it makes.
CREATION_MS_MAX: Final = 5_000


def handle(
    view: ClusterView, changes: MetadataChanges, context: RequestContext, request: MetadataRequest
) -> Message | None:
    """Answer at once, or when the topics to be made are there."""
    if request.topics is not None and not _is_well_formed(request.topics, context.api_version):
        return _malformed(request.topics)
    missing = _missing(view.state, request) if request.allow_auto_topic_creation else []
    if not missing or not changes.settings.auto_create_topics_enable:
        return _answer(view, context, request, {})
    # Those beyond what one change creates are unknown for now: clients ask for them again.
    missing = missing[: changes.store.topics_max]
    change = changes.creation([TopicWanted(name) for name in missing])

    def answer(error_code: int, sentence: str) -> Message:
        return _answer(view, context, request, _refused(change.outcomes))

    changes.ask(context, change, answer, CREATION_MS_MAX)
    return None


def _refused(outcomes: list[TopicResult]) -> dict[str, int]:
    """Return the topics that cannot be made, and why.

    One that is there already for decisions is about to be: it is waited for.
    """
    return {
        outcome.name or "": outcome.error_code
        for outcome in outcomes
        if outcome.error_code not in (errors.NONE, errors.TOPIC_ALREADY_EXISTS)
    }


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


def _missing(state: ClusterState, request: MetadataRequest) -> list[str]:
    """Return the topics asked for by a possible name that are not there."""
    names = {
        topic.name: None
        for topic in request.topics or []
        if topic.name is not None and topic.topic_id == ZERO_UUID
    }
    return [
        name
        for name in names
        if state.topic(name) is None and not name_fault(name) and not is_internal(name)
    ]


# -- the answer


def _answer(
    view: ClusterView, context: RequestContext, request: MetadataRequest, refused: dict[str, int]
) -> MetadataResponse:
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack
            )
            for each in view.brokers(context.connection.listener)
        ],
        cluster_id=view.state.cluster_id,
        controller_id=view.controller_id,
        topics=_topics(view, context, request, refused),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.error_code == errors.NONE:
                topic.topic_authorized_operations = TOPIC_OPERATIONS
    return response


def _topics(
    view: ClusterView, context: RequestContext, request: MetadataRequest, refused: dict[str, int]
) -> list[MetadataResponseTopic]:
    cluster = view.state
    asked = request.topics
    if asked is None or (not asked and context.api_version < VERSION_OF_NULL_TOPICS):
        return [_described(view, cluster.topics[name]) for name in sorted(cluster.topics)]
    topics: dict[tuple[str | None, bytes], MetadataResponseTopic] = {}
    for each in asked:
        name = each.name if each.topic_id == ZERO_UUID else None
        key = (name, each.topic_id)
        if key not in topics:
            topics[key] = _topic(view, context, name, each.topic_id, refused)
    return list(topics.values())


def _topic(
    view: ClusterView,
    context: RequestContext,
    name: str | None,
    topic_id: bytes,
    refused: dict[str, int],
) -> MetadataResponseTopic:
    if name is None:
        topic = view.state.topic_by_id(topic_id)
        error_code = errors.UNKNOWN_TOPIC_ID
    else:
        topic = view.state.topic(name)
        error_code = refused.get(name, errors.UNKNOWN_TOPIC_OR_PARTITION)
        fault = name_fault(name)
        if fault:
            error_code = errors.INVALID_TOPIC_EXCEPTION
            context.report(f"invalid topic name: {fault}")
    if topic is not None:
        return _described(view, topic)
    return MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
    )


def _described(view: ClusterView, topic: TopicState) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=is_internal(topic.name),
        partitions=[
            _partition(view, topic.name, index, row) for index, row in enumerate(topic.partitions)
        ],
    )


def _partition(
    view: ClusterView, topic: str, index: int, row: PartitionRow
) -> MetadataResponsePartition:
    leader_id = view.leader(topic, index, row)
    return MetadataResponsePartition(
        error_code=errors.NONE if leader_id >= 0 else errors.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=leader_id,
        leader_epoch=row.leader_epoch,
        replica_nodes=row.replicas,
        isr_nodes=view.in_sync(row),
        offline_replicas=view.offline_replicas(topic, index, row),
    )
