"""ListTransactions (key 66): there are no transactions, so none of them is listed."""

from __future__ import annotations

from typing import Final

from tarry.broker.request import RequestContext
from tarry.protocol.message import Message
from tarry.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

STATES: Final = (
    "CompleteAbort",
    "CompleteCommit",
    "Dead",
    "Empty",
    "Ongoing",
    "PrepareAbort",
    "PrepareCommit",
    "PrepareEpochFence",
)


def handle(context: RequestContext, request: ListTransactionsRequest) -> Message | None:
    """Return an empty list, and the state filters that are no states of Kafka's."""
    unknown = dict.fromkeys(state for state in request.state_filters if state not in STATES)
    return ListTransactionsResponse(unknown_state_filters=list(unknown))
