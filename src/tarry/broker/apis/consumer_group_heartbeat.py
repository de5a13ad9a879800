"""ConsumerGroupHeartbeat (key 68): refused until there are groups of KIP-848.

The key is advertised all the same, as by an Apache Kafka that has the new protocol switched off: if
the key is missing, librdkafka with group.protocol=consumer waits for ever and reports nothing.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

REFUSAL: Final = (
    "this broker has no groups of the new consumer protocol (KIP-848) yet; "
    "set group.protocol=classic"
)


def handle(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Message | None:
    """Refuse every member; a client gives up at this code."""
    context.report(f"client {context.client_id}, group {request.group_id}: {REFUSAL}", "KIP-848")
    return ConsumerGroupHeartbeatResponse(
        error_code=errors.UNSUPPORTED_VERSION, error_message=REFUSAL
    )
