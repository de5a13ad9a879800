"""Notes of a group's coordinator, shown as settings that any client can describe.

Kafka has no API that says why a group rebalanced.  DescribeConfigs has a resource for groups, so
the notes are read-only settings of it: clients need no new message, and an older broker just lacks
the keys.  Only a request that names the key `tarry.notes` gets the notes, since tools that describe
a group expect its settings alone.  If there are no notes, a setting with an error code says why.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tarry.base import errors
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.group.notes import Note

# Key by which a request asks for all notes.
NOTES_KEY: Final = "tarry.notes"

SINCE_KEY: Final = "tarry.notes.since.ms"
NOTE_KEY: Final = "tarry.note."
NO_NOTES_KEY: Final = "tarry.notes.error.code"

_SINCE_SENTENCE: Final = (
    "Since when this broker remembers what happened in the group: calendar, in ms."
)
_NOTE_SENTENCE: Final = "Something that happened in the group, as JSON; at_ms is its calendar time."
_NO_NOTES_SENTENCE: Final = "The error code that says why nothing is told of the group."

# Key, value and documentation of a shown setting.
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
    # The values are texts of clients; the history has shortened long ones.
    fields.update(msgspec.structs.asdict(note))
    return msgspec.json.encode(fields).decode()
