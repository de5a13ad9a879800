"""The threaded purgatory under load: eight threads, the timer's own, and no order at all.

A million operations compiled, fewer interpreted, each on three keys.  Whatever the threads do to
each other's operations, each operation ends once, nothing of it overlaps, nothing of it runs under
a lock, and nothing is left.
"""

from __future__ import annotations

import gc
import random
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from threading import get_ident
from types import TracebackType

import pytest
from tests.support.patience import PATIENCE_S

import tarry
from tarry.purgatory import DelayedOperation, ThreadedPurgatory
from tarry.timer import SystemTimer

THREADS = 8
OPERATIONS = 1_000_000 if tarry.FORM == "compiled" else 200_000
OPERATIONS_RECORDED = 60_000
WAIT_MS_MAX = 10
# Blocks of the allocator for small objects; a single operation has several.
LEFT_BLOCKS_MAX = 5_000

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(autouse=True)
def threads_that_often_switch() -> Iterator[None]:
    """Fifty times as often as usual, so that they meet in more places."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    yield
    sys.setswitchinterval(usual)


class Scene:
    """A purgatory, its timer, and what is written down of the operations."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.timer = SystemTimer("stress", on_error=self.on_error)
        self.purgatory = ThreadedPurgatory(self.timer, "stress")
        # Counters whose `next` is one step of the interpreter, so that no thread gets in between.
        self.completed = count()
        self.expired = count()
        self.cancelled = count()
        self.handed: deque[Stressed] = deque()
        self.check_unlocked: Callable[[], None] = self.use_locks

    def on_error(self, entry: object, error: BaseException) -> None:
        self.wrong.append(repr(error))

    def use_locks(self) -> None:
        """Never returns if this thread holds a lock of the purgatory or the timer."""
        self.purgatory.check_and_complete("nobody")
        len(self.timer)


class Stressed(DelayedOperation):
    """Completes once `is_ready`, and tells when it should not be running."""

    def __init__(self, scene: Scene, deadline_ms: int, keys: list[object]) -> None:
        super().__init__(deadline_ms)
        self.scene = scene
        self.keys = keys
        self.payload = bytes(100)
        self.is_ready = False
        self.runs_in = 0
        self.completions = 0

    def enter(self) -> None:
        if self.runs_in not in (0, get_ident()):
            self.scene.wrong.append("two threads run one operation")
        self.runs_in = get_ident()

    def try_complete(self) -> bool:
        if self.completions > 0:
            self.scene.wrong.append("an operation is tried after its completion")
        self.enter()
        is_done = self.is_ready and self.force_complete()
        self.runs_in = 0
        return is_done

    def on_complete(self) -> None:
        self.enter()
        self.completions += 1
        if self.completions > 1:
            self.scene.wrong.append("an operation completes twice")
        next(self.scene.completed)
        self.scene.check_unlocked()
        self.runs_in = 0

    def on_expiration(self) -> None:
        self.enter()
        next(self.scene.expired)
        self.scene.check_unlocked()
        self.runs_in = 0


def work(scene: Scene, seed: int, operations: int) -> None:
    """What one thread does: it makes operations and ends them, and those of others, at random."""
    chance = random.Random(seed)
    purgatory = scene.purgatory
    handed = scene.handed
    for number in range(operations):
        keys: list[object] = [("own", seed, number % 20), ("shared", number % 50), number % 11]
        deadline_ms = scene.timer.now_ms() + chance.randrange(WAIT_MS_MAX)
        operation = Stressed(scene, deadline_ms, keys)
        handed.append(operation)
        purgatory.try_complete_else_watch(operation, keys)
        match chance.randrange(8):
            case 0:
                operation.force_complete()
            case 1 | 2:
                operation.is_ready = True
                purgatory.check_and_complete(keys[number % 2])
            case 3:
                for cancelled in purgatory.cancel_for_key(keys[number % 2]):
                    next(scene.cancelled)
                    cancelled.force_complete()
            case 4:
                meddle(purgatory, handed, chance)
            case 5:
                operation.is_ready = True  # for whoever looks at it next
            case 6:
                operation.expire()  # beside the timer
        if len(handed) > 100:
            meddle(purgatory, handed, chance)


