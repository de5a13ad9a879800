"""How long a test waits for another process or thread before it counts as hung."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

# Whole seconds, which every client takes.  A machine that does other work besides must not fail a
# test; a test that hangs is rare.
PATIENCE_S: Final = 300


def tries() -> Iterator[int]:
    """Count tries, at least one, until the time is over in which a test waits for another."""
    end = time.monotonic() + PATIENCE_S
    number = 0
    while number == 0 or time.monotonic() < end:
        yield number
        number += 1
