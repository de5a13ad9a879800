"""Records whose headers say when they are due, and by which id they are cancelled or replaced."""

from __future__ import annotations

import random

import pytest
from tests.support.broker.admin_user import SET, TOPIC, Operator
from tests.support.broker.broker_user import ORDERS, User, a_batch, produced, records_in

from tarry.base import errors
from tarry.base.doors import received
from tarry.base.limits import SCHEDULE_PLACES_MAX
from tarry.protocol import api_keys
from tarry.protocol.messages.produce import PartitionProduceResponse
from tarry.records.batch import LENGTH, LENGTH_OVERHEAD
from tarry.records.builder import Headers
from tarry.records.record import Record
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.wire.compression import NAMES

LATER_MS = 3_000
CODECS = pytest.mark.parametrize("codec", range(len(NAMES)), ids=NAMES)


def after(ms: int, schedule_id: str = "") -> Headers:
    headers: Headers = [("x-deliver-after", b"%d" % ms)]
    return [*headers, ("x-sched-id", schedule_id.encode())] if schedule_id else headers


def at(text: str | int) -> Headers:
    return [("x-deliver-at", str(text).encode())]


def cancel(schedule_id: str) -> Headers:
    return [("x-sched-id", schedule_id.encode()), ("x-sched-cancel", b"1")]


class Scheduler(User):
    """A user of the topic `orders`, whose records' headers say when they are due."""

    def __init__(self, hand: BrokerByHand | None = None, **topic: str) -> None:
        super().__init__(hand or BrokerByHand())
        self.create(ORDERS, **{"delay_enable": "true", "delay_source": "header", **topic})

    def send(
        self, *records: tuple[bytes, Headers], codec: int = 0, **terms: int
    ) -> PartitionProduceResponse:
        values = [value for value, _ in records]
        headers = tuple(each for _, each in records)
        answer = self.produce(a_batch(*values, headers=headers, codec=codec, **terms))
        self.hand.settle()
        return answer

    def schedule(self, *records: tuple[bytes, Headers], codec: int = 0, **terms: int) -> int:
        answer = self.send(*records, codec=codec, **terms)
        assert answer.error_code == errors.NONE, answer.error_message
        return answer.base_offset

    def pass_time(self, ms: int) -> None:
        self.hand.turn(after_ms=ms)
        self.hand.settle()

    def live_on(self, ms: int) -> None:
        """Let time pass without a gap in which the broker would seem to have stood still."""
        for _ in range(0, ms, 500):
            self.pass_time(500)

    def records(self) -> list[Record]:
        return self.records_from(0)

    def records_from(self, offset: int) -> list[Record]:
        found: list[Record] = []
        while batch := records_in(self.fetch(offset + len(found))):
            found += [each for each in batch if each.offset >= offset + len(found)]
        return found

    def values(self) -> list[bytes | None]:
        return [record.value for record in self.records()]

    def crash(self) -> None:
        self.hand.crash()
        self.client = self.hand.connect()
        self.hand.settle()

    def seen_after(self, *steps_ms: int) -> list[list[bytes | None]]:
        seen = []
        for ms in steps_ms:
            self.pass_time(ms)
            seen.append(self.values())
        return seen


# --- When a record is due.


@CODECS
@pytest.mark.parametrize(
    "headers",
    [
        after(LATER_MS),
        [("x-deliver-after", b"3s")],
        at(START_WALL_MS + LATER_MS),
    ],
)
def test_a_batch_of_one_due_time_comes_as_it_was_sent(headers: Headers, codec: int):
    user = Scheduler()

    offset = user.schedule((b"a", headers), (b"b", headers), codec=codec)
    seen = user.seen_after(LATER_MS - 1, 1, 60_000)

    assert offset == -1
    assert seen == [[], [b"a", b"b"], [b"a", b"b"]]
    assert [record.headers for record in user.records()] == [headers, headers]


