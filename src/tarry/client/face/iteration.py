"""Iteration over what polls brought, alike in every face."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic_ns
from typing import Final, TypeVar

# An iteration waits without an end, in polls of this length.
ITERATION_SECONDS: Final = 3_600

# After so long an iteration polls again, though not all of it is yielded: the group goes on.
TICK_MS: Final = 50

Piece = TypeVar("Piece")


def for_a_tick(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """Yield pieces until the next poll is due; the core takes back what was not yielded."""
    until_ns = monotonic_ns() + TICK_MS * 1_000_000
    for piece in pieces:
        yield piece
        if monotonic_ns() >= until_ns:
            return
