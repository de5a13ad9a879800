"""Ranges to read, as the command line writes them: `100..200`, `..end`, `0=100..200,1=-10`.

A range is one or two places with `..` between them; its end is not read.  Without `..` it has no
end of its own.
"""

from __future__ import annotations

from typing import NamedTuple

from tarry.cli.places import BEGINNING, BadPlace, Place, parse_place
from tarry.cli.units import PARTITION_MAX, whole_number

DOTS = ".."


class Range(NamedTuple):
    """Range of a partition from `start` to `end`; an end of None is the partition's end."""

    start: Place
    end: Place | None = None


class Ranges(NamedTuple):
    """The range of all partitions and those of single ones; if there are any, only they are
    read."""

    common: Range
    single: dict[int, Range]


def parse_ranges(text: str, now_wall_ms: int) -> Ranges:
    """Parse `end`, `100..200`, or `0=100..200,2=-5` for single partitions."""
    if "=" not in text:
        return Ranges(parse_range(text, now_wall_ms), {})
    single: dict[int, Range] = {}
    for part in text.split(","):
        partition, equals, rest = part.partition("=")
        number = whole_number(partition.strip(), PARTITION_MAX)
        if not equals or number is None:
            raise BadPlace(f"invalid offset {part!r}: write it as PARTITION=OFFSET")
        single[number] = parse_range(rest.strip(), now_wall_ms)
    return Ranges(Range(Place(BEGINNING)), single)


def parse_range(text: str, now_wall_ms: int) -> Range:
    """Parse `100`, `100..200`, `..200` or `100..`."""
    start, dots, end = text.partition(DOTS)
    if not dots:
        return Range(parse_place(text, now_wall_ms))
    if not start and not end:
        raise BadPlace(f"invalid offset {text!r}: write START..END, and leave out one at most")
    return Range(
        parse_place(start, now_wall_ms) if start else Place(BEGINNING),
        parse_place(end, now_wall_ms) if end else None,
    )
