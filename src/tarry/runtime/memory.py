"""Freed memory is kept for the next frame rather than given back to the system.

glibc maps blocks above a threshold and unmaps them when they are freed, so each large frame would
touch new pages: 85 page faults a MiB of produce, where a fault costs more than the copy
(design/performance.md, "Measuring").  The threshold grows to the largest mapped block that was
ever freed; one such block at the start sets it.  Other allocators do not mind.
"""

from __future__ import annotations

from typing import Final

# Twice as much free memory may stay with the process; frames are rarely larger.
KEPT_BYTES: Final = 16 * 1024 * 1024


def keep_freed_memory() -> None:
    """Once, at the start.  The block is never touched, so it costs no memory."""
    bytes(KEPT_BYTES)
