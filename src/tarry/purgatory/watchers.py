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
from typing import Any, Final

# No place among the lists to be swept.
NOWHERE: Final = -1


class Watchers:
    """The list under a key.  Who shares it guards it; only the walk itself needs no lock."""

    __slots__ = ("head", "items", "key", "place")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        # All before `head` has gone and is None, nothing behind it is.
        self.items: list[Any] = []
        self.head = 0
        # Where it stands among the lists to be swept; none so far.
        self.place = NOWHERE

    def __len__(self) -> int:
        return len(self.items) - self.head

    def pending_of(self, items: list[Any]) -> list[Any]:
        """Return those that still wait, in a new list."""
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
        nothing: list[Any] = [None]
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


class Sweep:
    """A walk over all lists, in as many parts as one likes, while lists come and go.

    Oldest first: what was made together lies together in memory, and walked backwards it takes
    four times as long.
    """

    __slots__ = ("lists", "number")

    def __init__(self) -> None:
        self.lists: list[Watchers] = []
        # What stands before it has been walked; 0: no walk is under way.
        self.number = 0

    def add(self, watchers: Watchers) -> None:
        """Add a watch, to be walked by a walk under way too."""
        watchers.place = len(self.lists)
        self.lists.append(watchers)

    def remove(self, watchers: Watchers) -> None:
        """Remove a watch, not to be walked any more; nothing if it is not here."""
        lists = self.lists
        place = watchers.place
        watchers.place = NOWHERE
        if place == NOWHERE or place >= len(lists) or lists[place] is not watchers:
            return  # forgotten with all others
        if place < self.number:
            # The last of those walked takes its place, and gives room to one that is not.
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
        """Forget everything."""
        self.lists.clear()
        self.number = 0
