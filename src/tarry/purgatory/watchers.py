"""Watchers: the operations under one key of a purgatory, oldest first.

Any number of walks may be under way at once, in several threads or one inside another, while
watchers come and go.  Invariant: a walk to the length at its start passes every watcher that waits
all that time, unless another walk has tried it since.  Therefore no watcher moves to the left in a
list that may be walked: it moves right, towards the end of a part that has been tried, and a list
that gets shorter becomes a new list.  So a walk that ends early pays for the watchers that it
passed, and not for all.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

# `place` of a list that is not among the lists to be swept.
NOWHERE: Final = -1


class Watchers:
    """List under a key.  Its owner guards it; only the walk itself needs no lock."""

    __slots__ = ("head", "items", "key", "place")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        # Watchers from `head` on; all before `head` are gone and None.
        self.items: list[Any] = []
        self.head = 0
        # Place among the lists to be swept.
        self.place = NOWHERE

    def __len__(self) -> int:
        return len(self.items) - self.head

    def pending_of(self, items: list[Any]) -> list[Any]:
        """Return the watchers that still wait, in a new list."""
        raise NotImplementedError

    def sweep(self, end: int) -> int:
        """Drop the watchers before the index `end` that do not wait any more; return how many.

        If `end` is less than the length, the caller has walked this very list up to there, and has
        tried all that still wait before it.
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
        nothing: list[Any] = [None]
        moved = nothing * gone + pending
        # before any object is freed, whose finalizer may call the purgatory
        self.head = head + gone
        items[head:end] = moved
        if self.head * 2 > length:
            self.items = items[self.head :]
            self.head = 0
        return gone

    def clear(self) -> int:
        """Drop all watchers; return how many there were."""
        gone = len(self)
        self.items = []
        self.head = 0
        return gone


class Sweep:
    """Walk over all lists, in any number of parts, while lists come and go.

    It goes oldest first: lists made together lie together in memory, and a walk backwards takes
    four times as long.
    """

    __slots__ = ("lists", "number")

    def __init__(self) -> None:
        self.lists: list[Watchers] = []
        # Number of lists already walked; 0 if no walk is under way.
        self.number = 0

    def add(self, watchers: Watchers) -> None:
        """Add a list, which a walk under way will reach too."""
        watchers.place = len(self.lists)
        self.lists.append(watchers)

    def remove(self, watchers: Watchers) -> None:
        """Remove a list, so that it is not walked; do nothing if it is not here."""
        lists = self.lists
        place = watchers.place
        watchers.place = NOWHERE
        if place == NOWHERE or place >= len(lists) or lists[place] is not watchers:
            return  # `clear` has removed it
        if place < self.number:
            # The last list already walked takes its place, and one not yet walked takes that one's.
            self.number -= 1
            moved = lists[self.number]
            if moved is not watchers:
                lists[place] = moved
                moved.place = place
            place = self.number
        last = lists.pop()
        if place < len(lists):
            lists[place] = last
            last.place = place

    def next(self) -> Watchers | None:
        """Return the next list, or None at the end of the walk."""
        if self.number >= len(self.lists):
            self.number = 0
            return None
        self.number += 1
        return self.lists[self.number - 1]

    def clear(self) -> None:
        """Remove all lists."""
        self.lists.clear()
        self.number = 0
