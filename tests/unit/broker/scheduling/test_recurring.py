"""Records that come again and again, by a cron expression in their headers."""

from __future__ import annotations

import itertools
from datetime import datetime

import pytest
from tests.support.broker.admin_user import Operator, deleted
from tests.support.broker.broker_user import ORDERS, a_batch, produced, records_in
from tests.unit.broker.scheduling.test_headers import CODECS, Scheduler, after, at, cancel

from tarry.base import errors, limits
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.partition.replicated_log import COMPANION
from tarry.protocol import api_keys
from tarry.records.builder import Headers
from tarry.schedule.state import ScheduleState
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.wire.reader import Window

MINUTE_MS = 60_000
DAY_MS = 86_400_000
# The first full minute after the start.
FIRST_MS = START_WALL_MS // MINUTE_MS * MINUTE_MS + MINUTE_MS
S = "orders-0.schedule/"
P = "orders-0/"


def cron(text: str = "* * * * *", **terms: str | int) -> Headers:
    """Headers of a recurring record; `terms` are those beside the expression."""
    headers: Headers = [("x-sched-cron", text.encode())]
    return [*headers, *((f"x-sched-{name}", str(value).encode()) for name, value in terms.items())]


class Recurrer(Scheduler):
    """A user of the topic `orders`, some of whose records recur."""

    def at(self, minutes: float) -> None:
        """Let time run until it is so long after the first full minute."""
        end_ms = FIRST_MS + int(minutes * MINUTE_MS)
        while (now_ms := self.hand.now_wall_ms) < end_ms:
            self.pass_time(min(MINUTE_MS - now_ms % MINUTE_MS, end_ms - now_ms))

    def minutes(self, value: bytes | None = None) -> list[float]:
        """Times of the records that a consumer finds, in minutes after the first full one."""
        return [
            (record.timestamp - FIRST_MS) / MINUTE_MS
            for record in self.records()
            if value is None or record.value == value
        ]

    def seen_at(self, *minutes: float) -> list[list[float]]:
        seen = []
        for each in minutes:
            self.at(each)
            seen.append(self.minutes())
        return seen

    def end(self, how: str) -> None:
        """End the broker in one of several ways, and start it again."""
        if how == "crash":
            self.hand.disk.crash()
        elif how == "kill":
            self.hand.disk.kill()
        elif how == "stop":
            self.hand.stop()
        if how:
            self.hand.start()
            self.client = self.hand.connect()
            self.hand.settle()

    def delete_records(self) -> None:
        """Have all records deleted that a consumer could read."""
        operator = Operator(self.hand)
        operator.client.send(api_keys.DELETE_RECORDS, 2, operator.deletion((0, -1)))
        while not (answers := operator.answers()):
            self.pass_time(100)
        assert deleted(answers[0])[0][1] == errors.NONE

    def state(self) -> ScheduleState:
        parking = self.hand.broker.topics[ORDERS].partitions[0].leadership.parking
        assert isinstance(parking, PartitionSchedule)
        assert parking.state is not None
        return parking.state

    def turn(self, after_ms: int = 0) -> None:
        """Take one turn, in which the flushes end that are under way."""
        self.hand.turn(*self.hand.disk.complete_flushes(), after_ms=after_ms)


ENDS = pytest.mark.parametrize("ends", ["", "stop", "crash", "kill"])


# --- When it comes.


def test_a_recurring_record_comes_at_each_of_its_times():
    user = Recurrer()

    offset = user.schedule((b"a", cron()))
    seen = user.seen_at(-0.001, 0, 0.999, 1, 2)

    assert offset == -1
    assert seen == [[], [0], [0], [0, 1], [0, 1, 2]]


@ENDS
@pytest.mark.parametrize("minutes", [-0.1, 0, 0.1, 0.5])
def test_it_goes_on_over_the_end_of_a_broker(minutes: float, ends: str):
    user = Recurrer()
    user.schedule((b"a", cron()))
    user.at(minutes)

    user.end(ends)
    seen = user.seen_at(0.9, 1, 1.1)
    user.end(ends)
    seen += user.seen_at(1.2, 2)

    assert seen == [[0], [0, 1], [0, 1], [0, 1], [0, 1, 2]]


