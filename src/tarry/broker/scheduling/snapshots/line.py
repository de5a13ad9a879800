"""Snapshots of all partitions with scheduled records on this broker: which is due, and who is next.

One snapshot of a led partition does a step in each turn.  Followers come after that, one at a time,
since each has the state of its partition in memory until that is written.  They read in steps with
a pause between them, which is longer while the broker has much else to do.  Hot.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from tarry.base.disk_trouble import DiskTrouble
from tarry.base.turn import Turn
from tarry.broker.flushes import Flushes
from tarry.broker.scheduling.snapshots.counted_load import CountedLoad
from tarry.broker.scheduling.snapshots.snapshots import ScheduleSnapshots, SnapshotSettings
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import ReplicatedLog
from tarry.purgatory.alarm import Alarm
from tarry.timer.wheel import TimingWheel

# Followed partitions that one look examines.
_LOOKED_AT_MAX: Final = 200
# Bodies whose memory one step frees: less than a millisecond.
_FREED_BODIES: Final = 1_000
# Pause between two steps of a follower, and the longest one, of a broker that has much else to do.
_PAUSE_MS: Final = 1
_PAUSE_MS_MAX: Final = 20
# Alarms: the next look, the next step of a follower.
_ALARMS: Final = 2


class SnapshotLine:
    """Line of the snapshots that are due or under way."""

    def __init__(
        self, turn: Turn, timer: TimingWheel, flushes: Flushes, trouble: DiskTrouble
    ) -> None:
        self._turn = turn
        self._flushes = flushes
        self._trouble = trouble
        self.settings = SnapshotSettings()
        self._all: dict[Leadership, ScheduleSnapshots] = {}
        self._led: dict[ScheduleSnapshots, None] = {}
        self._followed: dict[ScheduleSnapshots, None] = {}
        # Loads of followers that have ended, whose memory is freed in steps.
        self._spent: list[CountedLoad] = []
        # Followed partitions that the present look has not examined yet.
        self._unseen: list[ScheduleSnapshots] = []
        # The follower whose load is under way.
        self._reader: ScheduleSnapshots | None = None
        self._looks = Alarm(timer, turn, self._look)
        self._has_looks = False
        self._steps = Alarm(timer, turn, self._step_followed)
        self._has_steps = False
        self._is_stopping = False

    @property
    def timer_entries_max(self) -> int:
        """Return how many entries of the timer the line may use."""
        return _ALARMS if self._all else 0

    # -- partitions that come and go

    def lead(self, companion: ReplicatedLog) -> ScheduleSnapshots:
        """Return the snapshots of a partition that is led here from now on."""
        snapshots = self._of(companion)
        self._leave_role(snapshots)
        return snapshots

    def follow(self, companion: ReplicatedLog, *, has_led: bool) -> ScheduleSnapshots:
        """Write snapshots of a partition that another broker leads, and return them; `has_led`:
        this broker has led it."""
        snapshots = self._of(companion)
        if has_led:
            self._leave_role(snapshots)
        if not self._has_looks:
            self._has_looks = True
            self._looks.arm(self.settings.look_ms)
        return snapshots

    def forget(self, leadership: Leadership) -> None:
        """Forget a partition of which this broker has no replica any more."""
        snapshots = self._all.pop(leadership, None)
        if snapshots is not None:
            self._leave_role(snapshots)
        if not self._all:
            self._unseen = []
            self._looks.cancel()
            self._steps.cancel()
            self._has_looks = False
            self._has_steps = False

    def _of(self, companion: ReplicatedLog) -> ScheduleSnapshots:
        snapshots = self._all.get(companion.leadership)
        if snapshots is None:
            snapshots = ScheduleSnapshots(
                companion,
                self._turn,
                self._flushes,
                self.settings,
                self._trouble,
                self._spent,
            )
            self._all[companion.leadership] = snapshots
        return snapshots

    def _leave_role(self, snapshots: ScheduleSnapshots) -> None:
        snapshots.leave_role()
        self._led.pop(snapshots, None)
        self._followed.pop(snapshots, None)
        if self._reader is snapshots:
            self._reader = None

    def is_reading(self, leadership: Leadership) -> bool:
        """Return whether the logs of a followed partition are being read for a snapshot."""
        snapshots = self._all.get(leadership)
        return snapshots is not None and snapshots.is_reading

    # -- led partitions

    def put(self, snapshots: ScheduleSnapshots) -> None:
        """Put a led partition in line if its snapshot is due."""
        if snapshots.is_due():
            self._led[snapshots] = None

    def step(self) -> None:
        """Do a step of the first led partition that does not wait for a flush, and free memory."""
        spent = self._spent
        if spent and not spent[-1].free(_FREED_BODIES):
            spent.pop()
        reader = self._reader
        if reader is not None:
            reader.drop_if_cut()
            if not reader.is_reading:
                self._reader = None
        _step_first(self._led)

    def has_work_left(self) -> bool:
        """Return whether a turn without an event would write something."""
        return len(self._spent) > 0 or any(snapshots.has_steps for snapshots in self._led)

    def stop(self) -> None:
        """Read and write no more."""
        self._is_stopping = True

    # -- followed partitions

    def _look(self) -> None:
        """Put the followed partitions in line whose snapshots are due, some in each call."""
        self._has_looks = False
        if self._is_stopping or not self._all:
            return
        if not self._unseen:
            self._unseen = [each for each in self._all.values() if each.is_followed]
        for snapshots in islice(self._unseen, _LOOKED_AT_MAX):
            if not snapshots.is_closed and snapshots.is_followed and snapshots.is_due():
                self._followed[snapshots] = None
        del self._unseen[:_LOOKED_AT_MAX]
        if self._followed and not self._has_steps:
            self._has_steps = True
            self._steps.arm(_PAUSE_MS)
        self._has_looks = True
        self._looks.arm(_PAUSE_MS if self._unseen else self.settings.look_ms)

    def _step_followed(self) -> None:
        """Do a step of the first followed partition that does not wait for a flush."""
        self._has_steps = False
        late_ms = self._turn.now_ms - self._steps.deadline_ms
        if self._is_stopping:
            return
        stepped = _step_first(self._followed)
        if stepped is not None and stepped.is_reading:
            self._reader = stepped
        elif self._reader is not None and not self._reader.is_reading:
            self._reader = None
        if stepped is not None:
            self._has_steps = True
            self._steps.arm(min(max(_PAUSE_MS, 2 * late_ms), _PAUSE_MS_MAX))


def _step_first(line: dict[ScheduleSnapshots, None]) -> ScheduleSnapshots | None:
    """Do a step of the first in line that can do one, and return it; None if none can."""
    for snapshots in list(line):
        if snapshots.has_steps or not snapshots.is_under_way:
            snapshots.step()
            if not snapshots.is_under_way:
                del line[snapshots]
            return snapshots
    return None
