"""Log starts that are asked to move, until they have.

A new log start counts for readers once a recovery point on disk has it, so that a crash never
brings back what somebody was told is gone.  One round of checkpoints serves every request that
came before it began; who comes later waits for the next, which then begins at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tarry.base.limits import COMPLETIONS_PER_TURN_MAX
from tarry.broker.purgatories import new_purgatory
from tarry.partition.state import Partition, PartitionKey
from tarry.timer.entry import TimerEntry

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

# So soon a round is tried again that left a deletion out, instead of after the usual seconds.
RETRY_MS: Final = 1_000


class RecordDeletions:
    """The partitions whose log start is on its way."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.purgatory = new_purgatory(broker, "DeleteRecords")
        # The duty that begins rounds of checkpoints.
        self.checkpoints: TimerEntry | None = None
        self._waiting: dict[Partition, None] = {}
        self._is_round_due = False
        self._keys: dict[PartitionKey, None] = {}

    def request(self, partition: Partition, offset: int) -> None:
        """Let the partition's log begin at `offset`, at or below its high watermark."""
        assert offset <= partition.high_watermark
        partition.log.ask_for_start(offset)
        self._waiting[partition] = None
        self._is_round_due = True
        self._hasten(1)

    def on_step(self, *, is_round_over: bool) -> None:
        """Recovery points are on disk, some or all of a round: who waits for them looks again."""
        for partition in list(self._waiting):
            log = partition.log
            if partition.is_closed or log.log_start_offset >= log.coming_start_offset:
                del self._waiting[partition]
            self.touch(partition)
        if is_round_over and self._waiting:
            # One that should have been in this round was left out: the disk refused, or its tail
            # was just being filled.
            self._hasten(1 if self._is_round_due else RETRY_MS)

    def on_round_begun(self) -> None:
        """What was requested until now is part of this round, or has to wait for a next one."""
        self._is_round_due = False

    def touch(self, partition: Partition) -> None:
        """The log begins elsewhere, or is gone: who waits looks again after the state changes."""
        self._keys[partition.key] = None
        # A reader may stand before the new start.
        self.broker.touch_keys(partition)

    def has_work_left(self) -> bool:
        """True if a turn without an event would complete something."""
        return len(self._keys) > 0

    def complete(self) -> None:
        """The turn's step of completions: the keys that were touched, once each."""
        self.broker.complete_keys(self.purgatory, self._keys, COMPLETIONS_PER_TURN_MAX)

    def _hasten(self, in_ms: int) -> None:
        # As a duty of the timer, which comes when the turn's tails are written: a log with a tail
        # gets no recovery point.
        checkpoints = self.checkpoints
        due_ms = self.broker.now_ms + in_ms
        if checkpoints is not None and due_ms < checkpoints.deadline_ms:
            self.broker.timer.reschedule(checkpoints, due_ms)
