"""Commit: offsets on their way to the coordinator, and who receives the outcome.

A call waits for the commit, or the next poll calls a callback with the outcome, or a failure is
logged.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from tarry.base.ids import TopicPartition
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.link.errors import ClientError

log = logging.getLogger("tarry.client")


class Commit:
    """Commit of offsets; `error` is the reason if they are not committed."""

    def __init__(self, offsets: dict[TopicPartition, CommittedOffset]) -> None:
        self.offsets = offsets
        # Time limit of the commit, for the text of its error.
        self.timeout_ms = 0
        # Partitions that were given up since the commit began.
        self.gone: dict[TopicPartition, None] = {}
        self.is_done = False
        self.error: ClientError | None = None

    def end(self, error: ClientError | None) -> None:
        """End the commit; later calls do nothing."""
        if not self.is_done:
            self.is_done = True
            self.error = error
            self.on_end(error)

    def on_end(self, error: ClientError | None) -> None:
        """Report the outcome where no call waits for the commit.  Subclasses override it."""


# Function of the offsets and of the error of a commit; the error is None after a success.
CommitCallback = Callable[[dict[TopicPartition, CommittedOffset], ClientError | None], object]


class CommitOutcome(NamedTuple):
    """Outcome of a commit with a callback, which a poll or a close calls."""

    offsets: dict[TopicPartition, CommittedOffset]
    error: ClientError | None
    function: CommitCallback

    @property
    def callback(self) -> str:
        return "the callback of commit_async"

    def tell(self, listener: object, consumer: object) -> object:
        return self.function(self.offsets, self.error)


class UnattendedCommit(Commit):
    """Commit whose failure is logged; `what` and `group_id` are for the log line."""

    def __init__(
        self, offsets: dict[TopicPartition, CommittedOffset], what: str, group_id: str
    ) -> None:
        super().__init__(offsets)
        self._what = what
        self._group_id = group_id

    def on_end(self, error: ClientError | None) -> None:
        if error is not None:
            log.warning("group %s: %s failed: %s", self._group_id, self._what, error)


class CommitWithCallback(Commit):
    """Commit whose outcome waits in `outcomes` for the next poll or close."""

    def __init__(
        self,
        offsets: dict[TopicPartition, CommittedOffset],
        callback: CommitCallback,
        outcomes: deque[CommitOutcome],
    ) -> None:
        super().__init__(offsets)
        self._callback = callback
        self._outcomes = outcomes

    def on_end(self, error: ClientError | None) -> None:
        self._outcomes.append(CommitOutcome(self.offsets, error, self._callback))
