"""Entries that call a function with its arguments; `call_later` and `call_every` make them."""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsIndex

from tarry.timer.entry import TimerEntry, check_plain
from tarry.timer.periodic import PeriodicEntry


class CallEntry(TimerEntry):
    """Entry that calls a function once; function and arguments live as long as the entry."""

    __slots__ = ("args", "function")

    def __init__(
        self, deadline_ms: SupportsIndex, function: Callable[..., object], args: tuple[object, ...]
    ) -> None:
        super().__init__(deadline_ms)
        check_plain(function)
        self.function = function
        self.args = args

    def _described(self) -> str:
        return f"{super()._described()}, calls {self.function!r}"

    def expire(self) -> None:
        self.function(*self.args)


class CallEveryEntry(PeriodicEntry):
    """Entry that calls a function at every beat, and `told` with the number of missed beats."""

    __slots__ = ("args", "function", "told")

    def __init__(
        self,
        period_ms: SupportsIndex,
        fixed_delay: bool,
        function: Callable[..., object],
        args: tuple[object, ...],
        told: Callable[[int], object] | None,
    ) -> None:
        super().__init__(0, period_ms, fixed_delay)
        check_plain(function)
        if told is not None:
            check_plain(told)
        self.function = function
        self.args = args
        self.told = told

    def _described(self) -> str:
        return f"{super()._described()}, calls {self.function!r}"

    def beat(self) -> None:
        self.function(*self.args)

    def on_missed(self, beats: int) -> None:
        told = self.told
        if told is not None:
            told(beats)
