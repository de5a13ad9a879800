"""History of groups: lines in the log, and the notes that `tarry groups why` shows.

The number of notes is bounded for each group and for all groups; the oldest are dropped first.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

from mypy_extensions import mypyc_attr

from tarry.base.probe import Probe
from tarry.base.turn import Turn
from tarry.group.notes import Note

logger = logging.getLogger("tarry.group")

NOTES_PER_GROUP_MAX: Final = 200
NOTES_MAX: Final = 20_000


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupListener:
    """Listener to notes and commits of groups.  Every method does nothing by default."""

    def on_note(self, group_id: str, at_ms: int, note: Note) -> None:
        """Receive a note; `at_ms` is its calendar time, and its long texts are shortened."""

    def on_committed(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        """Receive a committed offset, which is durable."""


class GroupNotes:
    """The last notes of a group; `number` is the number of the first one."""

    __slots__ = ("notes", "number")

    def __init__(self) -> None:
        self.notes: deque[tuple[int, Note]] = deque()
        self.number = 1


class History:
    """Notes by group, each with its calendar time in ms."""

    def __init__(self, turn: Turn, probe: Probe) -> None:
        self._turn = turn
        self.probe = probe
        self.listener = GroupListener()
        # Calendar time in ms since which notes are kept.
        self.since_ms = turn.now_wall_ms
        self._by_group: dict[str, GroupNotes] = {}
        self._count = 0

    def report_to(self, listener: GroupListener) -> None:
        """Report notes and commits to this listener from now on."""
        self.listener = listener

    def notes(self, group_id: str) -> list[tuple[int, int, Note]]:
        """Return a group's notes, the oldest first: number, calendar time in ms, and note."""
        kept = self._by_group.get(group_id)
        if kept is None:
            return []
        return [
            (number, at_ms, note) for number, (at_ms, note) in enumerate(kept.notes, kept.number)
        ]

    def note(self, group_id: str, notes: list[Note]) -> None:
        """Log and keep notes about a group."""
        now_wall_ms = self._turn.now_wall_ms
        # Groups are kept in the order of their last notes.
        kept = self._by_group.pop(group_id, None)
        if kept is None:
            kept = GroupNotes()
        self._by_group[group_id] = kept
        for note in notes:
            if logger.isEnabledFor(note.level):
                logger.log(note.level, "group %s: %s", group_id, note.sentence())
            note.report(group_id, self.probe)
            short = note.shortened()
            kept.notes.append((now_wall_ms, short))
            self.listener.on_note(group_id, now_wall_ms, short)
            self._count += 1
            if len(kept.notes) > NOTES_PER_GROUP_MAX:
                kept.notes.popleft()
                kept.number += 1
                self._count -= 1
        while self._count > NOTES_MAX:
            oldest = next(iter(self._by_group))
            self._count -= len(self._by_group.pop(oldest).notes)
