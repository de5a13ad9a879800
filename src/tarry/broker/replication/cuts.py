"""Cuts of followed logs, and restarts of such logs as empty ones: a few steps in each turn.

A cut below the recovery point, and every restart, first waits for a round of recovery points that
records it.  The cuts are examined in passes, a bounded part of a pass in each turn.  After a pass
that took no step there is none until something happens.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from tarry.base.errors import CorruptData, StorageError
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.replication.followed import Followed
from tarry.log.recovery.truncation import try_restart, try_truncate
from tarry.log.state import GIVING_UP
from tarry.partition.replicated_log import ReplicatedLog

logger = logging.getLogger("tarry.replication")

# Interval at which a cut that waits asks for a round of recovery points.
_HASTEN_MS: Final = 100

# Number of steps of all cuts in one turn; a step takes 10 ms at most, interpreted.
STEPS_PER_TURN_MAX: Final = 5
# Number of these steps that is kept for new leaders, which take no records before their cuts end.
_STEPS_KEPT: Final = 2
# Number of cuts that one turn examines: most of them only wait, which takes 50 µs each.
LOOKS_PER_TURN_MAX: Final = 100
# Pause before a new leader continues to end a cut that the disk has refused.
_REFUSED_MS: Final = 1_000


class Cuts:
    """The cuts that are under way.

    `hasten` asks for a round of recovery points.  `move_start(log, offset)` lets a log begin at an
    offset once a recovery point has it.
    """

    def __init__(
        self,
        turn: Turn,
        flushes: Flushes,
        hasten: Callable[[], None],
        move_start: Callable[[ReplicatedLog, int], None],
    ) -> None:
        self._turn = turn
        self._flushes = flushes
        self._hasten = hasten
        self._move_start = move_start
        self._hastened_ms = turn.now_ms - _HASTEN_MS
        self._under_way: dict[Followed, None] = {}
        # Cuts that the present pass has not examined yet.
        self._pass: deque[Followed] = deque()
        # True if the next step of a cut that this pass has examined need not wait.
        self._has_more = False
        # Cuts of logs that this broker leads since, each with the time of its next step.  Such a
        # log takes no records before its cut ends.
        self._finishing: dict[Followed, int] = {}
        self._steps_left = STEPS_PER_TURN_MAX

    def begin(self, followed: Followed) -> None:
        """Cut a log to `cut_offset`, or restart it at `restart_offset`."""
        self._under_way[followed] = None
        self._has_more = True
        self._hastened_ms = self._turn.now_ms - _HASTEN_MS

    def leave(self, followed: Followed) -> None:
        """Take no more steps for now; drop a cut that has not begun."""
        self._under_way.pop(followed, None)
        log = followed.partition.log
        if not log.cut.must_end:
            followed.forget_cut()
        if log.cut.is_under_way and not log.cut.must_end and not log.has_tail:
            try_truncate(log, log.log_end_offset)

    def finish(self, followed: Followed) -> None:
        """End a cut early, where it is now, because this broker leads the replica from now on."""
        self._finishing[followed] = self._turn.now_ms
        self._go_on_finishing(followed)

    def _go_on_finishing(self, followed: Followed) -> None:
        """Take steps to the end of such a cut while this turn has some left."""
        log = followed.partition.log
        while self._steps_left > 0 or not log.cut.is_under_way:
            if not self._try_step_to_end(followed):
                return

    def _try_step_to_end(self, followed: Followed) -> bool:
        """Take a step to the end of such a cut; return whether another step can follow at once."""
        partition = followed.partition
        log = partition.log
        is_done, has_failed = True, False
        try:
            if log.is_being_cut:
                self._steps_left -= 1 if log.cut.is_under_way else 0
                is_done = try_truncate(log, log.log_end_offset)
        except (StorageError, CorruptData) as error:
            is_done, has_failed = False, True
            self._finishing[followed] = self._turn.now_ms + _REFUSED_MS
            line = "%s takes no records, a cut of its log has not come to its end: %s"
            logger.error(line, partition.name, error)
        if log.has_undurable_cut:
            # Nothing may be appended until a flush has covered the cut.
            self._flushes.dirty[partition] = None
        # The step drops the new leader epoch, which has no batch yet, so begin it again.
        partition.begin_epoch()
        if is_done:
            del self._finishing[followed]
            partition.place_high_watermark()
        elif log.cut.state == GIVING_UP and not has_failed:
            self._finishing[followed] = self._turn.now_ms + _HASTEN_MS
            self._hasten()
        return followed in self._finishing and self._is_due(followed)

    def _is_due(self, followed: Followed) -> bool:
        if followed.partition.log.unflushed.has_gap_cut:
            return False
        return self._finishing[followed] <= self._turn.now_ms

    def follow_start(self, followed: Followed) -> None:
        """Move the log's start to that of the leader's log, but not past the high watermark
        here.
        """
        partition = followed.partition
        # The leader's high watermark may be ahead of this one.  Past its end the log refuses a
        # start with an assertion, which would end the process.
        offset = min(followed.leader_log_start, partition.high_watermark)
        if offset > partition.log.coming_start_offset:
            self._move_start(partition, offset)

    def step(self) -> list[tuple[Followed, str]]:
        """Take the steps of a turn; return the cuts that have ended, each with the reason if it
        failed.
        """
        ended = self._go_on_with_pass(_STEPS_KEPT if self._finishing else 0)
        for followed in list(self._finishing):
            partition = followed.partition
            if partition.is_closed or not partition.leadership.is_leader:
                # The replica follows again, and the cut continues as that of a follower.
                del self._finishing[followed]
            elif self._is_due(followed):
                self._go_on_finishing(followed)
        self._steps_left = STEPS_PER_TURN_MAX
        return ended

    def _go_on_with_pass(self, steps_kept: int) -> list[tuple[Followed, str]]:
        if not self._pass:
            self._pass.extend(self._under_way)
            self._has_more = False
        ended: list[tuple[Followed, str]] = []
        looks_left = LOOKS_PER_TURN_MAX
        while self._pass and self._steps_left > steps_kept and looks_left > 0:
            followed = self._pass.popleft()
            if followed not in self._under_way:
                continue
            looks_left -= 1
            reason = ""
            try:
                is_done = self._step_of(followed)
            except (StorageError, CorruptData) as error:
                is_done, reason = True, f"it cannot be cut: {error}"
            if is_done or followed.partition.log.cut.has_begun:
                self._steps_left -= 1
            if is_done:
                del self._under_way[followed]
                if not reason:
                    followed.forget_cut()
                ended.append((followed, reason))
        return ended

    def has_work_left(self) -> bool:
        """Return whether a step can be taken at once."""
        if self._has_more or self._pass:
            return True
        return any(self._is_due(followed) for followed in self._finishing)

    def _step_of(self, followed: Followed) -> bool:
        partition = followed.partition
        log = partition.log
        if followed.restart_offset >= 0:
            is_done = try_restart(log, followed.restart_offset)
            if is_done:
                followed.begun_anew_epoch = partition.leadership.row.unclean_epoch
                # A restart that had begun for an earlier leader has ended at another offset.
                if log.log_end_offset == followed.restart_offset:
                    # The leader's first batch may lie behind a gap, and its epoch before it.
                    log.assign_epoch(followed.restart_epoch)
        else:
            # If the offset of an earlier row's cut is no longer known, the cut ends where it is
            # now.
            offset = followed.cut_offset
            is_done = try_truncate(log, log.log_end_offset if offset < 0 else offset)
        if is_done:
            return True
        if not log.cut.has_begun:
            if self._turn.now_ms - self._hastened_ms >= _HASTEN_MS:
                self._hastened_ms = self._turn.now_ms
                self._hasten()
        elif log.unflushed.has_gap_cut:
            self._flushes.dirty[partition] = None
        else:
            self._has_more = True
        return False
