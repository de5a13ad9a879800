"""Iteration over the records of polls, the same in every face.

Hot: each record of an iteration passes here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic_ns
from typing import Any, Final, Generic, TypeVar

from mypy_extensions import i64

from tarry.client.core.consumer.handed_out import HandedOut

# Length of one poll of an iteration, in seconds; the iteration itself waits without an end.
ITERATION_SECONDS: Final = 3_600

# Length of a poll that only gives unsubscribed partitions back, and brings no records.
GIVE_BACK_SECONDS: Final = 1

# Time after which an iteration polls again, even if records are left: the group needs polls.
TICK_NS: Final = 50_000_000

# While pieces are consumed as fast as this, the clock is read less often.
_FAST_NS: Final = 1_000_000
_UNWATCHED_MAX: Final = 8

Piece = TypeVar("Piece")


class Tick:
    """Timer of an iteration, which yields pieces until the next poll is due."""

    def __init__(self) -> None:
        now_ns: i64 = monotonic_ns()
        self._until_ns: i64 = now_ns + TICK_NS
        self._looked_ns: i64 = now_ns
        # Number of pieces between two readings of the clock, and how many of them are left.
        self._pieces: i64 = 1
        # The first piece is yielded whatever the time is.
        self._pieces_left: i64 = 1

    def is_over(self) -> bool:
        """Return whether the next poll is due; call it before each piece."""
        if self._pieces_left > 0:
            self._pieces_left -= 1
            return False
        now_ns: i64 = monotonic_ns()
        if now_ns - self._looked_ns > _FAST_NS:
            self._pieces = 1
        elif self._pieces < _UNWATCHED_MAX:
            self._pieces *= 2
        self._looked_ns = now_ns
        self._pieces_left = self._pieces - 1
        return now_ns >= self._until_ns


class PiecesForATick(Generic[Piece]):
    """Iterator over pieces until the next poll is due; the core takes back the others."""

    __slots__ = ("_pieces", "_tick")

    def __init__(self, pieces: Iterator[Piece]) -> None:
        self._pieces = pieces
        self._tick = Tick()

    def __iter__(self) -> PiecesForATick[Piece]:
        return self

    def __next__(self) -> Piece:
        if self._tick.is_over():
            raise StopIteration
        return next(self._pieces)


class PolledRecords:
    """Iterator over single records.  It polls by `hand_out` when no record is left or the next poll
    is due, and ends when `hand_out` returns None."""

    __slots__ = ("_hand_out", "_handed_out", "_is_over", "_tick")

    def __init__(self, hand_out: Callable[[], HandedOut | None]) -> None:
        self._hand_out = hand_out
        self._handed_out: HandedOut | None = None
        self._tick = Tick()
        self._is_over = False

    def __iter__(self) -> PolledRecords:
        return self

    def __next__(self) -> Any:
        while not self._is_over:
            handed_out = self._handed_out
            if handed_out is not None and not self._tick.is_over():
                record: Any = handed_out.next_record()
                if record is not None:
                    return record
            self._handed_out = None
            handed_out = self._hand_out()
            self._handed_out = handed_out
            self._tick = Tick()
            self._is_over = handed_out is None
        raise StopIteration
