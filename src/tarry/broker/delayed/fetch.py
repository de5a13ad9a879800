"""DelayedFetch: waits until enough bytes can be read, or waiting adds none.

Completion and expiry both read and answer what is there.  A fetch of thousands of partitions waits
in shares, so that a record costs an examination of one share.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64, mypyc_attr

from tarry.broker.answers import Answers
from tarry.broker.delayed.shares import RequestInShares
from tarry.broker.metadata.leader_hints import LeaderHints
from tarry.broker.part import WaitingPart
from tarry.broker.reads import Fetch, FetchLimits, FetchStatus
from tarry.broker.request import RequestContext
from tarry.partition.replicated_log import ReplicatedLog, WatchKey
from tarry.purgatory.operation import PayloadOperation


class DelayedFetch(PayloadOperation[Fetch]):
    """The answer to one fetch that found fewer than its minimal bytes."""

    def is_ready(self, payload: Fetch) -> bool:
        return payload.is_enough()

    def complete_with(self, payload: Fetch) -> None:
        context = payload.context
        if not context.connection.is_closed:
            context.respond(payload.read())


@mypyc_attr(allow_interpreted_subclasses=True)
class FetchInShares:
    """Fetch of thousands of partitions in shares; a share is examined when one of its logs
    moves.
    """

    def __init__(self, context: RequestContext, limits: FetchLimits) -> None:
        self.context = context
        self.operation = RequestInShares()
        context.operation = self.operation
        self.limits = limits
        # Number of bytes that the shares had when each was examined last.
        self.readable: i64 = 0

    def answer(self) -> None:
        """Read the records that are there, and answer with them."""
        raise NotImplementedError

    def end(self) -> None:
        """Answer, because there is enough, waiting adds nothing, or time is up."""
        if self.operation.force_complete() and not self.context.connection.is_closed:
            self.answer()


class FetchShare:
    """Share of a fetch of thousands of partitions."""

    def __init__(self, whole: FetchInShares, statuses: list[FetchStatus]) -> None:
        self.whole = whole
        self._statuses = statuses
        self._readable: i64 = 0

    def is_enough(self) -> bool:
        """Return whether the fetch must be answered now because of this share or of all shares
        together.
        """
        whole = self.whole
        limits = whole.limits
        readable: i64 = 0
        for status in self._statuses:
            size = status.look(limits, is_first=readable == 0)
            if size < 0:
                return True
            readable += size
        whole.readable += readable - self._readable
        self._readable = readable
        return whole.readable >= limits.min_bytes

    def keys(self) -> list[WatchKey]:
        """Return the partitions that the share may wait for."""
        keys: list[WatchKey] = []
        for status in self._statuses:
            partition = status.partition
            if partition is not None:
                keys.append(partition.watch_key)
        return keys


class DelayedFetchShare(PayloadOperation[FetchShare]):
    """Wait of one share; the first share to complete answers the whole fetch."""

    def is_ready(self, payload: FetchShare) -> bool:
        return payload.is_enough()

    def complete_with(self, payload: FetchShare) -> None:
        payload.whole.end()


class Fetches(WaitingPart):
    """Fetches that wait for records."""

    completions_wake_nobody = True

    def __init__(self, answers: Answers, hints: LeaderHints) -> None:
        super().__init__(answers.timer, "Fetch")
        self.hints = hints
        self._answers = answers
        # True once no fetch may wait any more.
        self.is_stopped = False

    def on_moved(self, partition: ReplicatedLog) -> None:
        self.touch(partition.watch_key)

    def complete(self, budget: int) -> int:
        if not self.touched:
            return budget
        # Producers are answered before the readers that their records wake.
        self._answers.send()
        return super().complete(budget)

    def stop(self) -> None:
        self.is_stopped = True
        # A waiting fetch may be answered with the records that are there.
        self.purgatory.shutdown(expire_pending=True)
