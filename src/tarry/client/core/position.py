"""PartitionPosition: where the reading of one partition stands."""

from __future__ import annotations

from collections import deque

from tarry.client.core.fetched import Fetched
from tarry.client.core.lookup import OFFSET_UNKNOWN
from tarry.client.errors import ClientError
from tarry.records.record import Record


class PartitionPosition:
    """`position` is the next offset for the user, `fetch_offset` the next to ask the broker for.

    Between the two lie the fetched batches.  While they are unknown the leader is being asked
    for them, and nothing is fetched.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.position = OFFSET_UNKNOWN
        self.fetch_offset = OFFSET_UNKNOWN
        # The leader epoch of the last batch that was fetched, -1 if there was none, and the
        # leader's epoch under which that was last found to be in its log.
        self.fetch_epoch = -1
        self.checked_epoch = -1
        self.is_being_checked = False
        # While the leader, or the group's coordinator, is asked where the position is.
        self.question: object | None = None
        # Up to here the user is done; what a commit says.
        self.finished = OFFSET_UNKNOWN
        self.is_paused = False
        self.buffered: deque[Fetched] = deque()
        self.buffered_bytes = 0
        # Decoded records that a poll left over, and the position behind all of them.
        self.left_over: list[Record] = []
        self.left_over_end = OFFSET_UNKNOWN
        self.high_watermark = -1
        self.log_start_offset = -1
        self.retry_at_ms = 0
        self.failures = 0
        # Corrupt answers in a row: one may be the network's, a second one is the log's.
        self.corrupt = 0
        # Raised by the next poll; the partition is held until then.
        self.error: ClientError | None = None
        # Changes with each seek, so that answers to older fetches count for nothing.
        self.seeks = 0

    def __str__(self) -> str:
        return f"{self.topic} [{self.partition}]"

    def seek(self, offset: int) -> None:
        """Read on from this offset; what was fetched is dropped."""
        self.position = offset
        self.finished = offset
        self.fetch_offset = offset
        self.fetch_epoch = -1
        self.question = None
        self.seeks += 1
        self.buffered.clear()
        self.left_over = []
        self.buffered_bytes = 0
        self.error = None
        self.corrupt = 0
        self.failures = 0
        self.retry_at_ms = 0

    @property
    def has_records(self) -> bool:
        """Something can be handed out without asking the broker."""
        return not self.is_paused and bool(self.buffered or self.left_over)

    @property
    def is_at_end(self) -> bool:
        """Everything up to the last known high watermark was handed out."""
        return 0 <= self.high_watermark <= self.position

    @property
    def lag(self) -> int:
        """Records between the position and the last known high watermark; -1: not known."""
        if self.high_watermark < 0 or self.position < 0:
            return -1
        return max(self.high_watermark - self.position, 0)
