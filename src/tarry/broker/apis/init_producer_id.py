"""InitProducerId (key 22): an id for an idempotent producer.

Ids are reserved durably in blocks, so none is ever given out twice.  A producer without a
transactional id always gets a fresh id with epoch 0, also when it names the one that it had: that
is what Apache Kafka does, and a producer that bumps its epoch (KIP-360) does it by itself.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.broker.metadata.changes import ChangeRequest, MetadataChanges
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.producer_ids import NONE_LEFT, ProducerIds
from tarry.protocol.message import Message
from tarry.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

# The request has no time-out that concerns us.  Past this the client is told to try again.
RESERVATION_MS_MAX: Final = 5_000

NO_EPOCH: Final = -1


def handle(
    ids: ProducerIds,
    changes: MetadataChanges,
    context: RequestContext,
    request: InitProducerIdRequest,
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
    return _take(ids, changes, context, context.now_ms + RESERVATION_MS_MAX)


def _take(
    ids: ProducerIds, changes: MetadataChanges, context: RequestContext, deadline_ms: int
) -> InitProducerIdResponse | None:
    """Return the answer, or None while ids are being reserved."""
    producer_id = ids.take()
    if producer_id != NONE_LEFT:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    def answer(error_code: int, sentence: str) -> InitProducerIdResponse | None:
        if error_code != errors.NONE:
            # A code that every client takes for "ask again".
            return _refusal(errors.COORDINATOR_LOAD_IN_PROGRESS)
        return _take(ids, changes, context, deadline_ms)

    changes.wait(ChangeRequest(context, ids.reserve(), answer), deadline_ms)
    return None


def _refusal(error_code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error_code, producer_id=NONE_LEFT, producer_epoch=NO_EPOCH
    )
