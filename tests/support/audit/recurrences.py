"""Judgement of what recurs: each instance at a time of its expression, once, and not early.

Times are looked up by an oracle of its own: it walks over the minutes of a time zone.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from tests.support.audit.account import (
    ACKED,
    ALREADY_RELEASED,
    CANCELLED,
    REFUSED,
    FoundRecord,
    Recurring,
)
from tests.support.audit.judgement import Judge, Violation

MINUTE_MS: Final = 60_000
# An instance that is due so short before the end may still be on its way.
GRACE_MS: Final = 10_000


def times_of(recurring: Recurring, from_ms: int, until_ms: int) -> list[int]:
    """When it is due, behind one time and up to another."""
    zone = ZoneInfo(recurring.zone)
    first = (from_ms // MINUTE_MS + 1) * MINUTE_MS
    return [
        each
        for each in range(first, until_ms + 1, MINUTE_MS)
        if datetime.fromtimestamp(each / 1_000, UTC).astimezone(zone).minute in recurring.minutes
    ]


def recurring_violations(judge: Judge) -> Iterator[Violation]:
    for recurring in judge.account.recurring.values():
        comes = sorted(judge.found[recurring.uid], key=lambda each: each.offset)
        for rule, sentence in _judge(judge, recurring, comes):
            where = (
                f"{recurring.client} sent it to {recurring.place} at {recurring.sent_ms}, "
                f"{recurring.answer} at {recurring.answered_ms}: minutes "
                f"{sorted(recurring.minutes)} of {recurring.zone}, misfire {recurring.misfire}, "
                f"count {recurring.count}, end {recurring.end_ms}; came at "
                f"{[(each.offset, each.told_due_ms) for each in comes]}"
            )
            yield Violation(rule, f"{recurring.uid}: {sentence}", where)


def _judge(
    judge: Judge, recurring: Recurring, comes: list[FoundRecord]
) -> Iterator[tuple[str, str]]:
    calendars = judge.calendars
    everywhere = calendars.broker_ids
    if recurring.answer == REFUSED and comes:
        yield "answer", "it was refused, and came"
    begun_ms = recurring.sent_ms
    earliest_ms = calendars.lowest(everywhere, begun_ms, max(begun_ms, recurring.answered_ms))
    dues = [each.told_due_ms for each in comes]
    for come, due_ms in zip(comes, dues, strict=True):
        if not times_of(recurring, due_ms - 1, due_ms):
            yield "recurring", f"{due_ms} is no time of its expression"
        if due_ms <= earliest_ms:
            yield "recurring", f"{due_ms} was over when it was sent"
        if come.place != recurring.place:
            yield "recurring", f"it came to {come.place}"
        yield from _judge_time(judge, recurring, come)
    for first, second in itertools.pairwise(dues):
        if second <= first:
            yield "doubled", f"{second} came behind {first}"
    if recurring.count and len(dues) > recurring.count:
        yield "recurring", f"it came {len(dues)} times"
    if recurring.end_ms >= 0 and dues and max(dues) > recurring.end_ms:
        yield "recurring", f"{max(dues)} is behind its end"
    for asked in judge.asked[recurring.uid]:
        if asked.outcome == CANCELLED or (asked.outcome == ACKED and asked.answered_ms >= 0):
            last_ms = calendars.highest(everywhere, begun_ms, asked.answered_ms)
            if dues and max(dues) > last_ms:
                yield "answer", f"{asked.outcome} at {asked.answered_ms}, and {max(dues)} came"
        elif asked.outcome == ALREADY_RELEASED and not (recurring.count or recurring.end_ms >= 0):
            yield "answer", f"{asked.outcome} at {asked.answered_ms}, and it has no end"
    yield from _judge_missing(judge, recurring, dues)


def _judge_time(judge: Judge, recurring: Recurring, come: FoundRecord) -> Iterator[tuple[str, str]]:
    due_ms = come.told_due_ms
    if come.place[0] in judge.account.stamped:
        shown_ms = come.timestamp_ms
    else:
        shown_ms = judge.calendars.highest(
            judge.leaders_of(come), recurring.sent_ms, judge.last_ms_of(come)
        )
        if come.timestamp_ms != due_ms:
            yield "recurring", f"its timestamp is {come.timestamp_ms}, not {due_ms}"
    if shown_ms < due_ms:
        yield "early", f"{due_ms} came by {shown_ms} of the leader's calendar"


def _judge_missing(
    judge: Judge, recurring: Recurring, dues: list[int]
) -> Iterator[tuple[str, str]]:
    """Whether times are missing that had to come."""
    calendars = judge.calendars
    everywhere = calendars.broker_ids
    if recurring.answer != ACKED:
        return
    begun_ms = calendars.highest(everywhere, recurring.sent_ms, recurring.answered_ms)
    read_ms = judge.account.read_ms
    until_ms = calendars.lowest(everywhere, read_ms, read_ms) - GRACE_MS
    history = judge.asked[recurring.uid]
    if history:
        first_ms = min(each.asked_ms for each in history)
        # What is due before that may still have been on its way, and has ended with it.
        until_ms = calendars.lowest(everywhere, recurring.sent_ms, first_ms) - MINUTE_MS
    if recurring.end_ms >= 0:
        until_ms = min(until_ms, recurring.end_ms)
    wanted = times_of(recurring, begun_ms, until_ms)
    if recurring.count:
        wanted = [] if len(dues) >= recurring.count else wanted
    for missing in sorted(set(wanted) - set(dues)):
        if recurring.misfire == "all" or _was_calm(judge, recurring, missing):
            yield "lost", f"{missing} did not come"


def _was_calm(judge: Judge, recurring: Recurring, missing_ms: int) -> bool:
    """Whether nothing can excuse that an instance did not come before the next one was due."""
    (next_ms, *_) = times_of(recurring, missing_ms, missing_ms + 61 * MINUTE_MS)
    if not judge.calendars.is_true_during(recurring.sent_ms, max(recurring.sent_ms, next_ms)):
        # A calendar was set forward, at its step or when it was set right, over this time.
        return False
    return not any(
        window.begin_ms <= next_ms and window.end_ms >= missing_ms - GRACE_MS
        for window in judge.account.windows
    )
