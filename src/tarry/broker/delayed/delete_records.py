"""DelayedDeleteRecords: waits until each partition's log begins where it was asked to.

Every partition starts at REQUEST_TIMED_OUT and is settled by its low watermark: the least log start
of the replicas that may lead; or by an error.
"""

from __future__ import annotations

from tarry.base import errors
from tarry.broker.request import RequestContext
from tarry.partition.state import Partition, PartitionKey
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
)
from tarry.purgatory.operation import PayloadOperation

NO_LOW_WATERMARK = -1


class DeletionStatus:
    """Status of one partition of the request: where its log is to begin, and its answer."""

    __slots__ = ("answer", "is_pending", "partition", "start_offset")

    def __init__(
        self, partition: Partition, start_offset: int, answer: DeleteRecordsPartitionResult
    ) -> None:
        self.partition = partition
        self.start_offset = start_offset
        self.answer = answer
        self.is_pending = True


class AwaitedDeletion:
    """AwaitedDeletion by one DeleteRecords request whose log starts are on their way."""

    __slots__ = ("context", "response", "statuses")

    def __init__(
        self,
        context: RequestContext,
        statuses: list[DeletionStatus],
        response: DeleteRecordsResponse,
    ) -> None:
        self.context = context
        self.statuses = statuses
        self.response = response

    def keys(self) -> list[PartitionKey]:
        """Return the partitions whose log start has not moved yet."""
        return [status.partition.key for status in self.statuses if status.is_pending]


class DelayedDeleteRecords(PayloadOperation[AwaitedDeletion]):
    """The answer to one DeleteRecords request."""

    def is_ready(self, payload: AwaitedDeletion) -> bool:
        for status in payload.statuses:
            if status.is_pending:
                _try_settle(status)
        return not any(status.is_pending for status in payload.statuses)

    def complete_with(self, payload: AwaitedDeletion) -> None:
        for status in payload.statuses:
            if status.is_pending:
                status.answer.error_code = errors.REQUEST_TIMED_OUT
                status.answer.low_watermark = NO_LOW_WATERMARK
        payload.context.respond(payload.response)


def _try_settle(status: DeletionStatus) -> None:
    partition = status.partition
    if partition.gone_code != errors.NONE:
        status.answer.error_code = partition.gone_code
        status.answer.low_watermark = NO_LOW_WATERMARK
    elif partition.low_watermark() >= status.start_offset:
        status.answer.error_code = errors.NONE
        status.answer.low_watermark = partition.low_watermark()
    elif partition.log.flaw_offset >= 0:
        # A log with a flaw gets no recovery point any more.
        status.answer.error_code = errors.KAFKA_STORAGE_ERROR
        status.answer.low_watermark = NO_LOW_WATERMARK
    else:
        return
    status.is_pending = False
