"""The auditor of a scheduled day: what it lets pass, and what it finds."""

from __future__ import annotations

from typing import Any

import pytest
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
    REFUSED,
    UNKNOWN,
    Account,
    Asked,
    Entrusted,
    FoundRecord,
    Listed,
    Recurring,
    Window,
)
from tests.support.audit.calendars import Calendars
from tests.support.audit.report import judge_all, report_lines

PLACE = ("plain", 0)
STAMPED = ("stamped", 0)
HOUR_MS = 3_600_000
MINUTE_MS = 60_000


class Day:
    """An account of three brokers; broker 1 leads in epoch 1, broker 2 in epoch 2."""

    def __init__(self) -> None:
        self.account = Account(Calendars([1, 2, 3]), frozenset(["stamped"]))
        self.account.read_ms = 10 * HOUR_MS
        for topic in ("plain", "stamped"):
            self.account.leaders |= {(topic, 0, 1): 1, (topic, 0, 2): 2}

    def send(self, uid: str, due_ms: int, sent_ms: int = 1_000, **fields: Any) -> Entrusted:
        """Send a record that is acknowledged at once."""
        given = {"place": PLACE, "answer": ACKED, "answered_ms": sent_ms + 5, **fields}
        record = Entrusted(uid, "sync", sent_ms=sent_ms, due_ms=due_ms, **given)
        self.account.entrust([record])
        return record

    def come(self, uid: str, offset: int, arrived_ms: int, **fields: Any) -> FoundRecord:
        given = {"place": PLACE, "timestamp_ms": 0, "epoch": 1, **fields}
        found = FoundRecord(offset=offset, uid=uid, arrived_ms=arrived_ms, **given)
        self.account.found.append(found)
        self.account.seen[*found.place, offset] = (uid, arrived_ms)
        return found

    def ask(self, what: str, uid: str, outcome: str, asked_ms: int, **fields: Any) -> None:
        given = {"answered_ms": asked_ms + 5, **fields}
        self.account.ask(Asked(what, uid, "sync-0", asked_ms, outcome=outcome, **given))

    def shift(self, broker_id: int, at_ms: int, shift_ms: int) -> None:
        self.account.calendars.step(broker_id, at_ms, at_ms + 1, shift_ms)

    def rules(self) -> list[str]:
        return [each.rule for each in judge_all(self.account)]


@pytest.fixture
def day() -> Day:
    return Day()


def test_a_record_that_comes_once_when_it_is_due_is_right(day: Day) -> None:
    day.send("a", 2_000)
    day.come("a", 0, 2_000)

    assert day.rules() == []


# --- Lost and doubled


def test_what_was_acknowledged_and_is_not_there_is_lost(day: Day) -> None:
    day.send("a", 2_000)

    assert day.rules() == ["lost"]


def test_what_nobody_acknowledged_may_be_there_once_or_not(day: Day) -> None:
    day.send("a", 2_000, answer=DOUBT)
    day.send("b", 2_000, answer=DOUBT)
    day.come("b", 0, 2_000)

    assert day.rules() == []


def test_what_comes_twice_is_doubled_also_if_nobody_acknowledged_it(day: Day) -> None:
    for offset, uid in enumerate("aabb"):
        day.come(uid, offset, 2_000)
    day.send("a", 2_000)
    day.send("b", 2_000, answer=DOUBT)

    assert day.rules() == ["doubled", "doubled"]


def test_what_has_come_and_still_waits_is_doubled(day: Day) -> None:
    day.send("a", 2_000)
    day.come("a", 0, 2_000)
    day.account.listed.append(Listed(PLACE, "a", 2_000))

    assert day.rules() == ["doubled"]


def test_what_waits_beyond_the_day_is_listed_with_its_time(day: Day) -> None:
    day.send("a", 20 * HOUR_MS)
    day.send("b", 20 * HOUR_MS)
    day.account.listed += [Listed(PLACE, "a", 20 * HOUR_MS), Listed(PLACE, "b", 21 * HOUR_MS)]

    assert day.rules() == ["answer"]


def test_what_a_consumer_had_read_has_to_stay(day: Day) -> None:
    day.send("a", 2_000)
    day.come("a", 0, 2_000)
    day.account.seen["plain", 0, 1] = ("b", 2_000)

    assert day.rules() == ["changed"]


def test_what_was_never_sent_is_a_stranger(day: Day) -> None:
    day.come("takes back a", 0, 2_000)

    assert day.rules() == ["stranger"]


def test_what_comes_to_another_partition_is_not_what_was_promised(day: Day) -> None:
    day.send("a", 2_000)
    day.come("a", 0, 2_000, place=("plain", 1))

    assert day.rules() == ["lost"]