def meddle(purgatory: ThreadedPurgatory, handed: deque[Stressed], chance: random.Random) -> None:
    """End an operation of any thread, which may be in the midst of anything."""
    try:
        other = handed.popleft() if chance.random() < 0.5 else handed.pop()
    except IndexError:
        return
    choice = chance.random()
    if choice < 0.4:
        other.force_complete()
    elif choice < 0.6:
        if purgatory.cancel(other):
            next(other.scene.cancelled)
            other.force_complete()
    else:
        other.is_ready = True
        purgatory.check_and_complete(other.keys[0])


def run(scene: Scene, operations: int) -> None:
    """All of it, and then the numbers."""
    each = operations // THREADS
    threads = [
        threading.Thread(target=guarded, args=(scene, seed, each), daemon=True)
        for seed in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "threads wait for each other"
    scene.purgatory.shutdown(expire_pending=True)
    scene.timer.shutdown()
    scene.handed.clear()
    purgatory = scene.purgatory
    assert scene.wrong == []
    cancelled = next(scene.cancelled)
    assert next(scene.completed) == each * THREADS
    # Those that were completed by others before they waited are not counted.
    assert 0 < purgatory.completed_total + cancelled <= each * THREADS
    assert next(scene.expired) == purgatory.expired_total
    assert 0 < purgatory.expired_total < purgatory.completed_total
    assert cancelled > 0
    assert (purgatory.watched, purgatory.delayed, len(scene.timer)) == (0, 0, 0)


def guarded(scene: Scene, seed: int, operations: int) -> None:
    try:
        work(scene, seed, operations)
    except BaseException as error:
        scene.wrong.append(repr(error))


def test_eight_threads_end_every_operation_once_and_leave_nothing_in_memory() -> None:
    run(Scene(), 2000)  # lazily built values are built
    gc.collect()
    before = sys.getallocatedblocks()

    run(Scene(), OPERATIONS)

    gc.collect()
    assert sys.getallocatedblocks() - before < LEFT_BLOCKS_MAX


class Recorder:
    """Which lock was taken while which was held, by any thread."""

    def __init__(self) -> None:
        self.mine = threading.local()
        self.taken = count()
        self.nested: list[tuple[str, str]] = []

    def held(self) -> list[str]:
        names: list[str] = self.mine.__dict__.setdefault("names", [])
        return names


class RecordedLock:
    """A lock that is known by name."""

    def __init__(self, name: str, recorder: Recorder) -> None:
        self.name = name
        self.recorder = recorder
        self.lock = threading.Lock()

    def locked(self) -> bool:
        return self.lock.locked()

    def __enter__(self) -> None:
        held = self.recorder.held()
        self.recorder.nested.extend((outer, self.name) for outer in held)
        self.lock.acquire()
        held.append(self.name)
        next(self.recorder.taken)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.recorder.held().remove(self.name)
        self.lock.release()


@pytest.mark.interpreted
def test_no_lock_is_held_while_another_is_taken_or_an_operation_runs() -> None:
    recorder = Recorder()
    scene = Scene()
    scene.timer.shutdown()
    scene.timer = SystemTimer("stress", on_error=scene.on_error, reaper=False)
    scene.timer._lock = scene.timer._reaper.lock = RecordedLock("timer", recorder)
    scene.purgatory = ThreadedPurgatory(scene.timer, "stress")
    scene.purgatory._lock = RecordedLock("purgatory", recorder)

    def check() -> None:
        if recorder.held():
            scene.wrong.append(f"{recorder.held()} held while an operation runs")

    scene.check_unlocked = check
    is_over = threading.Event()

    def turn() -> None:
        while not is_over.is_set():
            scene.timer.advance()

    reaper = threading.Thread(target=turn, daemon=True)
    reaper.start()
    try:
        run(scene, OPERATIONS_RECORDED)
    finally:
        is_over.set()
        reaper.join(PATIENCE_S)

    assert recorder.nested == []
    assert next(recorder.taken) > OPERATIONS_RECORDED
