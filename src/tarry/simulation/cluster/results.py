"""Checks at the end of a run of a replicated cluster: what clients were promised and given."""

from __future__ import annotations

from tarry.records.record import decode_records
from tarry.simulation.clients.context import KnownTopic, RunContext
from tarry.simulation.clients.history import ACKNOWLEDGED, SentBatch, place_name
from tarry.simulation.cluster.committed import Place
from tarry.simulation.cluster.replica_checker import ReplicaChecker
from tarry.simulation.product.history import ProductHistory
from tarry.simulation.product.producer import ProducerNode

_BATCH_BYTES_MAX = 1 << 30


class FoundRecords:
    """Records of one partition as they are on every replica at the end, by offset."""

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.values: dict[int, bytes] = {}


Found = dict[Place, FoundRecords]


def records_of(checker: ReplicaChecker, topic: KnownTopic) -> Found:
    """Return the records that the replicas hold; all replicas are alike."""
    found: Found = {}
    for place in topic.places():
        start_offset, batches = checker.content(place)
        records = found[place] = FoundRecords(start_offset)
        for data in batches:
            for one in decode_records(data, size_max=_BATCH_BYTES_MAX):
                if one.offset >= start_offset:
                    records.values[one.offset] = one.value or b""
    return found


def check_promises(
    context: RunContext, producers: list[ProducerNode], checker: ReplicaChecker, found: Found
) -> list[str]:
    """Check that what was acknowledged with acks=all is there, once and in its producer's order.

    With acks=1 a record may be lost with its leader.  An unclean election that loses records loses
    the state of their producers too, so that other records may come twice.
    """
    sentences: list[str] = []
    careful = {one.name for one in producers if one.settings.acks == -1}
    for batch in context.history.batches:
        if batch.producer in careful and batch.outcome == ACKNOWLEDGED:
            sentences += _check_promise(checker, found[batch.place], batch)
    for place, records in found.items():
        name = place_name(place)
        if checker.was_unclean(place):
            continue
        for producer in sorted(careful):
            start = producer.encode() + b"-"
            own = [value for value in records.values.values() if value.startswith(start)]
            numbers = [int(value.split(b"-")[1]) for value in own]
            if len(set(numbers)) < len(numbers):
                sentences.append(f"{name} has a record of {producer} twice")
            if numbers != sorted(numbers):
                sentences.append(f"{name} has records of {producer} out of order")
    return sentences


def _check_promise(checker: ReplicaChecker, records: FoundRecords, batch: SentBatch) -> list[str]:
    value = batch.records[0].value
    offset = batch.base_offset
    if 0 <= offset < records.start_offset or checker.has_lost(batch.place, offset):
        return []
    if records.values.get(offset) == value:
        return []
    if offset < 0 and (records.start_offset > 0 or value in records.values.values()):
        return []
    return [f"{place_name(batch.place)} has lost {value[:20]!r}, acknowledged at {offset}"]


def check_handed_out(
    history: ProductHistory, context: RunContext, checker: ReplicaChecker, found: Found
) -> list[str]:
    """Check that each record that a consumer was given is still at its offset."""
    sentences: list[str] = []
    for one in history.handed_out:
        topic = context.topic_by_name(one.place[0])
        assert topic is not None
        place = (topic.topic_id, one.place[1])
        records = found[place]
        for offset, value in enumerate(one.values, one.first):
            if offset < records.start_offset or checker.has_lost(place, offset):
                continue
            if records.values.get(offset) != value:
                sentences.append(f"{one}, and {value[:20]!r} is not at {offset}")
                break
    return sentences
