"""What a group's coordinator remembers of it, as settings that anybody can describe.

Kafka has no API that says why a group rebalanced.  DescribeConfigs has a resource for groups, so
the notes are read-only settings there: any client can read them without a new message, and a
broker that does not know them lacks the keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from tarry.base import errors
from tarry.group.decision import Note

if TYPE_CHECKING:
    from tarry.broker.broker import Broker

SINCE_KEY: Final = "tarry.notes.since.ms"
NOTE_KEY: Final = "tarry.note."

_SINCE_SENTENCE: Final = (
    "Since when this broker remembers what happened in the group: calendar, in ms."
)
_NOTE_SENTENCE: Final = "Something that happened in the group, as JSON; at_ms is its calendar time."

# Key, value and what it means.
MemoryEntry = tuple[str, str, str]


def note_entries(broker: Broker, group_id: str) -> tuple[int, str, list[MemoryEntry]]:
    """Error code, a sentence for it, and the notes of a group, oldest first."""
    if not group_id:
        return errors.INVALID_GROUP_ID, "name a group", []
    shard, error_code = broker.coordinator.find(group_id)
    if shard is None:
        return error_code, "the coordinator of this group cannot say now; ask again", []
    history = broker.coordinator.history
    numbered = history.notes(group_id)
    if not numbered and group_id not in shard.groups.by_id:
        return errors.GROUP_ID_NOT_FOUND, "there is no group of this name", []
    entries: list[MemoryEntry] = [(SINCE_KEY, str(history.since_ms), _SINCE_SENTENCE)]
    for number, at_ms, note in numbered:
        entries.append((f"{NOTE_KEY}{number:06}", _json(at_ms, note), _NOTE_SENTENCE))
    return errors.NONE, "", entries


def _json(at_ms: int, note: Note) -> str:
    fields: dict[str, object] = {"kind": type(note).__name__, "at_ms": at_ms}
    # A value is a string of the wire; the history has shortened what is long.
    fields.update(msgspec.structs.asdict(note))
    return msgspec.json.encode(fields).decode()
