"""Tarry's purgatories under the loads of bench/purgatory.py; one line of JSON.

    purgatory_load.py SAMPLES loop|threads force|keys whole|bare

`loop` is the pure `Purgatory` over a `TimingWheel`, driven by one thread that sleeps until the
next arrival, completion or deadline.  `threads` is `ThreadedPurgatory` over `SystemTimer` with
the same threads as Kafka's test: one makes the requests, one completes them.  `bare` leaves the
purgatory out: what remains is what the load itself costs.  The collector is on, with its own
settings; the samples are frozen out of its sight.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Final

from purgatory_samples import Samples, read

from tarry.purgatory import DelayedOperation, Purgatory
from tarry.timer import TimingWheel

if TYPE_CHECKING:
    from tarry.purgatory import ThreadedPurgatory

MS: Final = 1_000_000

# The loop looks at completions and deadlines again after so many arrivals that were due together.
ARRIVALS_PER_TURN: Final = 64


class Collections:
    """Counter of the garbage collector's runs and their time."""

    def __init__(self) -> None:
        self.count = 0
        self.spent_ns = 0
        self._started_ns = 0

    def note(self, phase: str, info: dict[str, int]) -> None:
        """Count a collection; `gc.callbacks` calls this."""
        if phase == "start":
            self._started_ns = time.perf_counter_ns()
        else:
            self.count += 1
            self.spent_ns += time.perf_counter_ns() - self._started_ns


class Run:
    """Load in the making: when each request is made and ends."""

    def __init__(self, samples: Samples, by_key: bool) -> None:
        self.samples = samples
        self.by_key = by_key
        self.count = len(samples.arrival_ms)
        names = [f"key-{number}" for number in range(samples.key_space_size)]
        known: dict[tuple[int, ...], list[str]] = {}
        self.keys = [
            known.setdefault(numbers, [names[number] for number in numbers])
            for numbers in samples.key_numbers
        ]
        self.born_ns = [0] * self.count
        self.ended_ns = [0] * self.count
        self.expired: list[int] = []
        self.ended: list[int] = []
        self.is_over = threading.Event()

    def end(self, number: int) -> None:
        """Note that a request has completed or expired; from any thread."""
        self.ended_ns[number] = time.monotonic_ns()
        self.ended.append(number)
        if len(self.ended) == self.count:
            self.is_over.set()


