"""Finalizers and signal handlers that use an AsyncioTimer in the middle of one of its calls."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import weakref
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.support.hand_loop import HandLoop, Recorder

import tarry.timer.asyncio_rounds
from tarry.timer.asyncio_rounds import IDLE
from tarry.timer.asyncio_timer import AsyncioTimer

pytestmark = pytest.mark.usefixtures("young_heap")

MODULES = str(Path(tarry.timer.asyncio_rounds.__file__).parent / "asyncio_")


class InterruptedLoop(HandLoop):
    """Calls `meanwhile` within the n-th of its own calls that the timer makes."""

    def __init__(self) -> None:
        self.left = 0
        self.meanwhile: Callable[[], object] | None = None
        super().__init__()

    def interrupt(self) -> None:
        meanwhile = self.meanwhile
        if meanwhile is not None:
            self.left -= 1
            if self.left == 0:
                self.meanwhile = None
                meanwhile()

    def call_at(self, *args: Any, **kwargs: Any) -> asyncio.TimerHandle:
        self.interrupt()
        handle = super().call_at(*args, **kwargs)
        self.interrupt()
        return handle

    def time(self) -> float:
        self.interrupt()
        return super().time()


class Scene:
    """Calls near and far that are added, cancelled and made, and one interruption."""

    def __init__(self, kind: str, loop: HandLoop) -> None:
        self.kind = kind
        self.loop = loop
        self.record = Recorder(loop)
        self.timer = AsyncioTimer(loop)
        self.timer.call_at(1007, self.record, "before")
        self.victim = self.timer.call_at(1006, self.record, "victim")
        self.made_before: list[str] | None = None
        self.is_victims_turn = False

    def interrupt(self) -> None:
        """What the finalizer does, once."""
        self.made_before = self.record.names()
        self.is_victims_turn = self.victim._state == IDLE
        if "cancel" in self.kind:
            self.victim.cancel()
        if "add" in self.kind:
            # Near enough to hasten the wake-up, far enough to need a level, and due already.
            for when in (self.loop.now + 0.25, self.loop.now + 5000, 0):
                self.timer.call_at(when, self.record, f"added {when}")

    def play(self) -> None:
        self.add_all()
        self.loop.run_until(1100)

    def add_all(self) -> None:
        self.timer.call_at(1005, self.record, "near")
        for number in range(5):
            handle = self.timer.call_at(1006 + number, self.record, "cancelled")
            self.timer.call_at(1006, self.record, f"far {number}")
            handle.cancel()
        self.timer.call_at(999, self.record, "late")

    def check(self) -> None:
        """Everything came once and in time, and nothing is left."""
        self.loop.run_until(10_000)
        names = self.record.names()
        own = ["late", "near", "victim", "far 0", "far 1", "far 2", "far 3", "far 4", "before"]
        assert self.made_before is not None
        # A call that begins just then may be made or not.
        begins = self.is_victims_turn and "victim" in names
        if "cancel" in self.kind and "victim" not in self.made_before and not begins:
            own.remove("victim")
        assert [name for name in names if not name.startswith("added")] == own
        added = [(when, name) for when, name in self.record.calls if name.startswith("added")]
        assert len(added) == (3 if "add" in self.kind else 0)
        for when, name in added:
            assert when <= float(name.split()[1]) + 0.001 or name == "added 0"
        assert len(self.timer) == len(self.timer._rounds._wheel) == 0
        assert self.loop.errors == []
        assert self.loop.live() == []


@pytest.mark.parametrize("kind", ["cancel", "add", "cancel and add"])
def test_an_interruption_within_any_call_of_the_loop_costs_nothing(kind: str) -> None:
    for number in count(1):
        loop = InterruptedLoop()
        scene = Scene(kind, loop)
        loop.left = number
        loop.meanwhile = scene.interrupt
        scene.play()
        if scene.made_before is None:
            loop.close()
            break
        scene.check()
        loop.close()

    assert number > 20


@pytest.mark.interpreted  # compiled lines cannot be traced
@pytest.mark.parametrize("kind", ["cancel", "add", "cancel and add"])
def test_an_interruption_at_any_line_of_the_timer_costs_nothing(kind: str) -> None:
    interrupted = 0
    for number in count(1):
        loop = HandLoop()
        scene = Scene(kind, loop)
        left = number

        def trace(frame: FrameType, event: str, _: object) -> Any:
            nonlocal left
            if not frame.f_code.co_filename.startswith(MODULES):
                return None
            if event == "line":
                left -= 1
                if left == 0:
                    sys.settrace(None)
                    scene.interrupt()  # noqa: B023, it is called in this very turn
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            scene.play()
        finally:
            sys.settrace(before)
        if scene.made_before is None:
            loop.close()
            break
        interrupted += 1
        scene.check()
        loop.close()

    assert interrupted > 100


def test_an_interruption_by_the_collector_costs_nothing() -> None:
    class Connection:
        """Refers to itself, so that only the collector frees it, in the middle of anything."""

        def __init__(self, scene: Scene) -> None:
            self.scene = scene
            self.itself = self

        def __del__(self) -> None:
            self.scene.interrupt()

    thresholds = gc.get_threshold()
    try:
        for number in range(1, 120):
            gc.disable()
            loop = HandLoop()
            scene = Scene("cancel and add", loop)
            gc.collect()
            Connection(scene)
            gc.set_threshold(gc.get_count()[0] + number)
            gc.enable()
            scene.add_all()
            gc.set_threshold(*thresholds)
            gc.collect()
            scene.check()
            loop.close()
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()


def test_a_close_in_the_middle_of_a_call_is_refused_and_the_timer_is_whole(
    record: Recorder,
) -> None:
    loop = InterruptedLoop()
    timer = AsyncioTimer(loop)
    raised: list[str] = []

    def close() -> None:
        with pytest.raises(RuntimeError) as caught:
            timer.close()
        raised.append(str(caught.value))

    loop.meanwhile = close
    loop.left = 2
    record.loop = loop
    timer.call_later(1, record, "a")
    loop.run_until(2000)

    assert "call_soon_threadsafe(timer.close)" in raised[0]
    assert record.names() == ["a"]
    assert timer.close() == 0
    loop.close()


def test_a_call_may_be_cancelled_in_another_thread_and_is_taken_out_in_the_loops(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    class Payload:
        """Something that can be seen to go."""

    payload = Payload()
    seen = weakref.ref(payload)
    handle = timer.call_later(500, record, payload)
    del payload

    async def main() -> tuple[bool, int, int]:
        thread = threading.Thread(target=handle.cancel)
        thread.start()
        thread.join()
        is_gone = seen() is None
        pending = len(timer)
        return is_gone, pending, len(timer._rounds._wheel)

    result = loop.run(main())
    loop.run_until(2000)

    assert result == (True, 0, 0)
    assert handle.cancelled()
    assert record.calls == []


def test_what_other_threads_cancelled_leaves_the_wheel_with_the_next_call(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder
) -> None:
    handles = [timer.call_later(500, record, "cancelled") for _ in range(100)]

    def cancel_all() -> None:
        for handle in handles:
            handle.cancel()

    async def main() -> int:
        thread = threading.Thread(target=cancel_all)
        thread.start()
        thread.join()
        timer.call_later(1, record, "a")
        return len(timer._rounds._wheel)

    left = loop.run(main())
    loop.run_until(2000)

    assert left == 1
    assert record.names() == ["a"]


def test_a_finalizer_in_another_thread_cancels_the_call_and_the_beats(
    loop: HandLoop, timer: AsyncioTimer, record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Connection:
        """Refers to itself, so that only the collector frees it."""

        def __init__(self, handles: list[Any]) -> None:
            self.handles = handles
            self.itself = self

        def __del__(self) -> None:
            for handle in self.handles:
                handle.cancel()

    gc.collect()
    ignored: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", ignored.append)

    async def main() -> None:
        gc.disable()
        try:
            handles = [timer.call_later(1, record, "a"), timer.call_every(1, record, "beat")]
            Connection(handles)
            thread = threading.Thread(target=gc.collect)
            thread.start()
            thread.join()
        finally:
            gc.enable()

    loop.run(main())
    loop.run_until(2000)

    assert ignored == []
    assert record.calls == []
    assert len(timer) == 0
