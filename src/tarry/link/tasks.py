"""Tasks: what the side that sends requests does at a time, on the project's timing wheel.

The owner makes a task once and then arms, moves and disarms it in place: there is one entry for the
heartbeat, one for the refresh, one for each connection's deadline.
"""

from __future__ import annotations

from collections.abc import Callable

from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel


class Task(TimerEntry):
    """Entry that calls `run(now_ms)` when due; its owner arms it for each call."""

    __slots__ = ("is_armed", "run")

    def __init__(self, run: Callable[[int], None]) -> None:
        super().__init__(0)
        self.run = run
        self.is_armed = False


def wake_up() -> Task:
    """Return a task that does nothing: it only causes a turn, which does the work."""
    return Task(_nothing)


def _nothing(now_ms: int) -> None:
    pass


class Tasks:
    """Tasks of one core, in order of their deadlines."""

    def __init__(self, now_ms: int) -> None:
        self._wheel = TimingWheel(now_ms)
        self._due: list[Task] = []

    def schedule(self, task: Task, deadline_ms: int) -> None:
        """Arm the task, or move its deadline; a task with a past deadline runs in the next turn."""
        task.is_armed = True
        if not self._wheel.reschedule(task, deadline_ms):
            self._due.append(task)

    def schedule_earlier(self, task: Task, deadline_ms: int) -> None:
        """Arm the task, unless it is armed for this time or an earlier one."""
        if not task.is_armed or deadline_ms < task.deadline_ms:
            self.schedule(task, deadline_ms)

    def cancel(self, task: Task) -> None:
        task.is_armed = False
        self._wheel.cancel(task)

    def advance(self, now_ms: int) -> None:
        """Run the tasks that are due; skip a task that an earlier one moved or disarmed."""
        due = self._due
        self._due = []
        for entry in self._wheel.advance(now_ms):
            assert isinstance(entry, Task)
            due.append(entry)
        for task in due:
            if task.is_armed and not task.is_pending:
                task.is_armed = False
                task.run(now_ms)

    def next_due_ms(self) -> int | None:
        """Return when `advance` has work next, in ms; None if no task is armed."""
        if self._due:
            return self._wheel.current_ms
        return self._wheel.next_due_ms()