@pytest.mark.parametrize("schedule_id", ["", "one"])
def test_what_was_due_when_it_arrived_does_not_wait_for_a_clock_that_was_ahead(schedule_id: str):
    user = Scheduler()
    named: Headers = [("x-sched-id", schedule_id.encode())] if schedule_id else []
    batch = a_batch(
        *(b"first", b"second", b"later"),
        headers=(
            [*at(START_WALL_MS + 1_000), *named],
            at(START_WALL_MS + 2_000),
            after(86_400_000),
        ),
    )
    user.hand.now_wall_ms += 3_600_000
    user.client.send(api_keys.PRODUCE, 11, user.produce_request(batch))
    user.hand.now_wall_ms -= 3_590_000

    user.hand.settle()
    user.answers()

    dues = [dict(record.headers)["x-sched-due"] for record in user.records()]
    assert user.values() == [b"first", b"second"]
    # Neighbours without an id are released together.
    first_ms = START_WALL_MS + (1_000 if schedule_id else 2_000)
    assert dues == [b"%d" % first_ms, b"%d" % (START_WALL_MS + 2_000)]


def test_a_time_of_the_calendar_is_understood():
    user = Scheduler()
    user.hand.now_wall_ms = 1_800_000_000_000

    user.schedule((b"a", at("2027-01-15T09:00:01+01:00")))
    seen = user.seen_after(999, 1)

    assert seen == [[], [b"a"]]


@CODECS
@pytest.mark.parametrize("ends", ["", "crash"])
def test_each_record_of_a_batch_comes_when_it_is_due(ends: str, codec: int):
    user = Scheduler()

    offset = user.schedule(
        (b"c", after(300)),
        (b"a", after(100)),
        (b"b1", after(200)),
        (b"b2", after(200)),
        (b"now", []),
        codec=codec,
    )
    if ends:
        user.crash()
    seen = user.seen_after(0, 99, 1, 100, 100, 60_000)

    assert offset == -1
    whole = [b"now", b"a", b"b1", b"b2", b"c"]
    assert seen == [whole[:count] for count in (1, 1, 2, 4, 5, 5)]


def test_a_record_of_an_opened_batch_says_when_it_was_due_and_keeps_all_else():
    user = Scheduler()
    first: Headers = [("other", None), *after(100), ("other", b"x")]

    user.schedule((b"a", first), (b"b", after(200)), codec=4)
    user.pass_time(1_000)

    due = b"%d" % (START_WALL_MS + 100)
    record = user.records()[0]
    assert record.headers == [*first, ("x-sched-due", due)]
    assert (record.key, record.value, record.timestamp) == (None, b"a", START_WALL_MS)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_kind_of_acknowledgement_parks(acks: int):
    user = Scheduler()
    batch = a_batch(b"a", b"b", headers=(after(100), after(200)))

    user.send_produce(batch, acks=acks)
    user.hand.settle()
    answers = user.answers()
    user.pass_time(200)

    assert [produced(each)[0].base_offset for each in answers] == ([] if acks == 0 else [-1])
    assert user.values() == [b"a", b"b"]


@CODECS
@pytest.mark.parametrize("is_released", [False, True])
def test_an_opened_batch_that_is_sent_again_is_parked_once(is_released: bool, codec: int):
    user = Scheduler()
    records = ((b"a", after(100)), (b"b", after(200)))
    user.schedule(*records, codec=codec, producer_id=7)
    user.pass_time(500 if is_released else 100)
    user.crash()

    again = user.send(*records, codec=codec, producer_id=7)
    more = user.send((b"c", []), producer_id=7, sequence=2)
    user.pass_time(60_000)

    assert (again.error_code, again.base_offset, more.error_code) == (0, -1, 0)
    assert sorted(map(str, user.values())) == sorted(map(str, [b"a", b"b", b"c"]))


def test_records_without_a_time_go_into_the_partition_at_once():
    user = Scheduler()

    offsets = [user.schedule((b"a", [])), user.schedule((b"b", at(5)), (b"c", after(0)))]

    assert offsets == [0, 1]
    assert user.values() == [b"a", b"b", b"c"]


def test_a_released_record_has_the_codec_of_its_topic():
    user = Scheduler(compression_type="zstd")
    value = b"a" * 2_000

    user.schedule((value, after(100)), (value, after(200)), codec=1)
    user.pass_time(500)

    assert user.values() == [value, value]


# --- What is refused.


