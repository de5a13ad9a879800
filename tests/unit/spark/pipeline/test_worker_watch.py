"""Watch over Spark's workers: when a run says that nobody takes its tasks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tarry.spark.pipeline.worker_watch import WorkerWatch


class Clock:
    """Clock that goes on by hand."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def told_over(
    seconds: int,
    tasks: Sequence[int] | Exception,
    rest: Sequence[int] = (),
    busy: Sequence[str] = (),
) -> list[str]:
    """Return what is told while Spark has such tasks, and then others for as long."""
    told: list[str] = []
    clock = Clock()
    current = tasks

    def active() -> Sequence[int]:
        if isinstance(current, Exception):
            raise current
        return current

    watch = WorkerWatch(active, lambda: busy, "spark://host:7077", told.append, clock)
    for now in (tasks, rest):
        current = now
        for _ in range(seconds * 5):
            watch.look()
            clock.now_s += 0.2
    return told


@pytest.mark.parametrize(
    "tasks", [(), (1,), (0, 2), ConnectionRefusedError("Java is gone")], ids=str
)
def test_workers_that_work_and_nothing_to_do_are_not_told(tasks: Sequence[int] | Exception) -> None:
    assert told_over(700, tasks) == []


def test_tasks_that_nobody_takes_are_told_after_a_while_and_not_too_often() -> None:
    told = told_over(700, (0, 0))

    assert [sentence.partition(", and")[0] for sentence in told] == [
        "no worker of Spark has taken a task for 60 s",
        "no worker of Spark has taken a task for 660 s",
    ]
    assert "see that the workers of spark://host:7077 run" in told[0]


def test_a_task_that_was_taken_begins_the_time_anew() -> None:
    assert told_over(50, (0,), rest=(1,)) == []
    assert len(told_over(70, (0,), rest=(0,))) == 1


def test_a_micro_batch_in_which_nothing_runs_is_told() -> None:
    told = told_over(700, (), busy=("orders.clean", "orders.revenue"))

    assert len(told) == 2
    assert told[0].startswith("Spark has had no task for 600 s in the middle of a micro-batch")
    assert "of orders.clean, orders.revenue: if it is large" in told[0]
    assert told_over(590, (), rest=(1,), busy=("orders.clean",)) == []
