"""FindCoordinator (key 10): which broker leads a group; `__consumer_offsets` is made for it.

Coordinators of transactions and of share groups do not exist yet.  What is answered instead must
end the client's question at once, and clients differ: see `_refusal_code`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.broker.request import RequestContext
from tarry.cluster.change import Change
from tarry.cluster.state import ClusterState
from tarry.cluster.topic_decisions import (
    TopicChange,
    TopicDecision,
    TopicIds,
    TopicWanted,
    decide_create_topics,
)
from tarry.cluster.topic_names import OFFSETS_TOPIC
from tarry.protocol.message import Message
from tarry.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

GROUP: Final = 0
TRANSACTION: Final = 1
SHARE: Final = 2

# KIP-699: from here on several keys in a request.
VERSION_OF_BATCHES: Final = 4
# What a topic's segment.bytes is at least; the broker's setting may be less, as in Kafka.
SEGMENT_BYTES_MIN: Final = 1024 * 1024
CREATE_TIMEOUT_MS: Final = 30_000

_REFUSALS: Final[dict[int, str]] = {
    TRANSACTION: "this broker has no transactions yet; produce without a transactional.id",
    SHARE: "this broker has no share groups yet; consume with a consumer group",
}


def handle(broker: Broker, context: RequestContext, request: Message) -> Message | None:
    """Answer with this broker, once the topic that keeps the groups is there."""
    assert isinstance(request, FindCoordinatorRequest)
    if request.key_type != GROUP or OFFSETS_TOPIC in broker.topics:
        return _response(broker, context, request)

    def answer(error_code: int, sentence: str) -> Message:
        return _response(broker, context, request)

    broker.changes.ask(context, _creation(broker), answer, CREATE_TIMEOUT_MS)
    return None


def _creation(broker: Broker) -> Change:
    """Return the change that makes `__consumer_offsets`, or waits while others make it."""
    settings = broker.settings
    ids = TopicIds(broker.random)

    def decide(view: ClusterState) -> TopicDecision:
        wanted = TopicWanted(
            OFFSETS_TOPIC,
            settings.offsets_topic_num_partitions,
            min(settings.offsets_topic_replication_factor, len(view.broker_ids)),
            [],
            [
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                (
                    "segment.bytes",
                    str(max(settings.offsets_topic_segment_bytes, SEGMENT_BYTES_MIN)),
                ),
            ],
        )
        return decide_create_topics(view, [wanted], settings, ids)

    return TopicChange(decide)


def _response(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    if context.api_version >= VERSION_OF_BATCHES:
        return FindCoordinatorResponse(
            coordinators=[
                _coordinator(broker, context, key, request.key_type)
                for key in request.coordinator_keys
            ]
        )
    found = _coordinator(broker, context, request.key, request.key_type)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _coordinator(broker: Broker, context: RequestContext, key: str, key_type: int) -> Coordinator:
    if key_type != GROUP:
        sentence = _REFUSALS.get(
            key_type, f"there is no coordinator of type {key_type}; 0 is that of groups"
        )
        context.report(
            f"client {context.client_id}, coordinator of {key}: {sentence}",
            "transactions" if key_type == TRANSACTION else "",
        )
        return _none(key, _refusal_code(context, key_type), sentence)
    if broker.coordinator.shard_of(key) is None:
        return _none(
            key,
            errors.COORDINATOR_NOT_AVAILABLE,
            f"{OFFSETS_TOPIC} is not there yet; ask again, and see the broker's log if it stays so",
        )
    found = broker.cluster_view.endpoint(broker.broker_id, context.connection.listener)
    return Coordinator(
        key=key, node_id=found.broker_id, host=found.host, port=found.port, error_code=errors.NONE
    )


def _refusal_code(context: RequestContext, key_type: int) -> int:
    """The code that clients take for the last word (docs/explanation/protocol-traps.md, 20).

    librdkafka asks in version 2, and after INVALID_REQUEST again for ever.  Java, which asks in
    version 6, ends with either code, and shows our sentence only with INVALID_REQUEST.
    """
    if key_type == TRANSACTION and context.api_version < VERSION_OF_BATCHES:
        return errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return errors.INVALID_REQUEST


def _none(key: str, error_code: int, sentence: str) -> Coordinator:
    return Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=error_code, error_message=sentence
    )
