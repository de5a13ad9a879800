"""Metadata (key 3): brokers and topics, by name or id.  A request may create missing topics.

A missing topic is created if the broker (`auto.create.topics.enable`) and the request allow it.
The answer then waits until the topic exists, so that the client need not ask twice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Final

from tarry.base import errors
from tarry.base.partition_row import PartitionRow
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.cluster_view import CLUSTER_OPERATIONS, TOPIC_OPERATIONS, ClusterView
from tarry.broker.once import ELEMENTS_PER_UNIT
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.topic_decisions import TopicResult, TopicWanted
from tarry.cluster.state.scheduled_topics import readable_topic, topic_shown_by
from tarry.cluster.state.state import ClusterState, TopicState
from tarry.cluster.state.topic_names import is_internal, name_fault
from tarry.protocol.message import ZERO_UUID, Message
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

# Before this version null is not allowed, and an empty list asks for all topics.
VERSION_OF_NULL_TOPICS: Final = 1
# Versions 10 and 11 have a topic id in the request, which must not be used (KIP-516).
VERSION_OF_TOPIC_IDS: Final = 12

# How long an answer waits for the topics that it creates.
CREATION_MS_MAX: Final = 5_000


def handle(
    long_answers: LongAnswers,
    view: ClusterView,
    changes: MetadataChanges,
    context: RequestContext,
    request: MetadataRequest,
) -> Message | None:
    """Answer now, or once the topics to be created exist."""

    def answer_later(refused: dict[str, int]) -> None:
        answer = LongAnswer(context)
        long_answers.begin(answer, _answer(answer, view, request, _once(request), refused))

    answer = LongAnswer(context)
    steps = _steps(answer, view, changes, request, answer_later)
    return long_answers.begin(answer, steps)


def _steps(
    answer: LongAnswer,
    view: ClusterView,
    changes: MetadataChanges,
    request: MetadataRequest,
    answer_later: Callable[[dict[str, int]], None],
) -> Iterator[int]:
    """Answer, or create the missing topics and answer when they exist."""
    asked = _once(request)
    yield len(request.topics or ()) // ELEMENTS_PER_UNIT
    if not _is_well_formed(asked, answer.api_version):
        yield from _malformed(answer, asked)
        return
    missing: list[str] = []
    if request.allow_auto_topic_creation and changes.settings.auto_create_topics_enable:
        # Topics beyond the limit of one change stay unknown for now: clients ask for them again.
        missing = yield from _missing(view.state, asked, changes.store.topics_max)
        missing = changes.auto_creations.admit(answer.context, missing)
    if not missing:
        yield from _answer(answer, view, request, asked, {})
        return
    change = changes.creation([TopicWanted(name) for name in missing])

    def answer_then(error_code: int, sentence: str) -> None:
        answer_later(_refused(change.outcomes))

    changes.ask(answer.context, change, answer_then, CREATION_MS_MAX)


def _refused(outcomes: list[TopicResult]) -> dict[str, int]:
    """Return the topics that cannot be created, with their error codes.

    A topic that exists for decisions already is left out: it is about to be created.
    """
    return {
        outcome.name or "": outcome.error_code
        for outcome in outcomes
        if outcome.error_code not in (errors.NONE, errors.TOPIC_ALREADY_EXISTS)
    }


# Topics that a request asks for: each by its name, or by its id.
Asked = dict[tuple[str | None, bytes], None]


def _once(request: MetadataRequest) -> Asked:
    return dict.fromkeys((each.name, each.topic_id) for each in request.topics or ())


def _is_well_formed(asked: Asked, api_version: int) -> bool:
    if api_version >= VERSION_OF_TOPIC_IDS:
        return all(name is not None or topic_id != ZERO_UUID for name, topic_id in asked)
    return all(name is not None and topic_id == ZERO_UUID for name, topic_id in asked)


def _malformed(answer: LongAnswer, asked: Asked) -> Iterator[int]:
    answer.open(MetadataResponse(error_code=errors.INVALID_REQUEST))
    for name, topic_id in asked:
        answer.add(
            MetadataResponseTopic(
                error_code=errors.INVALID_REQUEST, name=name or "", topic_id=topic_id
            )
        )
        yield 1


def _missing(state: ClusterState, asked: Asked, topics_max: int) -> Generator[int, None, list[str]]:
    """Return the names of the first topics that are missing and may be created."""
    names: list[str] = []
    for name, topic_id in asked:
        if name is None or topic_id != ZERO_UUID or len(names) == topics_max:
            continue
        if state.topic(name) is None:
            yield 1
            if not name_fault(name) and not is_internal(name) and not topic_shown_by(name):
                names.append(name)
    return names


# -- the answer


def _answer(
    answer: LongAnswer,
    view: ClusterView,
    request: MetadataRequest,
    asked: Asked,
    refused: dict[str, int],
) -> Iterator[int]:
    response = MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=each.broker_id, host=each.host, port=each.port, rack=each.rack
            )
            for each in view.brokers(answer.context.connection.listener)
        ],
        cluster_id=view.state.cluster_id,
        controller_id=view.controller_id,
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    answer.open(response)
    topics = view.state.topics
    if request.topics is None or (not asked and answer.api_version < VERSION_OF_NULL_TOPICS):
        for each in sorted(topics):
            if each in topics:
                yield from _described(answer, view, request, topics[each])
        return
    found: dict[tuple[str | None, bytes], None] = {}
    for name, topic_id in asked:
        # If a request has both name and id of a topic, the id counts.
        wanted = name if topic_id == ZERO_UUID else None
        if (wanted, topic_id) in found:
            continue
        found[wanted, topic_id] = None
        topic = readable_topic(view.state, wanted or "", topic_id)
        if topic is not None:
            yield from _described(answer, view, request, topic)
            continue
        answer.add(_unknown(answer.context, wanted, topic_id, refused))
        yield 1


def _unknown(
    context: RequestContext, name: str | None, topic_id: bytes, refused: dict[str, int]
) -> MetadataResponseTopic:
    error_code = errors.UNKNOWN_TOPIC_ID
    if name is not None:
        error_code = refused.get(name, errors.UNKNOWN_TOPIC_OR_PARTITION)
        fault = name_fault(name)
        if fault:
            error_code = errors.INVALID_TOPIC_EXCEPTION
            context.report(f"invalid topic name: {fault}")
    return MetadataResponseTopic(
        error_code=error_code,
        name=name,
        topic_id=topic_id,
        is_internal=name is not None and is_internal(name),
    )


def _described(
    answer: LongAnswer, view: ClusterView, request: MetadataRequest, topic: TopicState
) -> Iterator[int]:
    described = MetadataResponseTopic(
        name=topic.name, topic_id=topic.topic_id, is_internal=topic.is_internal
    )
    if request.include_topic_authorized_operations:
        described.topic_authorized_operations = TOPIC_OPERATIONS
    answer.open(described)
    yield 1
    for index, row in enumerate(list(topic.partitions)):
        answer.add(_partition(view, topic.hosted_name, index, row))
        yield 1
    answer.close()


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
