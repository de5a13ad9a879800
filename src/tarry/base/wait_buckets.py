"""Buckets in which waits are counted: in steps of the square root of 2.

Number 0 is a wait of 0 ms, number n begins at 2 ** ((n - 1) / 2) ms.  Hot.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

SQUARE_ROOT_OF_2: Final = 1.4142135623730951


def bucket_of(waited_ms: i64) -> int:
    """Return the number of the bucket that counts a wait of so many ms."""
    if waited_ms <= 0:
        return 0
    number: i64 = 1
    begin: i64 = 1
    while begin <= waited_ms // 2:
        begin *= 2
        number += 2
    if float(waited_ms) >= float(begin) * SQUARE_ROOT_OF_2:
        number += 1
    return int(number)
