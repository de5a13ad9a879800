"""Records that wait: parked with their time, released when it comes, over every kind of end."""

from __future__ import annotations

import pytest
from tests.support.broker.admin_user import TOPIC, Operator, deleted
from tests.support.broker.broker_user import ORDERS, User, a_batch, produced, records_in

from tarry.base import errors
from tarry.base.limits import DUE_MS_MAX
from tarry.broker.scheduling.partition_schedule import PartitionSchedule
from tarry.partition.replicated_log import COMPANION
from tarry.protocol import api_keys
from tarry.records.batch import decode_batch_header
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.wire.compression import GZIP, NAMES, ZSTD
from tarry.wire.crc32c import crc32c
from tarry.wire.reader import Window

LATEST, EARLIEST = -1, -2
LATER_MS = 3_000


class Scheduler(User):
    """A user of the topic `orders`, whose records are due by their timestamps."""

    def __init__(self, hand: BrokerByHand | None = None, **topic: str) -> None:
        super().__init__(hand or BrokerByHand())
        self.create(ORDERS, **{"delay_enable": "true", "delay_source": "timestamp", **topic})

    def schedule(self, *values: bytes, after_ms: int = LATER_MS, **terms: int) -> int:
        """Produce a batch that is due so long after the start; the offset that is answered."""
        times = tuple(START_WALL_MS + after_ms for _ in values)
        answer = self.produce(a_batch(*values, times=times, **terms))
        assert answer.error_code == errors.NONE, answer.error_message
        return answer.base_offset

    def pass_time(self, ms: int) -> None:
        """Let both clocks run on, and what is due by then be done."""
        self.hand.turn(after_ms=ms)
        self.hand.settle()

    def values(self) -> list[bytes | None]:
        """Values of all records that a consumer finds."""
        return [record.value for record in records_in(self.fetch(0))]

    def all_values(self) -> list[bytes | None]:
        """Values of all records, of which a fetch gives those of one segment."""
        found: list[bytes | None] = []
        while records := records_in(self.fetch(len(found))):
            found += [record.value for record in records]
        return found

    def begin_anew(self) -> None:
        """Connect to the broker that was started again."""
        self.client = self.hand.connect()
        self.hand.settle()


def test_a_record_comes_once_when_it_is_due_and_not_before():
    user = Scheduler()

    offset = user.schedule(b"a")
    seen = []
    for ms in (0, LATER_MS - 1, 1, 60_000):
        user.pass_time(ms)
        seen.append(user.values())

    assert offset == -1
    assert seen == [[], [], [b"a"], [b"a"]]


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("when", ["pending", "released"])
def test_a_record_comes_once_over_the_end_of_a_broker(when: str, is_clean: bool):
    user = Scheduler()
    user.schedule(b"a")
    if when == "released":
        user.pass_time(LATER_MS)

    if is_clean:
        user.hand.stop()
        user.hand.start()
    else:
        user.hand.crash()
    user.begin_anew()
    seen = []
    for ms in (0, LATER_MS, 60_000):
        user.pass_time(ms)
        seen.append(user.values())

    assert seen == [[b"a"] if when == "released" else [], [b"a"], [b"a"]]


def test_records_come_by_due_time_and_then_as_they_arrived():
    user = Scheduler()
    for value, after_ms in ((b"c", 300), (b"a", 100), (b"d", 300), (b"b", 200)):
        user.schedule(value, after_ms=after_ms)

    user.pass_time(1_000)

    assert user.values() == [b"a", b"b", b"c", b"d"]


def test_a_record_that_is_due_goes_into_the_partition_at_once():
    user = Scheduler()

    offsets = [user.schedule(b"a", after_ms=after_ms) for after_ms in (-5_000, 0)]

    assert offsets == [0, 1]
    assert user.values() == [b"a", b"a"]


def test_a_clock_that_is_set_back_holds_what_is_due():
    user = Scheduler()
    user.schedule(b"a")
    user.hand.now_wall_ms -= 3_600_000

    user.pass_time(LATER_MS)
    held = user.values()
    user.pass_time(3_600_000)

    assert (held, user.values()) == ([], [b"a"])


