"""A broker with scheduled records in every kind of trouble: each record comes once, and not early.

Producers with up to five batches under way send again what was not acknowledged; power fails in the
middle of a turn, the process is killed, either log refuses writes, the calendar is set.  The oracle
is the list of what was acknowledged.
"""

from __future__ import annotations

import random

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch, produced
from tests.support.broker.eager_snapshots import start_eager

from tarry.base import errors
from tarry.broker.lifecycle import StartBroker, start_broker
from tarry.partition.replicated_log import ReplicatedLog
from tarry.records import decode_records
from tarry.records.batch import decode_batch_header
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.simulation.disk import PowerLoss

DELAYS_MS = (-1_000, 0, 0, 20, 300, 300, 2_000, 30_000)
SEEDS = 60
STEPS = 250
# A few batches: logs roll, and what waits no more is given up.
SEGMENT_BYTES = 700


class SentBatch:
    def __init__(self, value: bytes, due_ms: int, sequence: int) -> None:
        self.value = value
        self.due_ms = due_ms
        self.sequence = sequence
        self.is_acknowledged = False


class TroubledBroker:
    """One run of one seed."""

    def __init__(self, seed: int, start: StartBroker) -> None:
        self.random = random.Random(seed)
        self.hand = BrokerByHand(seed=seed, start=start)
        self.user = User(self.hand)
        self.user.create(ORDERS, delay_enable="true", delay_source="timestamp")
        self.batches: list[SentBatch] = []
        # Sent and not answered, in the order of the requests; and what is to be sent again.
        self.under_way: list[SentBatch] = []
        self.unsent: list[SentBatch] = []
        self.seen_end = 0
        self.make_segments_small()

    def make_segments_small(self) -> None:
        for log in self.partition.leadership.logs:
            log.config.segment_bytes = SEGMENT_BYTES

    @property
    def partition(self) -> ReplicatedLog:
        return self.hand.broker.topics[ORDERS].partitions[0]

    def turn(self, *, after_ms: int = 0, completes: bool = True) -> None:
        """A turn, and a look at what was appended to the partition in it."""
        events = self.hand.disk.complete_flushes() if completes else []
        self.hand.turn(*events, after_ms=after_ms)
        self.look()
        self.take_answers()

    def look(self) -> None:
        """Nothing may be there that is not due by the calendar of now."""
        for value, _ in self.values(self.seen_end):
            due_ms = self.batches[int(value)].due_ms
            assert due_ms <= self.hand.now_wall_ms, f"{value!r} comes early"
        self.seen_end = self.partition.log.written_end_offset

    def values(self, offset: int) -> list[tuple[bytes, int]]:
        """Values and offsets of the written records from this offset on."""
        log = self.partition.log
        offset = max(min(offset, log.written_end_offset), log.log_start_offset)
        found: list[tuple[bytes, int]] = []
        while (region := log.read(offset, log.end_position(), 1 << 20, True)) is not None:
            data = region.file.read(region.position, region.size)
            position = 0
            while position < len(data):
                header = decode_batch_header(data, position)
                for record in decode_records(data, size_max=1 << 20, position=position):
                    assert record.value is not None
                    found.append((record.value, record.offset))
                position += header.size
                offset = int(header.last_offset) + 1
        return found

    # -- the client

    def produce(self) -> None:
        if self.unsent:
            batch = self.unsent.pop(0)
        elif len(self.under_way) < 5:
            due_ms = self.hand.now_wall_ms + self.random.choice(DELAYS_MS)
            batch = SentBatch(b"%d" % len(self.batches), due_ms, len(self.batches))
            self.batches.append(batch)
        else:
            return
        self.under_way.append(batch)
        self.user.send_produce(
            a_batch(batch.value, times=(batch.due_ms,), producer_id=7, sequence=batch.sequence)
        )
        self.look()
        self.take_answers()

    def take_answers(self) -> None:
        for answer in self.user.answers():
            batch = self.under_way.pop(0)
            code = produced(answer)[0].error_code
            if code == errors.NONE:
                batch.is_acknowledged = True
                continue
            is_first = not any(each.sequence < batch.sequence for each in self.open())
            assert not is_first or code == errors.KAFKA_STORAGE_ERROR, f"{batch.value!r} is stuck"
            self.unsent.append(batch)
            self.unsent.sort(key=lambda each: each.sequence)

    def open(self) -> list[SentBatch]:
        return [each for each in self.batches if not each.is_acknowledged]

    # -- trouble

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.4:
            self.produce()
        elif chance < 0.75:
            after_ms = self.random.choice((0, 1, 10, 100, 700))
            self.turn(after_ms=after_ms, completes=self.random.random() < 0.7)
        elif chance < 0.80:
            self.hand.disk.crash_after(self.random.randrange(1, 8))
        elif chance < 0.84:
            self.end(self.random.choice(("crash", "kill", "stop")))
        elif chance < 0.88:
            log = self.random.choice(("orders-0/", "orders-0.schedule/"))
            self.hand.disk.fail_writes(self.random.randrange(1, 4), log)
        elif chance < 0.9:
            self.hand.now_wall_ms += self.random.choice((-3_600_000, -200, 200, 3_600_000))

    def end(self, how: str) -> None:
        if how == "stop":
            self.hand.stop()
            self.take_answers()
            self.hand.start()
        elif how == "kill":
            self.hand.disk.kill()
            self.hand.start()
        else:
            self.hand.crash()
        self.begin_anew()

    def begin_anew(self) -> None:
        self.unsent = self.open()
        self.under_way = []
        self.seen_end = min(self.seen_end, self.partition.log.written_end_offset)
        self.make_segments_small()
        # The turn that the crash cut off may have released records.  They are compared with the
        # calendar now, since the next step may set it back.
        self.look()
        self.user.client = self.hand.connect()

    def run(self) -> None:
        for _ in range(STEPS):
            try:
                self.step()
            except PowerLoss:
                self.end("crash")
        self.hand.disk.heal()
        self.hand.now_wall_ms = max(self.hand.now_wall_ms, START_WALL_MS + 1_000_000)
        for _ in range(200):
            # A batch that is refused is sent again after the next turn.
            for _ in range(len(self.unsent)):
                self.produce()
            self.turn(after_ms=100)
        # As far as a clock that ran ahead had told the client.
        self.hand.now_wall_ms += 200 * 3_600_000
        for _ in range(50):
            self.turn(after_ms=100)


@pytest.mark.parametrize("start", [start_broker, start_eager])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_record_comes_once_and_none_is_early(seed: int, start: StartBroker):
    run = TroubledBroker(seed, start)

    run.run()

    values = [value for value, _ in run.values(0)]
    assert not run.open()
    assert sorted(values, key=int) == [batch.value for batch in run.batches]