# --- Early


def test_a_record_that_somebody_had_before_its_time_is_early(day: Day) -> None:
    day.send("a", 2_000)
    day.come("a", 0, 1_999)

    assert day.rules() == ["early"]


def test_a_calendar_that_was_ahead_excuses_its_own_broker_alone(day: Day) -> None:
    day.shift(1, 1_100, HOUR_MS)
    day.send("a", 2_000 + HOUR_MS)
    day.come("a", 0, 2_000)
    day.send("b", 2_000 + HOUR_MS)
    day.come("b", 1, 2_000, epoch=2)

    assert day.rules() == ["early"]


def test_a_calendar_excuses_nothing_after_it_was_set_back(day: Day) -> None:
    day.shift(1, 1_100, HOUR_MS)
    day.shift(1, 1_200, 0)
    day.send("a", 2_000 + HOUR_MS, sent_ms=1_300)
    day.come("a", 0, 2_000)

    assert day.rules() == ["early"]


def test_a_calendar_excuses_no_more_than_it_showed(day: Day) -> None:
    day.shift(1, 1_100, HOUR_MS)
    day.send("a", 2_001 + HOUR_MS)
    day.come("a", 0, 2_000)

    assert day.rules() == ["early"]


def test_the_stamp_of_the_leader_tells_exactly_whether_a_record_is_early(day: Day) -> None:
    day.send("a", 2_000, place=STAMPED)
    day.come("a", 0, 2_050, place=STAMPED, timestamp_ms=1_999)
    day.send("b", 2_000, place=STAMPED)
    day.come("b", 1, 2_050, place=STAMPED, timestamp_ms=2_000)

    assert day.rules() == ["early"]


def test_a_stamp_that_no_calendar_showed_is_trouble(day: Day) -> None:
    day.send("a", 2_000, place=STAMPED)
    day.come("a", 0, 2_050, place=STAMPED, timestamp_ms=2_051)

    assert day.rules() == ["trouble"]


def test_what_is_due_after_its_arrival_counts_from_the_calendar_of_then(day: Day) -> None:
    day.send("a", -1, after_ms=500)
    day.come("a", 0, 1_500)
    day.send("b", -1, after_ms=500)
    day.come("b", 1, 1_499)

    assert day.rules() == ["early"]


@pytest.mark.parametrize(("sent_ms", "rules"), [(1_500, []), (1_000, ["answer"])])
def test_neighbours_by_headers_share_their_latest_time_if_all_were_due_on_arrival(
    day: Day, sent_ms: int, rules: list[str]
) -> None:
    day.shift(1, 1_400, HOUR_MS)
    day.shift(1, 1_600, 0)
    due_ms = 20 * MINUTE_MS
    day.send("a", due_ms, sent_ms, with_until_ms=due_ms + 500, is_by_header=True)
    day.ask(FIND, "a", FOUND, 2_000, due_ms=due_ms + 500)
    day.come("a", 0, due_ms + 500)

    assert day.rules() == rules


def test_what_was_moved_back_is_early_at_its_old_time(day: Day) -> None:
    day.send("a", 2_000)
    day.ask(MOVE, "a", MOVED, 1_500, due_ms=3_000)
    day.come("a", 0, 2_100)

    assert day.rules() == ["early"]


def test_a_move_without_an_answer_leaves_both_times(day: Day) -> None:
    day.send("a", 2_000)
    day.ask(MOVE, "a", DOUBT, 1_500, due_ms=3_000)
    day.come("a", 0, 2_100)

    assert day.rules() == []


# --- Answers


def test_what_was_cancelled_does_not_come(day: Day) -> None:
    day.send("a", 2_000)
    day.ask(CANCEL, "a", CANCELLED, 1_500)
    day.send("b", 2_000)
    day.ask(CANCEL, "b", CANCELLED, 1_500)
    day.come("b", 0, 2_000)

    assert day.rules() == ["answer"]


def test_nobody_cancels_what_had_been_read(day: Day) -> None:
    day.send("a", 2_000)
    day.come("a", 0, 2_000)
    day.ask(CANCEL, "a", CANCELLED, 2_100)

    assert set(day.rules()) == {"answer"}


def test_nothing_is_cancelled_twice(day: Day) -> None:
    day.send("a", 2_000)
    day.ask(CANCEL, "a", CANCELLED, 1_500)
    day.ask(CANCEL, "a", CANCELLED, 1_502)

    assert day.rules() == ["answer"]


