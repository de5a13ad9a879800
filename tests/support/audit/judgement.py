"""Judgement of an audited day: each record and each answer, against what was found at the end.

A record that was acknowledged comes exactly once, or waits in the list at the end, or was taken
back.  None comes before its due time by the calendar of the broker that led: a bound from above is
what that calendar may have shown up to the moment at which somebody had the record.  An answer is
true if no other course of things can be told from the rest of the account.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.support.audit.account import (
    ABSENT,
    ACKED,
    ALREADY_RELEASED,
    CANCEL,
    CANCEL_BY_HEADER,
    CANCELLED,
    DOUBT,
    FIND,
    FOUND,
    MOVE,
    MOVED,
    OPEN,
    REFUSED,
    REPLACE,
    UNKNOWN,
    Account,
    Asked,
    Entrusted,
    FoundRecord,
    Listed,
)

from tarry.base.limits import SCHEDULE_RELEASED_KEPT


class Violation(NamedTuple):
    """Something that is not as it was promised: the rule, a sentence, and where to look."""

    rule: str
    sentence: str
    where: str


class Due(NamedTuple):
    """When a record may be due, from the earliest to the latest."""

    low_ms: int
    high_ms: int


class Judge:
    """Judge of everything but what recurs."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.calendars = account.calendars
        self.found: dict[str, list[FoundRecord]] = defaultdict(list)
        for each in account.found:
            self.found[each.uid].append(each)
        self.listed: dict[str, list[Listed]] = defaultdict(list)
        for one in account.listed:
            self.listed[one.uid].append(one)
        self.asked: dict[str, list[Asked]] = defaultdict(list)
        for asked in sorted(account.asked, key=lambda each: each.asked_ms):
            self.asked[asked.uid].append(asked)
        for record in account.entrusted.values():
            if record.replaces:
                self.asked[record.replaces].append(_as_asked(record))
        for history in self.asked.values():
            history.sort(key=lambda each: each.asked_ms)
        self._acked_by_place: dict[tuple[str, int], list[int]] = defaultdict(list)
        for record in account.entrusted.values():
            if record.answer == ACKED:
                self._acked_by_place[record.place].append(record.answered_ms)

    def violations(self) -> Iterator[Violation]:
        for sentence in self.account.troubles:
            yield Violation("trouble", sentence, "")
        for record in self.account.entrusted.values():
            yield from self._judge_fate(record)
            for come in self.found[record.uid]:
                yield from self._judge_come(record, come)
            for asked in self.asked[record.uid]:
                yield from self._judge_answer(record, asked)
        yield from self._judge_strangers()
        yield from self._judge_seen()

    # --- Records

    def _judge_fate(self, record: Entrusted) -> Iterator[Violation]:
        """Whether it came, waits or is gone, as it should."""
        comes, listed = self.found[record.uid], self.listed[record.uid]
        count = len(comes) + len(listed)
        where = [_at(each) for each in comes] + [f"in the list, due {one.due_ms}" for one in listed]
        history = self.asked[record.uid]
        if record.answer == OPEN:
            yield self._of(record, "trouble", "its client never said what became of it")
        if record.is_bad and record.answer == ACKED:
            yield self._of(record, "answer", "it cannot be meant, and was taken")
        if record.answer == REFUSED and count:
            yield self._of(record, "answer", f"it was refused, and is there: {where}")
        if count > 1:
            yield self._of(record, "doubled", f"it is there {count} times: {where}")
        gone = [each for each in history if _is_gone_by(each)]
        if count and gone:
            text = f"{_told(gone[0])}, and it is there: {where}"
            yield self._of(record, "answer", text)
        if listed and any(each.outcome == ACKED for each in history):
            yield self._of(record, "answer", "it was taken back or replaced, and still waits")
        if not count and record.answer == ACKED and not any(_may_end(each) for each in history):
            yield self._of(record, "lost", "it was acknowledged, and is not there")
        due = self.due_of(record, FOREVER)
        for one in listed:
            if not due.low_ms <= one.due_ms <= due.high_ms:
                yield self._of(record, "answer", f"it is listed as due at {one.due_ms}, not {due}")

    def _judge_come(self, record: Entrusted, come: FoundRecord) -> Iterator[Violation]:
        """Whether a record came in its place and not before its time."""
        if come.place != record.place:
            yield self._of(record, "lost", f"it was sent to {record.place}, and came {_at(come)}")
        if record.offset >= 0 and record.answer == ACKED and come.offset != record.offset:
            text = f"offset {record.offset} was answered, and it came {_at(come)}"
            yield self._of(record, "answer", text)
        leaders = self.leaders_of(come)
        until_ms = self.last_ms_of(come)
        highest_ms = self.calendars.highest(leaders, record.sent_ms, until_ms)
        due = self.due_of(record, FOREVER)
        if come.place[0] in self.account.stamped:
            lowest_ms = self.calendars.lowest(leaders, record.sent_ms, until_ms)
            stamp_ms = come.timestamp_ms
            if not lowest_ms <= stamp_ms <= highest_ms:
                yield self._of(
                    record,
                    "trouble",
                    f"brokers {leaders} stamped it {stamp_ms}, and their calendars were between "
                    f"{lowest_ms} and {highest_ms}: the account of the calendars is wrong",
                )
            highest_ms = stamp_ms
        if highest_ms < due.low_ms:
            yield self._of(
                record,
                "early",
                f"it was due at {due.low_ms} and came {_at(come)} by {highest_ms} of the calendar "
                f"of broker {leaders}, {due.low_ms - highest_ms} ms before that",
            )
        for asked in self.asked[record.uid]:
            if asked.outcome != ACKED:
                continue
            # Taken back by a header: it had to come before the answer.
            before = self.due_of(record, asked.asked_ms)
            possible_ms = self.calendars.highest(leaders, record.sent_ms, asked.answered_ms)
            late_stamp = come.place[0] in self.account.stamped and come.timestamp_ms > possible_ms
            if possible_ms < before.low_ms or late_stamp:
                yield self._of(
                    record,
                    "answer",
                    f"{_told(asked)}, before it could be due at {before.low_ms}, and it came "
                    f"{_at(come)}",
                )

    # --- Answers

    def _judge_answer(self, record: Entrusted, asked: Asked) -> Iterator[Violation]:
        comes = self.found[record.uid]
        if asked.outcome in (OPEN, DOUBT, REFUSED, ACKED):
            return
        history = [each for each in self.asked[record.uid] if each is not asked]
        before = [each for each in history if 0 <= each.answered_ms < asked.asked_ms]
        earlier = [each for each in before if each.outcome in (ACKED, CANCELLED)]
        says_waiting = asked.outcome in (CANCELLED, MOVED, FOUND)
        if says_waiting and earlier:
            yield self._of(record, "answer", f"{_told(asked)}, but before: {_told(earlier[0])}")
        seen = [each for each in comes if 0 <= each.arrived_ms < asked.asked_ms]
        if says_waiting and seen:
            text = f"{_told(asked)}, but it had been read {_at(seen[0])}"
            yield self._of(record, "answer", text)
        others = [each for each in history if each.outcome == CANCELLED]
        if asked.outcome == CANCELLED and any(each.asked_ms >= asked.asked_ms for each in others):
            yield self._of(record, "answer", f"cancelled twice: {_told(asked)}, {_told(others[0])}")
        if asked.outcome == FOUND:
            due = self.due_of(record, asked.asked_ms, asked.answered_ms)
            if not due.low_ms <= asked.due_ms <= due.high_ms:
                yield self._of(record, "answer", f"{_told(asked)} as due at {asked.due_ms}: {due}")
        elif asked.outcome == ABSENT:
            yield from self._judge_absent(record, asked)
        elif asked.outcome == ALREADY_RELEASED:
            yield from self._judge_released(record, asked)
        elif asked.outcome == UNKNOWN:
            yield from self._judge_unknown(record, asked)

    def _judge_absent(self, record: Entrusted, asked: Asked) -> Iterator[Violation]:
        """Not listed: it had to be acknowledged, and not due, and not taken back."""
        due = self.due_of(record, asked.asked_ms)
        everywhere = self.calendars.broker_ids
        if (
            record.answer == ACKED
            and record.answered_ms < asked.asked_ms
            and self.calendars.highest(everywhere, record.sent_ms, asked.answered_ms) < due.low_ms
            and not any(
                _may_end(each) and each.asked_ms <= asked.answered_ms
                for each in self.asked[record.uid]
            )
        ):
            yield self._of(record, "answer", f"{_told(asked)}, and it waited until {due.low_ms}")

    def _judge_released(self, record: Entrusted, asked: Asked) -> Iterator[Violation]:
        comes = self.found[record.uid]
        if not comes:
            yield self._of(record, "answer", f"{_told(asked)}, and it is not there")
            return
        if asked.offset >= 0 and all(each.offset != asked.offset for each in comes):
            text = f"{_told(asked)} at offset {asked.offset}, and it is {_at(comes[0])}"
            yield self._of(record, "answer", text)
        due = self.due_of(record, asked.asked_ms, asked.answered_ms)
        leaders = self.leaders_of(comes[0])
        if self.calendars.highest(leaders, record.sent_ms, asked.answered_ms) < due.low_ms:
            text = f"{_told(asked)}, before it could be due at {due.low_ms}"
            yield self._of(record, "answer", text)

    def _judge_unknown(self, record: Entrusted, asked: Asked) -> Iterator[Violation]:
        """Unknown: somebody else took it back, or the partition has forgotten it, or it was not
        parked when that was asked."""
        if record.answer != ACKED or record.answered_ms > asked.asked_ms:
            return
        comes = self.found[record.uid]
        may_be_forgotten = (
            sum(each <= asked.answered_ms for each in self._acked_by_place[record.place])
            > SCHEDULE_RELEASED_KEPT
        )
        if comes and not may_be_forgotten:
            yield self._of(record, "answer", f"{_told(asked)}, and it came {_at(comes[0])}")
        ends = [
            each
            for each in self.asked[record.uid]
            if _may_end(each) and each.asked_ms <= asked.answered_ms
        ]
        if not comes and not ends:
            yield self._of(record, "answer", f"{_told(asked)}, and nobody else took it back")

    # --- The rest

    def _judge_strangers(self) -> Iterator[Violation]:
        known = self.account.entrusted.keys() | self.account.recurring.keys()
        for uid in sorted((self.found.keys() | self.listed.keys()) - known):
            where = [_at(each) for each in self.found[uid]]
            yield Violation("stranger", f"{uid!r} was never sent, or takes others back", str(where))

    def _judge_seen(self) -> Iterator[Violation]:
        """What a consumer had read is there at the end as it was."""
        there = {(*each.place, each.offset): each.uid for each in self.account.found}
        for (topic, index, offset), (uid, arrived_ms) in sorted(self.account.seen.items()):
            if there.get((topic, index, offset)) != uid:
                yield Violation(
                    "changed",
                    f"{uid!r} was read at {arrived_ms}, and now there is "
                    f"{there.get((topic, index, offset))!r}",
                    f"{topic}-{index} at {offset}",
                )

    def due_of(self, record: Entrusted, before_ms: int, until_ms: int = -1) -> Due:
        """When it may be due by what was asked before a time, or is under way until another."""
        due = self._sent_due(record)
        for asked in self.asked[record.uid]:
            is_done = 0 <= asked.answered_ms <= before_ms
            if asked.what != MOVE or asked.asked_ms > max(before_ms, until_ms):
                continue
            moved = Due(asked.due_ms, asked.due_ms)
            if asked.outcome == MOVED and is_done:
                due = moved
            elif asked.outcome in (OPEN, DOUBT, MOVED) or asked.is_repeated:
                due = Due(min(due.low_ms, moved.low_ms), max(due.high_ms, moved.high_ms))
        return due

    def _sent_due(self, record: Entrusted) -> Due:
        everywhere = self.calendars.broker_ids
        until_ms = record.answered_ms if record.answer == ACKED else self.account.read_ms
        low_ms = self.calendars.lowest(everywhere, record.sent_ms, until_ms)
        high_ms = self.calendars.highest(everywhere, record.sent_ms, until_ms)
        if record.after_ms < 0:
            if record.is_by_header and high_ms < record.due_ms:
                return Due(record.due_ms, record.due_ms)
            return Due(record.due_ms, max(record.due_ms, record.with_until_ms))
        return Due(low_ms + record.after_ms, high_ms + record.after_ms)

    def leaders_of(self, come: FoundRecord) -> list[int]:
        """The broker that appended a record, or all of them if that is not known."""
        leader = self.account.leaders.get((*come.place, come.epoch))
        return self.calendars.broker_ids if leader is None else [leader]

    def last_ms_of(self, come: FoundRecord) -> int:
        """When it had been appended at the latest."""
        return self.account.read_ms if come.arrived_ms < 0 else come.arrived_ms

    def _of(self, record: Entrusted, rule: str, sentence: str) -> Violation:
        topic, index = record.place
        lines = [
            f"{record.client} sent it to {topic}-{index} at {record.sent_ms}, {record.answer} at "
            f"{record.answered_ms}, due {self._sent_due(record)}"
        ]
        lines += [_told(each) for each in self.asked[record.uid]]
        return Violation(rule, f"{record.uid}: {sentence}", "; ".join(lines))


