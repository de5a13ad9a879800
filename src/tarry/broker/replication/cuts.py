"""Cuts of followed logs, and logs begun anew: step by step, as a turn can afford.

A cut below the recovery point waits for a round of recovery points that lowers it.
"""

from __future__ import annotations

from collections.abc import Callable

from tarry.base.errors import StorageError
from tarry.broker.replication.followed import Followed


class Cuts:
    """The cuts that are under way.  `hasten` asks for a round of recovery points."""

    def __init__(self, hasten: Callable[[], None]) -> None:
        self._hasten = hasten
        self._under_way: dict[Followed, None] = {}
        # Those that wait for nothing but their next step.
        self._ready: dict[Followed, None] = {}

    def begin(self, followed: Followed) -> None:
        """Cut a log to `cut_offset`, or begin it anew at `restart_offset`."""
        self._under_way[followed] = None
        self._ready[followed] = None

    def leave(self, followed: Followed) -> None:
        """Take no more steps of a cut for now."""
        self._under_way.pop(followed, None)
        self._ready.pop(followed, None)

    def must_finish(self, followed: Followed) -> bool:
        """Return whether a cut has begun that has to be brought to its end."""
        is_known = followed.cut_offset >= 0 or followed.restart_offset >= 0
        return is_known and followed.partition.log.cut.is_under_way

    def step(self) -> list[tuple[Followed, str]]:
        """Take a step of each; return those that have ended, with the reason if one failed."""
        ended: list[tuple[Followed, str]] = []
        for followed in list(self._under_way):
            self._ready.pop(followed, None)
            try:
                is_done = self._take_step(followed)
            except StorageError as error:
                del self._under_way[followed]
                ended.append((followed, f"it cannot be cut: {error}"))
                continue
            if is_done:
                del self._under_way[followed]
                followed.cut_offset = -1
                followed.restart_offset = -1
                ended.append((followed, ""))
        return ended
