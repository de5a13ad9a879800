"""Cost of one call to Tarry's purgatories, in ns of CPU; one line of JSON.

    purgatory_micro.py OPERATIONS REPEATS loop|threads

The operations lie under 1024 keys, one key each or three neighbouring ones.  The collector is
off, the calling loop (a `map`) is included, each figure is the best of the repeats.  Condition
and completion are interpreted Python in either form, as those of a library's user are.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections import deque
from itertools import cycle
from typing import TYPE_CHECKING, Final

from tarry.purgatory import DelayedOperation, Purgatory
from tarry.timer import TimingWheel

if TYPE_CHECKING:
    from tarry.purgatory import ThreadedPurgatory
    from tarry.timer import SystemTimer

KEYS: Final = 1024
TIMEOUT_MS: Final = 600_000


class Waiting(DelayedOperation):
    """Operation that completes when it is told that it may."""

    __slots__ = ("is_ready",)

    def __init__(self, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.is_ready = False

    def try_complete(self) -> bool:
        return self.is_ready and self.force_complete()

    def on_complete(self) -> None:
        """Do nothing: no client waits for an answer."""


class Micro:
    """The best figures so far, by name."""

    def __init__(self, operations: int, driver: str) -> None:
        self.operations = operations
        self.driver = driver
        self.best: dict[str, float] = {}
        self.space = [("topic", number) for number in range(KEYS)]
        self._started_ns = 0

    def measure(self, keys: int) -> None:
        """Measure each row once, with so many keys an operation."""
        suffix = ", 1 key" if keys == 1 else f", {keys} keys"
        lists = [
            [self.space[(number + following) % KEYS] for following in range(keys)]
            for number in range(KEYS)
        ]
        purgatory, deadline_ms, timer = self._make()
        waiting = [Waiting(deadline_ms) for _ in range(self.operations)]
        self._begin()
        deque(map(purgatory.try_complete_else_watch, waiting, cycle(lists)), 0)
        self._end("watch" + suffix, self.operations)

        self._begin()
        deque(map(purgatory.check_and_complete, self.space), 0)
        self._end("check, a key waited under" + suffix, self.operations * keys)

        for each in waiting:
            each.is_ready = True
        self._begin()
        completed = sum(map(purgatory.check_and_complete, self.space))
        self._end("check and complete" + suffix, self.operations)
        assert completed == self.operations

        waiting = [Waiting(deadline_ms) for _ in range(self.operations)]
        deque(map(purgatory.try_complete_else_watch, waiting, cycle(lists)), 0)
        self._begin()
        deque(map(Waiting.force_complete, waiting), 0)
        self._end("force complete" + suffix, self.operations)
        if timer is not None:
            purgatory.shutdown()
            timer.shutdown()

    def _make(self) -> tuple[Purgatory | ThreadedPurgatory, int, SystemTimer | None]:
        if self.driver == "loop":
            return Purgatory(TimingWheel(0), "bench"), TIMEOUT_MS, None
        from tarry.purgatory import ThreadedPurgatory
        from tarry.timer import SystemTimer

        timer = SystemTimer("bench")
        return ThreadedPurgatory(timer, "bench"), timer.now_ms() + TIMEOUT_MS, timer

    def _begin(self) -> None:
        gc.collect()
        gc.disable()
        self._started_ns = time.process_time_ns()

    def _end(self, name: str, count: int) -> None:
        figure = (time.process_time_ns() - self._started_ns) / count
        gc.enable()
        self.best[name] = min(figure, self.best.get(name, figure))


def main() -> None:
    operations, repeats, driver = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    micro = Micro(operations, driver)
    for _ in range(repeats):
        micro.measure(1)
        micro.measure(3)
    print(json.dumps(micro.best))


if __name__ == "__main__":
    main()
