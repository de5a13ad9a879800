"""Offset reset: the offset to begin at if a partition has no valid one (`auto.offset.reset`).

`by_duration:` (KIP-1106) takes a time of ISO 8601 as Java writes it: `PT1H`, `P7D`, `P1DT2H30M`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tarry.base.errors import InvalidSetting
from tarry.base.setting import shown

RESET_LATEST: Final = "latest"
RESET_EARLIEST: Final = "earliest"
RESET_NONE: Final = "none"
RESET_BY_DURATION: Final = "by_duration"

# Days, hours, minutes and seconds; years and months are refused, since their length varies.
_DURATION: Final = re.compile(
    r"P(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12})(?:\.(\d{1,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)


class OffsetReset(NamedTuple):
    """Parsed reset of one consumer; `text` is the user's setting."""

    strategy: str
    duration_ms: int
    text: str


def parse_offset_reset(text: str) -> OffsetReset:
    """Parse the value of `auto.offset.reset`; raise InvalidSetting with the right forms."""
    strategy, colon, duration = text.strip().partition(":")
    if strategy in (RESET_LATEST, RESET_EARLIEST, RESET_NONE) and not colon:
        return OffsetReset(strategy, 0, strategy)
    if strategy != RESET_BY_DURATION:
        raise InvalidSetting(
            f"auto.offset.reset={shown(text)}: it must be latest, earliest, none or "
            "by_duration:PT1H"
        )
    found = _DURATION.fullmatch(duration)
    if found is None or not any(found.groups()):
        raise InvalidSetting(
            f"auto.offset.reset={shown(text)}: write the duration as ISO 8601 does, such as "
            "by_duration:PT1H or by_duration:P7D"
        )
    days, hours, minutes, seconds, fraction = found.groups("0")
    whole = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)
    return OffsetReset(strategy, whole * 1_000 + int(fraction.ljust(3, "0")[:3]), text.strip())