@CODECS
@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (at("tomorrow"), "x-deliver-at=tomorrow"),
        (at(""), "x-deliver-at is empty"),
        ([*at(START_WALL_MS), *after(5)], "both say when"),
        ([*after(5), *after(6)], "x-deliver-after stands twice"),
        ([("x-deliver-after", b"5 moons")], "5 moons"),
        (after(5, "i" * 1_025), "1025 bytes"),
        ([("x-sched-id", b"")], "x-sched-id is empty"),
        ([("x-sched-cancel", b"1")], "needs x-sched-id"),
        ([("x-sched-id", b"a"), ("x-sched-cancel", b"yes")], "must be 1"),
        ([*after(5, "a"), ("x-sched-cancel", b"1")], "never due"),
    ],
)
def test_a_batch_with_a_bad_header_is_refused_whole(bad: Headers, sentence: str, codec: int):
    user = Scheduler()

    answer = user.send((b"a", after(100)), (b"b", bad), (b"c", []), (b"d", bad), codec=codec)
    user.pass_time(60_000)

    assert answer.error_code == errors.INVALID_RECORD
    assert [each.batch_index for each in answer.record_errors] == [1, 3]
    assert all(sentence in str(each.batch_index_error_message) for each in answer.record_errors)
    assert user.values() == []


def test_a_record_that_is_due_too_late_is_refused_and_named():
    user = Scheduler(delay_max_ms="5000")

    answer = user.send((b"a", after(5_000)), (b"b", after(5_001)))

    assert answer.error_code == errors.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == [1]
    assert user.schedule((b"a", after(5_000))) == -1


def test_a_batch_that_is_too_large_once_opened_is_refused():
    value = b"a" * 1_500
    opened = a_batch(value, value, headers=(after(100), after(200)))

    codes = []
    for size_max in (len(opened) - 1, len(opened)):
        user = Scheduler(max_message_bytes=str(size_max))
        answer = user.send((value, after(100)), (value, after(200)), codec=1)
        codes.append(answer.error_code)

    assert codes == [errors.MESSAGE_TOO_LARGE, errors.NONE]


def test_a_batch_of_too_many_due_times_is_refused():
    user = Scheduler()
    records = [(b"", after(LATER_MS + number)) for number in range(SCHEDULE_PLACES_MAX + 1)]

    refused = user.send(*records)
    taken = user.send(*records[1:])

    assert refused.error_code == errors.MESSAGE_TOO_LARGE
    assert "send fewer at once" in str(refused.error_message)
    assert taken.error_code == errors.NONE


@pytest.mark.parametrize("delay_min_ms", [0, 60_000])
def test_many_due_times_that_delay_nothing_are_no_reason_to_refuse(delay_min_ms: int):
    user = Scheduler(delay_min_ms=str(delay_min_ms))
    latest_ms = START_WALL_MS + max(delay_min_ms - 1, 0)
    times = [latest_ms - number for number in range(SCHEDULE_PLACES_MAX + 1)]

    offset = user.schedule(*[(b"", at(time)) for time in times])

    assert offset == 0


def test_a_damaged_record_is_told_like_in_every_topic():
    user = Scheduler()
    batch = a_batch(b"a", headers=(after(100),))

    answer = user.produce(batch[:-3] + b"\xff" + batch[-2:])

    assert answer.error_code == errors.CORRUPT_MESSAGE


# --- Ids.


@pytest.mark.parametrize("ends", ["", "crash"])
def test_a_cancelled_record_does_not_come(ends: str):
    user = Scheduler()
    user.schedule((b"a", after(LATER_MS, "one")))
    user.schedule((b"b", after(LATER_MS, "two")))

    offset = user.schedule((b"cancel", cancel("one")))
    if ends:
        user.crash()
    user.pass_time(60_000)

    assert offset == -1
    assert user.values() == [b"b"]


def test_a_record_of_an_opened_batch_is_cancelled_alone_also_over_a_crash():
    user = Scheduler()
    user.schedule((b"a", after(100, "a")), (b"b", after(100, "b")), (b"c", after(100)), codec=2)

    user.crash()
    user.schedule((b"", cancel("b")))
    user.crash()
    user.pass_time(100)

    assert user.values() == [b"a", b"c"]


@pytest.mark.parametrize("ends", ["", "crash"])
def test_a_record_replaces_the_one_with_its_id(ends: str):
    user = Scheduler()
    user.schedule((b"a", after(100, "one")))
    user.schedule((b"b", after(300, "one")))
    if ends:
        user.crash()

    seen = user.seen_after(100, 200)

    assert seen == [[], [b"b"]]


