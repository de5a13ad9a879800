"""Position of a consumer in one partition.

Invariant: an answer counts only if `era` has not changed since its question was sent.  A move of
the position, a drop of fetched batches, a failure and a check by leader epoch each begin a new era.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from tarry.base.errors import NONE
from tarry.client.core.consumer.fetched import Fetched
from tarry.client.core.consumer.lookup import OFFSET_UNKNOWN
from tarry.client.errors import DecodeError
from tarry.link.errors import ClientError

# End of a reader without an end.
NO_END: Final = 2**63 - 1
NO_REPLICA: Final = -1

# Largest possible leader epoch.
EPOCH_MAX: Final = 2**31 - 1

# Number of leader epochs kept: leaders change rarely, and commits are of recent records.
EPOCHS_MAX: Final = 8


class PartitionPosition:
    """Position in one partition: `position` is the offset of the next record to hand out; -1 while
    the leader or the group's coordinator looks it up.

    `fetch_offset` is the next offset to fetch: the batches in between are buffered.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.position: int = OFFSET_UNKNOWN
        self.fetch_offset = OFFSET_UNKNOWN
        # Reading stops before this offset.
        self.end_offset = NO_END
        # Fetch offset of the last answer without any record, if there is an end.
        self.bare_at = OFFSET_UNKNOWN
        # Leader epoch of the last fetched batch, -1 if there was none; and the leader's epoch at
        # the last check that its log holds this batch.
        self.fetch_epoch = self.checked_epoch = -1
        # Largest leader epoch that may be read: a newer batch belongs to another log.
        self.epoch_max = EPOCH_MAX
        # Leader epoch of the last batch taken; `fetch_epoch` returns to it when batches are
        # dropped.
        self.read_epoch = -1
        # Leader epochs of the records taken, each with its first offset; the newest is last.
        self._epochs: list[tuple[int, int]] = []
        self.is_being_checked = False
        # Replica to read from instead of the leader, until when; its failures in a row; and until
        # when only the leader may be read.
        self.replica_id = NO_REPLICA
        self.replica_until_ms = self.replica_failures = self.leader_only_until_ms = 0
        # Question to the leader or the coordinator for the position; None if the position is known.
        self.question: object | None = None
        # Offset after the last record that the user has finished; commits use it.
        self.finished = OFFSET_UNKNOWN
        # True if the log of the position does not exist any more, so that it must not be committed.
        self.is_void = False
        self.is_paused = False
        self.buffered: deque[Fetched] = deque()
        self.buffered_bytes = 0
        # Decoded records that a poll left over, and the position behind all of them.  Type Any:
        # with codecs, some records are decoded and some are not.
        self.left_over: list[Any] = []
        self.left_over_end = OFFSET_UNKNOWN
        self.high_watermark: int = -1
        # End of what may be read: the high watermark or the last stable offset.
        self.readable_end = -1
        self.log_start_offset: int = -1
        self.retry_at_ms = self.failures = 0
        # Error code of the last refusal to send records.
        self.refused_by: int = NONE
        # Corrupt answers in a row: the network may cause one, a second one shows a damaged log.
        self.corrupt = 0
        # Gap of the last answer (offsets without a batch), and whether two answers had the same
        # gap: both compaction and a damaged offset cause gaps.
        self.gap: tuple[int, int] | None = None
        self.has_gaps = False
        # Offset at which an answer was last damaged: a gap that begins here is not trusted.
        self.flawed_at = OFFSET_UNKNOWN
        # Error for the next poll; the partition is held until a seek.
        self.error: ClientError | None = None
        self.is_error_told = False
        # True if the error is a DecodeError of the next record; another error may wait behind it.
        self.is_held = False
        self._error_behind: ClientError | None = None
        self.era = 0

    def __str__(self) -> str:
        return f"{self.topic} [{self.partition}]"

    def __repr__(self) -> str:
        return f"<PartitionPosition {self} at {self.position}, lag {self.lag}>"

    def seek(self, offset: int, leader_epoch: int = -1) -> None:
        """Continue at this offset; fetched batches are dropped, and errors are cleared."""
        self.position = offset
        self.finished = offset
        self.is_void = False
        self.read_epoch = leader_epoch
        self._epochs = [] if leader_epoch < 0 else [(offset - 1, leader_epoch)]
        self.question = None
        self.error = None
        self.is_error_told = False
        self.is_held = False
        self.flawed_at = OFFSET_UNKNOWN
        self.corrupt = 0
        self.failures = 0
        self.refused_by = NONE
        self.retry_at_ms = 0
        self.drop_fetched()

    def note_epoch(self, offset: int, leader_epoch: int) -> None:
        """Note the leader epoch of the records taken from this offset on."""
        if leader_epoch != self.read_epoch:
            self.read_epoch = leader_epoch
            self._epochs.append((offset, leader_epoch))
            del self._epochs[:-EPOCHS_MAX]

    def epoch_before(self, offset: int) -> int:
        """Return the leader epoch of the record before this offset; -1 if it is not known."""
        for first, leader_epoch in reversed(self._epochs):
            if first < offset <= self.position:
                return leader_epoch
        return -1

    def drop_fetched(self) -> None:
        """Drop all fetched batches, and fetch again from the position."""
        self.era += 1
        self.fetch_offset = self.position
        self.fetch_epoch = self.read_epoch
        self.buffered.clear()
        self.buffered_bytes = 0
        self.left_over = []

    def fail(self, error: ClientError) -> None:
        """Hold the partition until the user has seen the error and has moved the position."""
        self.error = error
        self.is_error_told = False
        self.is_held = False
        self.era += 1

    def hold(self, error: DecodeError) -> None:
        """Hold the partition before a record that does not decode; the fetched batches are kept."""
        self._error_behind = self.error
        self.error = error
        self.is_error_told = False
        self.is_held = True

    def _release(self) -> None:
        self.error = self._error_behind
        self._error_behind = None
        self.is_error_told = False
        self.is_held = False

    def let_go(self) -> None:
        """Continue behind the record that holds the partition, if the user called `skip()`."""
        error = self.error
        if not isinstance(error, DecodeError) or not error.is_skipped:
            return
        self._release()
        if self.left_over:
            del self.left_over[0]
            self.position = self.left_over[0].offset if self.left_over else self.left_over_end
        else:
            # The fetched batches were dropped by a pause.
            self.position = error.offset + 1
            self.drop_fetched()

    def fail_void(self, error: ClientError) -> None:
        """Fail like `fail`, and mark the position as void: its log is gone, so it must not be
        committed."""
        self.fail(error)
        self.is_void = True
        self.finished = OFFSET_UNKNOWN

    def give_back(self, records: list[Any]) -> None:
        """Put records that were taken and not used back in front of the buffered ones."""
        if records:
            if self.is_held:
                # The returned records come first; the undecodable record is found again after them.
                self._release()
            if not self.left_over:
                self.left_over_end = self.position
            self.left_over = records + self.left_over
            self.position = records[0].offset

    def finish(self, offset: int) -> None:
        """Mark the records before this offset as finished by the user."""
        if not self.is_void:
            self.finished = offset

    @property
    def has_unread(self) -> bool:
        """True if there are fetched records that the user has not finished; they may be given
        back."""
        return bool(self.buffered or self.left_over) or self.finished != self.position

    @property
    def has_records(self) -> bool:
        """True if records can be handed out without another fetch."""
        is_open = not self.is_paused and not self.is_held
        return is_open and bool(self.buffered or self.left_over)

    @property
    def is_at_end(self) -> bool:
        """True if all records up to the last known end were handed out."""
        return 0 <= self.readable_end <= self.position

    @property
    def lag(self) -> int:
        """Number of records between the position and the last known end; -1 if not known."""
        if self.readable_end < 0 or self.position < 0:
            return -1
        return max(self.readable_end - self.position, 0)
