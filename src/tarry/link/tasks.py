"""Tasks: what the side that asks does at a time, on the project's timing wheel.

A task is made once by its owner and then armed, moved and disarmed in place: one entry for the
heartbeat, one for the refresh, one for each connection's deadline, and never a second one.
"""

from __future__ import annotations

from collections.abc import Callable

from tarry.timer.entry import TimerEntry
from tarry.timer.wheel import TimingWheel


class Task(TimerEntry):
    """Entry that calls `run(now_ms)` when due; armed anew by whoever wants it again."""

    __slots__ = ("is_armed", "run")

    def __init__(self, run: Callable[[int], None]) -> None:
        super().__init__(0)
        self.run = run
        self.is_armed = False


def wake_up() -> Task:
    """Return a task that does nothing: its turn does what has become possible."""
    return Task(_nothing)


def _nothing(now_ms: int) -> None:
    pass


class Tasks:
    """Tasks of one core, in order of their deadlines."""

    def __init__(self, now_ms: int) -> None:
        self._wheel = TimingWheel(now_ms)
        self._due: list[Task] = []

    def schedule(self, task: Task, deadline_ms: int) -> None:
        """Arm the task, or move its deadline; one that is past is run in the next turn."""
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
        """Run what is due; a task that an earlier one moved or disarmed is left alone."""
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
        """Return when `advance` has something to do next; None: nothing is armed."""
        if self._due:
            return self._wheel.current_ms
        return self._wheel.next_due_ms()