def test_a_clock_that_is_set_forward_releases_at_once():
    user = Scheduler()
    user.schedule(b"a", after_ms=86_400_000)
    user.hand.now_wall_ms += 86_400_000

    user.pass_time(1)

    assert user.values() == [b"a"]


def test_the_broker_wakes_up_when_something_is_due():
    user = Scheduler()
    user.schedule(b"a", after_ms=400)
    user.hand.settle()

    assert user.hand.broker.next_due_ms() == user.hand.now_ms + 400


def test_the_broker_wakes_up_anew_when_the_clock_was_set():
    user = Scheduler()
    user.schedule(b"a", after_ms=400)
    user.hand.settle()
    user.hand.now_wall_ms += 300

    user.pass_time(0)

    assert user.hand.broker.next_due_ms() == user.hand.now_ms + 100


def test_a_batch_waits_as_it_is_and_appears_with_its_own_times_and_a_new_offset():
    user = Scheduler()
    user.schedule(b"a", b"b", codec=1)
    user.schedule(b"now", after_ms=0)

    user.pass_time(LATER_MS)

    records = [(each.offset, each.value, each.timestamp) for each in records_in(user.fetch(0))]
    due = START_WALL_MS + LATER_MS
    assert records == [(0, b"now", START_WALL_MS), (1, b"a", due), (2, b"b", due)]


@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_of_produce_parks_and_every_kind_of_acknowledgement(version: int, acks: int):
    user = Scheduler()
    batch = a_batch(b"a", times=(START_WALL_MS + LATER_MS,))

    user.send_produce(batch, version=version, acks=acks)
    user.hand.settle()
    answers = user.answers()
    user.pass_time(LATER_MS)

    assert [produced(each)[0].base_offset for each in answers] == ([] if acks == 0 else [-1])
    assert user.values() == [b"a"]


@pytest.mark.parametrize("codec", range(len(NAMES)), ids=NAMES)
def test_a_batch_is_parked_in_the_codec_of_its_topic(codec: int):
    user = Scheduler(compression_type="zstd")
    user.schedule(b"a" * 1_000, b"b", codec=codec)

    user.pass_time(LATER_MS)

    assert user.values() == [b"a" * 1_000, b"b"]
    window = user.fetch(0).records
    assert isinstance(window, Window)
    assert decode_batch_header(window.data, window.start).codec == ZSTD


def test_what_waits_is_read_in_steps_while_records_are_taken_as_ever():
    user = Scheduler()
    large = [b"%d" % number + b"." * 400_000 for number in range(4)]
    for number, value in enumerate(large):
        user.schedule(value, after_ms=LATER_MS + number)
    user.hand.crash()
    user.client = user.hand.connect()
    user.hand.now_wall_ms += 60_000

    user.send_produce(a_batch(b"now"))
    user.send_produce(a_batch(b"later", times=(user.hand.now_wall_ms + LATER_MS,)))
    partition = user.hand.broker.topics[ORDERS].partitions[0]
    end_while_reading = partition.log.log_end_offset
    user.pass_time(0)
    offsets = [produced(answer)[0].base_offset for answer in user.answers()]
    user.pass_time(LATER_MS)

    assert end_while_reading == 1
    assert offsets == [0, -1]
    values = [record.value for offset in range(6) for record in records_in(user.fetch(offset))[:1]]
    assert values == [b"now", *large, b"later"]


def test_what_waits_is_read_on_where_the_disk_has_refused_it(caplog: pytest.LogCaptureFixture):
    user = Scheduler(segment_index_bytes="24", index_interval_bytes="0")
    values = [b"%d" % number for number in range(12)]
    for number, value in enumerate(values):
        user.schedule(value, after_ms=LATER_MS + number)
    disk = user.hand.disk
    user.hand.stop()
    user.hand.start()

    for turn in range(60):
        disk.files_left = turn % 4
        user.hand.turn(after_ms=1_000)
    disk.heal()
    segments = [path for path in disk.paths("orders-0.schedule") if path.endswith(".log")]
    user.hand.now_wall_ms += 60_000
    user.begin_anew()
    for _ in range(10):
        user.pass_time(2_000)

    assert len(segments) > 5
    assert "has no note" not in caplog.text
    assert user.all_values() == values