@CODECS
def test_recurring_records_of_a_batch_come_each_for_itself(codec: int):
    user = Recurrer()

    user.schedule(
        (b"each", cron()),
        (b"once", after(90_000)),
        (b"now", []),
        (b"second", cron("*/2 * * * *", id="two")),
        (b"again", cron()),
        codec=codec,
    )
    user.at(-0.1)
    user.end("crash")
    user.at(1)
    user.schedule((b"", cancel("two")))
    user.at(2)
    user.end("crash")
    user.at(3)

    # The first full minute has an odd number.
    assert [user.minutes(value) for value in (b"each", b"again", b"second")] == [
        [0, 1, 2, 3],
        [0, 1, 2, 3],
        [1],
    ]
    assert user.values().count(b"once") == user.values().count(b"now") == 1


def test_an_instance_is_a_new_record_without_the_headers_by_which_it_recurs():
    user = Recurrer()
    headers = [("other", None), *cron(id="one", tz="UTC", count=2, misfire="all"), ("x", b"1")]
    user.schedule((b"a", headers))

    user.at(1)

    due = [b"%d" % (FIRST_MS + each * MINUTE_MS) for each in (0, 1)]
    assert [record.headers for record in user.records()] == [
        [("other", None), ("x-sched-instance-of", b"one"), ("x", b"1"), ("x-sched-due", each)]
        for each in due
    ]
    assert [record.offset for record in user.records()] == [0, 1]


def test_an_instance_of_what_was_an_instance_is_its_own():
    user = Recurrer()
    user.schedule((b"a", [("x-sched-due", b"1"), ("x-sched-instance-of", b"other"), *cron()]))

    user.at(0)

    assert user.records()[0].headers == [("x-sched-due", b"%d" % FIRST_MS)]


def test_a_record_that_is_sent_on_neither_recurs_nor_ends_what_recurs():
    user = Recurrer()
    user.schedule((b"a", cron(id="one")))
    user.at(0)
    (record,) = user.records()

    user.schedule((b"forwarded", record.headers))
    user.at(2)

    assert user.minutes(b"a") == [0, 1, 2]
    assert len(user.minutes(b"forwarded")) == 1


@pytest.mark.parametrize("delay_min_ms", [0, DAY_MS])
def test_what_delays_nothing_is_no_matter_of_recurring_records(delay_min_ms: int):
    user = Recurrer(delay_min_ms=str(delay_min_ms))
    user.schedule((b"a", cron()))

    assert user.seen_at(-0.5, 0, 1) == [[], [0], [0, 1]]


@ENDS
def test_where_records_are_stamped_when_they_are_appended_each_instance_comes_once(ends: str):
    user = Recurrer(message_timestamp_type="LogAppendTime")
    user.schedule((b"a", cron(misfire="all")))

    for minutes in (1.5, 2.5):
        user.pass_time(FIRST_MS + int(minutes * MINUTE_MS) - user.hand.now_wall_ms)
        user.end(ends)

    due = [dict(record.headers)["x-sched-due"] for record in user.records()]
    assert due == [b"%d" % (FIRST_MS + each * MINUTE_MS) for each in (0, 1, 2)]
    assert user.minutes() == [1.5, 1.5, 2.5]


def test_an_instance_has_the_codec_of_its_topic():
    user = Recurrer(compression_type="zstd")
    user.schedule((b"a" * 2_000, cron()), codec=1)

    user.at(1)

    assert user.values() == [b"a" * 2_000] * 2


