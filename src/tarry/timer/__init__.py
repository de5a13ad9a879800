"""Timers over a hierarchical timing wheel, usable in any Python program.

The pure timers have the time as an argument: `TimingWheel`, and `HeapTimer` and `RoundsTimer` under
the same contract, to compare with.  Their entries are `TimerEntry` and `PeriodicEntry`.  Two timers
have a clock of their own: `SystemTimer` for threads, `AsyncioTimer` for an event loop.  The other
names are the objects that these return to their users, and the contract of the pure timers, for
annotations.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tarry.timer.asyncio_timer import AsyncioTimer, PeriodicHandle, TimerHandle
    from tarry.timer.asyncio_waiters import Timeout
    from tarry.timer.calls import CallEntry, CallEveryEntry
    from tarry.timer.entry import TimerEntry, TimerShutDown
    from tarry.timer.heap import HeapTimer
    from tarry.timer.periodic import PeriodicEntry
    from tarry.timer.pure import PureTimer
    from tarry.timer.rounds import RoundsTimer
    from tarry.timer.system_timer import SystemTimer
    from tarry.timer.wheel import TimingWheel

__all__ = [
    "AsyncioTimer",
    "CallEntry",
    "CallEveryEntry",
    "HeapTimer",
    "PeriodicEntry",
    "PeriodicHandle",
    "PureTimer",
    "RoundsTimer",
    "SystemTimer",
    "Timeout",
    "TimerEntry",
    "TimerHandle",
    "TimerShutDown",
    "TimingWheel",
]

# Modules are imported on first use: a program that needs only the wheel, such as the broker, does
# not pay for threads and an event loop at its start.
_MODULES: Final[dict[str, str]] = {
    "AsyncioTimer": "asyncio_timer",
    "CallEntry": "calls",
    "CallEveryEntry": "calls",
    "HeapTimer": "heap",
    "PeriodicEntry": "periodic",
    "PeriodicHandle": "asyncio_timer",
    "PureTimer": "pure",
    "RoundsTimer": "rounds",
    "SystemTimer": "system_timer",
    "Timeout": "asyncio_waiters",
    "TimerEntry": "entry",
    "TimerHandle": "asyncio_timer",
    "TimerShutDown": "entry",
    "TimingWheel": "wheel",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