FOREVER: Final = 2**62


def _as_asked(record: Entrusted) -> Asked:
    """What a record means for the one whose id it takes over."""
    return Asked(
        REPLACE,
        record.replaces,
        record.client,
        record.sent_ms,
        outcome=record.answer,
        answered_ms=record.answered_ms,
    )


def _is_gone_by(asked: Asked) -> bool:
    return asked.outcome == CANCELLED


def _may_end(asked: Asked) -> bool:
    """Whether it may have taken the record back."""
    if asked.what in (CANCEL_BY_HEADER, REPLACE):
        return asked.outcome in (OPEN, ACKED, DOUBT)
    if asked.what == CANCEL:
        is_own_doing = asked.outcome == UNKNOWN and asked.is_repeated
        return asked.outcome in (OPEN, DOUBT, CANCELLED) or is_own_doing
    assert asked.what in (MOVE, FIND), asked.what
    return False


def _told(asked: Asked) -> str:
    again = " after another try" if asked.is_repeated else ""
    return (
        f"{asked.what} by {asked.client} from {asked.asked_ms} to {asked.answered_ms} was answered "
        f"{asked.outcome}{again}"
    )


def _at(come: FoundRecord) -> str:
    topic, index = come.place
    return f"{topic}-{index} at {come.offset}, epoch {come.epoch}, arrived {come.arrived_ms}"
