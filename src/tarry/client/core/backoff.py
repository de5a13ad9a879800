"""Backoff: pauses that double up to a limit, give or take a fifth, so that many clients that
failed together do not come back together."""

from __future__ import annotations

from typing import Final

from tarry.base.doors import Random

JITTER_PERCENT: Final = 20

# 2 ** 20 first pauses are beyond every limit; keeps the shift small.
DOUBLINGS_MAX: Final = 20


def backoff_ms(first_ms: int, ms_max: int, failures: int, random: Random) -> int:
    """The pause after the `failures`th failure in a row (1 is the first)."""
    pause_ms = min(first_ms << min(failures - 1, DOUBLINGS_MAX), ms_max)
    spread_ms = pause_ms * JITTER_PERCENT // 100
    return pause_ms - spread_ms + random.randrange(2 * spread_ms + 1)
