"""The call of an admin client that lists scheduled records, and the merge of partitions' pages."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tarry.base.errors import NONE
from tarry.base.ids import TopicPartition
from tarry.client.core.admin.partitions import ask_leaders
from tarry.client.core.connections import Connections
from tarry.client.core.schedule.entries import (
    ScheduleBucket,
    ScheduleCounts,
    ScheduleCursor,
    ScheduledRecords,
    SchedulePage,
    ScheduleTotals,
)
from tarry.client.core.schedule.support import may_pass_soon
from tarry.client.errors import broker_error
from tarry.link.errand import Call, Steps
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.list_scheduled_records import (
    CountedScheduled,
    ListScheduledPartition,
    ListScheduledRecordsRequest,
    ListScheduledRecordsResponse,
    ScheduledEntry,
    ScheduledPartition,
    decode_list_scheduled_records_response,
)
from tarry.records.record import Record, decode_records
from tarry.wire.reader import Window

# End of a range without an end.
NO_END_MS: Final = 2**63 - 1

# Least number of entries per partition in a page: fewer would need too many requests.
_ENTRIES_MIN: Final = 10
# Buckets of all partitions in one answer: they take half of the bytes that a broker gives it.
_BUCKETS_PER_REQUEST: Final = 500_000

# Limit of the decompressed size of a batch.
_UNFOLDED_BYTES_MAX: Final = 64 * 1024 * 1024


class ScheduleQuestion:
    """Question about the scheduled records in the partitions of one topic."""

    def __init__(self, topic: str, due_from_ms: int, due_until_ms: int) -> None:
        self.topic = topic
        self.due_from_ms = due_from_ms
        self.due_until_ms = due_until_ms
        self.limit = 0
        self.edges_ms: list[int] = []
        self.with_records = False
        self.with_counts = False
        self.after: ScheduleCursor = {}
        # Id or s-offset, if the question is about one entry only.
        self.schedule_id: bytes | None = None
        self.s_offset = -1

    def request(self, indexes: list[int], limit: int) -> ListScheduledRecordsRequest:
        partitions = []
        for index in indexes:
            due_ms, s_offset = self.after.get(index, (-1, -1))
            partitions.append(ListScheduledPartition(index, due_ms, s_offset, self.s_offset))
        return ListScheduledRecordsRequest(
            self.topic,
            self.due_from_ms,
            self.due_until_ms,
            limit,
            self.with_records,
            self.schedule_id,
            self.edges_ms,
            partitions,
            self.with_counts,
        )


class ListSchedule(
    Call[ListScheduledRecordsResponse, dict[TopicPartition, ScheduledPartition | ClientError]]
):
    """Call that lists scheduled records at one leader.  Result: by partition its answer.

    `counted` takes what brokers have counted of the topic.
    """

    repeats = False
    version_unlisted = 0

    def __init__(
        self,
        broker_id: int,
        question: ScheduleQuestion,
        indexes: list[int],
        limit: int,
        counted: dict[int, CountedScheduled],
    ) -> None:
        super().__init__(
            api_keys.LIST_SCHEDULED_RECORDS, decode_list_scheduled_records_response, broker_id
        )
        self.question = question
        self.indexes = indexes
        self.limit = limit
        self._leader_id = broker_id
        self._counted = counted

    def build(self, version: int) -> Message:
        return self.question.request(self.indexes, self.limit)

    def interpret(
        self, response: ListScheduledRecordsResponse
    ) -> dict[TopicPartition, ScheduledPartition | ClientError]:
        if response.counts is not None:
            self._counted[self._leader_id] = response.counts
        found: dict[TopicPartition, ScheduledPartition | ClientError] = {}
        for one in response.partitions:
            place = (self.question.topic, one.partition_index)
            if one.error_code == NONE:
                found[place] = one
                continue
            sentence = f"what waits in {place[0]} [{place[1]}] is not known"
            found[place] = broker_error(one.error_code, (one.error_message or sentence).rstrip("."))
        return found


def list_schedule(
    connections: Connections, question: ScheduleQuestion, indexes: list[int]
) -> Steps[SchedulePage]:
    """List the scheduled records in partitions of a topic, in order of due time.

    Raises the error of any partition, because a page without it could miss the records due next.
    """
    limit = question.limit
    if len(indexes) > 1 and limit:
        limit = min(limit, max(2 * limit // len(indexes), _ENTRIES_MIN))
    # Partitions in one request.
    together = max(_BUCKETS_PER_REQUEST // max(len(question.edges_ms), 1), 1)
    if question.with_records and question.schedule_id is None:
        # Records may be large, so that each partition gets a whole answer to itself.
        together = 1
    shares = [indexes[first : first + together] for first in range(0, len(indexes), together)]
    told: list[ScheduledPartition] = []
    counted: dict[int, CountedScheduled] = {}
    for share in shares:
        told += yield from _ask(connections, question, share, limit, counted)
    return _page_of(question, told, _counts_of(counted))


def _ask(
    connections: Connections,
    question: ScheduleQuestion,
    indexes: list[int],
    limit: int,
    counted: dict[int, CountedScheduled],
) -> Steps[list[ScheduledPartition]]:
    def call_of(leader_id: int, places: list[TopicPartition]) -> ListSchedule:
        indexes_led = [index for _, index in places]
        return ListSchedule(leader_id, question, indexes_led, limit, counted)

    places = [(question.topic, index) for index in indexes]
    answers = yield from ask_leaders(connections, places, call_of, may_pass_soon)
    told = []
    for answer in answers.values():
        if isinstance(answer, ClientError):
            raise answer
        told.append(answer)
    return told


def _page_of(
    question: ScheduleQuestion, told: list[ScheduledPartition], counts: ScheduleCounts | None
) -> SchedulePage:
    """Merge the partitions' pages; the result ends where the first of the incomplete pages ends."""
    found: list[tuple[tuple[int, int, int], ScheduledEntry]] = []
    ends: list[tuple[int, int, int]] = []
    for one in told:
        places = [(each.due_ms, one.partition_index, each.s_offset) for each in one.scheduled]
        found += zip(places, one.scheduled, strict=True)
        if one.has_more and question.limit:
            # An incomplete page without entries: the answer had no room for its first entry.
            ends.append(places[-1] if places else (-1, one.partition_index, -1))
    found.sort(key=_place_of)
    end = min(ends, default=None)
    kept = [each for each in found if end is None or each[0] <= end][: question.limit or None]
    cursor = dict(question.after)
    for (due_ms, index, s_offset), _ in kept:
        cursor[index] = (due_ms, s_offset)
    has_more = end is not None or len(kept) < len(found)
    if has_more and not kept:
        raise ClientError("the answer has no room for an entry of each partition: ask for fewer")
    entries = [_entry_of(question.topic, place[1], each) for place, each in kept]
    return SchedulePage(entries, _totals_of(question, told, counts), cursor if has_more else None)


