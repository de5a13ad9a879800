"""History of groups: lines in the log, and the notes that `tarry groups why` tells.

Bounded in each group and in all: what is forgotten first is what happened longest ago.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

import msgspec
from mypy_extensions import mypyc_attr

from tarry.base.errors import error_name
from tarry.base.probe import Probe
from tarry.base.turn import Turn
from tarry.group.notes import (
    AppendFailed,
    AssignmentMissing,
    BecameEmpty,
    BecameStable,
    GenerationBegan,
    MemberRemoved,
    Note,
    RebalanceBegan,
    RoundChanged,
)

logger = logging.getLogger("tarry.group")

NOTES_PER_GROUP_MAX: Final = 200
NOTES_MAX: Final = 20_000

# A note is kept with so much of each text and so many members' ids: names are as long as clients
# make them, and all notes together are to stay small.
TEXT_CHARACTERS_MAX: Final = 500
ID_CHARACTERS_MAX: Final = 200
IDS_MAX: Final = 10


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupListener:
    """Listener that hears what happens in groups.  Every method may be left as it is."""

    def on_note(self, group_id: str, at_ms: int, note: Note) -> None:
        """Hear of a note; `at_ms` is the calendar, long texts are shortened."""

    def on_committed(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        """Hear of a committed offset, which is durable."""


class GroupNotes:
    """The last notes of a group; `number` is that of the first of them."""

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
        # Since when what happened is known: calendar, ms.
        self.since_ms = turn.now_wall_ms
        self._by_group: dict[str, GroupNotes] = {}
        self._count = 0

    def notes(self, group_id: str) -> list[tuple[int, int, Note]]:
        """Return what is known of a group, oldest first: its number, calendar ms, the note."""
        kept = self._by_group.get(group_id)
        if kept is None:
            return []
        return [
            (number, at_ms, note) for number, (at_ms, note) in enumerate(kept.notes, kept.number)
        ]

    def note(self, group_id: str, notes: list[Note]) -> None:
        """Keep and log what happened."""
        now_wall_ms = self._turn.now_wall_ms
        # Whoever had news last stands at the end.
        kept = self._by_group.pop(group_id, None)
        if kept is None:
            kept = GroupNotes()
        self._by_group[group_id] = kept
        for note in notes:
            self._tell(group_id, note)
            short = _shortened(note)
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

    def _tell(self, group_id: str, note: Note) -> None:
        match note:
            case MemberRemoved():
                logger.info(
                    "group %s: member %s%s of client %s at %s was removed: %s; "
                    "silent for %d ms; %s",
                    group_id,
                    note.member_id,
                    f" (instance {note.instance_id})" if note.instance_id is not None else "",
                    note.client_id,
                    note.client_host,
                    note.reason,
                    note.silent_ms,
                    note.follows,
                )
                self.probe.on_member_removed(group_id, note.member_id, note.reason, note.silent_ms)
            case GenerationBegan():
                logger.info(
                    "group %s: generation %d: %d joined, assignor %s, leader %s",
                    group_id,
                    note.generation_id,
                    note.member_count,
                    note.protocol_name,
                    note.leader_id,
                )
            case BecameStable():
                logger.info(
                    "group %s: generation %d is stable; the rebalance took %d ms",
                    group_id,
                    note.generation_id,
                    note.stood_ms,
                )
            case AssignmentMissing():
                logger.warning(
                    "group %s: the leader assigned nothing to %d members: %s",
                    group_id,
                    len(note.member_ids),
                    ", ".join(_shortened_ids(note.member_ids)),
                )
            case AppendFailed():
                logger.warning(
                    "group %s: %s could not be stored: %s",
                    group_id,
                    note.what,
                    error_name(note.error_code),
                )
            case RebalanceBegan() | RoundChanged():
                logger.debug(
                    "group %s: rebalancing after generation %d: %s",
                    group_id,
                    note.generation_id,
                    note.reason,
                )
            case BecameEmpty():
                logger.debug("group %s: generation %d has no members", group_id, note.generation_id)


def _shortened(note: Note) -> Note:
    """Return the note, with what is kept of its texts."""
    if isinstance(note, AssignmentMissing):
        return AssignmentMissing(_shortened_ids(note.member_ids))
    changes = {
        name: f"{value[:TEXT_CHARACTERS_MAX]}..."
        for name, value in msgspec.structs.asdict(note).items()
        if isinstance(value, str) and len(value) > TEXT_CHARACTERS_MAX
    }
    return msgspec.structs.replace(note, **changes) if changes else note


def _shortened_ids(member_ids: tuple[str, ...]) -> tuple[str, ...]:
    ids = tuple(each[:ID_CHARACTERS_MAX] for each in member_ids[:IDS_MAX])
    rest = len(member_ids) - len(ids)
    return (*ids, f"and {rest} others") if rest else ids
