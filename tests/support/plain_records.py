"""Plain reader of a batch: what its bytes say, read field by field as Kafka's protocol tells it.

Shares nothing with the product's readers but the codecs and the checksum, so that laws compare
these with it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.base.errors import CorruptData
from tarry.wire.compression import decompress
from tarry.wire.crc32c import crc32c

INT64: Final = range(-(2**63), 2**63)


class PlainRecord(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class FlawedBytes(Exception):
    """Bytes that are no batch."""


class Bytes:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.left):
            raise FlawedBytes
        taken, self.left = self.left[:size], self.left[size:]
        return taken

    def number(self, bits: int) -> int:
        """Read a zigzag varint of so many bits."""
        value = 0
        for place in range((bits + 6) // 7):
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if value >= 1 << bits:
                    raise FlawedBytes
                return (value >> 1) ^ -(value & 1)
        raise FlawedBytes

    def nullable(self) -> bytes | None:
        size = self.number(32)
        return None if size < 0 else self.take(size)


def read_batch(batch: bytes, size_max: int) -> list[PlainRecord]:
    """Read the records of a batch; raise `FlawedBytes` if it is none."""
    size = int.from_bytes(batch[8:12], "big") + 12
    attributes = int.from_bytes(batch[21:23], "big")
    last_delta = int.from_bytes(batch[23:27], "big", signed=True)
    base_offset = int.from_bytes(batch[0:8], "big", signed=True)
    base_time, max_time = (int.from_bytes(batch[a : a + 8], "big", signed=True) for a in (27, 35))
    count = int.from_bytes(batch[57:61], "big", signed=True)
    crc = int.from_bytes(batch[17:21], "big")
    if size != len(batch) or batch[16] != 2 or crc32c(batch[21:]) != crc or count < 0:
        raise FlawedBytes
    if base_offset < 0 or last_delta < 0:
        raise FlawedBytes
    content = batch[61:]
    if attributes & 7:
        try:
            content = decompress(attributes & 7, content, size_max)
        except CorruptData:
            raise FlawedBytes from None
    left = Bytes(content)
    records: list[PlainRecord] = []
    previous = -1
    for _ in range(count):
        record = Bytes(left.nullable() or b"")
        record.take(1)
        time = base_time + record.number(64)
        delta = record.number(32)
        key, value = record.nullable(), record.nullable()
        headers: list[tuple[str, bytes | None]] = []
        header_count = record.number(32)
        if header_count < 0:
            raise FlawedBytes
        for _ in range(header_count):
            name = record.nullable()
            if name is None:
                raise FlawedBytes
            headers.append((name.decode("utf-8", "replace"), record.nullable()))
        if attributes & 8:
            time = max_time
        if record.left or not previous < delta <= last_delta or time not in INT64:
            raise FlawedBytes
        previous = delta
        records.append(PlainRecord(base_offset + delta, time, key, value, headers))
    if left.left:
        raise FlawedBytes
    return records
