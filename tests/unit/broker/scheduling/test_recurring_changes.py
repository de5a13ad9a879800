"""What recurs, as the two APIs list and change it: one entry, which waits until it has ended."""

from __future__ import annotations

import pytest
from tests.support.broker.admin_user import TOPIC, Operator
from tests.support.broker.broker_user import ORDERS, a_batch
from tests.support.broker.schedule_user import ScheduleUser, cancel, move, outcome_of
from tests.unit.broker.scheduling.test_recurring import FIRST_MS, MINUTE_MS, cron

from tarry.base import errors
from tarry.base.limits import INSTANCES_UNDER_WAY_MAX
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.protocol.messages.list_scheduled_records import ListScheduledPartition, ScheduledEntry
from tarry.records import decode_records
from tarry.records.builder import Headers
from tarry.schedule.state import ScheduleState
from tarry.simulation.by_hand import START_WALL_MS
from tarry.wire.reader import Window

PATH = f"{ORDERS}-0.schedule/00000000000000000000.log"


class Recurring(ScheduleUser):
    """A user with one recurring record of the id `one`, which comes each full minute."""

    def __init__(self, text: str = "* * * * *", *, named: bool = True, **terms: str | int) -> None:
        super().__init__(segment_bytes=str(1 << 20))
        headers = cron(text, **({"id": "one", **terms} if named else terms))
        assert self.produce(a_batch(b"a", headers=(headers,))).error_code == errors.NONE

    def at(self, minutes: float) -> None:
        """Let time run until it is so long after the first full minute."""
        end_ms = FIRST_MS + int(minutes * MINUTE_MS)
        while (now_ms := self.hand.now_wall_ms) < end_ms:
            self.pass_time(min(MINUTE_MS - now_ms % MINUTE_MS, end_ms - now_ms))

    def release(self, minutes: float) -> None:
        """Let an instance be released whose flush does not end."""
        self.at(minutes - 0.1)
        self.hand.turn(after_ms=MINUTE_MS // 10)
        self.hand.turn()

    def end(self, how: str) -> None:
        if how == "stop":
            self.hand.stop()
            self.hand.start()
        elif how == "crash":
            self.hand.crash()
        if how:
            self.begin_anew()

    def entry(self) -> ScheduledEntry:
        (entry,) = self.list(ListScheduledPartition(0), include_batches=True).scheduled
        return entry

    def outcomes(self, *names: str | int) -> list[str]:
        return [outcome_of(each) for each in self.change(*[cancel(name) for name in names])]

    def state(self) -> ScheduleState:
        parking = self.hand.broker.topics[ORDERS].partitions[0].leadership.parking
        assert isinstance(parking, PartitionSchedule)
        assert parking.state is not None
        return parking.state


ENDS = pytest.mark.parametrize("ends", ["", "stop", "crash"])


# --- Listed.


@ENDS
@pytest.mark.parametrize("minutes", [-0.1, 0, 0.4, 3])
def test_it_is_listed_with_its_next_time(minutes: float, ends: str):
    user = Recurring(tz="Europe/Berlin")
    user.at(minutes)
    user.end(ends)

    entry = user.entry()

    assert entry.due_ms == FIRST_MS + (int(minutes) + 1 if minutes >= 0 else 0) * MINUTE_MS
    assert (entry.schedule_id, entry.record_count) == (b"one", 1)
    assert (entry.cron, entry.time_zone) == ("* * * * *", "Europe/Berlin")
    window = entry.batch
    assert isinstance(window, Window)
    (record,) = decode_records(window.data[window.start : window.end], size_max=1 << 20)
    # As it was sent.
    assert dict(record.headers)["x-sched-cron"] == b"* * * * *"


def test_what_does_not_recur_has_no_cron_expression():
    user = ScheduleUser()
    user.park(b"a", 1_000, "a")

    (entry,) = user.list(ListScheduledPartition(0)).scheduled

    assert (entry.cron, entry.time_zone) == ("", "")


def test_it_is_found_by_its_id_and_its_place_while_an_instance_is_under_way():
    user = Recurring()
    s_offset = user.entry().s_offset
    user.release(0)

    by_id = user.list(ListScheduledPartition(0), schedule_id=b"one").scheduled
    by_place = user.list(ListScheduledPartition(0, s_offset=s_offset)).scheduled

    assert [each.due_ms for each in (*by_id, *by_place)] == [FIRST_MS + MINUTE_MS] * 2


def test_a_page_behind_it_tells_it_again_only_at_its_next_time():
    user = Recurring()
    user.park(b"b", FIRST_MS - START_WALL_MS + 30_000)
    first = user.list(ListScheduledPartition(0), limit=1).scheduled
    after = (first[0].due_ms, first[0].s_offset)
    user.at(0)

    behind = user.list(ListScheduledPartition(0, *after), limit=9).scheduled
    within = user.list(ListScheduledPartition(0), due_until_ms=FIRST_MS + MINUTE_MS).scheduled

    assert [each.due_ms - FIRST_MS for each in behind] == [30_000, MINUTE_MS]
    assert [each.due_ms - FIRST_MS for each in within] == [30_000]


# --- Cancelled.


@ENDS
@pytest.mark.parametrize("minutes", [-0.1, 0, 0.4, 3])
@pytest.mark.parametrize("is_named", [False, True])
def test_a_cancel_ends_it_whatever_has_come_of_it(minutes: float, is_named: bool, ends: str):
    user = Recurring(named=is_named)
    user.at(minutes)
    s_offset = user.entry().s_offset

    (result,) = user.change(cancel("one" if is_named else s_offset))
    user.end(ends)
    come = user.values()
    again = user.outcomes(*(["one"] if is_named else []), s_offset)
    user.at(9)

    assert (outcome_of(result), result.s_offset, result.offset) == ("cancelled", s_offset, -1)
    # As of every record that was taken back.
    assert set(again) == {"unknown"}
    assert user.values() == come == [b"a"] * (int(minutes) + 1 if minutes >= 0 else 0)
    assert user.waiting() == []


@pytest.mark.parametrize("is_named", [False, True])
def test_it_is_cancelled_while_an_instance_is_under_way(is_named: bool):
    user = Recurring(named=is_named)
    s_offset = user.entry().s_offset
    user.release(0)

    user.send_changes(cancel("one" if is_named else s_offset), cancel(s_offset))
    before = user.results()
    user.hand.settle()
    user.at(9)

    assert before == []
    assert [outcome_of(each) for each in user.results()] == ["cancelled", "unknown"]
    assert user.values() == [b"a"]


def test_it_is_cancelled_while_it_rests():
    user = Recurring(misfire="all")
    user.at(0)
    user.hand.now_wall_ms += 2 * INSTANCES_UNDER_WAY_MAX * MINUTE_MS
    for _ in range(20):
        user.hand.turn()
    (body,) = user.state().recurring.values()
    under_way, is_resting = body.open_count, not user.state().pending.has(body.s_offset)

    outcomes = user.outcomes("one", "one")
    user.at(500)

    assert (under_way, is_resting) == (INSTANCES_UNDER_WAY_MAX, True)
    assert outcomes == ["cancelled", "unknown"]
    assert user.values() == [b"a"] * (1 + INSTANCES_UNDER_WAY_MAX)


@pytest.mark.parametrize("is_named", [False, True])
def test_a_damaged_one_is_cancelled(is_named: bool):
    user = Recurring(named=is_named, tz="UTC")
    s_offset = user.entry().s_offset
    user.hand.disk.flip_bit(PATH, user.hand.disk.content(PATH).index(b"x-sched-tz"))
    user.hand.broker.scheduling.opened.clear()
    user.at(1)
    damaged = user.list(ListScheduledPartition(0)).damaged_count

    outcome = outcome_of(*user.change(cancel("one" if is_named else s_offset)))
    user.hand.settle()

    assert (damaged, outcome) == (1, "cancelled")
    assert user.list(ListScheduledPartition(0)).damaged_count == 0
    assert user.state().recurring == {}


def test_one_whose_cancel_the_disk_refuses_goes_on():
    user = Recurring()
    user.at(0)
    user.hand.disk.fail_writes(1, "schedule")

    refused = user.outcomes("one")
    user.at(1)

    assert refused == ["KAFKA_STORAGE_ERROR"]
    assert user.values() == [b"a"] * 2
    assert user.outcomes("one") == ["cancelled"]


def test_one_that_was_parked_anew_is_cancelled_by_its_id():
    user = Recurring()
    first = user.entry().s_offset
    for minute in range(40):
        headers: Headers = [("x-deliver-after", b"1000")]
        user.produce(a_batch(b"." * 600_000, headers=(headers,)))
        user.at(minute + 0.5)
        if user.entry().s_offset != first:
            break
    outcomes = user.outcomes(first, "one")
    come = len(user.values())
    user.at(60)

    assert outcomes == ["unknown", "cancelled"]
    assert len(user.values()) == come


# --- Ended by itself.


@ENDS
@pytest.mark.parametrize("count", [1, 3])
def test_what_has_come_as_often_as_it_may_is_already_released(count: int, ends: str):
    user = Recurring(count=count)
    s_offset = user.entry().s_offset
    user.at(count + 2)
    user.end(ends)

    results = user.change(cancel("one"), cancel(s_offset), move("one", 10**9))

    assert [outcome_of(each) for each in results] == ["already_released"] * 3
    assert {each.s_offset for each in results} == {s_offset}
    # A checkpoint does not tell the offset.
    assert {each.offset for each in results} <= ({count - 1} if not ends else {count - 1, -1})


def test_what_has_reached_its_end_is_already_released():
    user = Recurring(end=FIRST_MS + 2 * MINUTE_MS)
    s_offset = user.entry().s_offset
    user.at(1)
    before = user.list(ListScheduledPartition(0)).entry_count
    user.at(4)

    results = user.change(cancel("one"), cancel(s_offset))

    assert before == 1
    assert [(outcome_of(each), each.offset) for each in results] == [("already_released", 2)] * 2


def test_the_last_instance_that_is_under_way_is_not_cancelled():
    user = Recurring(count=2)
    s_offset = user.entry().s_offset
    user.release(1)

    user.send_changes(cancel("one"), cancel(s_offset))
    before = user.results()
    user.hand.settle()
    results = user.results()

    assert before == []
    assert [(outcome_of(each), each.offset) for each in results] == [("already_released", 1)] * 2
    assert user.values() == [b"a"] * 2


def test_one_that_has_ended_without_an_instance_is_unknown():
    user = Recurring("0 0 * * *", misfire="skip", end=FIRST_MS + 2 * 24 * 60 * MINUTE_MS)
    user.hand.now_wall_ms += 9 * 24 * 60 * MINUTE_MS
    user.pass_time(0)

    assert user.outcomes("one") == ["unknown"]
    assert user.values() == []


def test_an_id_that_another_one_got_before_it_has_ended_is_the_other_ones():
    user = Recurring(count=1)
    user.release(0)
    headers: Headers = [("x-deliver-after", b"900000"), ("x-sched-id", b"one")]
    user.send_produce(a_batch(b"b", headers=(headers,)))
    user.hand.settle()
    assert user.answers()
    user.at(3)

    outcomes = user.outcomes("one", "one")
    user.at(60)

    assert outcomes == ["cancelled", "unknown"]
    assert user.values() == [b"a"]


# --- Moved.


@pytest.mark.parametrize("is_named", [False, True])
@pytest.mark.parametrize("minutes", [-0.1, 0, 0.4])
def test_it_is_not_moved_while_others_are(minutes: float, is_named: bool):
    user = Recurring(named=is_named)
    user.park(b"b", 10**7, "b")
    user.at(minutes)
    s_offset = min(each.s_offset for each in user.list(ListScheduledPartition(0)).scheduled)

    refused, moved = user.change(move("one" if is_named else s_offset, 10**8), move("b", 1_000))
    user.at(3)

    assert (outcome_of(refused), refused.s_offset) == ("INVALID_REQUEST", -1)
    assert "a recurring record" in str(refused.error_message)
    assert outcome_of(moved) == "moved"
    assert sorted(user.values()) == [b"a"] * 4 + [b"b"]


# --- In a topic that delays no more by headers.


@ENDS
@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize("minutes", [-0.1, 0.4])
def test_a_topic_that_delays_no_more_cancels_and_replaces_it(
    minutes: float, is_replaced: bool, ends: str
):
    user = Recurring()
    user.at(minutes)
    user.end(ends)
    Operator(user.hand).set(TOPIC, ORDERS, delay_enable="false", delay_source="none")
    headers: Headers = [("x-sched-id", b"one")]
    if not is_replaced:
        headers.append(("x-sched-cancel", b"1"))

    goes_on = minutes + 1
    user.at(goes_on)
    come = user.values()
    answer = user.produce(a_batch(b"b", headers=(headers,)))
    user.at(9)

    assert come == [b"a"] * (int(goes_on) + 1)
    assert answer.error_code == errors.NONE
    assert user.values() == come + ([b"b"] if is_replaced else [])
    assert user.waiting() == []
