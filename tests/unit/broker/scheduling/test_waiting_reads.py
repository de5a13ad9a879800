"""Reads of what waits, held against a list: by chance, in sizes and shares of every kind."""

from __future__ import annotations

import random

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch
from tests.support.broker.waiting_reader import SHOWN, WaitingReader, seen_in
from tests.unit.broker.scheduling.test_damage import Logs, S, Witness
from tests.unit.broker.scheduling.test_thread import Scheduler

from tarry.base import errors
from tarry.base.doors import received
from tarry.partition.replicated_log import COMPANION
from tarry.protocol import api_keys
from tarry.records.batch import decode_batch_header, has_valid_crc
from tarry.records.builder import Headers
from tarry.records.record import decode_records
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.reader import Window

SEEDS = range(60)
BY_HEADER = {"delay_enable": "true", "delay_source": "header"}


class Oracle:
    """Records that wait, in the order in which they were parked: value, due time and id."""

    def __init__(self, hand: BrokerByHand, seed: int) -> None:
        self.hand = hand
        self.chance = random.Random(seed)
        self.user = User(hand)
        self.records: list[tuple[bytes, int, str]] = []
        self.number = 0

    def send(self, records: list[tuple[bytes, Headers]]) -> None:
        values = [value for value, _ in records]
        batch = a_batch(*values, headers=tuple(each for _, each in records))
        answer = self.user.produce(batch)
        assert answer.error_code == errors.NONE, answer.error_message
        self.hand.settle()

    def park(self) -> None:
        records: list[tuple[bytes, Headers]] = []
        for _ in range(self.chance.choice((1, 1, 1, 2, 5))):
            self.number += 1
            value = b"%d" % self.number * self.chance.choice((1, 1, 30, 300))
            after_ms = self.chance.choice((2_000, 4_000, 8_000, 3_600_000))
            name = f"id-{self.number}" if self.chance.random() < 0.5 else ""
            headers: Headers = [("x-deliver-after", b"%d" % after_ms)]
            if name:
                headers.append(("x-sched-id", name.encode()))
            records.append((value, headers))
            self.records.append((value, self.hand.now_wall_ms + after_ms, name))
        self.send(records)

    def cancel(self) -> None:
        names = [name for _, _, name in self.records if name]
        if not names:
            return
        name = self.chance.choice(names)
        self.send([(b"", [("x-sched-id", name.encode()), ("x-sched-cancel", b"1")])])
        self.records = [each for each in self.records if each[2] != name]

    def pass_time(self) -> None:
        self.hand.turn(after_ms=self.chance.choice((100, 1_000, 1_000)))
        self.hand.settle()

    def shown(self) -> list[bytes]:
        now_ms = self.hand.now_wall_ms
        return [value for value, due_ms, _ in self.records if due_ms > now_ms]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_reader_sees_what_waits_and_nothing_else(seed: int):
    hand = BrokerByHand()
    User(hand).create(ORDERS, **BY_HEADER)
    replica = hand.broker.topics.replica(ORDERS, 0)
    assert replica is not None
    # So small are segments nowhere else.
    replica.leadership.logs[COMPANION].config.segment_bytes = 2_000
    oracle = Oracle(hand, seed)
    chance = oracle.chance
    for _ in range(60):
        chance.choice((oracle.park, oracle.park, oracle.cancel, oracle.pass_time))()
    if chance.random() < 0.5:
        hand.crash()
        oracle.user.client = hand.connect()
        hand.settle()
    reader = WaitingReader(hand)
    budget = hand.broker.scheduling.budget

    for _ in range(5):
        budget.per_turn = chance.choice((1, 3, 10, 1_000))
        hand.turn()
        start = reader.list_offsets(-2, topic=SHOWN).offset
        end = reader.list_offsets(-1, topic=SHOWN).offset
        found: list[bytes | None] = []
        offset = start
        for _ in range(10_000):
            if offset == end:
                break
            answer = reader.fetch(
                offset,
                topic=SHOWN,
                partition_bytes=chance.choice((1, 150, 700, 5_000, 1 << 20)),
            )
            hand.turn()
            seen = seen_in(answer, offset)
            offset = seen.next_offset
            found += [value for _, value in seen.records]

        assert offset == end
        assert found == oracle.shown()


@pytest.fixture(scope="module")
def logs() -> Logs:
    user = Scheduler()
    user.schedule(b"soon", after_ms=1_000)
    user.schedule(b"a", after_ms=60_000)
    user.pass_time(2_000)
    user.schedule(b"b", b"c", after_ms=60_000)
    user.schedule(b"d", after_ms=90_000)
    return Logs(user.hand)


def test_over_a_flipped_bit_a_reader_sees_what_waits_or_is_refused(logs: Logs):
    for position in range(logs.size(S)):
        hand, disk = logs.begin()
        disk.flip_bit(S, position)
        hand.start()
        user = Witness(hand)
        seen: list[bytes | None] = []
        offset = 0
        for _ in range(100):
            answer = user.fetch(offset, topic=SHOWN)
            window = answer.records
            if answer.error_code != errors.NONE or not window:
                break
            assert isinstance(window, Window)
            position_in = window.start
            while position_in < window.end:
                header = decode_batch_header(window.data, position_in)
                if not has_valid_crc(window.data, position_in, header):
                    # Clients tell damage by the CRC, here as everywhere.
                    answer.error_code = errors.CORRUPT_MESSAGE
                    break
                if not header.is_control:
                    records = decode_records(window.data, size_max=1 << 20, position=position_in)
                    seen += [each.value for each in records]
                position_in += header.size
                assert header.last_offset >= offset
                offset = header.last_offset + 1
            if answer.error_code != errors.NONE:
                break

        wanted = [b"a", b"b", b"c", b"d"]
        assert answer.error_code in {
            errors.NONE,
            errors.KAFKA_STORAGE_ERROR,
            errors.OFFSET_OUT_OF_RANGE,
            errors.CORRUPT_MESSAGE,
        }
        assert len(set(seen)) == len(seen), position
        assert set(seen) <= {*wanted, b"soon"}, position
        if answer.error_code == errors.NONE:
            assert offset == answer.high_watermark, position


def test_two_readers_share_what_a_turn_goes_over():
    hand = BrokerByHand()
    User(hand).create(ORDERS, **BY_HEADER)
    oracle = Oracle(hand, 1)
    for _ in range(40):
        oracle.send([(b"x", [("x-deliver-after", b"3600000")])])
    hand.broker.scheduling.budget.per_turn = 30
    hand.turn()
    clients = [hand.connect() for _ in range(2)]
    hand.settle()
    request = oracle.user.fetch_request(0, topic=SHOWN)

    hand.turn(
        *[
            received(each.connection_id, each.encode(api_keys.FETCH, 12, request))
            for each in clients
        ]
    )
    shown = [
        len(seen_in(part, 0).records)
        for client in clients
        for answer in client.answers()
        for part in answer.responses[0].partitions
    ]

    # Notes count as batches.  Who comes second in this turn has nothing left.
    assert shown == [15, 0]
