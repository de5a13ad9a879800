"""Series of transactions, for a change of rows that does not fit into one transaction."""

from __future__ import annotations

from typing import Generic, TypeVar

from tarry.cluster.decisions.row_changes import RowsChange
from tarry.cluster.store.change import Change
from tarry.cluster.store.store import MetadataStore

C = TypeVar("C", bound=RowsChange)


class Series(Generic[C]):
    """Series of transactions of one change: the one under way, and the rest of the change."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self.current: C | None = None
        self.rest: C | None = None

    def begin(self, change: C) -> None:
        """Ask the store for the first transaction; drop the rest of an earlier series."""
        self.current, self.rest = change, None
        self._store.change(change)

    def end(self, change: Change | None) -> C | None:
        """Receive the end of a change; return it if it was this series' transaction, else None.

        A transaction that the store refuses ends the series.
        """
        ended = self.current
        if ended is None or change is not ended:
            return None
        self.current = None
        if not ended.refusal and not ended.is_last:
            self.rest = ended.rest()
        return ended

    def go_on(self) -> bool:
        """Ask the store for the next transaction; return false if nothing is left."""
        if self.rest is None:
            return False
        self.begin(self.rest)
        return True

    def drop(self) -> None:
        """Drop the rest of the series; a transaction that is under way may still be applied."""
        self.current = self.rest = None
