"""Loading a partition of `__consumer_offsets`: the last value of every key, then the groups.

Records are gathered by their raw keys, so an offset that was committed a thousand times is decoded
once, and a log that is not compacted yet costs as little as a compacted one.  Keys are applied in
the order of their last records: if a group has records of two kinds, its kind is the later one.

Both halves run in steps, between which the broker does its other work.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.group.offsets.records import LEGACY_OFFSET_KEY, OFFSET_KEY
from tarry.group.state import Groups

# A key of the oldest kind names the same offset as the kind that replaced it.
_LEGACY_PREFIX: Final = LEGACY_OFFSET_KEY.to_bytes(2, "big")
_OFFSET_PREFIX: Final = OFFSET_KEY.to_bytes(2, "big")


class Loading:
    """Loading of one partition: call `add` for every record in order, then `step` until True."""

    def __init__(self) -> None:
        self._latest: dict[bytes, bytes] = {}
        self._left: Iterator[tuple[bytes, bytes]] | None = None

    @property
    def key_count(self) -> int:
        """Number of keys that have a value."""
        return len(self._latest)

    def add(self, key: bytes, value: bytes | None) -> None:
        """Add a record; a record without a value removes its key."""
        assert self._left is None
        if key.startswith(_LEGACY_PREFIX):
            key = _OFFSET_PREFIX + key[len(_LEGACY_PREFIX) :]
        self._latest.pop(key, None)
        if value is not None:
            self._latest[key] = value

    def step(self, groups: Groups, limit: int) -> bool:
        """Apply at most `limit` records; return True once all are applied.

        `CorruptData` for a record that cannot be read: the state is then incomplete, and no request
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
