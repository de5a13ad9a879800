"""DelayedFetch: waits until enough bytes are readable, or waiting has become vain.

Completion and expiry alike read again and answer with what is there.  Hot.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.broker.answers import Answers
from tarry.broker.part import WaitingPart
from tarry.broker.reads import FetchLimits, FetchStatus, FetchTopic, read_topics
from tarry.broker.request import RequestContext
from tarry.partition.state import Partition
from tarry.purgatory.operation import DelayedOperation


class DelayedFetch(DelayedOperation):
    """The answer to one fetch that found fewer than its minimal bytes."""

    def __init__(
        self,
        context: RequestContext,
        topics: list[FetchTopic],
        limits: FetchLimits,
        min_bytes: int,
        deadline_ms: int,
    ) -> None:
        super().__init__(deadline_ms)
        self.context: RequestContext | None = context
        self.topics = topics
        self.limits: FetchLimits | None = limits
        self.min_bytes = min_bytes

    def try_complete(self) -> bool:
        readable: i64 = 0
        for topic in self.topics:
            for status in topic.statuses:
                size = readable_bytes(status)
                if size < 0:
                    return self.force_complete()
                readable += size
        if readable < self.min_bytes:
            return False
        return self.force_complete()

    def on_complete(self) -> None:
        context = self.context
        limits = self.limits
        topics = self.topics
        assert context is not None
        assert limits is not None
        # Completed operations linger on their other keys: keep nothing alive (KAFKA-19389).
        self.context = None
        self.limits = None
        self.topics = []
        if context.connection.is_closed:
            return
        context.respond(read_topics(topics, limits).response)


class Fetches(WaitingPart):
    """Fetches that wait for records."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(answers.timer, "Fetch")
        self._answers = answers

    def on_moved(self, partition: Partition) -> None:
        self.touch(partition.key)

    def complete(self, budget: int) -> int:
        if not self.touched:
            return budget
        # Producers are answered before the readers that their records wake.
        self._answers.send()
        return super().complete(budget)

    def stop(self) -> None:
        # A fetch that waits may be answered with what is there.
        self.purgatory.shutdown(expire_pending=True)


def readable_bytes(status: FetchStatus) -> i64:
    """Bytes that this partition adds to the fetch now, or -1 if it should end at once."""
    partition = status.partition
    if partition is None or status.leadership_error() != errors.NONE:
        return -1
    offset = status.asked.fetch_offset
    log = partition.log
    if offset > log.log_end_offset or offset < log.log_start_offset:
        return -1
    if log.has_flaw_before(offset):
        return -1
    if offset >= partition.high_watermark:
        return 0
    end = partition.high_watermark_position
    start = status.start
    if start is None:
        try:
            start = log.position_of(offset)
        except (StorageError, CorruptData):
            return -1
        status.start = start
    if start.segment_base_offset != end.segment_base_offset:
        # A read stays in one segment, so waiting for the end's segment would be for nothing.
        return -1
    size: i64 = end.position - start.position
    return min(size, status.asked.partition_max_bytes)
