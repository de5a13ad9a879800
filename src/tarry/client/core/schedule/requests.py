"""Requests about scheduled records: checks of the arguments, and the calls to send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tarry.base.limits import SCHEDULE_BUCKETS_MAX, SCHEDULE_ID_BYTES_MAX
from tarry.base.schedule_outcomes import NO_DUE_MS
from tarry.client.core.admin.arguments import check_number
from tarry.client.core.admin.calls import TopicList
from tarry.client.core.connections import Connections
from tarry.client.core.outgoing import check_topic
from tarry.client.core.schedule.changing import change_schedule
from tarry.client.core.schedule.entries import (
    ScheduleCursor,
    ScheduledRecords,
    ScheduleOutcome,
    SchedulePage,
    ScheduleTotals,
)
from tarry.client.core.schedule.listing import NO_END_MS, ScheduleQuestion, list_schedule
from tarry.client.core.schedule.support import ScheduleSupport
from tarry.client.errors import UnknownTopic
from tarry.link.errand import Steps
from tarry.protocol.messages.change_scheduled_records import ScheduledChange

# Maximum number of entries in a page.
PAGE_ENTRIES_MAX: Final = 10_000

_TIME_MS_MAX: Final = 2**63 - 1


class ScheduleRequests:
    """Maker of the steps of each request about scheduled records."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._support = ScheduleSupport()

    def page(
        self,
        topic: str,
        due_from: int | None,
        due_until: int | None,
        limit: int,
        after: ScheduleCursor | None,
        partitions: Iterable[int] | None,
        *,
        with_records: bool,
    ) -> Steps[SchedulePage]:
        question = _question("scheduled", topic, due_from, due_until)
        check_number("scheduled: limit", limit, 1)
        question.limit = min(limit, PAGE_ENTRIES_MAX)
        question.with_records = with_records
        question.after = _cursor_of(after)
        return self._list(question, _indexes_of("scheduled", partitions))

    def totals(
        self,
        topic: str,
        due_from: int | None,
        due_until: int | None,
        edges: Sequence[int],
        partitions: Iterable[int] | None,
    ) -> Steps[ScheduleTotals]:
        question = _question("schedule_totals", topic, due_from, due_until)
        question.with_counts = True
        question.edges_ms = _edges_of(edges)
        return self._totals(question, _indexes_of("schedule_totals", partitions))

    def find(
        self,
        topic: str,
        schedule_id: str | bytes | None,
        partition: int | None,
        s_offset: int | None,
    ) -> Steps[list[ScheduledRecords]]:
        question = _question("find_scheduled", topic, None, None)
        question.with_records = True
        change = _named("find_scheduled", schedule_id, partition, s_offset)
        question.schedule_id = change.schedule_id
        question.s_offset = change.s_offset
        return self._find(question, None if partition is None else [partition])

    def change(
        self,
        what: str,
        topic: str,
        schedule_id: str | bytes | None,
        partition: int | None,
        s_offset: int | None,
        due_ms: int = NO_DUE_MS,
    ) -> Steps[ScheduleOutcome]:
        check_topic(topic)
        change = _named(what, schedule_id, partition, s_offset)
        change.due_ms = due_ms
        return self._change(topic, None if partition is None else [partition], change)

    def move(
        self,
        topic: str,
        due_ms: int,
        schedule_id: str | bytes | None,
        partition: int | None,
        s_offset: int | None,
    ) -> Steps[ScheduleOutcome]:
        _check_time("move_scheduled: due_ms", due_ms)
        return self.change("move_scheduled", topic, schedule_id, partition, s_offset, due_ms)

    def _list(self, question: ScheduleQuestion, indexes: list[int] | None) -> Steps[SchedulePage]:
        known = yield from self._begin(question.topic, indexes)
        return (yield from list_schedule(self._connections, question, known))

    def _totals(
        self, question: ScheduleQuestion, indexes: list[int] | None
    ) -> Steps[ScheduleTotals]:
        page = yield from self._list(question, indexes)
        return page.totals

    def _find(
        self, question: ScheduleQuestion, indexes: list[int] | None
    ) -> Steps[list[ScheduledRecords]]:
        known = yield from self._begin(question.topic, indexes)
        # Each partition may have one entry with the id.
        question.limit = len(known)
        page = yield from list_schedule(self._connections, question, known)
        return page.entries

    def _change(
        self, topic: str, indexes: list[int] | None, change: ScheduledChange
    ) -> Steps[ScheduleOutcome]:
        known = yield from self._begin(topic, indexes)
        return (yield from change_schedule(self._connections, topic, known, change))

    def _begin(self, topic: str, indexes: list[int] | None) -> Steps[list[int]]:
        """Check that the broker supports scheduled records; return the partitions to ask."""
        yield from self._support.check(topic)
        if indexes is not None:
            return indexes
        call = TopicList([topic])
        yield [call]
        if call.error is not None:
            raise call.error
        for one in call.result:
            if one.name == topic and one.partitions:
                return sorted(one.partitions)
        raise UnknownTopic(f"topic {topic!r} does not exist")


