"""InitProducerId (key 22): an id for an idempotent producer.

Ids are reserved durably in blocks, so none is ever given out twice.  A producer without a
transactional id always gets a fresh id with epoch 0, also when it names the one that it had: that
is what Apache Kafka does, and a producer that bumps its epoch (KIP-360) does it by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base import errors
from tarry.broker.metadata_writes import MetadataWrite, wait_until_applied
from tarry.broker.request import RequestContext
from tarry.cluster.producer_ids import NONE_LEFT, decide_reserve_producer_ids
from tarry.protocol.message import Message
from tarry.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

# The request has no time-out that concerns us.  Past this the client is told to try again.
RESERVATION_MS_MAX: Final = 5_000

NO_EPOCH: Final = -1


class ReserveProducerIds(MetadataWrite):
    """Waits until ids are reserved, then tries again to take one."""

    def __init__(self, broker: Broker, context: RequestContext, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.broker = broker
        self.context = context

    def on_complete(self) -> None:
        if self.error_code != errors.NONE:
            # A code that every client takes for "ask again".
            self.context.respond(_refusal(errors.COORDINATOR_LOAD_IN_PROGRESS))
            return
        response = _take(self.broker, self.context, self.deadline_ms)
        if response is not None:
            self.context.respond(response)


def handle(
    broker: Broker, context: RequestContext, request: InitProducerIdRequest
) -> Message | None:
    """Give out an id, at once if one is left of those reserved."""
    if request.transactional_id is not None:
        # Transactions are not there; every client takes this code for the last word.
        context.report(
            f"client {context.client_id}, transactional.id {request.transactional_id}: "
            "this broker has no transactions yet",
            "transactions",
        )
        return _refusal(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if (request.producer_id == NONE_LEFT) != (request.producer_epoch == NO_EPOCH):
        return _refusal(errors.INVALID_REQUEST)
    return _take(broker, context, broker.now_ms + RESERVATION_MS_MAX)


def _take(
    broker: Broker, context: RequestContext, deadline_ms: int
) -> InitProducerIdResponse | None:
    """The answer, or None while ids are being reserved."""
    ids = broker.store.producer_ids
    producer_id = ids.take()
    if producer_id != NONE_LEFT:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
    write = ReserveProducerIds(broker, context, deadline_ms)
    context.operation = write
    if ids.awaited_offset >= 0:
        wait_until_applied(broker, ids.awaited_offset, write)
        return None
    broker.propose(decide_reserve_producer_ids(broker.store.latest), write)
    if not write.is_completed:
        ids.awaited_offset = write.required_offset
    return None


def _refusal(error_code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error_code, producer_id=NONE_LEFT, producer_epoch=NO_EPOCH
    )
