"""Random numbers of the faces, which come from the operating system.

The standard library's `random` offers the same, but its import costs a program that produces as
much as a dozen of its own modules.
"""

from __future__ import annotations

import os


class SystemRandom:
    """Random numbers of the operating system."""

    def getrandbits(self, bits: int, /) -> int:
        """Draw a number of so many bits."""
        size = (bits + 7) // 8
        return int.from_bytes(os.urandom(size), "big") >> (size * 8 - bits)

    def randrange(self, stop: int, /) -> int:
        """Draw a number from 0 to `stop` - 1, each as likely as the others."""
        if stop <= 0:
            raise ValueError(f"there is no number below {stop}")
        bits = stop.bit_length()
        while True:
            drawn = self.getrandbits(bits)
            if drawn < stop:
                return drawn
