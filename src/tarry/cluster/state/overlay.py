"""A mapping laid over another one: changes go into the upper one, the lower one stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Overlay(MutableMapping[K, V]):
    """Holds only what differs from the mapping below, which must not change meanwhile."""

    def __init__(self, below: Mapping[K, V]) -> None:
        self._below = below
        self._changed: dict[K, V] = {}
        # Keys of the mapping below that were deleted from the overlay.
        self._removed: dict[K, None] = {}
        # Number of keys of the overlay that the mapping below lacks.
        self._added = 0

    def __getitem__(self, key: K) -> V:
        if key in self._changed:
            return self._changed[key]
        if key in self._removed:
            raise KeyError(key)
        return self._below[key]

    def __setitem__(self, key: K, value: V) -> None:
        if key not in self._changed and key not in self._below:
            self._added += 1
        self._changed[key] = value
        self._removed.pop(key, None)

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self._changed.pop(key, None)
        if key in self._below:
            self._removed[key] = None
        else:
            self._added -= 1

    def __iter__(self) -> Iterator[K]:
        yield from (key for key in self._below if key not in self._removed)
        yield from (key for key in self._changed if key not in self._below)

    def __len__(self) -> int:
        return len(self._below) - len(self._removed) + self._added
