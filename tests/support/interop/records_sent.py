"""What the interop tests write and expect to read: records of every kind, and numbered runs."""

from __future__ import annotations

import random
import time
from typing import Final, NamedTuple

Header = tuple[str, bytes | None]

# An hour ago: old enough to be told from the time of arrival, too young for retention.
START_MS: Final = int(time.time() * 1000) - 3_600_000

# Above Kafka's default max.message.bytes; topics that take it say so in their settings.
LARGEST_VALUE: Final = 1_500_000
MEGABYTE: Final = 1_000_000


class SentRecord(NamedTuple):
    """A record as it is sent, or as it was read; None as time: the client says when."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None


class ReadRecord(NamedTuple):
    """A record as a reader found it."""

    offset: int
    record: SentRecord


def records_of_every_kind(largest: int = LARGEST_VALUE) -> list[SentRecord]:
    """Nulls, empty bytes, headers, binary and large values, times out of order."""
    chance = random.Random(7)
    noise = chance.randbytes(largest // 2)
    headers: tuple[Header, ...] = (("trace", b"\xff\x01"), ("trace", b"again"), ("empty", b""))
    return [
        SentRecord(b"plain value", b"plain key", (), START_MS),
        SentRecord(b"without a key", None, (), START_MS + 1_000),
        SentRecord(None, b"without a value", (), START_MS + 5_000),
        SentRecord(None, None, (), START_MS + 2_000),
        SentRecord(b"", b"", (), START_MS + 3_000),
        SentRecord(b"with headers", b"h", headers, START_MS + 3_000),
        SentRecord("Grüße, 你好".encode(), b"\xf0\x9f\x90\xa2", (("名", b"v"),), START_MS + 9_000),
        SentRecord(bytes(range(256)) * 4, bytes(range(256)), (), START_MS + 4_000),
        SentRecord(noise + b"x" * (largest - len(noise)), b"large", (), START_MS + 6_000),
        SentRecord(b"y" * MEGABYTE, b"megabyte", (), START_MS + 7_000),
        SentRecord(b"after the large ones", b"plain key", (), START_MS + 8_000),
    ]


def text_records(largest: int = MEGABYTE) -> list[SentRecord]:
    """What a command line can write: text, and whatever time the client gives."""
    return [
        SentRecord(b"plain value", b"plain key"),
        SentRecord(b"without a key", None),
        SentRecord(None, b"without a value"),
        SentRecord(b"", b""),
        SentRecord(b"with headers", b"h", (("trace", b"1"), ("trace", b"2"), ("empty", b""))),
        SentRecord("Grüße, 你好".encode(), "ключ".encode()),
        SentRecord(b"y" * largest, b"megabyte"),
        SentRecord(b"after the large one", b"plain key"),
    ]


def numbered(first: int, end: int) -> list[SentRecord]:
    """Small records that say which they are."""
    return [SentRecord(b"%d" % number, b"k") for number in range(first, end)]


def without_times(records: list[SentRecord]) -> list[SentRecord]:
    return [record._replace(timestamp_ms=None) for record in records]
