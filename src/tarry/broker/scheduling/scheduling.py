"""Scheduling: the schedules of the partitions led here, and when their bodies are released.

A release goes through the turn's write like any append, so that the records of one turn are flushed
together.  A body is due by the calendar, which is read at each release, and never released early: a
clock that is set back holds releases.  The alarm only wakes the broker, by attended time; it is set
again in each turn in which the two clocks moved apart.  A write that the disk refuses is retried
each second.  Hot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

from mypy_extensions import i64

from tarry.base.errors import CorruptData, StorageError
from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.part import Part
from tarry.broker.scheduling.late_report import LateReleases
from tarry.broker.scheduling.opened_bodies import OpenedBodies
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.broker.scheduling.quota import PendingTotal
from tarry.broker.scheduling.snapshots.line import SnapshotLine
from tarry.broker.scheduling.waiting_read import WalkBudget
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import COMPANION, ReplicatedLog
from tarry.purgatory.alarm import Alarm
from tarry.schedule.counts import TopicCounts
from tarry.schedule.pending import NEVER, PendingBodies
from tarry.schedule.recurring.times import RecurringTimes
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.broker")

# Batches that one turn releases, at most: about a millisecond of work.
RELEASED_PER_TURN_MAX: Final = 100
# While requests come, a turn releases so many, one for each request, and as many as it parks: other
# clients wait for a turn and a half.  Requests come as long as the last one is so recent.
_RELEASED_BESIDE_REQUESTS: Final = 8
_REQUESTS_COME_MS: Final = 20
# Schedules that one turn brings on in loading: each step takes a millisecond or two at most.
_LOADED_PER_TURN_MAX: Final = 4
# Bytes that one turn releases, at most.
RELEASED_BYTES_PER_TURN_MAX: Final = 1024 * 1024
# Time until a write that the disk has refused is tried again.
RETRY_MS: Final = 1_000
# Time between two checkpoints of a partition, and partitions that get one in a turn, at most.
CHECKPOINT_MS: Final = 1_000
CHECKPOINTS_PER_TURN_MAX: Final = 100
# Stale entries that the queue may have, beside as many as there are schedules.
_STALE_MAX: Final = 1_000
# Topics whose counts are kept though this broker leads none of their partitions, at most.
_IDLE_COUNTS_MAX: Final = 1_000
# Alarms of a broker with schedules: the next due time, the next retry, the next checkpoints.
_ALARMS: Final = 3


class TopicSums:
    """Counts of one topic, and sums of its pending records in the partitions that are led here."""

    def __init__(self, counts: TopicCounts) -> None:
        self.counts = counts
        self.pending_records = 0
        self.pending_bytes = 0
        self.furthest_due_ms = -1

    def add(self, pending: PendingBodies) -> None:
        """Add the pending bodies of one partition."""
        self.pending_records += pending.record_count
        self.pending_bytes += pending.size
        self.furthest_due_ms = max(self.furthest_due_ms, pending.furthest_due_ms())


class Scheduling(Part):
    """Schedules of this broker, by the leadership of their partitions."""

    def __init__(
        self,
        turn: Turn,
        timer: TimingWheel,
        flushes: Flushes,
        settings: Settings,
        *,
        on_start_asked: Callable[[ReplicatedLog], None],
    ) -> None:
        self._turn = turn
        self._flushes = flushes
        self._trouble = flushes.trouble
        # Function that is called when the start of a companion log is to move.
        self._on_start_asked = on_start_asked
        self._schedules: dict[Leadership, PartitionSchedule] = {}
        # Counts by topic id, since this broker started.
        self._counts: dict[bytes, TopicCounts] = {}
        self._late = LateReleases(turn)
        # Schedules that are being loaded, one after the other.
        self._loading: dict[PartitionSchedule, None] = {}
        # Schedules in which a body was parked or released in this turn.
        self._changed: dict[PartitionSchedule, None] = {}
        self.opened = OpenedBodies()
        self.budget = WalkBudget()
        self._times = RecurringTimes()
        self._total = PendingTotal(settings)
        self.snapshots = SnapshotLine(turn, timer, flushes, flushes.trouble)
        # Due time of the first body of each partition, and a number by which partitions with the
        # same time take turns.  An entry is stale unless its time is the schedule's `queued_ms`.
        self._queue: list[tuple[int, int, PartitionSchedule]] = []
        self._number = 0
        self._requests_until_ms: i64 = 0
        # Schedules that wait for the next retry: the disk has refused them, or they may not act.
        self._held: dict[PartitionSchedule, None] = {}
        self._retry = Alarm(timer, turn, self._try_again)
        self._to_note: dict[PartitionSchedule, None] = {}
        self._next_notes = Alarm(timer, turn, self._note)
        self._is_noting_planned = False
        # Alarm that wakes the broker when the first body is due.
        self.alarm = Alarm(timer, turn, self._on_alarm)
        # Due time that the alarm is set for, and difference of the two clocks at that time.
        self._alarm_due_ms = NEVER
        self._alarm_apart_ms = 0
        self._is_stopping = False

    @property
    def timer_entries_max(self) -> int:
        """Return how many entries of the timer scheduling may use."""
        return self.snapshots.timer_entries_max + (_ALARMS if self._schedules else 0)

    # -- partitions that come and go

    def on_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        """Begin the schedule of a partition that is led here from now on, or end it.

        A schedule's state belongs to one leader epoch: in another epoch it is read again.
        """
        schedule = self._schedules.get(leadership)
        if schedule is not None:
            assert before is not None
            if before.leader_epoch == leadership.leader_epoch and leadership.is_leader:
                return
            self._end(schedule)
        if len(leadership.logs) > COMPANION and not leadership.is_closed:
            self._begin(leadership.logs[COMPANION], has_led=schedule is not None)

    def begin(self, companion: ReplicatedLog) -> None:
        """Begin the schedule of a partition that has a companion log now."""
        self._begin(companion, has_led=False)

    def _begin(self, companion: ReplicatedLog, *, has_led: bool) -> None:
        leadership = companion.leadership
        if not leadership.is_leader:
            self.snapshots.follow(companion, has_led=has_led)
            return
        schedule = PartitionSchedule(
            companion,
            self._turn,
            self._flushes,
            self._changed,
            self.opened,
            budget=self.budget,
            times=self._times,
            total=self._total,
            on_start_asked=self._on_start_asked,
            snapshots=self.snapshots.lead(companion),
            counts=self._counts_of(leadership),
        )
        leadership.parking = schedule
        self._schedules[leadership] = schedule
        self._loading[schedule] = None

    def _counts_of(self, leadership: Leadership) -> TopicCounts:
        counts = self._counts.get(leadership.topic_id)
        if counts is None:
            if len(self._counts) >= len(self._schedules) + _IDLE_COUNTS_MAX:
                # Drop the counts of topics that are gone or led elsewhere.
                self._counts = {
                    each.companion.leadership.topic_id: each.counts
                    for each in self._schedules.values()
                }
            counts = TopicCounts(leadership.topic, self._turn)
            self._counts[leadership.topic_id] = counts
        return counts

    def _end(self, schedule: PartitionSchedule) -> None:
        leadership = schedule.companion.leadership
        schedule.end()
        leadership.parking = None
        del self._schedules[leadership]
        self._loading.pop(schedule, None)
        self._changed.pop(schedule, None)
        self._held.pop(schedule, None)
        self._to_note.pop(schedule, None)
        if not self._schedules:
            # All entries are stale, and no step drops them any more.
            self._queue.clear()
        self._drop_stale()

    def get(self, leadership: Leadership) -> PartitionSchedule | None:
        """Return the schedule of a partition that is led here; None if it has none."""
        return self._schedules.get(leadership)

    def is_reading(self, leadership: Leadership) -> bool:
        """Return whether the logs of a partition are read for its schedule, or for a snapshot."""
        schedule = self._schedules.get(leadership)
        if schedule is None:
            return self.snapshots.is_reading(leadership)
        return schedule.state is None

    def counts_of(self, topic_id: bytes) -> TopicCounts | None:
        """Return the counts of a topic; None if this broker has none of it."""
        return self._counts.get(topic_id)

    def sums(self) -> list[TopicSums]:
        """Return the counts of each topic, with sums of its pending records that are led here."""
        sums = {topic_id: TopicSums(counts) for topic_id, counts in self._counts.items()}
        for schedule in self._schedules.values():
            if schedule.state is not None:
                sums[schedule.companion.leadership.topic_id].add(schedule.state.pending)
        return list(sums.values())

    # -- the turn

    def step(self) -> None:
        if self._is_stopping:
            return
        if self._schedules:
            self.budget.begin()
            if self._loading:
                self._load()
            queue = self._queue
            if queue and queue[0][0] <= self._turn.now_wall_ms:
                self._release()
            if len(self._late) > 0:
                self._late.report()
        self.snapshots.step()
        if self._schedules:
            self._set_alarm()

    def settle(self) -> None:
        changed = self._changed
        if not changed:
            return
        # Clear the dictionary in place: the schedules share it.
        schedules = list(changed)
        changed.clear()
        for schedule in schedules:
            if not schedule.settle():
                self._hold(schedule)
            schedule.count_waiting()
            self._enqueue(schedule)
            if schedule.needs_checkpoint():
                self._plan_note(schedule)

    def on_moved(self, partition: ReplicatedLog) -> None:
        schedule = self._schedules.get(partition.leadership)
        if partition.is_closed:
            if schedule is not None:
                self._end(schedule)
            self.snapshots.forget(partition.leadership)
            return
        if schedule is None:
            return
        schedule.on_moved(partition)
        if schedule.counts.late > 0:
            self._late.add(schedule.counts)
        self._enqueue(schedule)
        self.snapshots.put(schedule.snapshots)

    def has_work_left(self) -> bool:
        if self._is_stopping:
            return False
        if self.snapshots.has_work_left():
            return True
        if not self._schedules:
            return False
        if any(schedule.can_load() for schedule in self._loading):
            return True
        queue = self._queue
        return len(queue) > 0 and queue[0][0] <= self._turn.now_wall_ms

    def stop(self) -> None:
        self._is_stopping = True
        self.snapshots.stop()

    # -- loading

    def _load(self) -> None:
        """Load some schedules a step further: most partitions have little to load."""
        steps = 0
        for schedule in list(self._loading):
            if schedule.can_load():
                self._load_more(schedule)
                steps += 1
                if steps == _LOADED_PER_TURN_MAX:
                    return

    def _load_more(self, schedule: PartitionSchedule) -> None:
        try:
            if not schedule.load():
                return
        except StorageError as error:
            self._trouble.report(_sentence(schedule, "cannot be read yet"), error)
            self._hold(schedule)
        except CorruptData as error:
            logger.error(
                "the scheduled records of %s cannot be read, none of them is released: %s",
                schedule.partition.name,
                error,
            )
        del self._loading[schedule]
        self._enqueue(schedule)
        # If this load has read much, the next one begins with a snapshot.
        self.snapshots.put(schedule.snapshots)
        if schedule.needs_checkpoint():
            # An earlier life ended before it could write a checkpoint of its last releases.
            self._plan_note(schedule)

    # -- releases

    def _enqueue(self, schedule: PartitionSchedule) -> None:
        """Put a schedule into the queue at its first due time, unless it is there or before."""
        due_ms = schedule.next_due_ms()
        if due_ms < schedule.queued_ms and schedule not in self._held:
            self._number += 1
            schedule.queued_ms = due_ms
            heappush(self._queue, (due_ms, self._number, schedule))
            self._drop_stale()

    def _drop_stale(self) -> None:
        """Drop the stale entries of the queue when there are many: a body that is due in years has
        one for each body that was released before it.
        """
        schedules = self._schedules
        if len(self._queue) <= 2 * len(schedules) + _STALE_MAX:
            return
        kept: list[tuple[int, int, PartitionSchedule]] = []
        for schedule in schedules.values():
            if schedule.queued_ms != NEVER:
                self._number += 1
                kept.append((schedule.queued_ms, self._number, schedule))
        heapify(kept)
        self._queue[:] = kept

    def _release(self) -> None:
        """Release due bodies in the order of due times, as many as the turn has room for."""
        queue = self._queue
        now_wall_ms = self._turn.now_wall_ms
        left: i64 = self._releases_in_turn()
        # A schedule that has to wait costs little, and must not take the turn of the others.
        waits_left: i64 = RELEASED_PER_TURN_MAX
        left_bytes: i64 = RELEASED_BYTES_PER_TURN_MAX
        while queue and queue[0][0] <= now_wall_ms and min(left, waits_left, left_bytes) > 0:
            due_ms, _, schedule = heappop(queue)
            if schedule.is_ended or schedule.queued_ms != due_ms:
                continue
            schedule.queued_ms = NEVER
            size = self._release_one(schedule)
            if size < 0:
                waits_left -= 1
            else:
                left -= schedule.release_steps
                left_bytes -= size
                self._enqueue(schedule)

    def _releases_in_turn(self) -> i64:
        """Return how many batches this turn may release."""
        turn = self._turn
        now_ms: i64 = turn.now_ms
        if turn.requests > 0:
            self._requests_until_ms = now_ms + _REQUESTS_COME_MS
        elif now_ms >= self._requests_until_ms:
            return RELEASED_PER_TURN_MAX
        return min(_RELEASED_BESIDE_REQUESTS + turn.requests + turn.parked, RELEASED_PER_TURN_MAX)

    def _release_one(self, schedule: PartitionSchedule) -> int:
        """Release the first due body of a schedule; return its size, -1 if it has to wait."""
        leadership = schedule.partition.leadership
        if not leadership.may_act() or leadership.is_under_min_isr():
            self._hold(schedule)
            return -1
        try:
            size = schedule.release_next()
        except (StorageError, CorruptData) as error:
            fault = error if isinstance(error, StorageError) else StorageError(str(error))
            self._trouble.report(_sentence(schedule, "cannot be released yet"), fault)
            size = -1
        if size < 0:
            self._hold(schedule)
        return size

    def _hold(self, schedule: PartitionSchedule) -> None:
        if not self._held:
            self._retry.arm(RETRY_MS)
        self._held[schedule] = None

    def _try_again(self) -> None:
        held = list(self._held)
        self._held.clear()
        for schedule in held:
            if schedule.state is None:
                self._loading[schedule] = None
            self._enqueue(schedule)

    # -- the alarm

    def _set_alarm(self) -> None:
        queue = self._queue
        due_ms = queue[0][0] if queue else NEVER
        turn = self._turn
        apart_ms = turn.now_wall_ms - turn.now_ms
        if due_ms == self._alarm_due_ms and apart_ms == self._alarm_apart_ms:
            return
        self._alarm_due_ms = due_ms
        self._alarm_apart_ms = apart_ms
        if due_ms == NEVER:
            self.alarm.cancel()
        else:
            self.alarm.arm(due_ms - turn.now_wall_ms)

    def _on_alarm(self) -> None:
        """Set the alarm again; due bodies are released in the next turn's step."""
        self._alarm_due_ms = NEVER
        self._set_alarm()

    # -- checkpoints

    def _plan_note(self, schedule: PartitionSchedule) -> None:
        self._to_note[schedule] = None
        if not self._is_noting_planned:
            self._is_noting_planned = True
            self._next_notes.arm(CHECKPOINT_MS)

    def _note(self) -> None:
        """Append the checkpoints that are planned, some in this turn and the rest in the next.

        A checkpoint waits while the leader may not act, the disk is full, or releases are not
        committed yet.
        """
        self._is_noting_planned = False
        waiting: list[PartitionSchedule] = []
        for schedule in list(self._to_note)[:CHECKPOINTS_PER_TURN_MAX]:
            del self._to_note[schedule]
            checkpoint = schedule.checkpoint()
            if checkpoint is not None:
                schedule.append_checkpoint(checkpoint)
                schedule.renew_recurring()
            if schedule.needs_checkpoint():
                waiting.append(schedule)
        pause_ms = 1
        if not self._to_note:
            pause_ms = CHECKPOINT_MS
            # Free the memory of opened bodies once no more checkpoints are planned.
            self.opened.clear()
        for schedule in waiting:
            self._to_note[schedule] = None
        if self._to_note and not self._is_stopping:
            self._is_noting_planned = True
            self._next_notes.arm(pause_ms)


def _sentence(schedule: PartitionSchedule, what: str) -> str:
    return f"the scheduled records of {schedule.partition.name}: what is due {what}"
