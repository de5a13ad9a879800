"""Checkers of the product's clients: no record is skipped, changed, taken back or read by two."""

from __future__ import annotations

from tarry.base.ids import TopicPartition
from tarry.client.core.group.events import ASSIGNED
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.history import place_name
from tarry.simulation.product.history import HandOut, ProductHistory, Told


def check_promised(context: RunContext, history: ProductHistory) -> list[str]:
    """Check that each record with a good receipt is in the log, at whatever offset."""
    for place, values in history.promised.items():
        found = {record.value for record in context.history.reads.get(place, {}).values()}
        for value in values:
            if value not in found:
                return [f"{value[:20]!r} has a good receipt and is not in {place_name(place)}"]
    return []


def check_contents(context: RunContext, history: ProductHistory) -> list[str]:
    """Check that every record was handed out as it is in the log at the end."""
    for one in history.handed_out:
        topic = context.topic_by_name(one.place[0])
        assert topic is not None
        reads = context.history.reads.get((topic.topic_id, one.place[1]), {})
        for offset, value in enumerate(one.values, one.first):
            found = reads.get(offset)
            if found is not None and found.value != value:
                return [f"{one}: {value[:20]!r} at {offset}, which holds {found.value[:20]!r}"]
    return []


def check_members(history: ProductHistory, ends: dict[TopicPartition, int]) -> list[str]:
    """Check what the members of a group were handed out; `ends` are those of the partitions."""
    found: list[str] = []
    for place, end in ends.items():
        handed_out = [one for one in history.handed_out if one.place == place]
        found += _skipped(place, end, handed_out)
        found += _taken_back(history, place, handed_out)
        if place not in history.uncommitted:
            found += _repeated(history, handed_out)
    return found


def _skipped(place: TopicPartition, end: int, handed_out: list[HandOut]) -> list[str]:
    """Check that every record is handed out, and that no member skips records."""
    reached = 0
    for one in handed_out:
        if one.first > reached:
            return [f"{one} and skips what lies behind {reached}"]
        reached = max(reached, one.last + 1)
    if reached < end:
        return [f"{place[0]}-{place[1]} was handed out up to {reached}, not {end}"]
    return []


def _taken_back(
    history: ProductHistory, place: TopicPartition, handed_out: list[HandOut]
) -> list[str]:
    """Check that a member reads no more of a partition once another member has read on.

    A member that cannot know of the other one is excused.  A member to which the partition is
    assigned again begins at or behind the offset that was committed at that moment.
    """
    reader = ""
    assigned: dict[str, int] = {}
    begun: dict[str, int] = {}
    fences: dict[str, int] = {}
    moments: list[tuple[int, int, HandOut | Told]] = [(one.now_ms, 0, one) for one in history.told]
    moments += [(one.now_ms, 1, one) for one in handed_out]
    moments.sort(key=_time_of)
    for number, (_now_ms, _rank, one) in enumerate(moments):
        if isinstance(one, Told):
            if one.kind == ASSIGNED and place in one.places:
                assigned[one.client] = number
                fences[one.client] = one.committed.get(place, 0)
            continue
        if one.client not in assigned:
            return [f"{one} and was never assigned it"]
        if one.client != reader and begun.get(one.client, -1) >= assigned[one.client]:
            if history.is_in_good_faith(one.client, one.now_ms):
                continue
            return [f"{one} although {reader} has read on"]
        if begun.get(one.client, -1) < assigned[one.client] and one.first < fences[one.client]:
            return [f"{one} and begins before the commit of {fences[one.client]}"]
        reader = one.client
        begun[one.client] = number
    return []


def _time_of(moment: tuple[int, int, HandOut | Told]) -> tuple[int, int]:
    return moment[:2]


def _repeated(history: ProductHistory, handed_out: list[HandOut]) -> list[str]:
    """Check that in the calm no record is handed out twice: what is revoked was committed."""
    if history.calm_ms < 0:
        return []
    reached = 0
    for one in handed_out:
        if one.now_ms > history.calm_ms and one.first < reached:
            return [f"{one} in the calm, and was so up to {reached} before"]
        reached = max(reached, one.last + 1)
    return []
