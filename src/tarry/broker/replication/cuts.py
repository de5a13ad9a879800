"""Cuts of followed logs, and logs begun anew: step by step, as a turn can afford.

A cut below the recovery point, and every restart, waits for a round of recovery points that says so
before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from tarry.base.errors import CorruptData, StorageError
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.replication.followed import Followed
from tarry.log.recovery.truncation import try_restart, try_truncate
from tarry.partition.state import Partition

logger = logging.getLogger("tarry.replication")

# Whoever waits for a round of recovery points asks for one this often.
_HASTEN_MS: Final = 100

# Steps that a new leader takes at once to end a cut, 10 ms each; the rest comes turn by turn, and
# until then it takes no records.
_STEPS_AT_ONCE: Final = 5
# Pause before a leader goes on to end a cut after the disk has refused it.
_REFUSED_MS: Final = 1_000


class Cuts:
    """The cuts that are under way.

    `hasten` asks for a round of recovery points; `move_start` has a log begin at an offset once a
    recovery point says so.
    """

    def __init__(
        self,
        turn: Turn,
        flushes: Flushes,
        hasten: Callable[[], None],
        move_start: Callable[[Partition, int], None],
    ) -> None:
        self._turn = turn
        self._flushes = flushes
        self._hasten = hasten
        self._move_start = move_start
        self._hastened_ms = turn.now_ms - _HASTEN_MS
        self._under_way: dict[Followed, None] = {}
        # Those of which this broker has become the leader since, and when they go on.
        self._finishing: dict[Followed, int] = {}
        # The next step of one of them waits for nothing.
        self._is_ready = False

    def begin(self, followed: Followed) -> None:
        """Cut a log to `cut_offset`, or begin it anew at `restart_offset`."""
        self._under_way[followed] = None
        self._is_ready = True
        self._hastened_ms = self._turn.now_ms - _HASTEN_MS

    def leave(self, followed: Followed) -> None:
        """Take no more steps for now; a cut that has not begun is given up."""
        self._under_way.pop(followed, None)
        log = followed.partition.log
        if log.cut.is_under_way and not self.must_finish(followed) and not log.has_tail:
            followed.cut_offset = -1
            followed.restart_offset = -1
            try_truncate(log, log.log_end_offset)

    def must_finish(self, followed: Followed) -> bool:
        """Return whether files were cut already, or a recovery point may say so."""
        log = followed.partition.log
        return log.cut.has_begun or log.recovery_point.restart_offset >= 0

    def finish(self, followed: Followed) -> None:
        """End a cut where it has come to: the replica leads from now on."""
        for _ in range(_STEPS_AT_ONCE):
            if self._try_finish(followed):
                return
            if self._finishing[followed] > self._turn.now_ms:
                return

    def _try_finish(self, followed: Followed) -> bool:
        """Take a step to the end of a cut; False if it has to go on later."""
        partition = followed.partition
        log = partition.log
        is_done = True
        self._finishing[followed] = self._turn.now_ms
        try:
            if log.is_being_cut:
                is_done = try_truncate(log, log.log_end_offset)
        except (StorageError, CorruptData) as error:
            is_done = False
            self._finishing[followed] = self._turn.now_ms + _REFUSED_MS
            line = "%s takes no records, a cut of its log has not come to its end: %s"
            logger.error(line, partition.name, error)
        if log.has_undurable_cut:
            # Until a flush has covered it nothing may be appended.
            self._flushes.dirty[partition] = None
        # A step takes the new epoch with it, which has no batch yet.
        partition.begin_epoch()
        if is_done:
            del self._finishing[followed]
            followed.place_high_watermark()
        return is_done

    def _go_on_finishing(self) -> None:
        for followed, due_ms in list(self._finishing.items()):
            partition = followed.partition
            log = partition.log
            if partition.is_closed or not partition.is_leader:
                # Who follows again goes on with the cut as a follower.
                del self._finishing[followed]
            elif due_ms > self._turn.now_ms or self._try_finish(followed):
                continue
            elif log.recovery_point.restart_offset < 0:
                self._is_ready = self._is_ready or self._finishing[followed] <= self._turn.now_ms
            elif not log.recovery_point.is_restart:
                self._finishing[followed] = self._turn.now_ms + _HASTEN_MS
                self._hasten()

    def follow_start(self, followed: Followed) -> None:
        """Let a log begin where its leader's does, as far as that is promised here too."""
        partition = followed.partition
        offset = min(followed.leader_log_start, partition.high_watermark)
        if offset > partition.log.coming_start_offset:
            self._move_start(partition, offset)

    def step(self) -> list[tuple[Followed, str]]:
        """Take a step of each; return those that have ended, with the reason if one failed."""
        self._is_ready = False
        ended: list[tuple[Followed, str]] = []
        for followed in list(self._under_way):
            try:
                is_done = self._step_of(followed)
            except (StorageError, CorruptData) as error:
                del self._under_way[followed]
                ended.append((followed, f"it cannot be cut: {error}"))
                continue
            if is_done:
                del self._under_way[followed]
                followed.cut_offset = -1
                followed.restart_offset = -1
                ended.append((followed, ""))
        if self._finishing:
            self._go_on_finishing()
        return ended

    def has_work_left(self) -> bool:
        """Return whether a step can be taken at once."""
        return self._is_ready

    def _step_of(self, followed: Followed) -> bool:
        partition = followed.partition
        log = partition.log
        if followed.restart_offset >= 0:
            is_done = try_restart(log, followed.restart_offset)
        else:
            # One whose offset is not known any more, from an earlier row, ends where it has come.
            offset = followed.cut_offset
            is_done = try_truncate(log, log.log_end_offset if offset < 0 else offset)
        if is_done:
            return True
        if not log.cut.has_begun:
            if self._turn.now_ms - self._hastened_ms >= _HASTEN_MS:
                self._hastened_ms = self._turn.now_ms
                self._hasten()
        elif log.has_undurable_gap_cut:
            self._flushes.dirty[partition] = None
        else:
            self._is_ready = True
        return False
