"""Units: bytes, counts and times as every command takes and prints them.

`10MB`, `10k`, `1h`.  kB, MB, GB, TB are powers of 1000 and KiB, MiB, GiB, TiB of 1024; a number
without a unit is bytes, records or, where a command waits, seconds.
"""

from __future__ import annotations

import re
from typing import Final

import click

_NUMBER: Final = re.compile(r"([+-]?\d+(?:\.\d+)?|[+-]?\.\d+)\s*([A-Za-z]*)", re.ASCII)

TIMES_MS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
COUNTS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
SIZES: Final = {
    **COUNTS,
    "b": 1,
    "t": 10**12,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "pb": 10**15,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}

TIMES_TEXT: Final = "500ms, 30s, 5m, 2h, 7d or 1w"
SIZES_TEXT: Final = "1000, 64kB, 10MB, 1GB or 64KiB, 10MiB, 1GiB"
COUNTS_TEXT: Final = "1000, 10k or 2M"

# Longest time that a command may wait.
SECONDS_MAX: Final = 7 * 24 * 3600


# Largest numbers of Kafka's protocol: partitions, and numbers of them, have 4 bytes; offsets and
# times have 8.
PARTITION_MAX: Final = 2**31 - 1
OFFSET_MAX: Final = 2**63 - 1

# Largest replication factor: it has 2 bytes.
REPLICAS_MAX: Final = 2**15 - 1

# Most digits of a number: sizes, times and counts have fewer, and Python refuses very long ones.
DIGITS_MAX: Final = 40


class BadUnit(ValueError):
    """Text that is no number with a unit; says what can be written."""


def parse_time_length_ms(text: str, bare_ms: int = 1) -> int:
    """Milliseconds of `30s`; `bare_ms` is what a number without a unit counts."""
    return _parse(text, {**TIMES_MS, "": bare_ms}, f"invalid time {text!r}: write {TIMES_TEXT}")


def parse_size(text: str) -> int:
    """Bytes of `10MB`."""
    return _parse(text, SIZES, f"invalid size {text!r}: write {SIZES_TEXT}")


def parse_count(text: str) -> int:
    """Parse a number of things such as `10k`."""
    return _parse(text, COUNTS, f"invalid number {text!r}: write {COUNTS_TEXT}")


def _parse(text: str, units: dict[str, int], refusal: str) -> int:
    found = _NUMBER.fullmatch(text.strip())
    factor = None if found is None else units.get(found[2].lower())
    if found is None or factor is None:
        raise BadUnit(refusal)
    whole, _, fraction = found[1].partition(".")
    if len(whole + fraction) > DIGITS_MAX:
        raise BadUnit(refusal)
    # Compute in whole numbers: a float would round a large size.
    digits = int(whole + fraction) if whole + fraction not in ("", "+", "-") else 0
    denominator: int = 10 ** len(fraction)
    scaled, rest = divmod(digits * factor, denominator)
    if rest:
        raise BadUnit(refusal)
    return scaled


def whole_number(text: str, largest: int) -> int | None:
    """Return the number that `text` writes with the digits 0 to 9; None if none, or above
    `largest`.
    """
    # `isdigit` alone would accept superscripts and the digits of other scripts.
    if not (text.isascii() and text.isdigit()) or len(text) > DIGITS_MAX:
        return None
    number = int(text)
    return number if number <= largest else None


def setting_text(key: str, value: str) -> str:
    """Write a setting's value as brokers take it: `7d` of `retention.ms` and `1GB` of
    `segment.bytes` in plain numbers, everything else as it is.
    """
    try:
        if key.endswith(".ms"):
            return str(parse_time_length_ms(value))
        if key.endswith(".bytes"):
            return str(parse_size(value))
    except BadUnit:
        # Send the value as it is: the broker checks it.
        return value
    return value


# --- Types of options


class Seconds(click.ParamType[float]):
    """A time that is more than nothing, in seconds: `10`, `500ms`, `2m`."""

    name = "TIME"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            seconds = parse_time_length_ms(str(value), 1_000) / 1000
        except BadUnit:
            self.fail(f"invalid time {str(value)!r}: write 10 (seconds), {TIMES_TEXT}", param, ctx)
        if not 0 < seconds <= SECONDS_MAX:
            self.fail(
                f"invalid time {str(value)!r}: it must be more than 0 and at most a week",
                param,
                ctx,
            )
        return seconds


class _Bounded(click.ParamType[int]):
    """Whole number with a unit, from `minimum` to `maximum`."""

    # Name of the counted thing in messages.
    thing = ""

    def __init__(self, minimum: int = 0, maximum: int | None = None) -> None:
        self.minimum = minimum
        self.maximum = maximum

    def parse(self, text: str) -> int:
        """Return the number; raises `BadUnit`."""
        raise NotImplementedError

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        try:
            number = self.parse(str(value))
        except BadUnit as error:
            self.fail(str(error), param, ctx)
        bound = ""
        if number < self.minimum:
            bound = f"at least {self.minimum}"
        elif self.maximum is not None and number > self.maximum:
            bound = f"at most {self.maximum}"
        if bound:
            self.fail(f"invalid {self.thing} {str(value)!r}: it must be {bound}", param, ctx)
        return number


class Size(_Bounded):
    """Bytes, from `minimum` to `maximum`: `1000`, `10MB`, `1GiB`."""

    name = "SIZE"
    thing = "size"

    def parse(self, text: str) -> int:
        return parse_size(text)


class Count(_Bounded):
    """Number of things, from `minimum` to `maximum`: `1000`, `10k`, `2M`."""

    name = "NUMBER"
    thing = "number"

    def parse(self, text: str) -> int:
        return parse_count(text)


# --- What people read


def size_text(size: int) -> str:
    """`512 B`, `1.5 kB`, `23 MB`."""
    if size < 1000:
        return f"{size} B"
    value = size / 1000
    units = ["kB", "MB", "GB", "TB", "PB"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.1f} {units[0]}" if value < 9.95 else f"{value:.0f} {units[0]}"
