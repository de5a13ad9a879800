"""Effort: the cost of one step of compaction, counted and not measured, as the core has no clock.

The unit is about a microsecond of the compiled form; interpreted, records and batches take four
times as long.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

# Units of a step, which must be short enough for a broker to answer: 3 ms, interpreted 10.
STEP_UNITS: Final = 2_500

RECORD_UNITS: Final = 1
BATCH_UNITS: Final = 2
# Units to find, open and close a segment.
SOURCE_UNITS: Final = 100
# Units to read, check, copy and write a KiB.
KIB_UNITS: Final = 1
# Units to decompress and to compress a KiB, by the slowest codec.
OPENED_KIB_UNITS: Final = 4
COMPRESSED_KIB_UNITS: Final = 40


class Effort:
    """Remaining work of one compaction step, in µs of compiled code."""

    def __init__(self, units: i64 = STEP_UNITS) -> None:
        # open: each turn gives what is left of it
        self.units: i64 = units

    def spend(self, units: i64) -> None:
        """Spend units; the rest may become negative, since work that was begun is completed."""
        self.units -= units

    def spend_bytes(self, size: i64, units_per_kib: i64) -> None:
        self.units -= (size * units_per_kib) >> 10
