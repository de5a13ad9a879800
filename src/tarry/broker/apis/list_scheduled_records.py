"""ListScheduledRecords (key 10000, Tarry's own): lists the pending entries, page by page.

A page is no snapshot: each entry is read when it is added.  Entries keep their places in the order
of due time and s-offset, so all pages together list no entry twice, and leave out none that waits
from the first page to the last.  A recurring record is an exception: it is listed with its next due
time, gets another place when that has come, and is listed there again.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import pairwise
from typing import Final

from tarry.base import errors
from tarry.base.errors import CorruptData, StorageError
from tarry.base.limits import (
    LONG_ANSWER_BYTES_MAX,
    SCHEDULE_BUCKETS_MAX,
    SCHEDULE_PAGE_ENTRIES_MAX,
)
from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.once import once_by
from tarry.broker.request import RequestContext
from tarry.broker.scheduling.finding import FoundSchedule, find_schedule
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.broker.scheduling.scheduling import Scheduling
from tarry.broker.topics import Topics
from tarry.protocol.message import Message
from tarry.protocol.messages.list_scheduled_records import (
    CountedScheduled,
    LatenessBucket,
    ListScheduledPartition,
    ListScheduledRecordsRequest,
    ListScheduledRecordsResponse,
    ScheduledBucket,
    ScheduledEntry,
    ScheduledPartition,
)
from tarry.schedule.counts import TopicCounts
from tarry.schedule.pending import Body
from tarry.schedule.recurring.bodies import RecurringBody
from tarry.schedule.state import ScheduleState
from tarry.wire.reader import window_of

# Entries that are read from the order at once.
_ENTRIES_AT_ONCE: Final = 100

# An s-offset has 47 bits in the order of due times.
_S_OFFSET_MAX: Final = 2**46

# Bytes of an entry beside its id and its batch.
_ENTRY_BYTES: Final = 40

# Bytes of a batch whose reading costs as much as one element of a long answer.
_READ_BYTES_PER_UNIT: Final = 4 * 1024

# Largest batch that is put into an answer, so that each answer has room for an entry.
_BATCH_BYTES_MAX: Final = LONG_ANSWER_BYTES_MAX // 2

# Units that summing up a range costs at least, and chunks of entries that are summed up in a unit.
_SUM_UNITS: Final = 20
_CHUNKS_PER_UNIT: Final = 20


def handle(
    long_answers: LongAnswers,
    topics: Topics,
    scheduling: Scheduling,
    context: RequestContext,
    request: ListScheduledRecordsRequest,
) -> Message | None:
    """List the partitions in the order of the request."""
    answer = LongAnswer(context)
    return long_answers.begin(answer, _steps(answer, topics, scheduling, request))


def _steps(
    answer: LongAnswer,
    topics: Topics,
    scheduling: Scheduling,
    request: ListScheduledRecordsRequest,
) -> Iterator[int]:
    answer.open(ListScheduledRecordsResponse())
    fault = _fault(request)
    for asked in once_by(request.partitions, _place):
        found = find_schedule(topics, scheduling, request.topic_name, asked.partition_index)
        if fault:
            found = FoundSchedule(errors.INVALID_REQUEST, fault)
        told = ScheduledPartition(
            asked.partition_index, error_code=found.error_code, error_message=found.message
        )
        if found.schedule is None or found.state is None:
            answer.add(told)
            yield 1
            continue
        told.error_message = _flaw(found.schedule)
        yield from _sum_up(told, found.state, request)
        answer.open(told)
        yield 1
        told.has_more = yield from _list(answer, found.schedule, request, asked)
        answer.end_with(told)
        answer.close()
    hosted = topics.get(request.topic_name) if request.include_counts else None
    counts = None if hosted is None else scheduling.counts_of(hosted.topic_id)
    if counts is not None:
        answer.end_with(ListScheduledRecordsResponse(counts=_counted(counts)))


def _place(asked: ListScheduledPartition) -> tuple[int, int, int, int]:
    """Return what a request names: a partition, and where its page begins or which entry it has."""
    return (asked.partition_index, asked.after_due_ms, asked.after_s_offset, asked.s_offset)


def _fault(request: ListScheduledRecordsRequest) -> str:
    """Return a sentence about the fault of a request; "" if it has none."""
    edges = request.bucket_edges_ms
    if request.limit < 0:
        return f"a limit of {request.limit}"
    if len(edges) > SCHEDULE_BUCKETS_MAX + 1:
        return f"{len(edges)} edges of buckets, {SCHEDULE_BUCKETS_MAX + 1} are the most"
    if request.schedule_id is not None and any(each.s_offset >= 0 for each in request.partitions):
        return "an entry is named either by its id or by its s-offset"
    if any(left >= right for left, right in pairwise(edges)):
        return "the edges of buckets do not ascend"
    return ""


def _flaw(schedule: PartitionSchedule) -> str | None:
    """Return a sentence about the entries that a damaged log hides; None if it is sound."""
    log = schedule.companion.log
    if log.flaw_offset < 0:
        return None
    return (
        f"{schedule.companion.name} is damaged at offset {log.flaw_offset}: what was parked behind "
        "it is not known, waits until the disk is mended, and nothing more is parked"
    )


def _sum_up(
    told: ScheduledPartition, state: ScheduleState, request: ListScheduledRecordsRequest
) -> Iterator[int]:
    """Sum up the pending entries in the range of the request, and in each bucket."""
    pending = state.pending
    sums = pending.sums(request.due_from_ms, request.due_until_ms)
    told.entry_count = sums.entry_count
    told.record_count = sums.record_count
    told.size = sums.size
    told.damaged_count = state.damaged_count
    told.furthest_due_ms = pending.furthest_due_ms()
    yield _SUM_UNITS + sums.chunk_count // _CHUNKS_PER_UNIT
    edges = request.bucket_edges_ms
    for left, right in pairwise(edges):
        bucket = pending.sums(left, right)
        told.buckets.append(ScheduledBucket(bucket.record_count, bucket.size))
        yield _SUM_UNITS + bucket.chunk_count // _CHUNKS_PER_UNIT


def _counted(counts: TopicCounts) -> CountedScheduled:
    return CountedScheduled(
        counts.since_ms,
        counts.parked,
        counts.released,
        counts.cancelled,
        counts.refused,
        counts.longest_late_ms,
        [LatenessBucket(number, count) for number, count in enumerate(counts.lateness) if count],
    )


def _list(
    answer: LongAnswer,
    schedule: PartitionSchedule,
    request: ListScheduledRecordsRequest,
    asked: ListScheduledPartition,
) -> Generator[int, None, bool]:
    """Add the entries of one partition; return whether there may be more of them."""
    if request.schedule_id is not None or asked.s_offset >= 0:
        yield from _add_one(answer, schedule, request, asked)
        return False
    left = min(request.limit, SCHEDULE_PAGE_ENTRIES_MAX)
    due_ms, s_offset = asked.after_due_ms, min(asked.after_s_offset, _S_OFFSET_MAX) + 1
    if due_ms < request.due_from_ms:
        due_ms, s_offset = request.due_from_ms, 0
    while True:
        # The schedule may have ended since the last step.
        state = schedule.state
        if state is None:
            return True
        entries = state.pending.from_place(due_ms, s_offset, _ENTRIES_AT_ONCE)
        if not entries or entries[0][0] >= request.due_until_ms:
            return False
        for entry in entries:
            due_ms, s_offset = entry[0], entry[1]
            if due_ms >= request.due_until_ms:
                return False
            body = state.pending.get(s_offset)
            # The last step may be some turns ago: the entry may be released by now, or have another
            # place if it recurs.
            if body is not None and body.due_ms == due_ms:
                if left <= 0:
                    return True
                cost = _add(answer, schedule, body, request)
                if cost == 0:
                    return True
                left -= 1
                yield cost
                if schedule.state is not state:
                    return True
        s_offset += 1


def _add_one(
    answer: LongAnswer,
    schedule: PartitionSchedule,
    request: ListScheduledRecordsRequest,
    asked: ListScheduledPartition,
) -> Iterator[int]:
    state = schedule.state
    if state is None:
        return
    s_offset: int | None = asked.s_offset
    if request.schedule_id is not None:
        s_offset = state.ids.offset_of(request.schedule_id)
    body = None if s_offset is None else state.pending.get(s_offset)
    if body is not None:
        yield max(_add(answer, schedule, body, request), 1)


def _add(
    answer: LongAnswer,
    schedule: PartitionSchedule,
    body: Body,
    request: ListScheduledRecordsRequest,
) -> int:
    """Add an entry; return its cost in units, 0 if the answer has no room for it."""
    entry = ScheduledEntry(
        body.due_ms,
        body.s_offset,
        _within_i32(body.record_count),
        _within_i32(body.size),
        body.schedule_id or None,
    )
    if isinstance(body, RecurringBody):
        entry.cron = body.terms.cron
        entry.time_zone = body.terms.zone
    entry_bytes = _ENTRY_BYTES + len(body.schedule_id) + len(entry.cron) + len(entry.time_zone)
    if not request.include_batches or body.size > _BATCH_BYTES_MAX:
        if not answer.has_room(entry_bytes):
            return 0
        answer.add(entry)
        return 1
    if not answer.has_room(entry_bytes + body.size):
        return 0
    read_before = schedule.reader.bytes_read
    batch = _batch_of(schedule, body)
    if batch and answer.has_room(entry_bytes + len(batch)):
        entry.batch = window_of(batch)
    answer.add(entry)
    # A batch of several places is read whole, even for one record.
    bytes_read = schedule.reader.bytes_read - read_before
    return 1 + max(len(batch), bytes_read) // _READ_BYTES_PER_UNIT


def _batch_of(schedule: PartitionSchedule, body: Body) -> bytes:
    """Read the batch of an entry; b"" if it cannot be read now."""
    try:
        return schedule.reader.batch_of(body)
    except (StorageError, CorruptData):
        # The damage is reported when the body is due.
        return b""


def _within_i32(number: int) -> int:
    return min(max(number, 0), 0x7FFF_FFFF)