def test_a_record_that_is_due_at_once_replaces_too():
    user = Scheduler()
    user.schedule((b"a", after(100, "one")))
    user.schedule((b"b", [("x-sched-id", b"one")]))

    seen = user.seen_after(0, 100)

    assert seen == [[b"b"], [b"b"]]


@CODECS
def test_of_the_same_id_twice_in_a_batch_the_later_one_wins(codec: int):
    user = Scheduler()

    user.schedule(
        (b"a", after(100, "one")),
        (b"", cancel("two")),
        (b"b", after(200, "one")),
        (b"c", after(200, "two")),
        (b"d", after(200, "three")),
        (b"", cancel("three")),
        codec=codec,
    )
    user.crash()
    seen = user.seen_after(100, 100)

    assert seen == [[], [b"b", b"c"]]


def test_what_was_released_is_not_cancelled_and_an_unknown_id_does_no_harm():
    user = Scheduler()
    user.schedule((b"a", after(100, "one")))
    user.pass_time(100)

    user.schedule((b"", cancel("one")), (b"", cancel("nobody")))
    user.crash()
    user.schedule((b"b", after(100, "one")))
    user.pass_time(100)

    assert user.values() == [b"a", b"b"]


@pytest.mark.parametrize("acks", [1, -1])
def test_a_cancel_that_comes_too_late_is_answered_when_the_record_can_be_read(acks: int):
    user = Scheduler()
    user.schedule((b"a", after(100, "one")))
    user.hand.turn(after_ms=100)

    user.send_produce(a_batch(b"", headers=(cancel("one"),)), acks=acks)
    while not (answers := user.answers()):
        user.hand.turn(*user.hand.disk.complete_flushes())
    end = user.hand.broker.topics[ORDERS].partitions[0].high_watermark

    assert produced(answers[0])[0].error_code == errors.NONE
    assert end == 1


def test_a_cancel_that_is_sent_again_does_not_cancel_what_came_after_it():
    user = Scheduler()
    user.schedule((b"a", after(100, "one")), producer_id=7)
    user.schedule((b"", cancel("one")), producer_id=7, sequence=1)
    user.schedule((b"b", after(100, "one")), producer_id=7, sequence=2)

    again = user.send((b"", cancel("one")), producer_id=7, sequence=1)
    user.pass_time(100)

    assert (again.error_code, again.base_offset) == (errors.NONE, -1)
    assert user.values() == [b"b"]


def test_a_replacement_that_is_sent_again_stays():
    user = Scheduler()
    user.schedule((b"a", after(100, "one")), producer_id=7)
    user.schedule((b"b", after(200, "one")), producer_id=7, sequence=1)

    user.send((b"b", after(200, "one")), producer_id=7, sequence=1)
    user.pass_time(1_000)

    assert user.values() == [b"b"]


def test_a_cancel_that_the_disk_did_not_take_leaves_the_record_waiting():
    user = Scheduler()
    user.schedule((b"a", after(LATER_MS, "one")))
    user.hand.disk.fail_writes(count=1, path_part="orders-0.schedule/")

    answer = user.send((b"", cancel("one")))
    user.pass_time(LATER_MS)

    assert answer.error_code == errors.KAFKA_STORAGE_ERROR
    assert user.values() == [b"a"]


def a_cancel_in_the_turn(user: Scheduler, *, is_flush_over: bool, after_ms: int) -> None:
    """Have the disk refuse a cancel, in a turn in which also a flush ends or a record is due."""
    user.hand.disk.fail_writes(count=1, path_part="orders-0.schedule/")
    request = user.produce_request(a_batch(b"", headers=(cancel("one"),)))
    frame = user.client.encode(api_keys.PRODUCE, 11, request)
    events = [received(user.client.connection_id, frame)]
    if is_flush_over:
        events += user.hand.disk.complete_flushes()
    user.hand.turn(*events, after_ms=after_ms)
    user.hand.settle()


def test_a_record_whose_cancel_was_lost_comes_though_it_was_committed_in_that_turn():
    user = Scheduler()
    user.send_produce(a_batch(b"a", headers=(after(LATER_MS, "one"),)))
    a_cancel_in_the_turn(user, is_flush_over=True, after_ms=1)

    answers = user.answers()
    user.pass_time(LATER_MS)

    codes = [produced(each)[0].error_code for each in answers]
    assert sorted(codes) == [errors.NONE, errors.KAFKA_STORAGE_ERROR]
    assert user.values() == [b"a"]


