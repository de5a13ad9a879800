"""Checkers of scheduled records: each acknowledged record is released, and in its order.

The checkers of all records find a record of an idempotent producer that is there twice.
"""

from __future__ import annotations

from tarry.simulation.checkers import check_history
from tarry.simulation.clients.history import (
    PARKED,
    Place,
    RunHistory,
    SentBatch,
    place_name,
)


def check_schedule(history: RunHistory) -> list[str]:
    """Return a sentence for each violation of a run with scheduled records."""
    return check_history(history) + check_parked(history) + check_release_order(history)


def check_parked(history: RunHistory) -> list[str]:
    """Check that each record that was acknowledged to be parked was released by the end."""
    sentences: list[str] = []
    offsets = _offsets(history)
    deleted = {deletion.place for deletion in history.deletions}
    for batch in history.batches:
        if batch.outcome != PARKED or batch.place not in history.finals:
            continue
        if batch.place in deleted or batch.place[0] not in history.kept_topics:
            # The record may have been released and deleted since.
            continue
        for record in batch.records:
            if (batch.place, record.value) not in offsets:
                sentences.append(
                    f"{record.value[:20]!r} was acknowledged, due at {batch.due_ms}, and never "
                    f"came in {place_name(batch.place)}"
                )
                break
    return sentences


def check_release_order(history: RunHistory) -> list[str]:
    """Check that a batch was released before another one where it had to be.

    It had to be if it is due earlier, or is due at the same time and arrived earlier, and if it
    was acknowledged before the other one was due by any calendar that the broker has shown.
    """
    sentences: list[str] = []
    offsets = _offsets(history)
    by_place: dict[Place, list[tuple[int, SentBatch]]] = {}
    for batch in history.batches:
        offset = offsets.get((batch.place, batch.records[0].value))
        if batch.outcome == PARKED and batch.due_ms >= 0 and offset is not None:
            by_place.setdefault(batch.place, []).append((offset, batch))
    for place, found in by_place.items():
        for offset, batch in found:
            for other_offset, other in found:
                if other_offset < offset and _must_come_before(batch, other):
                    sentences.append(
                        f"{other.records[0].value[:20]!r}, due at {other.due_ms}, came before "
                        f"{batch.records[0].value[:20]!r}, due at {batch.due_ms}, in "
                        f"{place_name(place)}"
                    )
    return sentences


def _must_come_before(batch: SentBatch, other: SentBatch) -> bool:
    if batch.acknowledged_ms >= other.due_ms or not batch.is_idempotent:
        return False
    if batch.due_ms != other.due_ms:
        return batch.due_ms < other.due_ms
    exchange = batch.exchange
    assert exchange is not None
    return other.is_idempotent and 0 <= exchange.answered_turn < other.made_turn


def _offsets(history: RunHistory) -> dict[tuple[Place, bytes], int]:
    """Return the first offset at which each value was read."""
    offsets: dict[tuple[Place, bytes], int] = {}
    for place, reads in history.reads.items():
        for offset in sorted(reads):
            offsets.setdefault((place, reads[offset].value), offset)
    return offsets
