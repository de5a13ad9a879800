"""Watchers: what waits under one key of a purgatory, oldest first.

Any number of walks may be under way at once, in several threads or one inside the other, while
watchers come and go.  Invariant: a walk to the length that it found at its start comes past
everything that waits all that time, unless another walk has tried it since.  So nothing moves to
the left in a list that somebody may be walking: what stays moves right, towards the end of a part
that has been tried, and whatever is to be shorter becomes a new list.  That way a walk that ends
early has paid for what it walked, not for all that waits.
"""

from __future__ import annotations

from collections.abc import Hashable


class Watchers:
    """The list under a key.  Who shares it guards it; only the walk itself needs no lock."""

    __slots__ = ("head", "items", "key")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        # All before `head` has gone and is None, nothing behind it is.
        self.items: list[object] = []
        self.head = 0

    def __len__(self) -> int:
        return len(self.items) - self.head

    def pending_of(self, items: list[object]) -> list[object]:
        """Those that still wait, in a new list."""
        raise NotImplementedError

    def sweep(self, end: int) -> int:
        """Drop what does not wait any more before the index `end`; how many those were.

        An end short of the length is that of a walk of this very list, which has tried what
        still waits before it.
        """
        items = self.items
        head = self.head
        length = len(items)
        if head >= end:
            return 0
        pending = self.pending_of(items if end - head == length else items[head:end])
        gone = end - head - len(pending)
        if gone == 0:
            return 0
        if end == length:
            self.items = pending
            self.head = 0
            return gone
        nothing: list[object] = [None]
        moved = nothing * gone + pending
        self.head = head + gone  # before anything is set free, whose finalizer may come back
        items[head:end] = moved
        if self.head * 2 > length:
            self.items = items[self.head :]
            self.head = 0
        return gone

    def clear(self) -> int:
        """Drop all; how many those were."""
        gone = len(self)
        self.items = []
        self.head = 0
        return gone
