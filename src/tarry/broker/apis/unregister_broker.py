"""UnregisterBroker (key 64): a broker that will not come back leaves the cluster."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.unregistration import Unregistration
from tarry.protocol.message import Message
from tarry.protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

# Time-out of the request, which has none of its own.
TIMEOUT_MS: Final = 20_000


def handle(
    changes: MetadataChanges, context: RequestContext, request: UnregisterBrokerRequest
) -> Message | None:
    """Unregister a broker that is dead and has no replicas."""
    _ask(changes, context, request.broker_id, context.now_ms + TIMEOUT_MS)
    return None


def _ask(
    changes: MetadataChanges, context: RequestContext, broker_id: int, deadline_ms: int
) -> None:
    change = Unregistration(broker_id)

    def answer(error_code: int, sentence: str) -> Message | None:
        if error_code != errors.NONE:
            change.fail(error_code, sentence)
        if not change.is_last:
            _ask(changes, context, broker_id, deadline_ms)
            return None
        return UnregisterBrokerResponse(error_code=change.error_code, error_message=change.message)

    changes.ask(context, change, answer, deadline_ms - context.now_ms)
