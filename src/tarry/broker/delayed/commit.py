"""DelayedCommit: an answer that waits until what it is about is below the high watermark.

Watched under the coordinator's partition, for `offsets.commit.timeout.ms`.  Expired, it answers
REQUEST_TIMED_OUT; the records stay, and count once they are durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarry.broker.coordinator.pending import PendingAppend
from tarry.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from tarry.broker.coordinator.coordinator import Coordinator


class DelayedCommit(DelayedOperation):
    """The answer to a commit or a deletion, known by its ticket."""

    def __init__(
        self, coordinator: Coordinator, pending: PendingAppend, ticket: int, deadline_ms: int
    ) -> None:
        super().__init__(deadline_ms)
        self.coordinator: Coordinator | None = coordinator
        self.pending: PendingAppend | None = pending
        self.ticket = ticket

    def try_complete(self) -> bool:
        pending = self.pending
        if pending is not None and not pending.is_settled:
            return False
        return self.force_complete()

    def on_complete(self) -> None:
        # Completed operations linger under their keys: keep nothing alive (KAFKA-19389).
        self.pending = None

    def on_expiration(self) -> None:
        coordinator = self.coordinator
        self.coordinator = None
        if coordinator is not None:
            coordinator.time_out(self.ticket)
