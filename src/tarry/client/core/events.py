"""Events and outputs of a client core: what it is told and what it asks for.

Told: the events of its links.  Asked for: the outputs of its links, and `Notice` for whoever
waits.  A face does sockets and waiting, and nothing else.
"""

from __future__ import annotations

from typing import Final

from tarry.link import events

# Kinds of notices.
BATCH_DONE: Final = 1
CALL_DONE: Final = 2
RECORDS_READY: Final = 3
METADATA_CHANGED: Final = 4


class Notice:
    """Something that somebody may wait for has happened."""

    __slots__ = ("kind",)

    def __init__(self, kind: int) -> None:
        self.kind = kind


Output = events.Output | Notice