def test_a_record_whose_cancel_was_lost_comes_though_it_was_due_in_that_turn():
    user = Scheduler()
    user.schedule((b"a", after(LATER_MS, "one")))
    a_cancel_in_the_turn(user, is_flush_over=False, after_ms=LATER_MS)

    (answer,) = user.answers()
    user.pass_time(1)

    assert produced(answer)[0].error_code == errors.KAFKA_STORAGE_ERROR
    assert user.values() == [b"a"]


@pytest.mark.parametrize("left", [0, 30])
@pytest.mark.parametrize("is_sent_again", [False, True])
@pytest.mark.parametrize("headers", [cancel("one"), after(LATER_MS, "one")])
def test_a_note_whose_batch_was_torn_off_takes_nothing_back(
    headers: Headers, is_sent_again: bool, left: int
):
    user = Scheduler()
    user.schedule((b"a", after(LATER_MS, "one")))
    disk, path = user.hand.disk, "orders-0.schedule/00000000000000000000.log"
    start = len(disk.content(path))
    user.schedule((b"b", headers), producer_id=7)
    length = disk.content(path)[start + LENGTH : start + LENGTH + 4]
    note_end = start + int.from_bytes(length, "big") + LENGTH_OVERHEAD

    disk.kill()
    disk.open(path).truncate(note_end + left)
    user.hand.start()
    user.client = user.hand.connect()
    user.hand.settle()
    if is_sent_again:
        user.schedule((b"b", headers), producer_id=7)
    user.pass_time(LATER_MS)

    replaced = [b"b"] if headers == after(LATER_MS, "one") else []
    assert user.values() == (replaced if is_sent_again else [b"a"])


def test_ids_come_again_once_what_waits_is_read():
    user = Scheduler()
    user.schedule((b"a", after(LATER_MS, "one")))
    user.hand.crash()
    user.client = user.hand.connect()

    user.send_produce(a_batch(b"", headers=(cancel("one"),), producer_id=7))
    user.send_produce(a_batch(b"", headers=(cancel("one"),), producer_id=7, sequence=1))
    refused = [produced(each)[0].error_code for each in user.answers()]
    user.hand.settle()
    again = [user.send((b"", cancel("one")), producer_id=7, sequence=each) for each in (0, 1)]
    user.pass_time(LATER_MS)

    assert refused == [errors.KAFKA_STORAGE_ERROR] * 2
    assert [each.error_code for each in again] == [errors.NONE] * 2
    assert user.values() == []


# --- Settings that change.


def test_a_batch_that_was_under_way_when_its_topic_began_to_delay_does_not_come_early():
    user = Operator(BrokerByHand())
    user.create(ORDERS, compression_type="gzip", compression_gzip_level="9")
    batch = a_batch(random.Random(1).randbytes(900_000), headers=(after(LATER_MS),), producer_id=7)
    producer = User(user.hand)
    producer.send_produce(batch)
    changes = [("delay.enable", SET, "true"), ("delay.source", SET, "header")]
    request = user.change_request((TOPIC, ORDERS, changes))
    user.client.send(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, request)
    user.hand.turn(*user.hand.disk.complete_flushes())
    assert user.answers()
    assert not producer.answers()

    user.hand.settle()
    first = produced(producer.answers()[0])[0]
    again = producer.produce(batch)
    ends = []
    for ms in (LATER_MS - 1, 1):
        user.hand.turn(after_ms=ms)
        user.hand.settle()
        ends.append(user.list_offsets(-1).offset)

    assert first.error_code == errors.KAFKA_STORAGE_ERROR
    assert (again.error_code, again.base_offset) == (errors.NONE, -1)
    assert ends == [0, 1]


# --- Retention.


@pytest.mark.parametrize("ends", ["", "stop", "crash"])
def test_a_record_stays_for_the_retention_of_its_topic_from_its_release_on(ends: str):
    settings = {"log.retention.check.interval.ms": "1000"}
    user = Scheduler(BrokerByHand(settings), retention_ms="10000")
    user.schedule((b"direct", []))
    user.schedule((b"a", after(40_000)))
    user.live_on(20_000)
    start_before = user.list_offsets(-2).offset
    user.live_on(25_000)
    if ends == "stop":
        user.hand.stop()
        user.hand.start()
    elif ends == "crash":
        user.hand.crash()
    user.client = user.hand.connect()
    starts = []
    for ms in (1, 4_000, 20_000):
        user.live_on(ms)
        starts.append(user.list_offsets(-2).offset)

    assert start_before == 1
    assert starts == [1, 1, 2]


