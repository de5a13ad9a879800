"""Timers over a hierarchical timing wheel, usable in any Python program.

Pure, with the time as an argument: `TimingWheel`, and under the same contract `HeapTimer` and
`RoundsTimer` to compare with; their entries are `TimerEntry` and `PeriodicEntry`.  With a clock
of their own: `SystemTimer` for threads, `AsyncioTimer` for an event loop.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tarry.timer.asyncio_timer import AsyncioTimer
    from tarry.timer.entry import TimerEntry, TimerShutDown
    from tarry.timer.heap import HeapTimer
    from tarry.timer.periodic import PeriodicEntry
    from tarry.timer.rounds import RoundsTimer
    from tarry.timer.system_timer import SystemTimer
    from tarry.timer.wheel import TimingWheel

__all__ = [
    "AsyncioTimer",
    "HeapTimer",
    "PeriodicEntry",
    "RoundsTimer",
    "SystemTimer",
    "TimerEntry",
    "TimerShutDown",
    "TimingWheel",
]

# Imported when asked for: who wants the wheel alone, as the broker does, pays for no threads and
# no event loop at its start.
_MODULES: Final[dict[str, str]] = {
    "AsyncioTimer": "asyncio_timer",
    "HeapTimer": "heap",
    "PeriodicEntry": "periodic",
    "RoundsTimer": "rounds",
    "SystemTimer": "system_timer",
    "TimerEntry": "entry",
    "TimerShutDown": "entry",
    "TimingWheel": "wheel",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
