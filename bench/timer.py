"""The timing wheel and the purgatory, in both forms, beside asyncio's timers.

`make bench` runs it.  A million entries are pending, the collector is off, figures are ns of
CPU an operation, the calling loop included; each is the best of three.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Final

PENDING: Final = 1_000_000
SPAN_MS: Final = 600_000
OPERATIONS: Final = 200_000
ROUNDS: Final = 3


class Stopwatch:
    """Best CPU time an item of what is done over a list, by name."""

    def __init__(self) -> None:
        self.best: dict[str, float] = {}

    def time(self, name: str, items: Iterable[object], act: Callable[[object], object]) -> None:
        items = list(items)
        gc.collect()
        gc.disable()
        started = time.process_time()
        for item in items:
            act(item)
        figure = (time.process_time() - started) / len(items) * 1e9
        gc.enable()
        self.best[name] = min(figure, self.best.get(name, figure))


def nothing(item: object) -> None:
    """What asyncio's timers would call."""


def measure_wheel(watch: Stopwatch, chance: random.Random) -> None:
    from tarry.timer import TimerEntry, TimingWheel

    entries = [TimerEntry(chance.randrange(1, SPAN_MS)) for _ in range(PENDING)]
    wheel = TimingWheel(0)
    watch.time("add", entries, wheel.add)
    watch.time("cancel, oldest first", entries, wheel.cancel)
    for entry in entries:
        wheel.add(entry)
    shuffled = chance.sample(entries, len(entries))
    watch.time("cancel, anywhere", shuffled, wheel.cancel)
    for entry in entries:
        wheel.add(entry)
    watch.time("reschedule", entries, lambda entry: wheel.reschedule(entry, entry.deadline_ms + 9))
    started = time.process_time()
    due = wheel.advance(SPAN_MS + 10)
    spent = (time.process_time() - started) / len(due) * 1e9
    watch.best["advance, an entry"] = min(spent, watch.best.get("advance, an entry", spent))
    assert len(due) == PENDING


def measure_purgatory(watch: Stopwatch) -> None:
    from tarry.purgatory import DelayedOperation, Purgatory
    from tarry.timer import TimingWheel

    class Waiting(DelayedOperation):
        is_ready = False

        def try_complete(self) -> bool:
            return Waiting.is_ready and self.force_complete()

    purgatory = Purgatory(TimingWheel(0), "bench")
    operations = [(Waiting(30_000), [("topic", number % 1024)]) for number in range(OPERATIONS)]
    watch.time("watch", operations, lambda item: purgatory.try_complete_else_watch(*item))
    Waiting.is_ready = True
    keys = [("topic", number) for number in range(1024)]
    started = time.process_time()
    for key in keys:
        purgatory.check_and_complete(key)
    spent = (time.process_time() - started) / OPERATIONS * 1e9
    watch.best["check and complete"] = min(spent, watch.best.get("check and complete", spent))
    assert purgatory.completed_total == OPERATIONS


def measure_asyncio(watch: Stopwatch, chance: random.Random) -> None:
    delays = [chance.randrange(1, SPAN_MS) / 1000 for _ in range(PENDING)]
    loop = asyncio.new_event_loop()
    handles: list[asyncio.TimerHandle] = []
    watch.time("add", delays, lambda delay: handles.append(loop.call_later(delay, nothing, None)))
    watch.time("cancel, oldest first", handles, asyncio.TimerHandle.cancel)
    loop.close()


def measure(subject: str) -> dict[str, float]:
    watch = Stopwatch()
    for round_number in range(ROUNDS):
        chance = random.Random(round_number)
        if subject == "asyncio":
            measure_asyncio(watch, chance)
        else:
            measure_wheel(watch, chance)
            measure_purgatory(watch)
    return watch.best


def measured_apart(subject: str) -> dict[str, float] | None:
    """In a process of its own: the form of the hot modules is chosen at import."""
    environment = os.environ | {"TARRY_PURE": "1" if subject == "interpreted" else "0"}
    if subject == "compiled":
        form = "import tarry; print(tarry.FORM)"
        found = subprocess.run(
            [sys.executable, "-c", form],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        if found.stdout.strip() != "compiled":
            return None
    command = [sys.executable, __file__, "--subject", subject]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subject", choices=("compiled", "interpreted", "asyncio"))
    arguments = parser.parse_args()
    if arguments.subject:
        print(json.dumps(measure(arguments.subject)))
        return
    columns = {name: measured_apart(name) for name in ("compiled", "interpreted", "asyncio")}
    print(f"{PENDING:,} pending, ns an operation{'compiled':>14}{'interpreted':>14}{'asyncio':>14}")
    for row in columns["interpreted"] or {}:
        figures = [(figures or {}).get(row) for figures in columns.values()]
        cells = "".join(f"{'-':>14}" if each is None else f"{each:14.0f}" for each in figures)
        print(f"{row:<36}{cells}")


if __name__ == "__main__":
    main()
