"""Appends to an internal topic that are not settled yet, and the requests that wait for them.

Such a request waits for the high watermark, with the partition as its watch key.  When it expires,
it is answered COORDINATOR_NOT_AVAILABLE; its records stay, and count once they are durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tarry.broker.coordinator.tickets import Tickets
from tarry.purgatory.operation import PayloadOperation


class PendingAppend:
    """Append whose records are applied when the high watermark has reached `required_offset`.

    `append` is the state's own description of it, which the state gets back with the outcome.
    """

    __slots__ = ("append", "base_offset", "is_settled", "records", "required_offset")

    def __init__(
        self, append: Any, records: Sequence[Any], base_offset: int, required_offset: int
    ) -> None:
        self.append = append
        self.records = records
        self.base_offset = base_offset
        self.required_offset = required_offset
        # True once the append was applied, has failed or was dropped: then its request is answered.
        self.is_settled = False


class DelayedRecorded(PayloadOperation[PendingAppend]):
    """Wait of a request, which its ticket names, until an append is settled."""

    def __init__(
        self, tickets: Tickets, pending: PendingAppend, ticket: int, deadline_ms: int
    ) -> None:
        super().__init__(deadline_ms, pending)
        self.tickets = tickets
        self.ticket = ticket

    def is_ready(self, payload: PendingAppend) -> bool:
        return payload.is_settled

    def complete_with(self, payload: PendingAppend) -> None:
        if not payload.is_settled:
            self.tickets.time_out(self.ticket)
