"""Changes of partitions' rows that clients ask for: one transaction after the other."""

from __future__ import annotations

from collections.abc import Callable

from tarry.base import errors
from tarry.broker.metadata.changes import MetadataChanges
from tarry.broker.request import RequestContext
from tarry.cluster.decisions.row_requests import GrantWishes, RowWish, RowWishes
from tarry.protocol.message import Message


def ask_for_rows(
    changes: MetadataChanges,
    context: RequestContext,
    asked: list[RowWish],
    respond: Callable[[], Message],
    timeout_ms: int,
) -> Message | None:
    """Grant wishes in as many transactions as it takes, and answer when all wishes have ended.

    When the time is over, the answer is given: no transaction begins any more, and the one under
    way may still be done.
    """
    if not asked:
        return respond()
    series = _Series(changes, context, RowWishes(asked), respond)
    series.deadline_ms = context.now_ms + max(timeout_ms, 0)
    series.ask()
    return None


class _Series:
    """Transactions of one request."""

    def __init__(
        self,
        changes: MetadataChanges,
        context: RequestContext,
        wishes: RowWishes,
        respond: Callable[[], Message],
    ) -> None:
        self._changes = changes
        self._context = context
        self._wishes = wishes
        self._respond = respond
        self.deadline_ms = 0

    def ask(self) -> None:
        """Ask for the next transaction."""
        change = self._wishes.next_change()

        def answer(error_code: int, sentence: str) -> Message | None:
            return self._on_end(change, error_code, sentence)

        left_ms = self.deadline_ms - self._context.now_ms
        self._changes.ask(self._context, change, answer, left_ms)

    def _on_end(self, change: GrantWishes, error_code: int, sentence: str) -> Message | None:
        if error_code == errors.NONE:
            self._wishes.take(change)
        else:
            self._wishes.fail(change, error_code, sentence)
        if self._wishes.are_done:
            return self._respond()
        self.ask()
        return None
