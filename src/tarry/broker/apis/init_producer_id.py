"""InitProducerId (key 22): an id for an idempotent producer.

Ids are reserved durably in blocks, so no id is ever given out twice.  A producer without a
transactional id always gets a new id with epoch 0, also if it names its present id.  Apache Kafka
does the same, and a producer that raises its epoch (KIP-360) does so by itself.
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

# The request has no useful time-out.  After this time the client is told to try again.
RESERVATION_MS_MAX: Final = 5_000

NO_EPOCH: Final = -1


def handle(
    ids: ProducerIds,
    changes: MetadataChanges,
    context: RequestContext,
    request: InitProducerIdRequest,
) -> Message | None:
    """Give out an id: at once if a reserved one is left."""
    if request.transactional_id is not None:
        # There are no transactions.  Every client stops asking after this code.
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
    """Return the answer, or None if new ids have to be reserved first."""
    producer_id = ids.take()
    if producer_id != NONE_LEFT:
        return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)

    def answer(error_code: int, sentence: str) -> InitProducerIdResponse | None:
        if error_code != errors.NONE:
            # Every client tries again after this code.
            return _refusal(errors.COORDINATOR_LOAD_IN_PROGRESS)
        return _take(ids, changes, context, deadline_ms)

    changes.wait(ChangeRequest(context, ids.reserve(), answer), deadline_ms)
    return None


def _refusal(error_code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error_code, producer_id=NONE_LEFT, producer_epoch=NO_EPOCH
    )
