"""DelayedDeleteRecords: waits until each partition's log begins where the request wants it to.

Every partition starts at REQUEST_TIMED_OUT.  It is settled by its low watermark, the lowest log
start of the replicas that may lead, or by an error.
"""

from __future__ import annotations

from collections.abc import Iterator

from tarry.base import errors
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.request import RequestContext
from tarry.partition.replicated_log import ReplicatedLog, WatchKey
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from tarry.purgatory.operation import PayloadOperation

NO_LOW_WATERMARK = -1


class DeletionStatus:
    """Status of one partition of the request: the wanted log start, and its row of the answer."""

    __slots__ = ("answer", "partition", "start_offset")

    def __init__(
        self, partition: ReplicatedLog, start_offset: int, answer: DeleteRecordsPartitionResult
    ) -> None:
        self.partition = partition
        self.start_offset = start_offset
        self.answer = answer


class AwaitedDeletion:
    """Deletion by one DeleteRecords request, which waits until the log starts have moved.

    `results` has the rows of the answer by topic.  `statuses` has the partitions that are not
    settled.
    """

    __slots__ = ("_long_answers", "_pending", "context", "results")

    def __init__(
        self,
        long_answers: LongAnswers,
        context: RequestContext,
        statuses: list[DeletionStatus],
        results: dict[str, list[DeleteRecordsPartitionResult]],
    ) -> None:
        self._long_answers = long_answers
        self._pending = statuses
        self.context = context
        self.results = results

    def keys(self) -> list[WatchKey]:
        """Return the watch keys: the partitions whose log start had not moved at the last look."""
        return [status.partition.watch_key for status in self._pending]

    def try_settle(self) -> bool:
        """Settle partitions from the last one on; return true if none is left.

        It stops at the first partition that has to wait: examining all of them at each move of a
        log start would cost the square of their number.
        """
        pending = self._pending
        while pending and _try_settle(pending[-1]):
            pending.pop()
        return not pending

    def respond(self) -> None:
        """Answer the request, with REQUEST_TIMED_OUT for partitions that are not settled."""
        for status in self._pending:
            if not _try_settle(status):
                status.answer.error_code = errors.REQUEST_TIMED_OUT
                status.answer.low_watermark = NO_LOW_WATERMARK
        answer = LongAnswer(self.context)
        self._long_answers.begin(answer, self._rows(answer))

    def _rows(self, answer: LongAnswer) -> Iterator[int]:
        answer.open(DeleteRecordsResponse())
        for name, rows in self.results.items():
            answer.open(DeleteRecordsTopicResult(name))
            for row in rows:
                answer.add(row)
                yield 1
            answer.close()
            yield 1


class DelayedDeleteRecords(PayloadOperation[AwaitedDeletion]):
    """The answer to one DeleteRecords request."""

    def is_ready(self, payload: AwaitedDeletion) -> bool:
        return payload.try_settle()

    def complete_with(self, payload: AwaitedDeletion) -> None:
        payload.respond()


def _try_settle(status: DeletionStatus) -> bool:
    """Fill in the answer of a partition if its outcome is known."""
    partition = status.partition
    answer = status.answer
    gone_code = partition.leadership.gone_code
    if gone_code != errors.NONE:
        answer.error_code = gone_code
        answer.low_watermark = NO_LOW_WATERMARK
    elif partition.low_watermark() >= status.start_offset:
        answer.error_code = errors.NONE
        answer.low_watermark = partition.low_watermark()
    elif partition.log.flaw_offset >= 0:
        # A log with a flaw has no recovery point any more, so its start does not move.
        answer.error_code = errors.KAFKA_STORAGE_ERROR
        answer.low_watermark = NO_LOW_WATERMARK
    else:
        return False
    return True