def test_a_crash_does_not_shorten_the_retention_of_what_was_released_before():
    settings = {"log.retention.check.interval.ms": "1000"}
    user = Scheduler(BrokerByHand(settings), retention_ms="10000")
    user.schedule((b"a", after(20_000)))
    user.live_on(5_000)
    user.schedule((b"direct", []))
    user.live_on(7_000)
    # The last recovery point speaks of the direct record alone.
    user.hand.stop()
    user.hand.start()
    user.client = user.hand.connect()
    user.live_on(500)
    user.pass_time(7_500)
    values = user.values()

    user.hand.now_wall_ms += 5_000
    user.crash()
    starts = []
    for ms in (8_000, 20_000):
        user.live_on(ms)
        starts.append(user.list_offsets(-2).offset)

    assert values == [b"direct", b"a"]
    assert starts == [0, 2]


class Switcher(Operator, Scheduler):
    """A user whose topic does not delay any more, or by something else than headers."""


OTHER_SETTINGS = [
    {"delay_enable": "false"},
    {"delay_source": "timestamp"},
    {"delay_source": "none", "delay_default_ms": "50"},
]


@pytest.mark.parametrize("settings", OTHER_SETTINGS)
@pytest.mark.parametrize("ends", ["", "crash"])
@CODECS
def test_what_waits_is_taken_back_also_when_headers_delay_nothing_more(
    codec: int, ends: str, settings: dict[str, str]
):
    user = Switcher()
    user.schedule((b"a", after(100, "one")))
    user.schedule((b"b", after(200, "two")))
    user.schedule((b"c", after(300, "three")))
    user.set(TOPIC, ORDERS, **settings)
    if ends:
        user.crash()

    user.schedule((b"", cancel("one")), (b"d", after(10_000)), codec=codec)
    user.schedule((b"e", after(10_000, "two")), codec=codec)
    user.pass_time(50)
    at_once = user.values()
    user.pass_time(1_000)

    assert at_once == [b"d", b"e"]
    assert user.values() == [b"d", b"e", b"c"]


def test_headers_that_name_nothing_that_waits_mean_nothing_in_a_topic_that_does_not_delay():
    user = Switcher()
    user.schedule((b"a", after(100, "one")))
    user.set(TOPIC, ORDERS, delay_enable="false")
    bad: Headers = [*after(5, "x"), *after(6), ("x-sched-cancel", b"perhaps")]

    offset = user.schedule((b"b", cancel("two")), (b"c", bad), (b"d", [("x-sched-id", b"")]))

    assert offset == 0
    assert user.values() == [b"b", b"c", b"d"]


def test_a_topic_in_which_no_id_waits_any_more_opens_no_batches():
    user = Switcher()
    user.schedule((b"a", after(100, "one")))
    user.set(TOPIC, ORDERS, delay_enable="false")
    hosted = user.hand.broker.topics[ORDERS]
    before = hosted.goes_in_steps(0)

    user.pass_time(100)

    assert (before, hosted.goes_in_steps(0)) == (True, False)


@CODECS
@pytest.mark.parametrize("is_released", [False, True])
@pytest.mark.parametrize("source", ["header", "timestamp"])
def test_a_batch_that_waits_is_not_refused_when_it_is_sent_again_under_a_shorter_longest_delay(
    source: str, is_released: bool, codec: int
):
    user = Switcher(delay_source=source)
    batches = [
        a_batch(
            value,
            headers=(at(START_WALL_MS + LATER_MS),),
            times=(START_WALL_MS + LATER_MS,),
            codec=codec,
            producer_id=7,
            sequence=sequence,
        )
        for sequence, value in enumerate((b"a", b"b"))
    ]
    user.produce(batches[0])
    user.set(TOPIC, ORDERS, delay_max_ms="1000")
    if is_released:
        user.pass_time(LATER_MS)
        # By a clock that was set back the batch lies ahead again.
        user.hand.now_wall_ms -= LATER_MS

    again, new = [user.produce(batch) for batch in batches]

    assert (again.error_code, again.base_offset) == (errors.NONE, -1)
    assert new.error_code == errors.INVALID_TIMESTAMP
