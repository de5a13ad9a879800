"""ChangeScheduledRecords (key 10001, Tarry's own): cancels or moves waiting records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tarry.broker.delayed.long_answers import LongAnswer, LongAnswers
from tarry.broker.delayed.schedule_changes import (
    AwaitedScheduleChanges,
    DelayedScheduleChanges,
    ScheduleChanges,
)
from tarry.broker.request import RequestContext
from tarry.broker.scheduling.changing import ChangeStatus, change_schedule
from tarry.broker.scheduling.finding import find_schedule
from tarry.broker.scheduling.scheduling import Scheduling
from tarry.broker.topics import Topics
from tarry.protocol.message import Message
from tarry.protocol.messages.change_scheduled_records import ChangeScheduledRecordsRequest

# Shortest time-out, whatever the client asks for: the answer comes after a flush.
TIMEOUT_MS_MIN: Final = 1_000


def handle(
    long_answers: LongAnswers,
    topics: Topics,
    scheduling: Scheduling,
    waiting: ScheduleChanges,
    context: RequestContext,
    request: ChangeScheduledRecordsRequest,
) -> Message | None:
    """Carry out each change in the order of the request; answer once their outcomes are final."""
    answer = LongAnswer(context, must_end=True)
    return long_answers.begin(
        answer, _steps(long_answers, topics, scheduling, waiting, context, request)
    )


def _steps(
    long_answers: LongAnswers,
    topics: Topics,
    scheduling: Scheduling,
    waiting: ScheduleChanges,
    context: RequestContext,
    request: ChangeScheduledRecordsRequest,
) -> Iterator[int]:
    deadline_ms = context.now_ms + max(request.timeout_ms, TIMEOUT_MS_MIN)
    changes = AwaitedScheduleChanges(long_answers, waiting, context)
    for topic in request.topics:
        partitions: list[tuple[int, list[ChangeStatus]]] = []
        changes.rows.append((topic.name, partitions))
        yield 1
        for each in topic.partitions:
            statuses: list[ChangeStatus] = []
            partitions.append((each.partition_index, statuses))
            yield 1
            for change in each.changes:
                # Another broker may lead since the last step.
                found = find_schedule(topics, scheduling, topic.name, each.partition_index)
                status = change_schedule(found, change, long_answers.turn.now_wall_ms)
                statuses.append(status)
                changes.add(status)
                waiting.settle_after_write(changes)
                yield status.cost
    operation = DelayedScheduleChanges(deadline_ms, changes)
    context.operation = operation
    if not operation.try_complete():
        waiting.watch(operation, changes.keys())
