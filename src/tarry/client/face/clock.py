"""Clocks of the faces, in milliseconds."""

from __future__ import annotations

from time import monotonic, time


def monotonic_ms() -> int:
    return int(monotonic() * 1000)


def wall_ms() -> int:
    return int(time() * 1000)
