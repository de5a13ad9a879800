"""Appends on their way into an internal topic, and the requests that wait for them.

Such a request waits for the high watermark under the key of the partition.  Expired, it is told
COORDINATOR_NOT_AVAILABLE; the records stay, and count once they are durable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tarry.broker.coordinator.tickets import Tickets
from tarry.purgatory.operation import PayloadOperation


class PendingAppend:
    """Append on its way: its records are applied when the high watermark is at `required_offset`.

    `append` is the state's own word for it, which the state gets back with the outcome.
    """

    __slots__ = ("append", "base_offset", "is_settled", "records", "required_offset")

    def __init__(
        self, append: Any, records: Sequence[Any], base_offset: int, required_offset: int
    ) -> None:
        self.append = append
        self.records = records
        self.base_offset = base_offset
        self.required_offset = required_offset
        # The append was applied, has failed or was given up: nothing waits for it any more.
        self.is_settled = False


class DelayedRecorded(PayloadOperation[PendingAppend]):
    """Answer to a request, known by its ticket, that waits until an append is settled."""

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
