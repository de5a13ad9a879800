"""Interface of a timer library under measurement: begin, add, cancel, advance, end.

`timer_worker.py` calls and times these, one kind of work at a time over all entries, so that a
figure has no more of the measurement in it than one turn of a loop.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

# How many deadlines share one reading of the clock where a library's clock cannot be set.
CHUNK: Final = 256


def each(act: Callable[[Any], object], items: Iterable[Any]) -> None:
    """Call it with every item, by the cheapest loop that Python has, about 10 ns a turn."""
    deque(map(act, items), 0)


def nothing() -> None:
    """Do nothing: the task of each entry."""


class Subject(ABC):
    """Library.  A pass is begin, add, choose, cancel, await_due, advance, run, end."""

    # What the library's heaviest cancel allows in a pass that cancels all; None: all of them.
    cancels_max: int | None = None

    # What runs at the deadline, where the library takes a function; a check replaces it.
    task = staticmethod(nothing)

    def __init__(self) -> None:
        self.handles: list[Any] = []
        self.chosen: list[Any] = []

    @abstractmethod
    def begin(self, delays_ms: Sequence[int], span_ms: int, is_to_advance: bool) -> None:
        """Make a new timer, and before entries are added the entries themselves, or bare delays."""

    @abstractmethod
    def add(self) -> None:
        """Add all; what one needs to cancel is in `handles` then."""

    @abstractmethod
    def cancel(self) -> None:
        """Cancel what is in `chosen`."""

    @abstractmethod
    def advance(self) -> None:
        """Run all that is pending: time goes to the end of the span in one step."""

    def run(self) -> None:  # noqa: B027
        """Call the tasks that are due, where `advance` only hands them out."""

    @abstractmethod
    def end(self) -> None:
        """Close what must be closed."""

    def choose(self, victims: Sequence[int]) -> None:
        """Find the handles of those that are to be cancelled."""
        handles = self.handles
        self.chosen = [handles[victim] for victim in victims]

    def await_due(self) -> None:  # noqa: B027
        """Sleep until all is due, where the clock cannot be set."""

    def pauses(self) -> list[float]:
        """Like `advance`, in seconds of CPU for each call that the caller has to wait for."""
        started = time.thread_time()
        self.advance()
        return [time.thread_time() - started]

    def forget(self) -> None:
        """Drop what the measurement holds and the timer does not need."""
        self.handles = []
        self.chosen = []
