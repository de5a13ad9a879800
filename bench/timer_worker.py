"""Measures one Python timer: requests on standard input, an answer in JSON for each.

    pass PENDING SPAN_MS CANCELLED_PERCENT ORDER [collected]     ORDER: oldest or anywhere
    pauses PENDING SPAN_MS
    memory PENDING SPAN_MS
    collector PENDING SPAN_MS
    warm PENDING SPAN_MS SECONDS

`bench/java/timer/TimerBench.java` answers the same first, third and last.  Times are seconds of
the process's CPU, so threads of a timer's own are in them; the garbage collector is off unless
the request ends in `collected`.
"""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from timer_subject import Subject

# Beside the default of 700, 10, 10: a young generation that a burst of time-outs fits into.
RAISED_THRESHOLDS: Final = (50_000, 20, 50)


def subject_named(name: str) -> Subject:
    """Import only what is measured: memory counts."""
    if name in ("asyncio", "uvloop", "sched", "apscheduler"):
        import timer_python

        return timer_python.SUBJECTS[name]()
    import timer_tarry

    return timer_tarry.SUBJECTS[name]()


def delays_of(pending: int, span_ms: int) -> list[int]:
    """Even over the span, the same in every run."""
    chance = random.Random(pending)
    return [1 + int(chance.random() * span_ms) for _ in range(pending)]


def victims_of(pending: int, percent: int, order: str) -> Sequence[int]:
    """Who is cancelled: all for 100, else each with that chance; in order of adding, or not."""
    chance = random.Random(percent)
    if percent == 100:
        victims = list(range(pending))
    else:
        victims = [each for each in range(pending) if chance.random() * 100 < percent]
    if order == "anywhere":
        chance.shuffle(victims)
    return victims


def cpu_of(act: Callable[[], object]) -> float:
    """Seconds of CPU of the whole process."""
    started = time.process_time()
    act()
    return time.process_time() - started


def resident_bytes() -> int:
    """By ps, which Linux and macOS have."""
    done = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024


class CollectorWatch:
    """What the garbage collector did, told by its own callbacks."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.full_total = 0
        self._started = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._started = time.process_time()
            return
        self.seconds += time.process_time() - self._started
        self.full_total += info["generation"] == 2

    def __enter__(self) -> CollectorWatch:
        gc.collect()
        gc.callbacks.append(self)
        gc.enable()
        return self

    def __exit__(self, *exception: object) -> None:
        gc.disable()
        gc.callbacks.remove(self)


class Worker:
    """The requests."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def run_pass(
        self, pending: int, span_ms: int, percent: int, order: str, collected: bool
    ) -> dict[str, Any]:
        subject = self.subject
        delays_ms = delays_of(pending, span_ms)
        victims = victims_of(pending, percent, order)
        left = pending - len(victims)
        if percent == 100 and subject.cancels_max is not None:
            victims = victims[: subject.cancels_max]
        gc.collect()
        if collected:
            gc.enable()
        figures: dict[str, Any] = {"cancelled": len(victims), "left": left}
        figures["make_s"] = cpu_of(lambda: subject.begin(delays_ms, span_ms, left > 0))
        figures["add_s"] = cpu_of(subject.add)
        subject.choose(victims)
        figures["cancel_s"] = cpu_of(subject.cancel)
        if left:
            subject.await_due()
            figures["advance_s"] = cpu_of(subject.advance)
            figures["run_s"] = cpu_of(subject.run)
        gc.disable()
        subject.end()
        subject.forget()
        return figures

    def measure_pauses(self, pending: int, span_ms: int) -> dict[str, Any]:
        subject = self.subject
        gc.collect()
        subject.begin(delays_of(pending, span_ms), span_ms, True)
        subject.add()
        subject.await_due()
        spent = subject.pauses()
        subject.end()
        subject.forget()
        return {"worst_s": max(spent), "calls": len(spent), "total_s": sum(spent)}

    def measure_memory(self, pending: int, span_ms: int) -> dict[str, Any]:
        """The resident set before there is anything, and with all pending."""
        subject = self.subject
        before = resident_bytes()
        subject.begin(delays_of(pending, span_ms), span_ms, False)
        subject.add()
        subject.forget()
        spent = resident_bytes() - before
        subject.end()
        return {"bytes": spent / pending}

    def measure_collector(self, pending: int, span_ms: int) -> dict[str, Any]:
        """What a full collection costs with all pending, and what freezing and thresholds save."""
        subject = self.subject
        delays_ms = delays_of(pending, span_ms)
        figures: dict[str, Any] = {}
        default = gc.get_threshold()
        for name, thresholds in (("default", default), ("raised", RAISED_THRESHOLDS)):
            gc.set_threshold(*thresholds)
            with CollectorWatch() as watch:
                subject.begin(delays_ms, span_ms, False)
                subject.add()
            figures[f"filling_{name}_s"] = watch.seconds
            figures[f"filling_{name}_full"] = watch.full_total
            if name == "default":
                subject.end()
                subject.forget()
        gc.set_threshold(*default)
        figures["full_s"] = min(cpu_of(gc.collect) for _ in range(3))
        gc.freeze()
        figures["frozen_s"] = min(cpu_of(gc.collect) for _ in range(3))
        gc.unfreeze()
        subject.end()
        subject.forget()
        gc.collect()
        figures["empty_s"] = min(cpu_of(gc.collect) for _ in range(3))
        return figures

    def warm(self, pending: int, span_ms: int) -> dict[str, Any]:
        """One small pass, which also tells whether all that is due runs."""
        subject = self.subject
        ran: list[None] = []
        subject.task = lambda: ran.append(None)
        figures = self.run_pass(pending, span_ms, 50, "oldest", False)
        if ran and len(ran) != figures["left"]:
            raise SystemExit(f"{len(ran)} tasks ran of {figures['left']} that were due")
        del subject.task
        return {"passes": 1}

    def answer(self, words: list[str]) -> dict[str, Any]:
        pending, span_ms = int(words[1]), int(words[2])
        match words[0]:
            case "pass":
                return self.run_pass(
                    pending, span_ms, int(words[3]), words[4], words[-1] == "collected"
                )
            case "pauses":
                return self.measure_pauses(pending, span_ms)
            case "memory":
                return self.measure_memory(pending, span_ms)
            case "collector":
                return self.measure_collector(pending, span_ms)
            case "warm":
                return self.warm(pending, span_ms)
        raise SystemExit(f"no such request: {words[0]}")


def main() -> None:
    worker = Worker(subject_named(sys.argv[1]))
    gc.disable()
    for line in sys.stdin:
        print(json.dumps(worker.answer(line.split())), flush=True)


if __name__ == "__main__":
    main()