def test_nothing_is_cancelled_or_moved_after_it_was_taken_back(day: Day) -> None:
    day.send("a", 2_000)
    day.ask(CANCEL_BY_HEADER, "a", ACKED, 1_500)
    day.ask(MOVE, "a", MOVED, 1_600, due_ms=3_000)

    assert day.rules() == ["answer"]


def test_what_a_header_took_back_before_it_could_be_due_does_not_come(day: Day) -> None:
    day.send("a", 2_000)
    day.ask(CANCEL_BY_HEADER, "a", ACKED, 1_500)
    day.come("a", 0, 2_000)

    assert day.rules() == ["answer"]


def test_what_a_header_took_back_too_late_comes(day: Day) -> None:
    day.send("a", 2_000)
    day.ask(CANCEL_BY_HEADER, "a", ACKED, 1_999)
    day.come("a", 0, 2_003)

    assert day.rules() == []


def test_what_was_replaced_is_gone_and_the_other_one_comes(day: Day) -> None:
    day.send("a", 2_000)
    day.send("b", 3_000, sent_ms=1_500, replaces="a")
    day.come("b", 0, 3_000)

    assert day.rules() == []

    day.come("a", 1, 3_001)

    assert set(day.rules()) == {"answer", "order"}


def test_what_was_taken_back_does_not_wait(day: Day) -> None:
    day.send("a", 20 * HOUR_MS)
    day.ask(CANCEL_BY_HEADER, "a", ACKED, 1_500)
    day.account.listed.append(Listed(PLACE, "a", 20 * HOUR_MS))

    assert day.rules() == ["answer"]


def test_already_released_has_to_be_there_at_its_offset_and_after_it_was_due(day: Day) -> None:
    for offset, uid in enumerate("abc"):
        day.send(uid, 2_000)
        day.come(uid, offset, 2_000)
    day.ask(CANCEL, "a", ALREADY_RELEASED, 2_000, offset=0)
    day.ask(CANCEL, "b", ALREADY_RELEASED, 2_000, offset=2)
    day.ask(CANCEL, "c", ALREADY_RELEASED, 1_900, offset=2)
    day.send("d", 2_000, answer=DOUBT)
    day.ask(CANCEL, "d", ALREADY_RELEASED, 2_100)

    assert day.rules() == ["answer"] * 3


def test_unknown_is_true_after_a_cancel_or_of_what_the_first_try_took_back(day: Day) -> None:
    day.send("a", 2_000)
    day.ask(CANCEL, "a", CANCELLED, 1_500)
    day.ask(CANCEL, "a", UNKNOWN, 1_600)
    day.send("b", 2_000)
    day.ask(CANCEL, "b", UNKNOWN, 1_600, is_repeated=True)

    assert day.rules() == []


def test_unknown_is_false_of_what_waits_and_of_what_has_come(day: Day) -> None:
    day.send("a", 2_000)
    day.ask(MOVE, "a", UNKNOWN, 1_500, due_ms=3_000)
    day.come("a", 0, 2_000)
    day.send("b", 2_000)
    day.come("b", 1, 2_000)
    day.ask(CANCEL, "b", UNKNOWN, 2_500)

    assert day.rules() == ["answer", "answer"]


def test_what_waits_is_found_with_its_time(day: Day) -> None:
    for offset, uid in enumerate("abc"):
        day.send(uid, 2_000)
        day.come(uid, offset, 2_000)
    day.ask(FIND, "a", FOUND, 1_500, due_ms=2_000)
    day.ask(FIND, "b", FOUND, 1_500, due_ms=2_001)
    day.ask(FIND, "c", ABSENT, 1_500)

    assert day.rules() == ["answer", "answer"]


def test_what_is_refused_is_not_there_and_what_cannot_be_meant_is_refused(day: Day) -> None:
    day.send("a", 0, answer=REFUSED)
    day.come("a", 0, 2_000)
    day.send("b", 0, is_bad=True)
    day.come("b", 1, 2_000)

    assert day.rules() == ["answer", "answer"]


def test_a_record_is_where_its_answer_says(day: Day) -> None:
    day.send("a", 0, offset=7)
    day.come("a", 8, 2_000)

    assert day.rules() == ["answer"]


def test_what_went_wrong_beside_is_told(day: Day) -> None:
    day.account.trouble("an actor ended")

    assert day.rules() == ["trouble"]


# --- Order


def test_what_is_due_first_comes_first(day: Day) -> None:
    day.send("a", 2_000)
    day.send("b", 2_001)
    day.come("b", 1, 2_002)
    day.come("a", 2, 2_002)

    assert day.rules() == ["order"]


def test_what_was_due_when_it_arrived_overtakes_what_waits(day: Day) -> None:
    day.send("a", 2_000)
    day.send("b", 1_999, sent_ms=2_000)
    day.come("b", 1, 2_001)
    day.come("a", 2, 2_002)

    assert day.rules() == []