def test_daylight_saving_is_followed():
    user = Recurrer()
    zone = "Europe/Berlin"
    # The night of 28 March 2027 has no time from 2:00 to 3:00.
    start = datetime.fromisoformat("2027-03-27T00:00:00+01:00")
    user.hand.now_wall_ms = int(start.timestamp() * 1000)
    user.schedule((b"fixed", cron("30 2 * * *", tz=zone)))
    user.schedule((b"hourly", cron("0 2-3 * * *", tz=zone)))

    for _ in range(60):
        user.pass_time(3_600_000 // 2)
        user.pass_time(3_600_000 // 2)

    come = [
        (record.value, datetime.fromtimestamp(record.timestamp / 1000, start.tzinfo).isoformat())
        for record in user.records()
    ]
    assert come == [
        (b"hourly", "2027-03-27T02:00:00+01:00"),
        (b"fixed", "2027-03-27T02:30:00+01:00"),
        (b"hourly", "2027-03-27T03:00:00+01:00"),
        (b"fixed", "2027-03-28T02:00:00+01:00"),
        (b"hourly", "2027-03-28T02:00:00+01:00"),
        (b"hourly", "2027-03-29T01:00:00+01:00"),
        (b"fixed", "2027-03-29T01:30:00+01:00"),
        (b"hourly", "2027-03-29T02:00:00+01:00"),
    ]


# --- When it ends.


@ENDS
@pytest.mark.parametrize("terms", [{"count": 2}, {"end": FIRST_MS + MINUTE_MS}])
def test_it_ends(terms: dict[str, int], ends: str):
    user = Recurrer()
    user.schedule((b"a", cron(**terms)))
    user.at(1)

    user.end(ends)
    user.at(1.5)
    is_gone = not user.state().recurring
    user.end(ends)
    user.at(5)

    assert user.minutes() == [0, 1]
    assert is_gone
    assert user.state().count == 0


def test_an_end_may_be_written_as_a_time():
    user = Recurrer()
    end = datetime.fromtimestamp(FIRST_MS / 1000).astimezone().isoformat()
    user.schedule((b"a", cron(end=end)))

    assert user.seen_at(0, 1) == [[0], [0]]


STEPS = 40


def live(user: Recurrer, steps: range) -> None:
    """Take turns that let four minutes pass; flushes end one turn after they have begun."""
    for step in steps:
        minute, part = divmod(step, STEPS // 4)
        if part == 0:
            user.turn(FIRST_MS + minute * MINUTE_MS - user.hand.now_wall_ms)
        elif part == 6:
            # Time for a checkpoint.
            user.turn(1_000)
        else:
            user.turn()


@pytest.mark.parametrize("terms", [{"count": 3}, {"end": FIRST_MS + 2 * MINUTE_MS}])
@pytest.mark.parametrize("ends", ["crash", "kill"])
def test_wherever_the_broker_ends_each_instance_comes_once(ends: str, terms: dict[str, int]):
    found: list[list[float]] = []
    for step in range(STEPS):
        user = Recurrer()
        user.schedule((b"a", cron(misfire="all", **terms)))
        live(user, range(step))

        user.end(ends)
        live(user, range(step, STEPS))
        user.end("crash")
        user.at(10)

        found.append(user.minutes())
        assert user.state().count == 0, f"step {step}"
    assert found == [[0, 1, 2]] * STEPS


@pytest.mark.parametrize("log", [P, S])
@pytest.mark.parametrize("count", [1, 4])
def test_what_the_disk_refuses_at_any_moment_comes_once(count: int, log: str):
    found: list[list[float]] = []
    for step in range(STEPS):
        user = Recurrer()
        user.schedule((b"a", cron(misfire="all", count=3)))
        live(user, range(step))

        user.hand.disk.fail_writes(count=count, path_part=log)
        live(user, range(step, STEPS))
        for _ in range(12):
            user.pass_time(1_000)
        user.end("crash")
        user.at(10)

        found.append(user.minutes())
        assert user.state().count == 0, f"step {step}"
    assert found == [[0, 1, 2]] * STEPS


# --- What was missed.


@pytest.mark.parametrize("is_stepped", [False, True])
@pytest.mark.parametrize(
    ("misfire", "come"),
    [
        ("once", [0, 3, 4]),
        ("skip", [0, 4]),
        ("all", [0, 1, 2, 3, 4]),
    ],
)
def test_what_was_missed_comes_as_the_record_says(
    misfire: str, come: list[float], is_stepped: bool
):
    user = Recurrer()
    user.schedule((b"a", cron(misfire=misfire)))
    user.at(0.2)

    if is_stepped:
        user.hand.now_wall_ms += 3 * MINUTE_MS
        user.pass_time(1)
    else:
        user.hand.disk.crash()
        user.hand.now_wall_ms += 3 * MINUTE_MS
        user.hand.start()
        user.client = user.hand.connect()
        user.hand.settle()
    seen = user.seen_at(3.9, 4)

    assert seen == [come[:-1], come]


def test_the_latest_of_what_was_missed_comes_in_its_order():
    user = Recurrer()
    user.schedule((b"a", cron()))
    user.schedule((b"b", after(FIRST_MS + MINUTE_MS + 5 - START_WALL_MS)))

    user.hand.now_wall_ms = FIRST_MS + 2 * MINUTE_MS + 10
    user.pass_time(1)

    assert user.values() == [b"b", b"a"]


def test_a_clock_that_is_set_back_holds_what_comes_next():
    user = Recurrer()
    user.schedule((b"a", cron()))
    user.at(5)
    user.hand.now_wall_ms -= 3 * MINUTE_MS

    seen = user.seen_at(3, 5)
    user.end("crash")
    seen += user.seen_at(5.9, 6)

    come = [0, 1, 2, 3, 4, 5]
    assert seen == [come, come, come, [*come, 6]]


def test_many_that_were_missed_come_in_portions_while_others_are_served():
    user = Recurrer()
    user.schedule((b"a", cron(misfire="all")))
    user.at(0)
    missed = 7_200

    user.hand.now_wall_ms += missed * MINUTE_MS
    partition = user.hand.broker.topics[ORDERS].partitions[0]
    ends: list[int] = []
    for turn in range(5_000):
        user.turn()
        ends.append(partition.log.log_end_offset)
        assert len(user.state()._releases) <= limits.INSTANCES_UNDER_WAY_MAX
        if turn == 10:
            others = ((b"direct", []), (b"delayed", after(1)))
            for value, headers in others:
                user.send_produce(a_batch(value, headers=(headers,)))
        if turn == 20:
            user.hand.turn(after_ms=2)
        if turn == 30:
            has_come = b"delayed" in user.hand.disk.content(f"{P}00000000000000000000.log")
        if ends[-1] == missed + 3:
            break

    assert ends[-1] == missed + 3
    assert has_come
    # Two of them took turns of their own.
    assert max(after - before for before, after in itertools.pairwise(ends)) <= 62
    assert len(user.answers()) == 2


# --- Cancelled, replaced.


@ENDS
@pytest.mark.parametrize("minutes", [-0.1, 0, 0.4, 1])
def test_a_cancelled_one_comes_no_more(minutes: float, ends: str):
    user = Recurrer()
    user.schedule((b"a", cron(id="one")))
    user.at(minutes)
    before = user.minutes()

    user.schedule((b"", cancel("one")))
    is_gone = not user.state().recurring
    user.end(ends)
    user.at(5)

    assert is_gone
    assert user.minutes() == before
    assert user.state().count == 0


@ENDS
def test_a_record_with_its_id_replaces_it(ends: str):
    user = Recurrer()
    user.schedule((b"a", cron(id="one")))
    user.at(0)
    user.schedule((b"b", cron("*/2 * * * *", id="one")))
    user.end(ends)
    user.at(1)
    user.schedule((b"c", after(30_000, "one")))
    user.end(ends)
    user.at(5)

    assert user.values() == [b"a", b"b", b"c"]


def test_it_replaces_what_waits_with_its_id():
    user = Recurrer()
    user.schedule((b"a", after(30_000, "one")))
    user.schedule((b"b", cron(id="one")))

    user.at(1)

    assert user.values() == [b"b", b"b"]


@pytest.mark.parametrize("ends", ["crash", "kill"])
def test_whenever_it_is_cancelled_it_comes_no_more_once_that_was_answered(ends: str):
    for step in range(STEPS):
        user = Recurrer()
        user.schedule((b"a", cron(id="one", misfire="all")))
        live(user, range(step))
        user.send_produce(a_batch(b"", headers=(cancel("one"),)))
        while not (answers := user.answers()):
            user.turn()
        end = user.hand.broker.topics[ORDERS].partitions[0].log.log_end_offset

        user.end(ends)
        user.at(10)

        assert produced(answers[0])[0].error_code == errors.NONE
        assert len(user.records()) <= end
        assert user.minutes() == [0, 1, 2, 3][: len(user.records())]
        assert user.state().count == 0


def test_one_whose_cancel_was_lost_goes_on():
    user = Recurrer()
    user.schedule((b"a", cron(id="one")))
    user.at(0)
    user.hand.disk.fail_writes(count=1, path_part=S)

    answer = user.send((b"", cancel("one")))
    user.at(2)
    user.schedule((b"", cancel("one")))
    user.at(4)

    assert answer.error_code == errors.KAFKA_STORAGE_ERROR
    assert user.minutes() == [0, 1, 2]


# --- Checkpoints, and the start of the partition.


@pytest.mark.parametrize("is_noted", [False, True])
def test_what_was_deleted_of_it_does_not_come_again(is_noted: bool):
    user = Recurrer()
    user.schedule((b"a", cron(count=4)), (b"b", cron(misfire="all", count=4)))
    user.at(1)
    if is_noted:
        user.pass_time(2_000)

    user.delete_records()
    user.end("crash")
    user.at(10)

    assert user.list_offsets(-2).offset == 4
    assert [record.value for record in records_in(user.fetch(4))] == [b"a", b"b"] * 2


@ENDS
def test_a_checkpoint_says_how_often_it_came(ends: str):
    user = Recurrer()
    user.schedule((b"a", cron(count=5)), (b"b", after(70_000)))
    for _ in range(150):
        user.pass_time(1_000)
    noted = user.state().checkpoint(1_000, 0)
    assert noted is not None
    facts = [(each.last_ms, each.count) for each in noted.recurrences]
    come = user.minutes(b"a")
    user.end(ends)
    again = user.state().checkpoint(1_000, 0)
    assert again is not None

    user.at(20)

    assert facts == [(FIRST_MS + (len(come) - 1) * MINUTE_MS, len(come))]
    assert [(each.last_ms, each.count) for each in again.recurrences] == facts
    assert noted.exceptions == []
    assert len(user.minutes(b"a")) == len(come) + 1 or user.minutes(b"a") == [0, 1, 2, 3, 4]


@ENDS
@pytest.mark.parametrize("count", [-1, 20])
def test_what_recurs_does_not_keep_what_was_parked_after_it(ends: str, count: int):
    user = Recurrer(segment_bytes=str(1 << 20))
    terms = {} if count < 0 else {"count": count}
    user.schedule(
        (b"a", [("other", b"x"), *cron(id="one", **terms)]), (b"b", cron(misfire="all")), codec=1
    )
    companion = user.hand.broker.topics[ORDERS].partitions[0].leadership.logs[COMPANION].log
    sizes: list[int] = []
    for minute in range(30):
        for _ in range(2):
            user.schedule((b"." * 400_000, after(1_000)))
        user.at(minute + 0.5)
        sizes.append(companion.size_bytes)
        if minute % 7 == 6:
            user.end(ends)
            companion = user.hand.broker.topics[ORDERS].partitions[0].leadership.logs[COMPANION].log

    first = user.state().recurring
    user.schedule((b"", cancel("one")))
    user.at(35)

    assert max(sizes) < 12_000_000 < 30 * 800_000
    assert min(first) > 40
    assert user.minutes(b"a") == list(range(30 if count < 0 else count))
    assert user.minutes(b"b") == list(range(36))


def test_one_that_is_parked_anew_is_as_it_was():
    user = Recurrer(segment_bytes=str(1 << 20))
    user.schedule((b"a", [("other", b"x"), *cron(id="one", tz="Europe/Berlin", count=9)]))
    (before,) = user.state().recurring.values()
    for minute in range(4):
        user.schedule((b"." * 600_000, after(1_000)))
        user.at(minute + 0.5)
    (body,) = user.state().recurring.values()
    user.at(20)

    assert body.s_offset > before.s_offset
    assert (body.terms.cron, body.terms.zone) == ("* * * * *", "Europe/Berlin")
    assert body.terms.count + 4 >= 9 > body.terms.count
    assert user.minutes(b"a") == list(range(9))
    assert all(
        record.headers[:2] == [("other", b"x"), ("x-sched-instance-of", b"one")]
        for record in user.records()
        if record.value == b"a"
    )


@pytest.mark.parametrize("count", [1, 2])
def test_one_whose_new_place_was_lost_stays_where_it_was(count: int):
    user = Recurrer(segment_bytes=str(1 << 20))
    user.schedule((b"a", cron(id="one")))
    for minute in range(8):
        user.schedule((b"." * 600_000, after(1_000)))
        user.at(minute + 0.01)
        user.hand.disk.fail_writes(count=count, path_part=S)
        user.at(minute + 0.5)
        user.hand.disk.heal()
        user.at(minute + 0.9)

    user.end("crash")
    user.at(10)

    assert user.minutes(b"a") == list(range(11))


def test_more_than_a_checkpoint_can_name_are_refused():
    user = Recurrer()
    user.schedule((b"a", cron(id="one")), (b"b", cron()))
    recurring = user.state().recurring
    body = next(iter(recurring.values()))
    for number in range(limits.RECURRING_RECORDS_MAX - 2):
        recurring[1_000 + number] = body

    refused = user.send((b"", []), (b"c", cron()))
    user.schedule((b"", cancel("one")))
    user.schedule((b"c", cron()))

    assert refused.error_code == errors.INVALID_RECORD
    assert [each.batch_index for each in refused.record_errors] == [1]
    assert "10000 recurring records" in str(refused.record_errors[0].batch_index_error_message)


# --- What is refused.


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (cron("* * * *"), "it takes 5"),
        (cron("61 * * * *"), "minute '61'"),
        (cron("0 0 30 2 *"), "never comes"),
        (cron(""), "x-sched-cron is empty"),
        ([("x-sched-cron", None)], "x-sched-cron is empty"),
        (cron("\N{DIGIT ONE} * * * \u0661"), "not of ASCII"),
        (cron("1," * 600), "1200 bytes"),
        ([*cron(), *cron()], "x-sched-cron stands twice"),
        (cron(tz="Europe/Nowhere"), "Europe/Nowhere"),
        (cron(tz="x" * 101), "101 bytes"),
        (cron(tz=""), "x-sched-tz is empty"),
        (cron(end=START_WALL_MS), "x-sched-end is over"),
        (cron("0 0 1 1 *", end=FIRST_MS), "it does not come before"),
        (cron(end="tomorrow"), "x-sched-end=tomorrow"),
        (cron(count=0), "x-sched-count=0"),
        (cron(count=-1), "x-sched-count=-1"),
        (cron(count="many"), "x-sched-count=many"),
        (cron(count=10**10), "x-sched-count has 11 bytes"),
        (cron(misfire="twice"), "x-sched-misfire=twice"),
        (cron(misfire=""), "x-sched-misfire is empty"),
        ([("x-sched-tz", b"UTC")], "x-sched-tz needs x-sched-cron"),
        ([("x-sched-end", b"5"), *after(5)], "x-sched-end needs x-sched-cron"),
        ([("x-sched-count", b"5")], "x-sched-count needs x-sched-cron"),
        ([("x-sched-misfire", b"all")], "x-sched-misfire needs x-sched-cron"),
        ([*cron(), *after(5)], "x-sched-cron and x-deliver-after both say when"),
        ([*cron(), *at(START_WALL_MS + 5)], "x-sched-cron and x-deliver-at both say when"),
        ([*cron(), *cancel("a")], "never due"),
    ],
)
def test_a_batch_with_a_bad_header_is_refused_whole(bad: Headers, sentence: str):
    user = Recurrer()

    answer = user.send((b"a", cron()), (b"b", bad), (b"c", []), (b"d", bad), codec=1)
    user.at(5)

    assert answer.error_code == errors.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert all(sentence in str(each.batch_index_error_message) for each in answer.record_errors)
    assert user.values() == []


def test_one_that_comes_too_late_is_refused():
    user = Recurrer(delay_max_ms=str(3_600_000))

    answer = user.send((b"a", cron()), (b"b", cron("0 0 1 1 *")))

    assert answer.error_code == errors.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == [1]


def test_a_batch_that_would_pass_for_an_instance_is_refused():
    user = Recurrer()
    user.schedule((b"a", cron()))
    user.at(0)
    window = user.fetch(0).records
    assert isinstance(window, Window)

    answer = user.produce(window.to_bytes())

    assert answer.error_code == errors.INVALID_RECORD
    assert "producer id -1" in str(answer.error_message)


def test_until_what_waits_is_read_it_is_refused_and_taken_when_it_is_sent_again():
    user = Recurrer()
    user.schedule((b"a", cron()))
    user.hand.crash()
    user.client = user.hand.connect()

    user.send_produce(a_batch(b"b", headers=(cron(),), producer_id=7))
    (refused,) = user.answers()
    user.hand.settle()
    again = user.send((b"b", cron()), producer_id=7)

    assert produced(refused)[0].error_code == errors.KAFKA_STORAGE_ERROR
    assert again.error_code == errors.NONE


@pytest.mark.parametrize("is_released", [False, True])
def test_one_that_is_sent_again_recurs_once(is_released: bool):
    user = Recurrer()
    user.schedule((b"a", cron()), producer_id=7)
    user.at(0 if is_released else -0.1)
    user.end("crash")

    again = user.send((b"a", cron()), producer_id=7)
    user.at(1)

    assert (again.error_code, again.base_offset) == (errors.NONE, -1)
    assert user.minutes() == [0, 1]


def test_many_expressions_are_read_over_many_turns():
    user = Recurrer()
    count = 2_000
    records = [(b"", cron(f"{each % 60} {each % 24} * * *")) for each in range(count)]
    batch = a_batch(
        *[value for value, _ in records], headers=tuple(headers for _, headers in records)
    )

    user.send_produce(batch)
    turns = 1
    while not (answers := user.answers()):
        user.turn()
        turns += 1

    assert produced(answers[0])[0].error_code == errors.NONE
    assert turns > 20
    assert len(user.state().recurring) == count


# Damage.


def test_a_definition_that_the_disk_has_damaged_holds_nothing_else_back(
    caplog: pytest.LogCaptureFixture,
):
    user = Recurrer()
    user.schedule((b"damaged", cron()))
    user.schedule((b"b", cron()))
    user.at(0)
    path = f"{S}00000000000000000000.log"
    position = user.hand.disk.content(path).index(b"damaged")
    user.hand.disk.flip_bit(path, position)
    user.hand.broker.scheduling.opened.clear()
    user.at(1)
    without = user.minutes(b"damaged")
    others = user.minutes(b"b")
    user.hand.stop()
    user.hand.disk.flip_bit(path, position)
    user.hand.start()
    user.client = user.hand.connect()
    user.hand.settle()

    user.at(2)

    assert (without, others) == ([0], [0, 1])
    assert "a batch that is due is damaged" in caplog.text
    assert user.minutes(b"damaged") == [0, 1, 2] or user.minutes(b"damaged") == [0, 2]
    assert user.minutes(b"b") == [0, 1, 2]


def test_the_broker_wakes_up_for_each_instance():
    user = Recurrer()
    user.schedule((b"a", cron(count=3)))
    user.hand.settle()

    come: list[int] = []
    while user.hand.now_wall_ms < FIRST_MS + 5 * MINUTE_MS:
        due_ms = user.hand.broker.next_due_ms()
        assert due_ms is not None
        user.pass_time(due_ms - user.hand.now_ms)
        if user.list_offsets(-1).offset > len(come):
            come.append((user.hand.now_wall_ms - FIRST_MS) // MINUTE_MS)

    assert come == [0, 1, 2]


@ENDS
def test_what_retention_has_deleted_of_it_does_not_come_again(ends: str):
    settings = {"log.retention.check.interval.ms": "1000"}
    user = Recurrer(BrokerByHand(settings), retention_ms="10000", segment_ms="5000")
    user.schedule((b"a", cron(misfire="all")))
    come: list[float] = []
    starts: list[int] = []
    for minute in range(8):
        user.at(minute)
        start = user.list_offsets(-2).offset
        starts.append(start)
        come += [(each.timestamp - FIRST_MS) / MINUTE_MS for each in user.records_from(start)]
        user.live_on(30_000)
        if minute % 2:
            user.end(ends)

    assert starts[-1] > 5
    assert come == list(range(8))