class Request(DelayedOperation):
    """Operation that completes when it is told that it may."""

    __slots__ = ("is_ready", "number", "run")

    def __init__(self, run: Run, number: int, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.run = run
        self.number = number
        self.is_ready = False

    def try_complete(self) -> bool:
        return self.is_ready and self.force_complete()

    def on_complete(self) -> None:
        self.run.end(self.number)

    def on_expiration(self) -> None:
        self.run.expired.append(self.number)


def complete(request: Request, purgatory: Purgatory | ThreadedPurgatory | None) -> None:
    """Complete a request, because its drawn latency is over."""
    run = request.run
    if run.by_key and purgatory is not None:
        request.is_ready = True
        purgatory.check_and_complete(run.keys[request.number][0])
    else:
        request.force_complete()


def run_in_loop(run: Run, is_bare: bool) -> int:
    """Run the load in one thread; return when the last request was made, in ns."""
    samples = run.samples
    start_ns = made_ns = time.monotonic_ns()
    timer = TimingWheel(start_ns // MS)
    purgatory = None if is_bare else Purgatory(timer, "bench")
    queue: list[tuple[int, int, Request]] = []
    number = 0
    while True:
        now_ns = time.monotonic_ns()
        while queue and queue[0][0] <= now_ns:
            complete(heappop(queue)[2], purgatory)
        due_ms = timer.next_due_ms()
        if due_ms is not None and due_ms <= now_ns // MS:
            for entry in timer.advance(now_ns // MS):
                entry.expire()
        turn_end = min(number + ARRIVALS_PER_TURN, run.count)
        while number < turn_end and start_ns + samples.arrival_ms[number] * MS <= now_ns:
            make_request(run, number, purgatory, queue)
            number += 1
            made_ns = time.monotonic_ns()
        if run.is_over.is_set():
            return made_ns
        wake_ns = min(
            queue[0][0] if queue else sys.maxsize,
            sys.maxsize if (due_ms := timer.next_due_ms()) is None else due_ms * MS,
            start_ns + samples.arrival_ms[number] * MS if number < run.count else sys.maxsize,
        )
        pause_ns = wake_ns - time.monotonic_ns()
        if pause_ns > 0:
            time.sleep(pause_ns / 1e9)


def make_request(
    run: Run, number: int, purgatory: Purgatory | None, queue: list[tuple[int, int, Request]]
) -> None:
    """Make a request, watch it, and queue its completion unless it will expire."""
    samples = run.samples
    latency_ms = samples.latency_ms[number]
    born_ns = run.born_ns[number] = time.monotonic_ns()
    request = Request(run, number, born_ns // MS + samples.timeout_ms)
    if purgatory is not None:
        purgatory.try_complete_else_watch(request, run.keys[number])
    elif latency_ms >= samples.timeout_ms:
        run.expired.append(number)
        latency_ms = samples.timeout_ms
    if purgatory is None or latency_ms < samples.timeout_ms:
        heappush(queue, (born_ns + latency_ms * MS, number, request))


class CompletionQueue:
    """Thread that completes each request when its time has come."""

    def __init__(self, purgatory: ThreadedPurgatory | None) -> None:
        self._purgatory = purgatory
        self._queue: list[tuple[int, int, Request]] = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="completion")
        self._thread.start()

    def add(self, due_ns: int, request: Request) -> None:
        """Wakes the thread only if this one comes first."""
        with self._changed:
            heappush(self._queue, (due_ns, request.number, request))
            if self._queue[0][2] is request:
                self._changed.notify()

    def close(self) -> None:
        """End the thread."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while (request := self._take()) is not None:
            complete(request, self._purgatory)

    def _take(self) -> Request | None:
        with self._changed:
            while not self._is_closed:
                if not self._queue:
                    self._changed.wait()
                    continue
                pause_ns = self._queue[0][0] - time.monotonic_ns()
                if pause_ns <= 0:
                    return heappop(self._queue)[2]
                self._changed.wait(pause_ns / 1e9)
        return None


def run_in_threads(run: Run, is_bare: bool) -> int:
    """Run the load in threads, like Kafka's test; return when the last request was made, in ns."""
    from tarry.purgatory import ThreadedPurgatory
    from tarry.timer import SystemTimer

    samples = run.samples
    timer = SystemTimer("bench")
    purgatory = None if is_bare else ThreadedPurgatory(timer, "bench")
    queue = CompletionQueue(purgatory)
    start_ns = time.monotonic_ns()
    for number in range(run.count):
        pause_ns = start_ns + samples.arrival_ms[number] * MS - time.monotonic_ns()
        if pause_ns > 0:
            time.sleep(pause_ns / 1e9)
        latency_ms = samples.latency_ms[number]
        born_ns = run.born_ns[number] = time.monotonic_ns()
        request = Request(run, number, timer.now_ms() + samples.timeout_ms)
        if purgatory is not None:
            purgatory.try_complete_else_watch(request, run.keys[number])
        elif latency_ms >= samples.timeout_ms:
            run.expired.append(number)
            latency_ms = samples.timeout_ms
        if purgatory is None or latency_ms < samples.timeout_ms:
            queue.add(born_ns + latency_ms * MS, request)
    made_ns = time.monotonic_ns()
    run.is_over.wait()
    queue.close()
    if purgatory is not None:
        purgatory.shutdown()
    timer.shutdown()
    return made_ns


def lateness(prefix: str, late_ns: list[int]) -> dict[str, float | None]:
    """Percentiles in µs; nearest rank, the same on every side."""
    late_ns.sort()
    count = len(late_ns)
    places = {"p50": count // 2, "p99": int(count * 0.99), "max": count - 1}
    return {
        f"{prefix}_{name}_us": late_ns[place] / 1e3 if count else None
        for name, place in places.items()
    }


def measure(samples: Samples, driver: str, by_key: bool, is_bare: bool) -> dict[str, object]:
    """Measure one run, from the first request to the end of the last."""
    run = Run(samples, by_key)
    gc.collect()
    gc.freeze()
    collections = Collections()
    gc.callbacks.append(collections.note)
    cpu_before, start_ns = time.process_time_ns(), time.monotonic_ns()
    made_ns = (run_in_threads if driver == "threads" else run_in_loop)(run, is_bare)
    done_ns, cpu_ns = max(run.ended_ns), time.process_time_ns() - cpu_before
    gc.callbacks.remove(collections.note)
    expired = set(run.expired)
    completed_late, expired_late = [], []
    for number, (born_ns, ended_ns) in enumerate(zip(run.born_ns, run.ended_ns, strict=True)):
        if number in expired:
            # Late after the deadline that the timer was given, which is in whole ms.
            expired_late.append(ended_ns - (born_ns // MS + samples.timeout_ms) * MS)
        else:
            completed_late.append(ended_ns - born_ns - samples.latency_ms[number] * MS)
    return {
        "rate": run.count * 1e9 / (made_ns - start_ns),
        "elapsed_ms": (done_ns - start_ns) / MS,
        "cpu_us": cpu_ns / 1e3 / run.count,
        "completed": len(completed_late),
        "expired": len(expired_late),
        **lateness("completed_late", completed_late),
        **lateness("expired_late", expired_late),
        "collections": collections.count,
        "collections_ms": collections.spent_ns / MS,
    }


def main() -> None:
    path, driver, how, whole = sys.argv[1:]
    samples = read(Path(path))
    measure(samples.warm_up(), driver, how == "keys", whole == "bare")
    print(json.dumps(measure(samples, driver, how == "keys", whole == "bare")))


if __name__ == "__main__":
    main()