def test_what_was_parked_late_may_come_behind(day: Day) -> None:
    day.send("b", 2_001)
    day.send("a", 2_000, sent_ms=1_999)
    day.come("b", 1, 2_002)
    day.come("a", 2, 2_003)

    assert day.rules() == []


def test_order_counts_within_an_epoch(day: Day) -> None:
    day.send("a", 2_000)
    day.send("b", 2_001)
    day.come("b", 1, 2_002, epoch=1)
    day.come("a", 2, 2_002, epoch=2)

    assert day.rules() == []


def test_what_was_caught_up_with_after_a_step_is_in_order(day: Day) -> None:
    day.shift(1, 1_100, HOUR_MS)
    day.send("a", 2_000)
    day.send("b", HOUR_MS)
    # Parked when the calendar may have shown the time of b.
    day.send("c", 1_500, sent_ms=1_098)
    for offset, uid in enumerate("bac", 1):
        day.come(uid, offset, 1_200)

    assert day.rules() == ["order"]


# --- What recurs


def recurring(day: Day, **fields: Any) -> None:
    given = {"misfire": "all", "answer": ACKED, "answered_ms": 30_010, **fields}
    minutes = frozenset(range(60))
    one = Recurring("a", "sync", PLACE, 30_000, minutes, "UTC", schedule_id="id", **given)
    day.account.recur(one)
    day.account.read_ms = 4 * MINUTE_MS + 1_000


def instance(day: Day, offset: int, minute: float, arrived_ms: int = -1) -> None:
    due_ms = int(minute * MINUTE_MS)
    day.come(
        "a",
        offset,
        due_ms if arrived_ms < 0 else arrived_ms,
        timestamp_ms=due_ms,
        told_due_ms=due_ms,
    )


def test_what_recurs_comes_at_each_of_its_times(day: Day) -> None:
    recurring(day)
    for minute in (1, 2, 3):
        instance(day, minute, minute)

    assert day.rules() == []


@pytest.mark.parametrize(
    ("minutes", "rule"),
    [((1, 3), "lost"), ((1, 2, 2, 3), "doubled"), ((1, 1.5, 2, 3), "recurring")],
)
def test_an_instance_that_is_missing_doubled_or_at_no_time_is_found(
    day: Day, minutes: tuple[float, ...], rule: str
) -> None:
    recurring(day)
    for offset, minute in enumerate(minutes):
        instance(day, offset, minute)

    assert day.rules() == [rule]


def test_an_instance_that_comes_before_its_time_is_early(day: Day) -> None:
    recurring(day)
    for minute in (1, 2, 3):
        instance(day, minute, minute, minute * MINUTE_MS - 1)

    assert day.rules() == ["early"] * 3


def test_what_recurs_keeps_its_count_and_its_end(day: Day) -> None:
    recurring(day, count=2, end_ms=2 * MINUTE_MS)
    for minute in (1, 2, 3):
        instance(day, minute, minute)

    assert day.rules() == ["recurring", "recurring"]


def test_what_recurs_ends_with_its_cancel(day: Day) -> None:
    recurring(day)
    instance(day, 1, 1)
    day.ask(CANCEL, "a", CANCELLED, 90_000)

    assert day.rules() == []

    instance(day, 2, 2)

    assert day.rules() == ["answer"]


def test_a_time_that_was_missed_needs_a_hardship(day: Day) -> None:
    recurring(day, misfire="once")
    instance(day, 1, 1)
    instance(day, 3, 3)

    assert day.rules() == ["lost"]

    day.account.windows.append(Window("stop", [1], 2 * MINUTE_MS - 500, 3 * MINUTE_MS))

    assert day.rules() == []


# --- The report


def test_the_report_counts_and_tells_how_late_records_came(day: Day) -> None:
    for offset, uid in enumerate("abcd"):
        day.send(uid, 2_000)
        day.come(uid, offset, 2_000 + 10 * offset)
    day.account.windows.append(Window("kill", [1], 2_030, 9_000))
    day.ask(CANCEL, "a", ALREADY_RELEASED, 2_100, offset=0)
    violations = judge_all(day.account)

    lines = [" ".join(line.split()) for line in report_lines(day.account, violations, [1.0, 3.0])]

    assert "all 4 4 0 0 4 0 0 0 0" in lines
    assert "no hardship 3 10 20 20 20" in lines
    assert "kill 1 30 30 30 30" in lines
    assert any("1.0 to 3.0, mean 2.0" in line for line in lines)
    assert lines[-1] == "violations: none"
