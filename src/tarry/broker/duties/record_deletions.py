"""Log starts that are being moved by DeleteRecords.

A new log start counts for readers once a recovery point on the disk has it, so that a crash never
brings back records that were reported as deleted.  One round of recovery points serves all requests
that came before it began.  Later requests wait for the next round, which then begins at once.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from tarry.base.turn import Turn
from tarry.broker.part import Parts, WaitingPart
from tarry.partition.replicated_log import ReplicatedLog
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

# Pause before the next round if a round has left a deletion out; without one it comes seconds
# later.
RETRY_MS: Final = 1_000


class RecordDeletions(WaitingPart):
    """The partitions whose log start is being moved."""

    def __init__(self, turn: Turn, timer: TimingWheel, parts: Parts) -> None:
        super().__init__(timer, "DeleteRecords")
        self._turn = turn
        self._timer = timer
        self._parts = parts
        # The duty that begins rounds of recovery points.
        self._rounds: TimerEntry | None = None
        # Logs whose deletion waits for a round, with the log start of each at the last look.
        self._waiting: dict[ReplicatedLog, i64] = {}
        # Postponed deletions of scheduled records whose release no other record notes yet.
        self._postponed: dict[ReplicatedLog, int] = {}
        self._is_round_due = False

    def request(self, partition: ReplicatedLog, offset: int) -> None:
        """Let the partition's log begin at `offset`, at or below its high watermark.

        The deletion waits while only the records before `offset` say that scheduled ones were
        released.
        """
        assert offset <= partition.high_watermark
        if offset > partition.removable_end():
            self._postponed[partition] = max(offset, self._postponed.get(partition, offset))
            return
        partition.log.ask_for_start(offset)
        self._waiting[partition] = partition.log.log_start_offset
        self._is_round_due = True
        self._hasten(1)

    def watch_start(self, partition: ReplicatedLog) -> None:
        """Watch the start of a log that another part has asked to move, for operations that
        wait.
        """
        self._waiting.setdefault(partition, partition.log.log_start_offset)

    def step(self) -> None:
        if not self._postponed:
            return
        for partition, offset in list(self._postponed.items()):
            if partition.is_closed or not partition.leadership.is_leader:
                del self._postponed[partition]
            elif offset <= partition.removable_end():
                del self._postponed[partition]
                self.request(partition, offset)

    def wait_for(self, rounds: TimerEntry) -> None:
        """Set the duty that begins rounds of recovery points."""
        self._rounds = rounds

    def hasten(self) -> None:
        """Begin a round of recovery points soon, because a cut waits for one."""
        self._hasten(1)

    def on_step(self, *, is_round_over: bool) -> None:
        """Try the waiting deletions again, because a round has written recovery points.

        A log with a flaw has no recovery point, and its deletions end with an error.
        """
        for partition, known_offset in list(self._waiting.items()):
            log = partition.log
            start_offset: i64 = log.log_start_offset
            if partition.is_closed or start_offset >= log.coming_start_offset:
                del self._waiting[partition]
            elif start_offset == known_offset and log.flaw_offset < 0:
                continue
            else:
                self._waiting[partition] = start_offset
            self.on_start_moved(partition)
        if is_round_over and self._waiting:
            # The round has left a log out: the disk refused it, or it had a tail at that moment.
            self._hasten(1 if self._is_round_due else RETRY_MS)

    def on_round_begun(self) -> None:
        """Note that the deletions requested until now belong to this round, and later ones to
        the next.
        """
        self._is_round_due = False

    def on_start_moved(self, partition: ReplicatedLog) -> None:
        """Try waiting operations again in this turn, because the log's start moved or the log is
        closed.
        """
        self.touch(partition.watch_key)
        # A waiting reader may be before the new start.
        self._parts.on_moved(partition)

    def _hasten(self, in_ms: int) -> None:
        # The round begins as a duty of the timer, when the turn's tails are written: a log with a
        # tail gets no recovery point.
        rounds = self._rounds
        due_ms = self._turn.now_ms + in_ms
        if rounds is not None and due_ms < rounds.deadline_ms:
            self._timer.reschedule(rounds, due_ms)
