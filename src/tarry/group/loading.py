"""Loading a partition of `__consumer_offsets`: the last value of every key, then the groups.

Records are gathered by their raw keys, so that an offset that was committed a thousand times is
decoded once: a log that was not compacted yet costs what it would cost afterwards.  Keys go in the
order of their last records: where a group has records of two kinds, the later kind is its own.

Both halves go in steps, between which the broker does its other work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.group.offsets.records import LEGACY_OFFSET_KEY, OFFSET_KEY
from tarry.group.state import Groups

# The oldest kind of key means the same offset as the one after it.
_LEGACY_PREFIX: Final = LEGACY_OFFSET_KEY.to_bytes(2, "big")
_OFFSET_PREFIX: Final = OFFSET_KEY.to_bytes(2, "big")


class Loading:
    """First `add` for every record of the log, in its order; then `step` until it says True."""

    def __init__(self) -> None:
        self._latest: dict[bytes, bytes] = {}
        self._left: Iterator[tuple[bytes, bytes]] | None = None

    @property
    def key_count(self) -> int:
        """Count the keys that have a value."""
        return len(self._latest)

    def add(self, key: bytes, value: bytes | None) -> None:
        """Add a record; without a value the key is as if it had never been."""
        assert self._left is None
        if key.startswith(_LEGACY_PREFIX):
            key = _OFFSET_PREFIX + key[len(_LEGACY_PREFIX) :]
        self._latest.pop(key, None)
        if value is not None:
            self._latest[key] = value

    def step(self, groups: Groups, limit: int) -> bool:
        """Apply at most so many records; True once all are applied.

        `CorruptData` for a record that cannot be read: the state is not whole then, and nobody
        may be answered from it.
        """
        if self._left is None:
            self._left = iter(self._latest.items())
        for _ in range(limit):
            found = next(self._left, None)
            if found is None:
                return True
            record = groups.kinds.decode(*found)
            if record is not None:
                groups.apply(record)
        return False
