"""Compaction in the broker: one log at a time, the dirtiest first, step by step between requests.

Every `log.cleaner.backoff.ms` the compacted topics and the companion logs are examined, some
partitions in each step; a companion log that is marked for a look goes first (`companion_looks`).
The dirtiest log is then compacted in steps, with a pause of one tick between them for requests.
While another log is due, it follows at once.  A log that the disk has refused is tried again after
the next backoff.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from tarry.base.errors import StorageError
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.duties.calendar import CalendarWatch
from tarry.broker.duties.companion_looks import CompanionLooks
from tarry.broker.duties.keyed_looks import KeyedLooks
from tarry.broker.duties.looks import LogLooks
from tarry.broker.flushes import Flushes
from tarry.broker.shutdown import Shutdown
from tarry.broker.topics import Topics
from tarry.log.batch_walk import Flaw
from tarry.log.compaction.cleanable import Cleanable
from tarry.log.compaction.compaction import DONE, Compaction
from tarry.log.compaction.effort import Effort
from tarry.log.state import ASKED
from tarry.partition.replicated_log import RECORDS, ReplicatedLog
from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.broker")

# Pause between two steps in ms: a tick of the wheel.
PAUSE_MS: Final = 1
# Longest pause, of a broker that has much else to do: compaction still gets a tenth of the time.
PAUSE_MS_MAX: Final = 20
# Time for which a clock that jumped decides about no tombstone, since it may be set back.
CLOCK_DISTRUST_MS: Final = 300_000
# Number of partitions that one step examines: 2 ms.
LOOKED_AT_MAX: Final = 200

_CANNOT: Final = "%s cannot be compacted now: %s"


class Compactions(TimerEntry):
    """Entry of the timer that is due for the next step, or for the next search for a dirty log."""

    def __init__(
        self,
        turn: Turn,
        timer: TimingWheel,
        settings: Settings,
        topics: Topics,
        flushes: Flushes,
        *,
        is_loading: Callable[[ReplicatedLog], bool],
        shutdown: Shutdown,
    ) -> None:
        super().__init__(turn.now_ms + settings.log_cleaner_backoff_ms)
        self._turn = turn
        self._timer = timer
        self._settings = settings
        self._topics = topics
        self._flushes = flushes
        self._is_loading = is_loading
        self._shutdown = shutdown
        self._companions = CompanionLooks(turn, settings, is_loading)
        self._keyed = KeyedLooks(turn, settings)
        self._current_log: ReplicatedLog | None = None
        self.current: Compaction | None = None
        self.current_name = ""
        # Partitions that the search has not examined yet, and the dirtiest one found so far.
        self._to_look_at: list[ReplicatedLog] | None = None
        self._dirtiest: tuple[ReplicatedLog, Cleanable] | None = None
        # Logs that the disk has refused since the last backoff, which are not tried again before
        # the next.
        self._refused: dict[ReplicatedLog, None] = {}
        self._calendar = CalendarWatch(turn)
        self._trusted_from_ms = turn.monotonic_ms()
        timer.add(self)

    def expire(self) -> None:
        if self._shutdown.is_begun:
            return
        if self.current is not None:
            self._step(self.current)
        else:
            self._look()

    # --- Looking for the dirtiest log.

    def _look(self) -> None:
        if self._to_look_at is None:
            self._to_look_at = self._compacted()
            self._dirtiest = None
        for partition in self._to_look_at[:LOOKED_AT_MAX]:
            self._look_at(partition)
        del self._to_look_at[:LOOKED_AT_MAX]
        if self._to_look_at:
            self._again_in(PAUSE_MS)
            return
        self._to_look_at = None
        if self._dirtiest is None or self._dirtiest[0].is_closed:
            self._refused.clear()
            self._again_in(self._backoff_ms())
            return
        self._begin(*self._dirtiest)
        self._again_in(PAUSE_MS)

    def _compacted(self) -> list[ReplicatedLog]:
        """Return the logs that may need compaction."""
        self._companions.forget_closed()
        keyed: list[ReplicatedLog] = []
        companions: list[ReplicatedLog] = []
        for log in self._topics.logs():
            if log in self._refused:
                continue
            if log.which != RECORDS:
                companions.append(log)
            elif log.config.has_compaction:
                keyed.append(log)
        # Compaction of companion logs does not depend on the calendar.
        return companions + keyed if self._can_trust_calendar(tells=len(keyed) > 0) else companions

    def _can_trust_calendar(self, *, tells: bool) -> bool:
        """Return true if the wall clock has run evenly for some time; tombstones are kept by its
        time.
        """
        now_ms = self._turn.monotonic_ms()
        jump_ms = self._calendar.jump_ms()
        if jump_ms != 0:
            self._trusted_from_ms = now_ms + CLOCK_DISTRUST_MS
            if tells:
                logger.warning(
                    "the wall clock jumped by %d s; compaction waits for %d s",
                    jump_ms // 1000,
                    CLOCK_DISTRUST_MS // 1000,
                )
        return now_ms >= self._trusted_from_ms

    def _look_at(self, partition: ReplicatedLog) -> None:
        log = partition.log
        if self._is_loading(partition):
            # The loader may have read a key whose tombstone it has not read yet.
            return
        try:
            found = self._looks_of(partition).cleanable(partition)
        except Flaw as flaw:
            log.note_flaw(flaw)
            return
        except StorageError as error:
            logger.warning(_CANNOT, partition.name, error)
            return
        if found is not None and self._is_first(found):
            self._dirtiest = (partition, found)

    def _looks_of(self, partition: ReplicatedLog) -> LogLooks:
        return self._keyed if partition.which == RECORDS else self._companions

    def _is_first(self, cleanable: Cleanable) -> bool:
        return self._dirtiest is None or cleanable.dirty_ratio > self._dirtiest[1].dirty_ratio

    # --- One log.

    def _begin(self, partition: ReplicatedLog, cleanable: Cleanable) -> None:
        self._dirtiest = None
        self.current_name = partition.name
        self._current_log = partition
        self._refused[partition] = None
        self.current = self._looks_of(partition).begin(partition, cleanable)

    def _step(self, current: Compaction) -> None:
        if self._must_abandon(current):
            self._abandon(current)
        try:
            flush_id = current.step(Effort(), self._turn.now_wall_ms)
        except Flaw as flaw:
            current.log.note_flaw(flaw)
            self._abandon(current)
            self._again_in(PAUSE_MS)
            return
        except StorageError as error:
            self._fail(current, error)
            return
        if flush_id == DONE:
            self._end(current)
        elif flush_id >= 0:
            self._wait_for(flush_id)
        else:
            self._again_in(self._pause_ms())

    def _on_flushed(self, flush_id: int) -> None:
        current = self.current
        assert current is not None
        if self._must_abandon(current):
            self._abandon(current)
            self._again_in(PAUSE_MS)
            return
        is_swap = current.is_swap_begun
        try:
            next_flush_id = current.on_flushed()
        except StorageError as error:
            if is_swap:
                # The new segments count, but this process cannot rename them: a start can.
                self._shutdown.fail(f"{self.current_name}: {error}; start the broker again")
                return
            self._fail(current, error)
            return
        if next_flush_id >= 0:
            self._wait_for(next_flush_id)
        else:
            self._again_in(PAUSE_MS)

    def _must_abandon(self, current: Compaction) -> bool:
        log = current.log
        if current.is_abandoned:
            return False
        if log.is_closed:
            return True
        partition = self._current_log
        assert partition is not None
        # A cut that was requested and has not begun waits for the end of this compaction.
        is_for_nothing = (
            log.flaw_offset >= 0
            or log.cut.state == ASKED
            or self._looks_of(partition).is_for_nothing(partition)
        )
        return is_for_nothing and not current.is_swap_begun

    def _fail(self, current: Compaction, error: StorageError) -> None:
        logger.warning(_CANNOT, self.current_name, error)
        if current.is_swap_begun:
            self._again_in(self._backoff_ms())
            return
        self._abandon(current)
        self._again_in(PAUSE_MS)

    def _abandon(self, current: Compaction) -> None:
        try:
            current.abandon()
        except StorageError as error:
            logger.warning(_CANNOT, self.current_name, error)

    def _end(self, current: Compaction) -> None:
        partition = self._current_log
        assert partition is not None
        self.current = None
        self._current_log = None
        self._again_in(PAUSE_MS)
        self._looks_of(partition).end(partition, current)
        if current.is_abandoned:
            return
        # The log is clean now, and is due again once it is dirty again.
        self._refused.pop(partition, None)
        if current.bytes_before == 0:
            # The log was only examined, not compacted.
            return
        logger.info(
            "%s is compacted below offset %d: %d bytes are now %d, %d records are gone%s",
            self.current_name,
            current.target_offset,
            current.bytes_before,
            current.bytes_after,
            current.records_dropped,
            f", {current.keyless_dropped} of them without a key" if current.keyless_dropped else "",
        )

    def _backoff_ms(self) -> int:
        return max(self._settings.log_cleaner_backoff_ms, PAUSE_MS)

    def _pause_ms(self) -> int:
        """Return a longer pause if the step came late: other work comes first."""
        late_ms = self._turn.now_ms - self.deadline_ms - PAUSE_MS
        return min(max(PAUSE_MS, 2 * late_ms), PAUSE_MS_MAX)

    def _wait_for(self, flush_id: int) -> None:
        self._flushes.then(flush_id, self._on_flushed)

    def _again_in(self, delay_ms: int) -> None:
        self.deadline_ms = self._turn.now_ms + delay_ms
        self._timer.add(self)
