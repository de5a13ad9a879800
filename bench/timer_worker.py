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

# A young generation that a burst of time-outs fits into; the default is 700.
RAISED_THRESHOLD: Final = 50_000

# How Python's collector is set, by what the report calls it.
SETTINGS: Final = ("default", "frozen", "raised", "disabled")


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
    """Choose the entries to cancel: all for 100, else each with that chance; in order or not."""
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
    """Return the resident memory in bytes, from `ps`, which Linux and macOS have."""
    done = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(os.getpid())], capture_output=True, text=True, check=True
    )
    return int(done.stdout) * 1024


class CollectorWatch:
    """Figures of the garbage collector, told by its own callbacks."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.total_s = 0.0
        self._started = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._started = time.process_time()
            return
        spent = time.process_time() - self._started
        self.longest_s = max(self.longest_s, spent)
        self.total_s += spent

    def __enter__(self) -> CollectorWatch:
        gc.callbacks.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        gc.callbacks.remove(self)


class Worker:
    """The requests."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.subject = subject_named(name)

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
        """Measure the resident memory before there is an entry, and with all pending."""
        subject = self.subject
        before = resident_bytes()
        subject.begin(delays_of(pending, span_ms), span_ms, False)
        subject.add()
        subject.forget()
        spent = resident_bytes() - before
        subject.end()
        return {"bytes": spent / pending}

    def measure_collector(self, pending: int, span_ms: int) -> dict[str, Any]:
        """Measure a full collection with all pending, and work beside it in every setting."""
        subject = self.subject
        delays_ms = delays_of(pending, span_ms)
        figures: dict[str, Any] = {"empty_s": min(cpu_of(gc.collect) for _ in range(3))}
        subject.begin(delays_ms, span_ms, False)
        subject.add()
        figures["full_s"] = min(cpu_of(gc.collect) for _ in range(3))
        for setting in SETTINGS:
            figures[setting] = self._beside(delays_ms, span_ms, setting)
        gc.freeze()
        figures["frozen_s"] = min(cpu_of(gc.collect) for _ in range(3))
        gc.unfreeze()
        subject.end()
        subject.forget()
        return figures

    def _beside(self, delays_ms: list[int], span_ms: int, setting: str) -> dict[str, float]:
        """Measure as many more entries, made, added and cancelled in a timer of their own."""
        other = subject_named(self.name)
        thresholds = gc.get_threshold()
        gc.collect()
        if setting == "frozen":
            gc.freeze()
        if setting == "raised":
            gc.set_threshold(RAISED_THRESHOLD, *thresholds[1:])
        if setting != "disabled":
            gc.enable()
        with CollectorWatch() as watch:
            made_s = cpu_of(lambda: other.begin(delays_ms, span_ms, False)) + cpu_of(other.add)
            other.choose(range(len(delays_ms)))
            cancelled_s = cpu_of(other.cancel)
        gc.disable()
        gc.set_threshold(*thresholds)
        gc.unfreeze()
        other.end()
        other.forget()
        return {
            "add": made_s / len(delays_ms) * 1e9,
            "cancel": cancelled_s / len(delays_ms) * 1e9,
            "longest_s": watch.longest_s,
            "total_s": watch.total_s,
        }

    def warm(self, pending: int, span_ms: int) -> dict[str, Any]:
        """Run one small pass, and check that all that is due runs."""
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
    worker = Worker(sys.argv[1])
    gc.disable()
    for line in sys.stdin:
        print(json.dumps(worker.answer(line.split())), flush=True)


if __name__ == "__main__":
    main()
