"""Trace of a run: one line per thing that happened, and a digest over all of them.

Two runs of a seed are the same exactly when their digests are.  The lines are kept only for a
replay; the digest always.
"""

from __future__ import annotations

import hashlib


class Trace:
    """Running digest, and the lines if asked for."""

    def __init__(self, *, keeps_lines: bool = False) -> None:
        self.lines: list[str] = []
        self._keeps_lines = keeps_lines
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, now_ms: int, text: str) -> None:
        line = f"{now_ms} {text}\n"
        self._digest.update(line.encode())
        if self._keeps_lines:
            self.lines.append(line)

    def add_bytes(self, data: bytes) -> None:
        """Add bytes to the digest that would only be noise in the lines."""
        self._digest.update(data)

    def remark(self, now_ms: int, text: str) -> None:
        """Write a line for the reader of a replay; it is no part of the digest."""
        if self._keeps_lines:
            self.lines.append(f"{now_ms} {text}\n")

    def digest(self) -> str:
        return self._digest.hexdigest()
