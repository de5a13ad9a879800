"""Places of a batch that waits: which of its records are released together, and when.

Records that follow each other and are due at the same time share a place.  A record with an id has
a place of its own, so that it can be cancelled; so has a record that recurs.  Each place is
released by itself: its s-offset is that of its first record.
"""

from __future__ import annotations

from typing import Final

from tarry.schedule.recurring.terms import RecurrenceTerms

# Due time of a record that is never released: it cancels, or a later record of its batch replaces
# it.
NOT_RELEASED: Final = -1


class RecordPlace:
    """Place of `count` records of a batch from the record `first` on.

    A place with `terms` is a record that recurs; `due_ms` is its first due time.
    """

    def __init__(
        self,
        first: int,
        count: int,
        due_ms: int,
        schedule_id: bytes = b"",
        terms: RecurrenceTerms | None = None,
    ) -> None:
        self.first = first
        self.count = count
        self.due_ms = due_ms
        self.schedule_id = schedule_id
        self.terms = terms

    def takes(self, other: RecordPlace) -> bool:
        """Return whether this place and the next one, `other`, can be one place."""
        if self.terms is not None or other.terms is not None:
            return False
        return self.due_ms == other.due_ms and not self.schedule_id and not other.schedule_id

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RecordPlace)
            and self.first == other.first
            and self.count == other.count
            and self.due_ms == other.due_ms
            and self.schedule_id == other.schedule_id
            and self.terms == other.terms
        )

    def __hash__(self) -> int:
        return self.first

    def __repr__(self) -> str:
        return f"RecordPlace({self.first}, {self.count}, due {self.due_ms}, {self.schedule_id!r})"
