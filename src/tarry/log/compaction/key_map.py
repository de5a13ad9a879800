"""Map of the keys in the dirty part of a log: the offset of each key's last record.

The map is bounded: an entry counts as the memory that it takes, so `log.cleaner.dedupe.buffer.size`
is in bytes.  A long key is kept as a digest for which no one can find a second key.  The entries
are in many small dictionaries, so that no step has to grow or drop a large one: growing one of a
million entries takes 40 ms.  Hot.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from mypy_extensions import i64

from tarry.wire.crc32c import crc32c

# Bytes that an entry takes: key, offset, and their place in a dictionary that has just grown.
ENTRY_BYTES: Final = 160

SHARDS: Final = 512
_SHARD_MASK: Final = 511

# Longest key that is kept itself.  A digest is one byte longer, so it equals no such key.
_KEY_BYTES_MAX: Final = 32
_DIGEST_BYTES: Final = 33

ABSENT: Final = -1


class KeyMap:
    """Map from key to offset, for about `buffer_bytes` of memory."""

    def __init__(self, buffer_bytes: i64) -> None:
        self.entries_max: i64 = max(buffer_bytes // ENTRY_BYTES, 1)
        self.count: i64 = 0
        self._shards: list[dict[bytes, int]] = [{} for _ in range(SHARDS)]

    def has_room(self, records: i64) -> bool:
        """Return True if so many more keys fit within the bound; an empty map takes any number."""
        return self.count == 0 or self.count + records <= self.entries_max

    def put(self, key: bytes, offset: i64) -> None:
        """Set the offset of the last record of `key` so far."""
        short = key if len(key) <= _KEY_BYTES_MAX else _digest(key)
        shard = self._shards[i64(crc32c(short)) & _SHARD_MASK]
        entries: i64 = len(shard)
        shard[short] = offset
        self.count += len(shard) - entries

    def last_offset(self, key: bytes) -> i64:
        """Return the offset of the key's last record, or `ABSENT`."""
        short = key if len(key) <= _KEY_BYTES_MAX else _digest(key)
        shard = self._shards[i64(crc32c(short)) & _SHARD_MASK]
        offset = shard.get(short)
        return ABSENT if offset is None else i64(offset)

    def try_clear(self, entries_max: i64) -> bool:
        """Drop about `entries_max` entries, whole dictionaries; return True when none is left."""
        left: i64 = entries_max
        shards = self._shards
        index: i64 = 0
        while self.count > 0 and left > 0 and index < len(shards):
            size: i64 = len(shards[index])
            if size > 0:
                shards[index] = {}
                self.count -= size
                left -= size
            index += 1
        return self.count == 0


def _digest(key: bytes) -> bytes:
    return blake2b(key, digest_size=_DIGEST_BYTES).digest()
