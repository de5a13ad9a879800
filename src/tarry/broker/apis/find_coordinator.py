"""FindCoordinator (key 10): the broker that coordinates a group.  Creates `__consumer_offsets`.

Coordinators of transactions and of share groups do not exist yet.  The answer for them must stop
the client's questions at once, and clients differ in what stops them: see `_refusal_code`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tarry.base import errors
from tarry.broker.coordinator.coordinator import Coordinator
from tarry.broker.coordinator.coordinators import Coordinators
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.metadata.cluster_view import ClusterView
from tarry.broker.once import once
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.replica_choice import REPLICAS_MAX
from tarry.protocol.message import Message
from tarry.protocol.messages import find_coordinator as messages
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

TRANSACTION: Final = 1
SHARE: Final = 2

# KIP-699: from this version on a request may have several keys.
VERSION_OF_BATCHES: Final = 4
CREATE_TIMEOUT_MS: Final = 30_000

_REFUSALS: Final[dict[int, str]] = {
    TRANSACTION: "this broker has no transactions yet; produce without a transactional.id",
    SHARE: "this broker has no share groups yet; consume with a consumer group",
}


def handle(
    long_answers: LongAnswers,
    coordinators: Coordinators,
    changes: MetadataChanges,
    view: ClusterView,
    context: RequestContext,
    request: FindCoordinatorRequest,
) -> Message | None:
    """Answer with the coordinator's broker, once the coordinator's topic exists."""
    coordinator = coordinators.of_key_type(request.key_type)
    if coordinator is None or view.state.topic(coordinator.topic) is not None:
        return _response(long_answers, coordinator, view, context, request)

    # In a cluster the topic waits for as many brokers as its settings want: on fewer replicas the
    # groups would be lost with those.
    registered = len(view.state.brokers)
    brokers = 1
    if registered:
        brokers = min(coordinator.factor_wanted(changes.settings, registered), REPLICAS_MAX)
    change = changes.creation([coordinator.topic_wanted(changes.settings, brokers)])

    def answer(error_code: int, sentence: str) -> Message | None:
        for outcome in change.outcomes:
            if outcome.error_code == errors.INVALID_REPLICATION_FACTOR:
                context.report(f"{coordinator.topic} is not made yet: {outcome.message}")
        return _response(long_answers, coordinator, view, context, request)

    changes.ask(context, change, answer, CREATE_TIMEOUT_MS)
    return None


def _response(
    long_answers: LongAnswers,
    coordinator: Coordinator[Any] | None,
    view: ClusterView,
    context: RequestContext,
    request: FindCoordinatorRequest,
) -> Message | None:
    if context.api_version >= VERSION_OF_BATCHES:
        answer = LongAnswer(context)
        return long_answers.begin(answer, _steps(answer, coordinator, view, request))
    found = _coordinator(coordinator, view, context, request.key, request.key_type)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _steps(
    answer: LongAnswer,
    coordinator: Coordinator[Any] | None,
    view: ClusterView,
    request: FindCoordinatorRequest,
) -> Iterator[int]:
    answer.open(FindCoordinatorResponse())
    for key in once(request.coordinator_keys):
        answer.add(_coordinator(coordinator, view, answer.context, key, request.key_type))
        yield 1


def _coordinator(
    coordinator: Coordinator[Any] | None,
    view: ClusterView,
    context: RequestContext,
    key: str,
    key_type: int,
) -> messages.Coordinator:
    if coordinator is None:
        sentence = _REFUSALS.get(
            key_type, f"there is no coordinator of type {key_type}; 0 is that of groups"
        )
        context.report(
            f"client {context.client_id}, coordinator of {key}: {sentence}",
            "transactions" if key_type == TRANSACTION else "",
        )
        return _none(key, _refusal_code(context, key_type), sentence)
    index = coordinator.index_of(key)
    leader_id = -1
    if index >= 0:
        row = view.state.topics[coordinator.topic].partitions[index]
        # If this broker may have lost the partition, the view names no leader here, and the client
        # asks another broker.
        leader_id = view.leader(coordinator.topic, index, row)
    if leader_id < 0 or (leader_id == view.own_id and coordinator.shard_of(key) is None):
        return _none(
            key,
            errors.COORDINATOR_NOT_AVAILABLE,
            f"the partition of {coordinator.topic} that keeps it is not there, or nobody leads it; "
            "ask again, and see the broker's log if it stays so",
        )
    found = view.endpoint(leader_id, context.connection.listener)
    return messages.Coordinator(
        key=key, node_id=found.broker_id, host=found.host, port=found.port, error_code=errors.NONE
    )


def _refusal_code(context: RequestContext, key_type: int) -> int:
    """Return the code after which a client asks no more (docs/explanation/protocol-traps.md, 20).

    librdkafka asks in version 2, and repeats the question for ever after INVALID_REQUEST.  Java
    asks in version 6, stops at either code, and shows our sentence only with INVALID_REQUEST.
    """
    if key_type == TRANSACTION and context.api_version < VERSION_OF_BATCHES:
        return errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return errors.INVALID_REQUEST


def _none(key: str, error_code: int, sentence: str) -> messages.Coordinator:
    return messages.Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=error_code, error_message=sentence
    )
