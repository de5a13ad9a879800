"""Shares of a request: thousands of partitions wait as operations of some of them.

A record that comes to one partition, or a flush of one, costs a look at its share and not at all
that the request names.  Hot.
"""

from __future__ import annotations

from tarry.purgatory.operation import DelayedOperation, PayloadOperation


class Shares:
    """Operations of one request that wait or have waited."""

    def __init__(self) -> None:
        self.operations: list[DelayedOperation] = []


class RequestInShares(PayloadOperation[Shares]):
    """Operation of a request whose partitions wait in shares.

    It waits in no purgatory itself.  Its completion, by the answer or because the peer has gone,
    ends the shares.
    """

    def __init__(self) -> None:
        super().__init__(0, Shares())

    def add(self, operation: DelayedOperation) -> None:
        """Note that a share waits."""
        shares = self.payload
        if shares is not None:
            shares.operations.append(operation)

    def has_shares(self) -> bool:
        """Return whether a share waits or has waited, and the request has not ended."""
        shares = self.payload
        return shares is not None and len(shares.operations) > 0

    def complete_with(self, payload: Shares) -> None:
        for operation in payload.operations:
            operation.force_complete()
