"""Position of a consumer in one partition.

Invariant: an answer counts only if `era` is what it was when the question was sent.  Whoever moves
the position, drops what was fetched or doubts it begins a new era.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from tarry.base.errors import NONE
from tarry.client.core.consumer.fetched import Fetched
from tarry.client.core.consumer.lookup import OFFSET_UNKNOWN
from tarry.client.errors import DecodeError
from tarry.link.errors import ClientError

# The end of what a consumer reads that has none.
NO_END: Final = 2**63 - 1
NO_REPLICA: Final = -1

# The largest leader epoch that there is.
EPOCH_MAX: Final = 2**31 - 1

# A leader changes rarely, and what is committed was read a short time ago.
EPOCHS_MAX: Final = 8


class PartitionPosition:
    """Position in one partition: `position` is the offset that is handed out next; -1 while the
    leader, or the group's coordinator, is asked where that is.

    `fetch_offset` is the next to ask the broker for: between the two lie the fetched batches.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.position: int = OFFSET_UNKNOWN
        self.fetch_offset = OFFSET_UNKNOWN
        # Nothing is read from here on.
        self.end_offset = NO_END
        # Where an answer without any record was last asked for, if there is an end.
        self.bare_at = OFFSET_UNKNOWN
        # The leader epoch of the last batch that was fetched, -1 if there was none, and the
        # leader's epoch under which that was last found to be in its log.
        self.fetch_epoch = self.checked_epoch = -1
        # A batch of a newer epoch is none of the log that is meant to be read.
        self.epoch_max = EPOCH_MAX
        # The leader epoch of the last batch that was taken: where `fetch_epoch` goes back to.
        self.read_epoch = -1
        # Leader epochs of what was taken, each from an offset on, the last taken last.
        self._epochs: list[tuple[int, int]] = []
        self.is_being_checked = False
        # The replica to read from instead of the leader, until when, how often it failed in a row,
        # and until when only the leader is asked.
        self.replica_id = NO_REPLICA
        self.replica_until_ms = self.replica_failures = self.leader_only_until_ms = 0
        # While the leader, or the group's coordinator, is asked where the position is.
        self.question: object | None = None
        # Up to here the user is done; what a commit says.
        self.finished = OFFSET_UNKNOWN
        # The log that the position belonged to is gone: it must not be committed.
        self.is_void = False
        self.is_paused = False
        self.buffered: deque[Fetched] = deque()
        self.buffered_bytes = 0
        # Decoded records that a poll left over, and the position behind all of them.
        # Any: a consumer with codecs keeps some that are decoded, and some that are not yet.
        self.left_over: list[Any] = []
        self.left_over_end = OFFSET_UNKNOWN
        self.high_watermark: int = -1
        # The end of what may be read: the high watermark, or the last stable offset before it.
        self.readable_end = -1
        self.log_start_offset: int = -1
        self.retry_at_ms = self.failures = 0
        # The code with which brokers refuse to give records at the moment.
        self.refused_by: int = NONE
        # Corrupt answers in a row: one may be the network's, a second one is the log's.
        self.corrupt = 0
        # Offsets that the last answer had no batch for, and whether such a gap was once the same
        # in two answers: a compaction leaves gaps, and so does a damaged offset.
        self.gap: tuple[int, int] | None = None
        self.has_gaps = False
        # Where an answer was last found to be damaged: no gap may begin there.
        self.flawed_at = OFFSET_UNKNOWN
        # Raised by the next poll; the partition is held until it is sought anew.
        self.error: ClientError | None = None
        self.is_error_told = False
        # The error is that of the next record, which does not decode; another may wait behind it.
        self.is_held = False
        self._error_behind: ClientError | None = None
        self.era = 0

    def __str__(self) -> str:
        return f"{self.topic} [{self.partition}]"

    def __repr__(self) -> str:
        return f"<PartitionPosition {self} at {self.position}, lag {self.lag}>"

    def seek(self, offset: int, leader_epoch: int = -1) -> None:
        """Read on from this offset; what was fetched is dropped, what was wrong is over."""
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
        """Note the leader epoch of records that were taken from this offset on."""
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
        """Fetch from the position again, as if nothing had come since it was there."""
        self.era += 1
        self.fetch_offset = self.position
        self.fetch_epoch = self.read_epoch
        self.buffered.clear()
        self.buffered_bytes = 0
        self.left_over = []

    def fail(self, error: ClientError) -> None:
        """Hold the partition until the user has heard why and sought elsewhere."""
        self.error = error
        self.is_error_told = False
        self.is_held = False
        self.era += 1

    def hold(self, error: DecodeError) -> None:
        """Hold the partition before a record that does not decode; what was fetched is kept."""
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
        """Go on behind the record that held the partition, if the user wants to skip it."""
        error = self.error
        if not isinstance(error, DecodeError) or not error.is_skipped:
            return
        self._release()
        if self.left_over:
            del self.left_over[0]
            self.position = self.left_over[0].offset if self.left_over else self.left_over_end
        else:
            # A pause has dropped what was fetched.
            self.position = error.offset + 1
            self.drop_fetched()

    def fail_void(self, error: ClientError) -> None:
        """Hold the partition like `fail`, and mark its position as void: its log is gone, and no
        commit may name it."""
        self.fail(error)
        self.is_void = True
        self.finished = OFFSET_UNKNOWN

    def give_back(self, records: list[Any]) -> None:
        """Put records that were taken and not used in front of what is still kept."""
        if records:
            if self.is_held:
                # These come first, and then it is found again.
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
        """True if records were fetched that the user has not finished; they may be given back."""
        return bool(self.buffered or self.left_over) or self.finished != self.position

    @property
    def has_records(self) -> bool:
        """True if records can be handed out without asking the broker."""
        is_open = not self.is_paused and not self.is_held
        return is_open and bool(self.buffered or self.left_over)

    @property
    def is_at_end(self) -> bool:
        """True if all records up to the last known end were handed out."""
        return 0 <= self.readable_end <= self.position

    @property
    def lag(self) -> int:
        """Records between the position and the last known end that may be read; -1: not known."""
        if self.readable_end < 0 or self.position < 0:
            return -1
        return max(self.readable_end - self.position, 0)
