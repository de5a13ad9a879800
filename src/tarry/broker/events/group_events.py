"""Events of groups: their notes, and their lag in the partitions where they have committed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from tarry.broker.coordinator.groups.history import GroupListener
from tarry.broker.events.kinds import VERSION, Event, GroupNoteEvent, LagEvent
from tarry.broker.topics import Topics
from tarry.group.notes import Note

# Number of partitions with commits that one interval reports; the newest offset of each counts.
COMMITTED_MAX: Final = 2_000


class GroupEventSource(GroupListener):
    """Listener to the groups of one broker; `add` receives its events."""

    def __init__(self, broker_id: int, add: Callable[[Event], None]) -> None:
        self._broker_id = broker_id
        self._add = add
        self._committed: dict[tuple[str, str, int], int] = {}
        self._dropped = 0

    def on_note(self, group_id: str, at_ms: int, note: Note) -> None:
        self._add(
            GroupNoteEvent(
                v=VERSION,
                at_ms=at_ms,
                broker=self._broker_id,
                group=group_id,
                what=type(note).__name__,
                note=msgspec.structs.asdict(note),
            )
        )

    def on_committed(self, group_id: str, topic: str, partition: int, offset: int) -> None:
        committed = self._committed
        place = (group_id, topic, partition)
        if len(committed) < COMMITTED_MAX or place in committed:
            committed[place] = offset
        else:
            self._dropped += 1

    def tell_lag(self, topics: Topics, now_wall_ms: int) -> int:
        """Add the lag of partitions with commits; return how many commits had no room."""
        committed, dropped = self._committed, self._dropped
        self._committed, self._dropped = {}, 0
        for (group_id, topic, index), offset in committed.items():
            readable = topics.readable(topic)
            partition = None if readable is None else readable.partition(index)
            self._add(
                LagEvent(
                    v=VERSION,
                    at_ms=now_wall_ms,
                    broker=self._broker_id,
                    group=group_id,
                    topic=topic,
                    partition=index,
                    committed=offset,
                    end=-1 if partition is None else partition.high_watermark,
                )
            )
        return dropped