def test_a_damaged_batch_is_passed_over_and_comes_once_the_disk_is_right_again(
    caplog: pytest.LogCaptureFixture,
):
    user = Scheduler()
    user.schedule(b"first", after_ms=100)
    user.schedule(b"damaged", after_ms=200)
    user.schedule(b"last", after_ms=300)
    path = "orders-0.schedule/00000000000000000000.log"
    position = user.hand.disk.content(path).index(b"damaged")
    user.hand.disk.flip_bit(path, position)

    user.pass_time(1_000)
    without = user.values()
    told = caplog.text
    user.hand.stop()
    user.hand.disk.flip_bit(path, position)
    user.hand.start()
    user.begin_anew()
    user.pass_time(1_000)

    assert without == [b"first", b"last"]
    assert "the scheduled records of orders-0: a batch that is due is damaged" in told
    assert told.count("batch at offset 4 does not match its CRC") == 1
    assert user.values() == [b"first", b"last", b"damaged"]


# --- Sequences over two logs.


def numbered(value: bytes, sequence: int, after_ms: int) -> bytes:
    times = (START_WALL_MS + after_ms,)
    return a_batch(value, times=times, producer_id=7, sequence=sequence)


def test_sequences_go_on_from_one_log_to_the_other():
    user = Scheduler()

    codes = [
        user.produce(numbered(b"%d" % sequence, sequence, after_ms)).error_code
        for sequence, after_ms in enumerate((0, 500, 0, 500, 500, 0))
    ]
    user.pass_time(1_000)

    assert codes == [errors.NONE] * 6
    assert user.values() == [b"0", b"2", b"5", b"1", b"3", b"4"]


@pytest.mark.parametrize("is_released", [False, True])
def test_a_batch_that_is_sent_again_is_parked_once(is_released: bool):
    user = Scheduler()
    user.produce(numbered(b"a", 0, LATER_MS))
    if is_released:
        user.pass_time(LATER_MS)
    user.hand.crash()
    user.begin_anew()

    again = user.produce(numbered(b"a", 0, LATER_MS))
    user.pass_time(LATER_MS)

    assert (again.error_code, again.base_offset) == (errors.NONE, -1)
    assert user.values() == [b"a"]


