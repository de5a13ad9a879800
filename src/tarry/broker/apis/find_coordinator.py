"""FindCoordinator (key 10): which broker leads a group; `__consumer_offsets` is made for it.

Coordinators of transactions and of share groups do not exist yet.  What is answered instead must
end the client's question at once, and clients differ: see `_refusal_code`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tarry.base import errors
from tarry.broker.cluster_answers import address_for
from tarry.broker.coordinator.coordinator import Coordinator
from tarry.broker.metadata_writes import MetadataWrite, propose_or_wait
from tarry.broker.request import RequestContext
from tarry.cluster.topic_decisions import decide_create_topics
from tarry.protocol.message import Message
from tarry.protocol.messages import find_coordinator as messages
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

TRANSACTION: Final = 1
SHARE: Final = 2

# KIP-699: from here on several keys in a request.
VERSION_OF_BATCHES: Final = 4
CREATE_TIMEOUT_MS: Final = 30_000

_REFUSALS: Final[dict[int, str]] = {
    TRANSACTION: "this broker has no transactions yet; produce without a transactional.id",
    SHARE: "this broker has no share groups yet; consume with a consumer group",
}


class InternalTopicWrite(MetadataWrite):
    """Waits until the internal topic is there, then answers."""

    def __init__(
        self, broker: Broker, context: RequestContext, request: FindCoordinatorRequest
    ) -> None:
        super().__init__(context.now_ms + CREATE_TIMEOUT_MS)
        self.broker = broker
        self.context = context
        self.request = request

    def on_complete(self) -> None:
        self.tell_changes()
        self.context.respond(_response(self.broker, self.context, self.request))


def handle(
    broker: Broker, context: RequestContext, request: FindCoordinatorRequest
) -> Message | None:
    """Answer with this broker, once the topic that keeps the groups is there."""
    coordinator = broker.coordinators.of_key_type(request.key_type)
    if coordinator is None or coordinator.topic in broker.topics:
        return _response(broker, context, request)
    write = InternalTopicWrite(broker, context, request)
    context.operation = write
    create_internal_topic(broker, context, coordinator, write)
    return None


def create_internal_topic(
    broker: Broker,
    context: RequestContext,
    coordinator: Coordinator[Any],
    write: MetadataWrite,
) -> None:
    """Make the topic that keeps a coordinator; if it is being made already, wait for that."""
    settings = broker.settings
    wanted = coordinator.topic_wanted(settings, len(broker.store.latest.broker_ids))
    decision = decide_create_topics(broker.store.latest, [wanted], settings, broker.random)
    write.note_changes(broker.store.latest, context, decision.records)
    propose_or_wait(broker, decision.records, write)


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


def _coordinator(
    broker: Broker, context: RequestContext, key: str, key_type: int
) -> messages.Coordinator:
    coordinator = broker.coordinators.of_key_type(key_type)
    if coordinator is None:
        sentence = _REFUSALS.get(
            key_type, f"there is no coordinator of type {key_type}; 0 is that of groups"
        )
        context.report(
            f"client {context.client_id}, coordinator of {key}: {sentence}",
            "transactions" if key_type == TRANSACTION else "",
        )
        return _none(key, _refusal_code(context, key_type), sentence)
    if coordinator.shard_of(key) is None:
        return _none(
            key,
            errors.COORDINATOR_NOT_AVAILABLE,
            f"{coordinator.topic} is not there yet; ask again, and see the broker's log if it "
            "stays so",
        )
    host, port = address_for(broker, context)
    return messages.Coordinator(
        key=key, node_id=broker.broker_id, host=host, port=port, error_code=errors.NONE
    )


def _refusal_code(context: RequestContext, key_type: int) -> int:
    """The code that clients take for the last word (docs/explanation/protocol-traps.md, 20).

    librdkafka asks in version 2, and after INVALID_REQUEST again for ever.  Java, which asks in
    version 6, ends with either code, and shows our sentence only with INVALID_REQUEST.
    """
    if key_type == TRANSACTION and context.api_version < VERSION_OF_BATCHES:
        return errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return errors.INVALID_REQUEST


def _none(key: str, error_code: int, sentence: str) -> messages.Coordinator:
    return messages.Coordinator(
        key=key, node_id=-1, host="", port=-1, error_code=error_code, error_message=sentence
    )
