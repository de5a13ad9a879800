"""Places to read from and to, as the command line writes them: offsets and times.

`beginning`, `end`, an offset (`1000`), so many from the end (`-10`), a time (`s@1690000000000`,
`s@2026-11-21T08:00`), and the same for single partitions (`0=100,1=end`).
"""

from __future__ import annotations

import contextlib
from datetime import datetime
from typing import Final, NamedTuple

from tarry.cli.units import (
    OFFSET_MAX,
    PARTITION_MAX,
    TIMES_MS,
    BadUnit,
    parse_time_length_ms,
    whole_number,
)

BEGINNING: Final = "beginning"
END: Final = "end"
OFFSET: Final = "offset"
FROM_END: Final = "from end"
TIME: Final = "time"


# Largest range of partitions: a cluster of Kafka has 200,000 at most.
RANGE_MAX: Final = 200_000


class BadPlace(ValueError):
    """Text that names no place; says what can be written."""


class Place(NamedTuple):
    """Place in a partition: `kind` is one of the module's words; `number` is an offset, a count, or
    milliseconds."""

    kind: str
    number: int = 0

    def offset(self, begin: int, end: int, found: int) -> int:
        """Return the offset of this place in a partition from `begin` to `end`, in which the first
        record of its time is at `found` (-1: none is that young, and what comes next is).
        """
        if self.kind == BEGINNING:
            return begin
        if self.kind == END:
            return end
        if self.kind == FROM_END:
            return max(begin, end - self.number)
        if self.kind == TIME:
            return found if found >= 0 else end
        assert self.kind == OFFSET
        return self.number


def parse_place(text: str, now_wall_ms: int) -> Place:
    """Parse one place: a word, an offset, a count from the end, or `s@TIME`."""
    if text in ("beginning", "earliest", "start"):
        return Place(BEGINNING)
    if text in ("end", "latest"):
        return Place(END)
    if text.startswith(("s@", "@")):
        return Place(TIME, parse_time_ms(text.partition("@")[2], now_wall_ms))
    try:
        number = int(text)
    except ValueError:
        raise BadPlace(
            f"invalid offset {text!r}: write beginning, end, 1000, -10 (from the end) or s@TIME"
        ) from None
    if text.startswith("-"):
        return Place(FROM_END, -number)
    return Place(OFFSET, number)


def parse_places(text: str, now_wall_ms: int) -> tuple[Place, dict[int, Place]]:
    """Parse a place for all partitions and those of single ones: `end`, or `0=100,2=-5`."""
    if "=" not in text:
        return parse_place(text, now_wall_ms), {}
    single: dict[int, Place] = {}
    for part in text.split(","):
        partition, equals, place = part.partition("=")
        number = whole_number(partition.strip(), PARTITION_MAX)
        if not equals or number is None:
            raise BadPlace(f"invalid offset {part!r}: write it as PARTITION=OFFSET")
        single[number] = parse_place(place.strip(), now_wall_ms)
    return Place(BEGINNING), single


def parse_partitions(text: str) -> list[int]:
    """`0,2-4` as 0, 2, 3, 4."""
    found: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        lowest = whole_number(first, PARTITION_MAX)
        highest = whole_number(last, PARTITION_MAX) if dash else lowest
        if lowest is None or highest is None:
            raise BadPlace(f"invalid partition {part!r}: write numbers such as 0,2-4")
        if highest < lowest:
            raise BadPlace(f"invalid partitions {part!r}: write {last}-{first}")
        if highest - lowest >= RANGE_MAX:
            raise BadPlace(
                f"invalid partitions {part!r}: no topic has so many; name {RANGE_MAX:,} at most"
            )
        for number in range(lowest, highest + 1):
            found[number] = None
    return list(found)


def parse_topic_partitions(text: str) -> tuple[str, list[int] | None]:
    """`orders` is a topic with all its partitions, `orders:0,2-4` some of them."""
    topic, colon, partitions = text.partition(":")
    if not topic:
        raise BadPlace(f"invalid topic {text!r}: write TOPIC or TOPIC:0,2-4")
    return topic, parse_partitions(partitions) if colon else None


def parse_time_ms(text: str, now_wall_ms: int) -> int:
    """Milliseconds since 1970 of an epoch number, an ISO time, `-10m` (ago), `+10m` (from now)."""
    time_ms = whole_number(text, OFFSET_MAX)
    if time_ms is None and text[:1] in ("-", "+"):
        with contextlib.suppress(BadUnit):
            length_ms = parse_time_length_ms(text[1:])
            time_ms = now_wall_ms + (length_ms if text[0] == "+" else -length_ms)
    if time_ms is None:
        with contextlib.suppress(ValueError, OverflowError):
            # A time without a zone is in the user's zone.
            time_ms = int(datetime.fromisoformat(text).timestamp() * 1000)
    if time_ms is None:
        units = ", ".join(TIMES_MS)
        raise BadPlace(
            f"invalid time {text!r}: write 2026-11-21T08:00, 2026-11-21T08:00Z, milliseconds "
            f"since 1970, -10m for ten minutes ago, or +10m for in ten minutes (units: {units})"
        )
    if time_ms < 0:
        raise BadPlace(
            f"invalid time {text!r}: it is before 1970, where the times of records begin"
        )
    return time_ms


def parse_fixed_time_ms(option: str, text: str) -> int:
    """Milliseconds since 1970 of an epoch number or of an ISO time with its zone: what means the
    same whenever and wherever a command is started again."""
    is_naive = False
    with contextlib.suppress(ValueError):
        is_naive = datetime.fromisoformat(text).tzinfo is None
    # Digits alone are milliseconds, even if they look like a date without dashes.
    if text[:1] in ("-", "+") or (is_naive and whole_number(text, OFFSET_MAX) is None):
        what = "with its zone" if is_naive else "itself"
        raise BadPlace(
            f"invalid {option} {text!r}: write the time {what}, such as 2026-11-22T08:00Z, so that "
            "the same command means the same when it is started again"
        )
    # The clock is not needed: the time does not count from now.
    return parse_time_ms(text, now_wall_ms=0)
