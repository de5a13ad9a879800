"""Scheduled records on a disk that flips a bit: nothing ends the broker, comes early or twice.

Each case starts a broker on a copy of the same logs, in which one bit of one byte is wrong.
"""

from __future__ import annotations

import copy

import pytest
from tests.support.broker.admin_user import Operator
from tests.support.broker.broker_user import ORDERS, a_batch, records_in
from tests.unit.broker.scheduling.test_thread import LATER_MS, Scheduler

from tarry.base import errors
from tarry.base.limits import SCHEDULE_FLAWS_KEPT
from tarry.protocol import api_keys
from tarry.protocol.messages.list_scheduled_records import (
    ListScheduledPartition,
    ListScheduledRecordsRequest,
    ListScheduledRecordsResponse,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tarry.records import decode_records
from tarry.records.batch import CRC, LENGTH, LENGTH_OVERHEAD, decode_batch_header, has_valid_crc
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.simulation.disk import SimulatedDisk
from tarry.wire.reader import Window

S = "orders-0.schedule/00000000000000000000.log"
P = "orders-0/00000000000000000000.log"

# Values in the logs when a bit flips.  The last checkpoint speaks of the releases of NOTED, not of
# that of RELEASED; WAITING says when the others are due, in milliseconds after the start.
NOTED = (b"noted-1", b"noted-2", b"noted-3")
RELEASED = (b"released",)
WAITING = {b"near": 60_000, b"two-a": 90_000, b"two-b": 90_000, b"far": 120_000}


class Logs:
    """Logs of a broker that was stopped, to be started again and again."""

    def __init__(self, hand: BrokerByHand) -> None:
        hand.stop()
        self._hand = hand
        self._now = (hand.now_ms, hand.now_wall_ms)
        self._disk = hand.disk

    def size(self, path: str) -> int:
        return len(self._disk.content(path))

    def batches(self, path: str) -> list[tuple[int, int]]:
        """Where each batch begins and ends."""
        data = self._disk.content(path)
        found: list[tuple[int, int]] = []
        position = 0
        while position < len(data):
            at = position + LENGTH
            end = position + int.from_bytes(data[at : at + 4], "big") + LENGTH_OVERHEAD
            found.append((position, end))
            position = end
        return found

    def begin(self) -> tuple[BrokerByHand, SimulatedDisk]:
        """Give the broker a copy of the logs, and the time of its stop; it is not started yet."""
        hand = self._hand
        hand.now_ms, hand.now_wall_ms = self._now
        hand.disk = copy.deepcopy(self._disk)
        return hand, hand.disk


class Witness(Scheduler):
    """A user of a broker that was started on damaged logs."""

    def __init__(self, hand: BrokerByHand) -> None:
        self.hand = hand
        self.begin_anew()

    def at(self, after_ms: int) -> None:
        """Let it be so long after the start."""
        self.pass_time(START_WALL_MS + after_ms - self.hand.now_wall_ms)

    def produce_both(self) -> list[int]:
        """Produce a record that is due and one that waits; the codes of the answers."""
        later = a_batch(b"new", times=(START_WALL_MS + 30_000,))
        codes: list[int] = []
        for batch in (a_batch(b"direct"), later):
            codes.append(int(self.produce(batch).error_code))
        return codes

    def sound_values(self) -> list[bytes | None]:
        """Values of all records that a consumer finds, without those of damaged batches."""
        found: list[bytes | None] = []
        offset = 0
        # An answer has batches of one segment.
        while offset >= 0:
            window = self.fetch(offset).records
            offset = -1
            if not isinstance(window, Window):
                break
            position = window.start
            while position < window.end:
                header = decode_batch_header(window.data, position)
                if has_valid_crc(window.data, position, header):
                    records = decode_records(window.data, size_max=1 << 20, position=position)
                    found += [each.value for each in records]
                position += int(header.size)
                offset = int(header.last_offset) + 1
        return found


def due_of(value: bytes | None) -> int:
    return 0 if value is None else WAITING.get(value, 30_000 if value == b"new" else 0)


@pytest.fixture(scope="module")
def logs() -> Logs:
    user = Scheduler()
    user.schedule(NOTED[0], after_ms=1_000)
    user.schedule(NOTED[1], NOTED[2], after_ms=1_500)
    user.schedule(b"near", after_ms=60_000)
    user.pass_time(2_000)
    user.pass_time(2_000)
    user.schedule(b"two-a", b"two-b", after_ms=90_000)
    user.schedule(b"released", after_ms=4_500)
    user.pass_time(500)
    user.schedule(b"far", after_ms=120_000)
    return Logs(user.hand)


def check(logs: Logs, path: str, position: int, bit: int) -> None:
    """Flip a bit, live through all due times, mend it, and live on."""
    where = f"{path} at {position} bit {bit}"
    hand, disk = logs.begin()
    disk.flip_bit(path, position, bit)
    hand.start()
    user = Witness(hand)
    codes = user.produce_both()
    seen: list[bytes | None] = []
    for after_ms in (29_999, 30_001, 59_999, 60_001, 89_999, 90_001, 119_999, 120_001, 130_000):
        user.at(after_ms)
        seen = user.sound_values()
        assert all(due_of(value) <= after_ms for value in seen), f"early: {where}"
        assert len(set(seen)) == len(seen), f"twice: {where}: {seen}"
    assert (b"two-a" in seen) == (b"two-b" in seen), f"torn: {where}"
    assert codes[0] in (errors.NONE, errors.KAFKA_STORAGE_ERROR), where
    assert codes[1] in (errors.NONE, errors.KAFKA_STORAGE_ERROR), where
    if path == S:
        assert codes[0] == errors.NONE, where
        content = disk.content(path)
        for value in WAITING:
            # The body and its note lie before the damage.
            if content.find(value) >= 0 and content.index(value) + 20 < batch_of(logs, position):
                assert value in seen, f"held back: {where}: {value!r}"
    hand.stop()
    disk.flip_bit(path, position, bit)
    hand.start()
    user = Witness(hand)
    user.at(140_000)
    values = user.sound_values()
    wanted = [*NOTED, *RELEASED, *WAITING]
    if codes[0] == errors.NONE:
        wanted.append(b"direct")
    if codes[1] == errors.NONE:
        wanted.append(b"new")
    assert sorted(map(bytes, filter(None, values))) == sorted(wanted), f"mended: {where}"


def batch_of(logs: Logs, position: int) -> int:
    return next(start for start, end in logs.batches(S) if start <= position < end)


@pytest.mark.parametrize("path", [S, P])
def test_no_flipped_bit_does_harm(logs: Logs, path: str):
    for position in range(logs.size(path)):
        check(logs, path, position, bit=0)


def test_no_flipped_bit_of_a_header_of_what_waits_does_harm(logs: Logs):
    start, _ = logs.batches(S)[5]
    for position in range(start, start + 23):
        for bit in range(1, 8):
            check(logs, S, position, bit)


def flip_length(user: Scheduler, value: bytes) -> int:
    """Flip a bit of the length of the batch in S that has this value; return its position."""
    content = user.hand.disk.content(S)
    begin = 0
    while True:
        at = begin + LENGTH
        end = begin + int.from_bytes(content[at : at + 4], "big") + LENGTH_OVERHEAD
        if value in content[begin:end]:
            user.hand.disk.flip_bit(S, at + 2)
            return at + 2
        begin = end


def start_again(user: Scheduler) -> None:
    user.hand.stop()
    user.hand.start()
    user.begin_anew()


def test_a_flaw_holds_back_nothing_before_it_and_says_so_once(caplog: pytest.LogCaptureFixture):
    user = Scheduler()
    for number in range(5):
        user.schedule(b"value %d" % number)
    start_again(user)
    user.pass_time(0)

    position = flip_length(user, b"value 2")
    user.pass_time(LATER_MS)
    user.schedule(b"direct", after_ms=0)
    for _ in range(5):
        user.pass_time(1_000)
    seen = user.values()
    refused = user.produce(a_batch(b"late", times=(START_WALL_MS + 60_000,)))
    told = caplog.text
    user.hand.stop()
    user.hand.disk.flip_bit(S, position, 0)
    user.hand.start()
    user.begin_anew()
    user.pass_time(1_000)

    assert seen == [b"value 0", b"value 1", b"direct"]
    assert refused.error_code == errors.KAFKA_STORAGE_ERROR
    assert "orders-0.schedule has a flaw at offset" in str(refused.error_message)
    assert told.count("a batch that is due is damaged") <= 2
    assert "cannot be released yet" not in told
    assert user.values() == [*seen, b"value 2", b"value 3", b"value 4"]


def test_a_batch_whose_length_is_damaged_refuses_what_would_wait_behind_it():
    user = Scheduler()
    user.schedule(b"first")
    user.schedule(b"second")
    user.hand.stop()
    flip_length(user, b"second")
    user.hand.start()
    user.begin_anew()

    refused = user.produce(a_batch(b"late", times=(START_WALL_MS + 60_000,)))
    request = ListScheduledRecordsRequest(ORDERS, partitions=[ListScheduledPartition(0)])
    listed = user.client.ask(api_keys.LIST_SCHEDULED_RECORDS, 0, request)
    metadata = user.client.ask(
        api_keys.METADATA, 12, MetadataRequest(topics=[MetadataRequestTopic(name=ORDERS)])
    )
    user.pass_time(LATER_MS)

    assert isinstance(listed, ListScheduledRecordsResponse)
    assert [each.error_code for each in listed.partitions] == [errors.NONE]
    assert listed.partitions[0].entry_count == 1
    assert isinstance(metadata, MetadataResponse)
    row = metadata.topics[0].partitions[0]
    assert row.offline_replicas == [row.leader_id]
    assert "orders-0.schedule is damaged at offset" in str(listed.partitions[0].error_message)
    assert refused.error_code == errors.KAFKA_STORAGE_ERROR
    assert "orders-0.schedule has a flaw at offset" in str(refused.error_message)
    assert user.values() == [b"first"]


def test_the_log_says_when_it_names_no_more_damaged_batches(caplog: pytest.LogCaptureFixture):
    user = Scheduler()
    for number in range(SCHEDULE_FLAWS_KEPT + 5):
        user.schedule(b"value %02d" % number)
        user.hand.disk.flip_bit(S, user.hand.disk.content(S).index(b"value %02d" % number))

    user.pass_time(LATER_MS)

    assert caplog.text.count("a batch that is due is damaged") == SCHEDULE_FLAWS_KEPT
    assert caplog.text.count("more batches are damaged") == 1


def delete_all_records(user: Operator) -> None:
    user.client.send(api_keys.DELETE_RECORDS, 2, user.deletion((0, -1)))
    while not user.answers():
        user.hand.turn(after_ms=100)
        user.hand.settle()


@pytest.mark.parametrize("what", ["length", "crc"])
def test_nothing_comes_twice_when_neither_log_tells_what_was_released(
    what: str, caplog: pytest.LogCaptureFixture
):
    user = Operator(BrokerByHand())
    user.create(ORDERS, delay_enable="true", delay_source="timestamp")
    user.produce(a_batch(b"once", times=(START_WALL_MS + LATER_MS,)))
    for _ in range(10):
        user.hand.turn(after_ms=LATER_MS)
        user.hand.settle()
    later = a_batch(b"waits", times=(START_WALL_MS + 90_000,))
    user.produce(later)
    delete_all_records(user)
    user.hand.stop()
    # The checkpoint is the fourth batch: behind the first one, a note and its body.
    content = user.hand.disk.content(S)
    begin = 0
    for _ in range(3):
        at = begin + LENGTH
        begin += int.from_bytes(content[at : at + 4], "big") + LENGTH_OVERHEAD
    position = begin + (LENGTH + 2 if what == "length" else CRC)

    user.hand.disk.flip_bit(S, position)
    user.hand.start()
    user.client = user.hand.connect()
    user.hand.turn(after_ms=60_000)
    user.hand.settle()
    end = user.list_offsets(-1).offset
    refused = user.produce(a_batch(b"late", times=(user.hand.now_wall_ms + 60_000,)))
    user.hand.stop()
    user.hand.disk.flip_bit(S, position)
    user.hand.start()
    user.client = user.hand.connect()
    user.hand.turn(after_ms=1_000)
    user.hand.settle()

    assert end == 1
    assert refused.error_code == errors.KAFKA_STORAGE_ERROR
    assert "cannot be read, none of them is released: the companion log is damaged" in caplog.text
    assert [each.value for each in records_in(user.fetch(1))] == [b"waits"]


def test_a_damaged_note_holds_back_no_other_though_the_partition_has_a_new_start():
    user = Operator(BrokerByHand())
    user.create(ORDERS, delay_enable="true", delay_source="timestamp")
    for value in (b"damaged", b"sound"):
        user.produce(a_batch(value, times=(START_WALL_MS + LATER_MS,)))
    user.produce(a_batch(b"direct"))
    delete_all_records(user)
    user.hand.stop()
    content = user.hand.disk.content(S)
    # The first batch is a checkpoint, the second the note.
    begin = int.from_bytes(content[LENGTH : LENGTH + 4], "big") + LENGTH_OVERHEAD

    user.hand.disk.flip_bit(S, begin + CRC)
    user.hand.start()
    user.client = user.hand.connect()
    user.hand.turn(after_ms=LATER_MS)
    user.hand.settle()

    assert [each.value for each in records_in(user.fetch(1))] == [b"sound"]
