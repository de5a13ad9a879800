"""A flaw: bytes that were durable and do not mean what they should any more."""

from __future__ import annotations

from tarry.base.errors import CorruptData


class Flaw(CorruptData):
    """Found in a segment: everything before `offset`, which begins at `position`, is sound."""

    def __init__(self, reason: str, offset: int, position: int) -> None:
        super().__init__(reason)
        self.offset = offset
        self.position = position
