"""Checkers of producers: an idempotent record is there once, order holds, ids never repeat."""

from __future__ import annotations

from tarry.simulation.clients.history import ACKNOWLEDGED, Place, RunHistory, SentBatch, place_name


def check_duplicates(history: RunHistory) -> list[str]:
    """Check that a value of an idempotent producer has one offset (A3)."""
    sentences: list[str] = []
    idempotent = {
        (batch.place, record.value)
        for batch in history.batches
        if batch.is_idempotent
        for record in batch.records
    }
    for place, reads in history.reads.items():
        offsets: dict[bytes, int] = {}
        for offset in sorted(reads):
            value = reads[offset].value
            if (place, value) not in idempotent:
                continue
            first = offsets.setdefault(value, offset)
            if first != offset:
                sentences.append(
                    f"{value[:20]!r} of an idempotent producer is at offsets {first} and {offset} "
                    f"of {place_name(place)}"
                )
                break
    return sentences


def check_order(history: RunHistory) -> list[str]:
    """Check that one producer's batches lie in the order in which it made them (A11)."""
    sentences: list[str] = []
    last: dict[tuple[str, Place], SentBatch] = {}
    for batch in history.batches:
        if batch.outcome != ACKNOWLEDGED or not batch.is_ordered:
            continue
        key = (batch.producer, batch.place)
        before = last.get(key)
        if before is not None and before.base_offset >= batch.base_offset:
            sentences.append(
                f"{batch.producer} sent batch {before.number} before {batch.number} to "
                f"{place_name(batch.place)}; they are at offsets {before.base_offset} and "
                f"{batch.base_offset}"
            )
        last[key] = batch
    return sentences


def check_producer_ids(history: RunHistory) -> list[str]:
    """Check that a producer id is given out once in all lives of the broker."""
    sentences: list[str] = []
    owners: dict[int, str] = {}
    for producer_id, _epoch, name in history.producer_ids:
        owner = owners.get(producer_id)
        if owner is not None:
            sentences.append(f"producer id {producer_id} was given to {owner} and to {name}")
        owners[producer_id] = name
    return sentences