def _question(
    what: str, topic: str, due_from: int | None, due_until: int | None
) -> ScheduleQuestion:
    check_topic(topic)
    if due_from is not None:
        _check_time(f"{what}: due_from", due_from)
    if due_until is not None:
        _check_time(f"{what}: due_until", due_until)
    return ScheduleQuestion(topic, due_from or 0, NO_END_MS if due_until is None else due_until)


def _check_time(what: str, time_ms: int) -> None:
    if type(time_ms) is not int:
        raise TypeError(f"{what} is in milliseconds since 1970, an int, not {time_ms!r:.60}")
    if not 0 <= time_ms <= _TIME_MS_MAX:
        raise ValueError(f"{what}={time_ms} is no time")


def _indexes_of(what: str, partitions: object) -> list[int] | None:
    if partitions is None:
        return None
    if isinstance(partitions, str | bytes) or not isinstance(partitions, Iterable):
        raise TypeError(f"{what}: partitions are ints, such as [0, 1], not {partitions!r:.60}")
    indexes = list(dict.fromkeys(partitions))
    for index in indexes:
        check_number(f"{what}: a partition", index, 0)
    if not indexes:
        raise ValueError(f"{what}: partitions is empty; None means all of them")
    return indexes


def _edges_of(edges: object) -> list[int]:
    if isinstance(edges, str | bytes) or not isinstance(edges, Sequence):
        raise TypeError(f"schedule_totals: edges are times, such as [0, 1000], not {edges!r:.60}")
    for edge in edges:
        _check_time("schedule_totals: an edge", edge)
    if len(edges) > SCHEDULE_BUCKETS_MAX + 1:
        raise ValueError(
            f"schedule_totals: {len(edges)} edges, {SCHEDULE_BUCKETS_MAX + 1} are the most"
        )
    if list(edges) != sorted(set(edges)):
        raise ValueError("schedule_totals: edges must ascend")
    return list(edges)


def _cursor_of(after: object) -> ScheduleCursor:
    if after is None:
        return {}
    if not isinstance(after, Mapping):
        raise TypeError(f"scheduled: after is `next` of the page before, not {after!r:.60}")
    return dict(after)


def _named(
    what: str, schedule_id: object, partition: int | None, s_offset: int | None
) -> ScheduledChange:
    """Return a change that names its record by id, or by s-offset and partition; raise if
    unclear."""
    if partition is not None:
        check_number(f"{what}: partition", partition, 0)
    if (schedule_id is None) == (s_offset is None):
        raise ValueError(f"{what} takes either a schedule_id or an s_offset")
    if s_offset is not None:
        _check_time(f"{what}: s_offset", s_offset)
        if partition is None:
            raise ValueError(f"{what}: an s_offset needs its partition")
        return ScheduledChange(s_offset=s_offset)
    if isinstance(schedule_id, str):
        schedule_id = schedule_id.encode()
    if not isinstance(schedule_id, bytes):
        raise TypeError(f"{what}: schedule_id is a str or bytes, not {schedule_id!r:.60}")
    if not 0 < len(schedule_id) <= SCHEDULE_ID_BYTES_MAX:
        raise ValueError(
            f"{what}: a schedule_id has 1 to {SCHEDULE_ID_BYTES_MAX} bytes, not {len(schedule_id)}"
        )
    return ScheduledChange(schedule_id=schedule_id)
