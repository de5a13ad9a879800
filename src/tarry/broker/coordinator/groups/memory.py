"""Memory of a group's coordinator, as settings that anybody can describe.

Kafka has no API that says why a group rebalanced.  DescribeConfigs has a resource for groups, so
the notes are read-only settings there: any client can read them without a new message, and a
broker that does not know them lacks the keys.  They are described to those who ask for the key
`tarry.notes` by its name, and to nobody else: tools that describe a group show its settings only.
Where there are no notes to tell, a setting says by an error code why.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.group.notes import Note

# The key by which all of them are asked for.
NOTES_KEY: Final = "tarry.notes"

SINCE_KEY: Final = "tarry.notes.since.ms"
NOTE_KEY: Final = "tarry.note."
NO_NOTES_KEY: Final = "tarry.notes.error.code"

_SINCE_SENTENCE: Final = (
    "Since when this broker remembers what happened in the group: calendar, in ms."
)
_NOTE_SENTENCE: Final = "Something that happened in the group, as JSON; at_ms is its calendar time."
_NO_NOTES_SENTENCE: Final = "The error code that says why nothing is told of the group."

# Key, value and what it means.
MemoryEntry = tuple[str, str, str]


def note_entries(coordinator: GroupCoordinator, group_id: str) -> list[MemoryEntry]:
    """Return the notes of a group, oldest first, or why there are none."""
    shard, error_code = coordinator.find(group_id)
    history = coordinator.history
    numbered = history.notes(group_id)
    if shard is not None and not numbered and group_id not in shard.groups.by_id:
        error_code = errors.GROUP_ID_NOT_FOUND
    if error_code != errors.NONE:
        return [(NO_NOTES_KEY, str(error_code), _NO_NOTES_SENTENCE)]
    entries: list[MemoryEntry] = [(SINCE_KEY, str(history.since_ms), _SINCE_SENTENCE)]
    for number, at_ms, note in numbered:
        entries.append((f"{NOTE_KEY}{number:06}", _json(at_ms, note), _NOTE_SENTENCE))
    return entries


def _json(at_ms: int, note: Note) -> str:
    fields: dict[str, object] = {"kind": type(note).__name__, "at_ms": at_ms}
    # A value is a string of the wire; the history has shortened what is long.
    fields.update(msgspec.structs.asdict(note))
    return msgspec.json.encode(fields).decode()
