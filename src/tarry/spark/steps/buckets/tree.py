"""Tree of a bucket: a root and leaves, each of which holds the entries of many keys.

A leaf holds the keys whose digests lie in one range, and is read and written as one.  The root
lists where each leaf begins, and the time at which it wants to be visited.  A leaf with more than
ENTRIES_MAX entries is split; one that has become small joins the leaf before it.

What it costs: a micro-batch reads the root of each bucket that it touches, and reads and writes
each leaf that holds one of its keys, never the others.  A micro-batch with M of N live keys writes
at most min(M, N / 128) leaves and one for each bucket: M = 100 among ten million keys writes 100
leaves (about a megabyte), M = 10,000 among 200,000 keys about 1,600 of them.  A key's leaf is
visited a few times besides until the key is forgotten.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

import msgspec

Entry = TypeVar("Entry")

# Entries of a leaf: reading 10 KB costs Spark about as much as asking for them.
ENTRIES_MAX: Final = 256

# A leaf smaller than this, when it is visited for its time, joins the one before it.
ENTRIES_MIN: Final = ENTRIES_MAX // 4

# Leaves share out the first four bytes of digests.
PLACE_BYTES: Final = 4
PLACE_END: Final = 1 << (8 * PLACE_BYTES)


# Layout of roots and leaves: a later one has another number.
LAYOUT: Final = 1


class Root(msgspec.Struct, array_like=True):
    """Root of a tree, as it is stored."""

    layout: int
    # First place of each leaf, in order; the first one is 0.
    begins: list[int]
    # When each leaf wants to be visited, in microseconds of event time; None: never.
    dues: list[int | None]
    # Timer that Spark has for the bucket, in milliseconds of event time.
    timer_ms: int | None = None


class Leaves(Protocol):
    """Store of leaves by their first place."""

    def get(self, begin: int) -> bytes:
        """Read a leaf that is there."""

    def put(self, begin: int, leaf: bytes) -> None:
        """Write a leaf."""

    def remove(self, begin: int) -> None:
        """Remove a leaf that is there."""


class LeafKind(Generic[Entry]):
    """Kind of leaves: how their entries are written, and when they want to be visited."""

    def __init__(self, entry: type[Entry], due_of: Callable[[dict[bytes, Entry]], int]) -> None:
        self.due_of = due_of
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder: msgspec.msgpack.Decoder[dict[bytes, Entry]] = msgspec.msgpack.Decoder(
            dict[bytes, entry]  # type: ignore[valid-type]
        )

    def decode(self, leaf: bytes) -> dict[bytes, Entry]:
        """Return the entries of a leaf."""
        return self._decoder.decode(leaf)

    def encode(self, entries: dict[bytes, Entry]) -> bytes:
        """Return entries as a leaf."""
        return self._encoder.encode(entries)


class BucketTree(Generic[Entry]):
    """Tree of one bucket: a root in memory, leaves in a store."""

    def __init__(self, root: Root | None, leaves: Leaves, kind: LeafKind[Entry]) -> None:
        self.root = root or Root(LAYOUT, [0], [None])
        self._leaves = leaves
        self._kind = kind

    @property
    def is_empty(self) -> bool:
        """Tell whether no key has an entry."""
        return self.root.dues == [None]

    @property
    def next_due(self) -> int | None:
        """Return the first time at which a leaf wants to be visited; None: never."""
        return min((due for due in self.root.dues if due is not None), default=None)

    def change(
        self, digests: Sequence[bytes], change: Callable[[dict[bytes, Entry], list[int]], None]
    ) -> None:
        """Change entries in place, a leaf at a time.

        `change` gets the entries of a leaf and the places of those digests that belong to it, in
        their order.  What it leaves in the dictionary is stored.
        """
        places_of: dict[int, list[int]] = {}
        begins = self.root.begins
        for place, digest in enumerate(digests):
            places_of.setdefault(bisect_right(begins, place_of(digest)) - 1, []).append(place)
        # From the last one: a leaf that is split moves those behind it.
        for index in sorted(places_of, reverse=True):
            leaf, entries = self._read(index)
            change(entries, places_of[index])
            self._write(index, entries, leaf)

    def change_due(self, now: int, change: Callable[[dict[bytes, Entry]], None]) -> None:
        """Change the entries of the leaves whose time has come."""
        small = []
        for index in reversed(range(len(self.root.begins))):
            due = self.root.dues[index]
            if due is None or due > now:
                continue
            leaf, entries = self._read(index)
            change(entries)
            if 0 < len(entries) < ENTRIES_MIN:
                small.append(self.root.begins[index])
            self._write(index, entries, leaf)
        for begin in small:
            self._join(begin)

    def _read(self, index: int) -> tuple[bytes | None, dict[bytes, Entry]]:
        if self.root.dues[index] is None:
            return None, {}
        leaf = self._leaves.get(self.root.begins[index])
        return leaf, self._kind.decode(leaf)

    def _join(self, begin: int) -> None:
        """Move the entries of a leaf to the one before, if both together are small."""
        begins, dues = self.root.begins, self.root.dues
        index = bisect_right(begins, begin) - 1
        if index == 0 or begins[index] != begin:
            return
        leaf, before = self._read(index - 1)
        _, entries = self._read(index)
        if len(before) + len(entries) <= ENTRIES_MAX // 2:
            self._leaves.remove(begin)
            del begins[index], dues[index]
            self._write(index - 1, before | entries, leaf)

    def _write(self, index: int, entries: dict[bytes, Entry], leaf: bytes | None) -> None:
        """Store the entries of a leaf, which was `leaf` before; None: it was not there."""
        begins, dues = self.root.begins, self.root.dues
        begin = begins[index]
        end = begins[index + 1] if index + 1 < len(begins) else PLACE_END
        parts = split(entries, begin, end)
        if leaf is not None and begin not in dict(parts):
            self._leaves.remove(begin)
        if index == 0 and 0 not in dict(parts):
            # The first leaf stays, even without entries.
            parts.insert(0, (0, {}))
        begins[index : index + 1] = [first for first, _ in parts]
        dues[index : index + 1] = [self._kind.due_of(part) if part else None for _, part in parts]
        for first, part in parts:
            encoded = self._kind.encode(part)
            if part and (first != begin or encoded != leaf):
                self._leaves.put(first, encoded)


def place_of(digest: bytes) -> int:
    """Return the place of a digest, which says its leaf."""
    return int.from_bytes(digest[:PLACE_BYTES], "big")


def split(
    entries: dict[bytes, Entry], begin: int, end: int
) -> list[tuple[int, dict[bytes, Entry]]]:
    """Return entries of a range of places in parts that are small enough, each with its first one.

    A part without entries is left out.
    """
    if not entries:
        return []
    if len(entries) <= ENTRIES_MAX or end - begin == 1:
        return [(begin, entries)]
    middle = (begin + end) // 2
    low: dict[bytes, Entry] = {}
    high: dict[bytes, Entry] = {}
    for digest, entry in entries.items():
        (low if place_of(digest) < middle else high)[digest] = entry
    return [*split(low, begin, middle), *split(high, middle, end)]
