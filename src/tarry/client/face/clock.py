"""Clocks of the faces, in milliseconds."""

from __future__ import annotations

import time


def monotonic_ms() -> int:
    return int(time.monotonic() * 1000)


def wall_ms() -> int:
    return int(time.time() * 1000)
