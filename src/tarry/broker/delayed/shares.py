"""Shares of a request: thousands of partitions wait as operations of some partitions each.

A record for one partition, or its flush, costs an examination of its share, and not of all
partitions of the request.  Hot.
"""

from __future__ import annotations

from tarry.purgatory.operation import DelayedOperation, PayloadOperation


class Shares:
    """Operations of one request, waiting or completed."""

    def __init__(self) -> None:
        self.operations: list[DelayedOperation] = []


class RequestInShares(PayloadOperation[Shares]):
    """Operation of a request whose partitions wait in shares.

    It waits in no purgatory itself.  It completes by the answer or because the peer is gone, and
    that ends the shares.
    """

    def __init__(self) -> None:
        super().__init__(0, Shares())

    def add(self, operation: DelayedOperation) -> None:
        """Add the operation of a share."""
        shares = self.payload
        if shares is not None:
            shares.operations.append(operation)

    def has_shares(self) -> bool:
        """Return whether the request has not ended and any share was added."""
        shares = self.payload
        return shares is not None and len(shares.operations) > 0

    def complete_with(self, payload: Shares) -> None:
        for operation in payload.operations:
            operation.force_complete()