def test_a_sequence_that_is_in_neither_log_is_out_of_order():
    user = Scheduler()
    user.produce(numbered(b"a", 0, 0))
    user.produce(numbered(b"b", 1, LATER_MS))

    codes = [user.produce(numbered(b"c", 3, ms)).error_code for ms in (0, LATER_MS)]

    assert codes == [errors.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2


# --- What is refused, and what the topic's settings change.


@pytest.mark.parametrize("after_ms", [0, LATER_MS])
def test_a_batch_that_would_pass_for_a_release_is_refused(after_ms: int):
    user = Scheduler()
    batch = bytearray(numbered(b"a", 5, after_ms))
    # Producer id -1 with a sequence.
    batch[43:51] = b"\xff" * 8
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")

    answer = user.produce(bytes(batch))

    assert answer.error_code == errors.INVALID_RECORD
    assert "producer id -1" in str(answer.error_message)
    assert [each.batch_index for each in answer.record_errors] == [0]


def test_a_record_that_is_due_too_late_is_refused():
    user = Scheduler(delay_max_ms="5000")

    latest, later = [
        user.produce(a_batch(b"a", times=(START_WALL_MS + ms,))) for ms in (5_000, 5_001)
    ]

    assert [latest.error_code, later.error_code] == [errors.NONE, errors.INVALID_TIMESTAMP]
    assert "delay.max.ms" in str(later.error_message)


def test_records_wait_as_long_as_the_topic_says():
    user = Scheduler(delay_source="none", delay_default_ms="700")
    user.produce(a_batch(b"a"))

    user.pass_time(699)
    before = user.values()
    user.pass_time(1)

    assert (before, user.values()) == ([], [b"a"])


@pytest.mark.parametrize("codec", [0, GZIP])
@pytest.mark.parametrize("due", [DUE_MS_MAX + 1, 2**63 - 1])
def test_a_record_that_is_due_after_the_year_9999_is_refused(due: int, codec: int):
    user = Scheduler(delay_source="timestamp")

    taken = user.produce(a_batch(b"a", times=(DUE_MS_MAX,), codec=codec))
    refused = user.produce(a_batch(b"a", b"b", times=(START_WALL_MS, due), codec=codec))

    assert taken.error_code == errors.NONE
    assert refused.error_code == errors.INVALID_TIMESTAMP
    assert str(DUE_MS_MAX) in str(refused.error_message)
    assert [each.batch_index for each in refused.record_errors] == [1]


def test_a_topic_begins_to_delay_while_the_broker_runs():
    user = Operator(BrokerByHand())
    user.create(ORDERS, message_timestamp_after_max_ms="9223372036854775807")
    later = a_batch(b"a", times=(START_WALL_MS + LATER_MS,))
    assert user.produce(later).base_offset == 0

    user.set(TOPIC, ORDERS, delay_enable="true", delay_source="timestamp")

    answer = user.produce(later)
    assert (answer.error_code, answer.base_offset) == (errors.NONE, -1)


def test_records_are_refused_until_the_log_of_what_waits_is_there():
    user = Operator(BrokerByHand())
    user.create(ORDERS)
    user.hand.disk.refuse_directory("orders-0.schedule")
    user.set(TOPIC, ORDERS, delay_enable="true", delay_source="timestamp")
    later = a_batch(b"a", times=(START_WALL_MS + LATER_MS,))
    refused = user.produce(later)

    user.hand.disk.accept_directory("orders-0.schedule")
    for _ in range(100):
        user.hand.turn(after_ms=100)
        user.hand.settle()
    taken = user.produce(later)

    assert refused.error_code == errors.KAFKA_STORAGE_ERROR
    assert "scheduled records of orders-0" in str(refused.error_message)
    assert (taken.error_code, taken.base_offset) == (errors.NONE, 0)
    again = a_batch(b"b", times=(user.hand.now_wall_ms + LATER_MS,))
    assert user.produce(again).base_offset == -1


def test_a_new_partition_of_a_topic_delays_too():
    user = Operator(BrokerByHand())
    user.create(ORDERS, delay_enable="true", delay_source="timestamp")
    user.grow((ORDERS, 3))

    later = a_batch(b"a", times=(START_WALL_MS + LATER_MS,))
    request = user.produce_request(later, later, later)
    answers = produced(user.client.ask(api_keys.PRODUCE, 11, request))

    assert [answer.base_offset for answer in answers] == [-1, -1, -1]


@pytest.mark.parametrize("starts_again", [False, True])
def test_what_is_pending_comes_though_nothing_more_is_delayed(starts_again: bool):
    user = Operator(BrokerByHand())
    user.create(ORDERS, delay_enable="true", delay_source="timestamp")
    user.produce(a_batch(b"a", times=(START_WALL_MS + LATER_MS,)))

    user.set(TOPIC, ORDERS, delay_enable="false", message_timestamp_after_max_ms="10000")
    user.produce(a_batch(b"b", times=(START_WALL_MS + LATER_MS,)))
    if starts_again:
        user.hand.crash()
        user.client = user.hand.connect()
    user.hand.turn(after_ms=LATER_MS)
    user.hand.settle()

    assert [record.value for record in records_in(user.fetch(0))] == [b"b", b"a"]


def test_a_deleted_topic_takes_what_waits_with_it():
    user = Scheduler()
    user.schedule(b"a")

    user.delete()
    left = [path for path in user.hand.disk.paths() if path.startswith(ORDERS)]
    user.create(ORDERS, delay_enable="true", delay_source="timestamp")
    user.pass_time(LATER_MS)

    assert (left, user.values()) == ([], [])


def test_what_is_due_in_years_has_no_place_in_the_queue_for_each_batch_before_it():
    user = Scheduler()
    user.schedule(b"far", after_ms=10**12)

    for _ in range(1_100):
        user.schedule(b"a", after_ms=user.hand.now_wall_ms - START_WALL_MS + 1)
        user.pass_time(1)

    assert len(user.hand.broker.scheduling._queue) <= 1_002


def test_a_deleted_topic_keeps_nothing_of_what_waited_in_memory():
    user = Scheduler()
    user.schedule(b"a", after_ms=10**12)
    parking = user.hand.broker.topics[ORDERS].partitions[0].leadership.parking
    assert isinstance(parking, PartitionSchedule)
    user.pass_time(0)
    assert parking.state is not None

    user.delete()

    assert parking.state is None


# --- The partition's start.


@pytest.mark.parametrize("is_noted", [False, True])
def test_deleted_records_that_were_scheduled_do_not_come_again(is_noted: bool):
    user = Operator(BrokerByHand())
    user.create(ORDERS, delay_enable="true", delay_source="timestamp")
    user.produce(a_batch(b"a", times=(START_WALL_MS + LATER_MS,)))
    user.hand.turn(after_ms=LATER_MS)
    user.hand.settle()
    if is_noted:
        user.hand.turn(after_ms=2_000)
        user.hand.settle()

    user.client.send(api_keys.DELETE_RECORDS, 2, user.deletion((0, -1)))
    while not (answers := user.answers()):
        user.hand.turn(after_ms=100)
        user.hand.settle()
    user.hand.crash()
    user.client = user.hand.connect()
    user.hand.turn(after_ms=LATER_MS)
    user.hand.settle()

    assert deleted(answers[0]) == [(1, errors.NONE)]
    assert user.list_offsets(LATEST).offset == 1


def test_records_may_go_once_their_release_is_noted():
    user = Scheduler()
    partition = user.hand.broker.topics[ORDERS].partitions[0]
    user.schedule(b"a", after_ms=0)
    ends = [partition.removable_end()]

    user.schedule(b"b")
    for ms in (0, LATER_MS, 1_000):
        user.pass_time(ms)
        ends.append(partition.removable_end())
    user.schedule(b"c", after_ms=0)
    ends.append(partition.removable_end())

    # The release lies at offset 1, and its note comes within a second.
    assert ends == [1, 1, 1, 2, 3]


def test_a_release_that_could_not_be_noted_before_a_crash_is_noted_after_it():
    user = Scheduler()
    user.schedule(b"a")
    user.pass_time(LATER_MS)

    user.hand.crash()
    user.begin_anew()
    user.pass_time(1_000)

    assert user.hand.broker.topics[ORDERS].partitions[0].removable_end() == 1


@pytest.mark.parametrize("is_far_first", [False, True])
def test_what_has_come_takes_no_room_in_the_log_of_what_waits(is_far_first: bool):
    user = Scheduler(segment_bytes=str(1 << 20))
    companion = user.hand.broker.topics[ORDERS].partitions[0].leadership.logs[COMPANION].log
    near = [b"%d" % number + b"." * 600_000 for number in range(4)]
    if is_far_first:
        user.schedule(b"far", after_ms=86_400_000)
    for value in near:
        user.schedule(value)
    if not is_far_first:
        user.schedule(b"far", after_ms=86_400_000)
    user.pass_time(LATER_MS)
    for _ in range(100):
        user.pass_time(100)

    size = companion.size_bytes
    user.hand.crash()
    user.begin_anew()
    user.pass_time(86_400_000)

    assert (size > 2_000_000) == is_far_first
    assert user.list_offsets(LATEST).offset == 5
    assert [record.value for record in records_in(user.fetch(4))] == [b"far"]


# --- A full disk.


@pytest.mark.parametrize("log", ["orders-0/", "orders-0.schedule/"])
def test_what_was_acknowledged_is_kept_while_the_disk_is_full(log: str):
    user = Scheduler()
    user.schedule(b"a")
    user.hand.disk.fail_writes(count=5, path_part=log)

    refused = user.produce(a_batch(b"b", times=(START_WALL_MS + LATER_MS,)))
    user.pass_time(LATER_MS)
    for _ in range(10):
        user.pass_time(1_000)

    is_parking_refused = log == "orders-0.schedule/"
    assert (refused.error_code == errors.KAFKA_STORAGE_ERROR) == is_parking_refused
    assert user.values() == ([b"a"] if is_parking_refused else [b"a", b"b"])


def test_a_batch_whose_parking_failed_is_taken_when_it_is_sent_again():
    user = Scheduler()
    user.hand.disk.fail_writes(count=1, path_part="orders-0.schedule/")

    codes = [
        user.produce(numbered(value, sequence, after_ms)).error_code
        for value, sequence, after_ms in ((b"a", 0, LATER_MS), (b"b", 1, 0), (b"a", 0, LATER_MS))
    ]

    assert codes[0] == errors.KAFKA_STORAGE_ERROR
    assert codes[2] == errors.NONE
