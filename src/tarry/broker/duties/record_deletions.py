"""Log starts that are asked to move, until they have.

A new log start counts for readers once a recovery point on disk has it, so that a crash never
brings back what somebody was told is gone.  One round of recovery points serves every request that
came before it began; who comes later waits for the next, which then begins at once.
"""

from __future__ import annotations

from typing import Final

from tarry.base.turn import Turn
from tarry.broker.part import Parts, WaitingPart
from tarry.partition.state import Partition
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

# So soon a round is tried again that left a deletion out, instead of after the usual seconds.
RETRY_MS: Final = 1_000


class RecordDeletions(WaitingPart):
    """The partitions whose log start is on its way."""

    def __init__(self, turn: Turn, timer: TimingWheel, parts: Parts) -> None:
        super().__init__(timer, "DeleteRecords")
        self._turn = turn
        self._timer = timer
        self._parts = parts
        # The duty that begins rounds of recovery points.
        self.rounds: TimerEntry | None = None
        self._waiting: dict[Partition, None] = {}
        self._is_round_due = False

    def request(self, partition: Partition, offset: int) -> None:
        """Let the partition's log begin at `offset`, at or below its high watermark."""
        assert offset <= partition.high_watermark
        partition.log.ask_for_start(offset)
        self._waiting[partition] = None
        self._is_round_due = True
        self._hasten(1)

    def hasten(self) -> None:
        """Have a round of recovery points begun soon: a cut waits for one."""
        self._hasten(1)

    def on_step(self, *, is_round_over: bool) -> None:
        """Recovery points are on disk, some or all of a round: who waits for them looks again."""
        for partition in list(self._waiting):
            log = partition.log
            if partition.is_closed or log.log_start_offset >= log.coming_start_offset:
                del self._waiting[partition]
            self.on_start_moved(partition)
        if is_round_over and self._waiting:
            # One that should have been in this round was left out: the disk refused, or its tail
            # was just being filled.
            self._hasten(1 if self._is_round_due else RETRY_MS)

    def on_round_begun(self) -> None:
        """Take what was requested until now into this round, or leave it for a next one."""
        self._is_round_due = False

    def on_start_moved(self, partition: Partition) -> None:
        """Look again in this turn at what waits: the log begins elsewhere, or is given up."""
        self.touch(partition.key)
        # A reader may stand before the new start.
        self._parts.on_moved(partition)

    def _hasten(self, in_ms: int) -> None:
        # As a duty of the timer, which comes when the turn's tails are written: a log with a tail
        # gets no recovery point.
        rounds = self.rounds
        due_ms = self._turn.now_ms + in_ms
        if rounds is not None and due_ms < rounds.deadline_ms:
            self._timer.reschedule(rounds, due_ms)
