"""Order of an audited day: within a leader epoch what is due first comes first.

A record Y is behind its turn if an X that is due later stands before it though Y had been parked,
and told to be, before the leader's calendar may have shown the due time of X: when X was released Y
was waiting and due.  Steps of the calendar change nothing in that.  An X that was due when it
arrived appears at once, and stands in no order to what waits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.support.audit.account import ACKED, MOVED, FoundRecord
from tests.support.audit.judgement import FOREVER, Due, Judge, Violation


def order_violations(judge: Judge) -> Iterator[Violation]:
    by_epoch: dict[tuple[str, int, int], list[FoundRecord]] = defaultdict(list)
    for come in judge.account.found:
        by_epoch[*come.place, come.epoch].append(come)
    for comes in by_epoch.values():
        comes.sort(key=lambda each: each.offset)
        yield from _judge_epoch(judge, comes)


def _judge_epoch(judge: Judge, comes: list[FoundRecord]) -> Iterator[Violation]:
    # What came with the latest due time so far, of what certainly waited.
    last: tuple[FoundRecord, Due] | None = None
    for come in comes:
        record = judge.account.entrusted.get(come.uid)
        if record is None or record.answer != ACKED:
            continue
        if record.with_until_ms > record.due_ms and not record.is_by_header:
            continue
        history = judge.asked[record.uid]
        if any(each.outcome not in (MOVED, ACKED) for each in history if each.what == "move"):
            # It may have been moved or not.
            continue
        due = judge.due_of(record, FOREVER)
        moves = [each for each in history if each.outcome == MOVED]
        parked_ms = max([record.answered_ms, *(each.answered_ms for each in moves)])
        if last is not None and due.high_ms < last[1].low_ms:
            first, first_due = last
            sent_ms = judge.account.entrusted[first.uid].sent_ms
            released_ms = judge.calendars.first_at(
                judge.leaders_of(first), first_due.low_ms, sent_ms
            )
            if parked_ms < released_ms:
                yield Violation(
                    "order",
                    f"{come.uid}, due at {due.high_ms}, was parked by {parked_ms} and came behind "
                    f"{first.uid}, due at {first_due.low_ms}, which could not come before "
                    f"{released_ms}",
                    f"{come.place[0]}-{come.place[1]} at {first.offset} and {come.offset}",
                )
        everywhere = judge.calendars.broker_ids
        shown_ms = judge.calendars.highest(everywhere, record.sent_ms, record.answered_ms)
        if shown_ms < due.low_ms and (last is None or due.low_ms > last[1].low_ms):
            last = (come, due)