def _place_of(found: tuple[tuple[int, int, int], ScheduledEntry]) -> tuple[int, int, int]:
    return found[0]


def _entry_of(topic: str, index: int, entry: ScheduledEntry) -> ScheduledRecords:
    return ScheduledRecords(
        topic,
        index,
        entry.due_ms,
        entry.s_offset,
        entry.record_count,
        entry.size,
        entry.schedule_id,
        _records_of(entry),
        entry.cron or None,
        entry.time_zone or None,
    )


def _records_of(entry: ScheduledEntry) -> list[Record] | None:
    window = entry.batch
    if not isinstance(window, Window):
        return None
    data = window.data[window.start : window.end]
    return decode_records(data, size_max=_UNFOLDED_BYTES_MAX)


def _counts_of(counted: dict[int, CountedScheduled]) -> ScheduleCounts | None:
    """Return the sums of what the brokers have counted; None if none of them tells it."""
    if not counted:
        return None
    told = counted.values()
    lateness: Counter[int] = Counter()
    for bucket in (each for one in told for each in one.lateness):
        lateness[bucket.number] += bucket.record_count
    return ScheduleCounts(
        min(one.since_ms for one in told),
        sum(one.parked_count for one in told),
        sum(one.released_count for one in told),
        sum(one.cancelled_count for one in told),
        sum(one.refused_count for one in told),
        max(one.longest_late_ms for one in told),
        dict(lateness),
    )


def _totals_of(
    question: ScheduleQuestion, told: list[ScheduledPartition], counts: ScheduleCounts | None
) -> ScheduleTotals:
    edges = question.edges_ms
    buckets = []
    for at, left in enumerate(edges[:-1]):
        counted = [one.buckets[at] for one in told if at < len(one.buckets)]
        buckets.append(
            ScheduleBucket(
                left,
                edges[at + 1],
                sum(each.record_count for each in counted),
                sum(each.size for each in counted),
            )
        )
    return ScheduleTotals(
        sum(one.entry_count for one in told),
        sum(one.record_count for one in told),
        sum(one.size for one in told),
        sum(one.damaged_count for one in told),
        max((one.furthest_due_ms for one in told), default=-1),
        buckets,
        counts,
        tuple(one.error_message for one in told if one.error_message),
    )
