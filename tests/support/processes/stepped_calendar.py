"""Program: the command `tarry`, whose calendar a test sets while it runs.

python stepped_calendar.py FILE serve --set=…

The first eight bytes of FILE say by how many milliseconds it is ahead, in little endian order.
"""

from __future__ import annotations

import mmap
import sys
import time
from typing import Final

from tarry.cli.main import main

with open(sys.argv.pop(1), "rb") as opened:
    shift: Final = mmap.mmap(opened.fileno(), 8, access=mmap.ACCESS_READ)

true_time_ns: Final = time.time_ns


def stepped_time_ns() -> int:
    return true_time_ns() + int.from_bytes(shift[:8], "little", signed=True) * 1_000_000


# The product reads the calendar by this function alone.
time.time_ns = stepped_time_ns
main()
