"""Supervisor: which stages are started again, how often, and what ends a run at once."""

from __future__ import annotations

import threading

import pytest
from tests.support.spark.batches import batch

from tarry.spark.pipeline.faults import StageFailed
from tarry.spark.pipeline.progress import Progress
from tarry.spark.pipeline.supervisor import Supervisor


class ScriptedRun:
    """Run of a stage whose starts end as a script says: a fault, None, or `on` (it runs on)."""

    def __init__(self, name: str, *ends: object, order: list[str] | None = None) -> None:
        self.name = name
        self.ends = list(ends)
        self.starts = 0
        self.is_stopped = False
        self.order = order if order is not None else []
        self.current: object = None

    def start(self, *, once: bool) -> None:
        self.starts += 1
        self.order.append(self.name)
        self.current = self.ends.pop(0)
        if callable(self.current):
            self.current = self.current()

    def is_running(self) -> bool:
        return self.current == "on"

    def fault(self) -> BaseException | None:
        return self.current if isinstance(self.current, BaseException) else None

    def stop(self) -> None:
        self.is_stopped = True


def supervisor(restarts_max=3, progress=None, stopping=None, told=None, **given):
    told = [] if told is None else told
    stopping = stopping or threading.Event()
    return Supervisor(
        progress or Progress(), stopping, restarts_max, told.append, pause_s=0.0, **given
    )


def test_once_takes_stages_one_after_the_other():
    order: list[str] = []
    runs = [ScriptedRun(name, None, order=order) for name in ("clean", "revenue", "archive")]

    supervisor().run_once(runs)

    assert order == ["clean", "revenue", "archive"]


def test_a_fault_starts_the_stage_again_and_is_told():
    told: list[str] = []
    run = ScriptedRun("clean", OSError("the disk is slow"), OSError("still"), None)

    supervisor(told=told).run_once([run])

    assert run.starts == 3
    assert told[0] == "stage clean ended: the disk is slow. It starts again in 0 s"


def test_a_stage_waits_longer_after_each_fault():
    told: list[str] = []
    run = ScriptedRun("clean", OSError("one"), OSError("two"), None)

    Supervisor(Progress(), threading.Event(), 3, told.append, pause_s=0.01).run_once([run])

    assert [text.rpartition(" in ")[2] for text in told] == ["0.01 s", "0.02 s"]


def test_faults_in_a_row_end_the_run_and_what_comes_further_counts_anew():
    progress = Progress()

    def advance() -> OSError:
        progress.add(batch("clean"))
        return OSError("away")

    run = ScriptedRun("clean", advance, advance, advance, OSError("away"))

    with pytest.raises(StageFailed, match=r"stage clean has ended: away\. 1 restart did not help"):
        supervisor(restarts_max=1, progress=progress).run_once([run])

    assert run.starts == 4
    assert progress.sums()["clean"].restarts == 3


def test_faults_of_a_stage_that_ran_for_long_without_a_record_are_not_in_a_row():
    faults = [OSError("away") for _ in range(4)]
    run = ScriptedRun("clean", *faults, None)

    supervisor(restarts_max=1, calm_s=0.0).run_once([run])

    assert run.starts == 5


@pytest.mark.parametrize(
    "text",
    [
        "tarry.spark.reading.loss.DataLost: these records cannot be read: orders [0]",
        "tarry.spark.writing.plan.SinkRefused: the sink's directory belongs to query x",
    ],
)
def test_a_fault_that_is_the_same_after_a_start_ends_the_run_at_once(text):
    run = ScriptedRun("clean", RuntimeError(f"[STREAM_FAILED] ...\n{text}\nmore"))

    with pytest.raises(StageFailed) as failed:
        supervisor().run_once([run])

    sentence = text.partition(": ")[2]
    assert str(failed.value) == f"stage clean has ended: {sentence}."
    assert run.starts == 1


def test_a_stage_that_cannot_go_on_stops_the_others():
    runs = [ScriptedRun("clean", "on"), ScriptedRun("archive", ValueError("no"), ValueError("no"))]

    with pytest.raises(StageFailed, match="stage archive has ended: no"):
        supervisor(restarts_max=1).run_on(runs)

    assert runs[0].is_stopped


def test_a_wish_to_stop_stops_all_stages():
    stopping = threading.Event()

    def stop() -> str:
        stopping.set()
        return "on"

    runs = [ScriptedRun("clean", "on"), ScriptedRun("archive", stop)]

    supervisor(stopping=stopping).run_on(runs)

    assert [run.is_stopped for run in runs] == [True, True]


def test_workers_are_watched_while_stages_run():
    stopping = threading.Event()

    supervisor(stopping=stopping, watch=stopping.set).run_on([ScriptedRun("clean", "on")])

    assert stopping.is_set()


def test_a_query_that_somebody_else_stopped_ends_the_run():
    with pytest.raises(StageFailed, match="stage clean was stopped by somebody else"):
        supervisor().run_on([ScriptedRun("clean", None)])
