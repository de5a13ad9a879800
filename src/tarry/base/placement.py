"""Placement of a coordinator's keys, such as group ids, on partitions: by Kafka's hash.

Clients never compute it, but Kafka's tools do, and a group must be found where it was written.
"""

from __future__ import annotations

from mypy_extensions import i64

# Java's smallest 32-bit number, which has no positive counterpart; Kafka uses 0 in its place.
_SMALLEST = -(2**31)


def partition_of_key(key: str, partition_count: int) -> int:
    """Return the index, below `partition_count`, of the partition that holds this key's records."""
    assert partition_count > 0
    hashed = string_hash(key)
    return 0 if hashed == _SMALLEST else abs(hashed) % partition_count


def string_hash(text: str) -> int:
    """Compute Java's `String.hashCode`: over UTF-16 units, wrapped to 32 bits with a sign."""
    # Text from the wire is UTF-8 and so holds no lone surrogates.
    units = text.encode()
    size: i64 = len(units)
    hashed: i64 = 0
    position: i64 = 0
    if size == len(text):
        # Nearly every group id is ASCII, and this loop takes a third of the time of the one below.
        while position < size:
            hashed = (hashed * 31 + i64(units[position])) & 0xFFFF_FFFF
            position += 1
        return _signed(hashed)
    units = text.encode("utf-16-be")
    size = len(units)
    while position < size:
        unit: i64 = (i64(units[position]) << 8) | i64(units[position + 1])
        hashed = (hashed * 31 + unit) & 0xFFFF_FFFF
        position += 2
    return _signed(hashed)


def _signed(hashed: i64) -> int:
    return int(hashed - 0x1_0000_0000 if hashed >= 0x8000_0000 else hashed)
