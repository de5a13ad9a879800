"""Checks of a record's arguments, before anything has changed.

An argument of a wrong type or range raises TypeError or ValueError with its name, its value and the
remedy.  Other byte-like objects are converted to `bytes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tarry.client.core.metadata import name_flaw
from tarry.records.batch import TIMESTAMP_MAX
from tarry.records.builder import Headers

# Type of a key, a value or the value of a header; its bytes are copied.
Content = bytes | bytearray | memoryview
# Headers by name, or as pairs if a name occurs more than once.
HeadersGiven = Mapping[str, Content | None] | Iterable[tuple[str, Content | None]]

# Brokers refuse longer names, and a request cannot carry more than 32767 bytes.
TOPIC_CHARACTERS_MAX: Final = 249

PARTITION_MAX: Final = 2**31 - 1


def content_of(what: str, value: object) -> bytes | None:
    """Return the bytes of a key, a value or a header."""
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        raise TypeError(
            f"{what} is a str, and records hold bytes: encode it, such as text.encode()"
        )
    raise TypeError(
        f"{what} is of type {type(value).__name__}, and records hold bytes: encode it first, "
        "such as json.dumps(...).encode()"
    )


def check_topic(topic: object) -> None:
    """Raise an error for a topic name that no request can carry; brokers check all other rules."""
    if not isinstance(topic, str):
        hint = ": decode it" if isinstance(topic, bytes) else ""
        raise TypeError(f"topic is of type {type(topic).__name__}, not the name as a str{hint}")
    if not topic.isascii() or not 0 < len(topic) <= TOPIC_CHARACTERS_MAX:
        raise ValueError(name_flaw(topic))


def check_partition(partition: object) -> None:
    if type(partition) is not int:
        raise TypeError(
            f"partition is of type {type(partition).__name__}, not a number: give an int, or "
            "leave it out and the key decides"
        )
    if not 0 <= partition <= PARTITION_MAX:
        raise ValueError(
            f"partition={partition} is not between 0 and {PARTITION_MAX}: leave it out, and the "
            "key decides"
        )


def check_timestamp(timestamp: object) -> None:
    if type(timestamp) is not int:
        raise TypeError(
            f"timestamp is of type {type(timestamp).__name__}, not whole milliseconds since 1970: "
            "give an int, such as int(time.time() * 1000)"
        )
    if not 0 <= timestamp <= TIMESTAMP_MAX:
        raise ValueError(
            f"timestamp={timestamp} is not between 0 and {TIMESTAMP_MAX}: it counts milliseconds "
            "since 1970"
        )


def check_on_delivery(on_delivery: object) -> None:
    if on_delivery is not None and not callable(on_delivery):
        raise TypeError(
            f"on_delivery is of type {type(on_delivery).__name__}, not a function that takes a "
            "receipt"
        )


def pairs_of(headers: object) -> Headers:
    """Return headers in their order, as pairs of a name and bytes."""
    if isinstance(headers, Mapping):
        given: Iterable[object] = headers.items()
    elif isinstance(headers, Iterable) and not isinstance(headers, (str, bytes, bytearray)):
        given = headers
    else:
        raise TypeError(
            f"headers is of type {type(headers).__name__}, not a mapping or pairs: give "
            '{"name": b"content"}, or [("name", b"content")]'
        )
    return [_pair_of(one) for one in given]


def _pair_of(pair: object) -> tuple[str, bytes | None]:
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(f'headers holds {pair!r:.60}, not a pair such as ("name", b"content")')
    name, content = pair
    if not isinstance(name, str):
        raise TypeError(
            f"a header's name is of type {type(name).__name__}, not a str: {name!r:.60}"
        )
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"the header name {name!r:.60} cannot be encoded as UTF-8") from None
    return name, content_of(f"header {name!r:.60}", content)
