"""ShareGroupHeartbeat (key 76): refused until there are share groups (KIP-932).

The key is advertised all the same, as ConsumerGroupHeartbeat is: if the key is missing, the share
consumer of librdkafka waits for ever and reports nothing.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

REFUSAL: Final = "this broker has no share groups (KIP-932) yet; use a consumer group"


def handle(context: RequestContext, request: ShareGroupHeartbeatRequest) -> Message | None:
    """Refuse every member; a client gives up at this code."""
    context.report(f"client {context.client_id}, group {request.group_id}: {REFUSAL}", "KIP-932")
    return ShareGroupHeartbeatResponse(error_code=errors.UNSUPPORTED_VERSION, error_message=REFUSAL)
