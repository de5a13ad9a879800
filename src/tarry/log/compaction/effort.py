"""Cost of one step of compaction, counted instead of measured: the core has no clock.

The unit is a microsecond of the compiled form, about; interpreted, records and batches take four
times as long.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

# A step: so short that a broker that compacts still answers; 3 ms, interpreted 10.
STEP_UNITS: Final = 2_500

RECORD_UNITS: Final = 1
BATCH_UNITS: Final = 2
# To find, open and leave a segment.
SOURCE_UNITS: Final = 100
# To read, check, copy and write.
KIB_UNITS: Final = 1
# To open and to compress a KiB, by the slowest codec.
OPENED_KIB_UNITS: Final = 4
COMPRESSED_KIB_UNITS: Final = 40


class Effort:
    """Remaining work of one compaction step, in µs of compiled code."""

    def __init__(self, units: i64 = STEP_UNITS) -> None:
        # open: each turn gives what is left of it
        self.units: i64 = units

    def spend(self, units: i64) -> None:
        """May leave less than nothing: what was begun is ended."""
        self.units -= units

    def spend_bytes(self, size: i64, units_per_kib: i64) -> None:
        self.units -= (size * units_per_kib) >> 10
