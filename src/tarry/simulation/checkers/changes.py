"""Checkers of an operator's changes: records stay deleted, no others go, topics stay grown."""

from __future__ import annotations

from tarry.simulation.clients.history import (
    ACKNOWLEDGED,
    Place,
    RunHistory,
    is_before,
    place_name,
)


def check_deletions(history: RunHistory) -> list[str]:
    """Check that a log starts past each acknowledged deletion, and past no unasked one (A33)."""
    sentences: list[str] = []
    asked: dict[Place, list[int]] = {}
    for deletion in history.deletions:
        final = history.finals.get(deletion.place)
        name = place_name(deletion.place)
        if 0 <= deletion.low_watermark < deletion.offset:
            sentences.append(
                f"records of {name} below {deletion.offset} were to be deleted, and the answer was "
                f"that it begins at {deletion.low_watermark}"
            )
        if final is not None and final.log_start_offset < deletion.low_watermark:
            sentences.append(
                f"records of {name} below {deletion.low_watermark} were deleted and are there from "
                f"{final.log_start_offset} on"
            )
        # A deletion of all records that got no answer may have ended at any offset.
        known = deletion.low_watermark if deletion.offset < 0 else deletion.offset
        asked.setdefault(deletion.place, []).append(1 << 62 if known < 0 else known)
    for place, final in history.finals.items():
        limit = max(asked.get(place, [0]))
        if place[0] not in history.kept_topics or final.log_start_offset <= limit:
            continue
        if _was_committed(history, place, limit, final.log_start_offset):
            sentences.append(
                f"{place_name(place)} begins at {final.log_start_offset}, and nobody asked for "
                f"more than offset {limit}"
            )
    return sentences


def _was_committed(history: RunHistory, place: Place, start: int, end: int) -> bool:
    """Return whether a record from offset `start` up to `end` was acknowledged or read.

    If none was, a power loss may have taken the log's first file, whose name was not durable yet.
    """
    if any(start <= offset < end for offset in history.reads.get(place, ())):
        return True
    return any(
        batch.place == place
        and batch.outcome == ACKNOWLEDGED
        and start < batch.base_offset + len(batch.records)
        and batch.base_offset < end
        for batch in history.batches
    )


def check_growth(history: RunHistory) -> list[str]:
    """Check that an acknowledged growth holds in each later answer about its topic."""
    for growth in history.growths:
        for seen in history.metadata:
            if not is_before(growth.exchange, seen.exchange):
                continue
            for topic in seen.topics:
                if topic.topic_id == growth.topic_id and len(topic.epochs) < growth.partitions:
                    return [
                        f"topic {topic.name} has grown to {growth.partitions} partitions and the "
                        f"metadata has {len(topic.epochs)}"
                    ]
    return []
