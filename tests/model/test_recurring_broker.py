"""Recurring records of a broker that ends and fails in every way: each instance comes once.

The oracle is the calendar: what has `misfire=all` comes for each of its minutes from its definition
to its end, as often as it may, until it is cancelled.
"""

from __future__ import annotations

import random

import pytest
from tests.support.broker.broker_user import a_batch, produced
from tests.unit.broker.scheduling.test_headers import after, cancel
from tests.unit.broker.scheduling.test_recurring import MINUTE_MS, Recurrer, cron

from tarry.base import errors
from tarry.protocol.message import Message
from tarry.simulation.by_hand import BrokerByHand

SEEDS = range(40)
STEPS = 60


class Defined:
    """A recurring record that was sent: what it may do, and what was acknowledged of it."""

    def __init__(self, value: bytes, every: int, count: int, end_ms: int, sent_ms: int) -> None:
        self.value = value
        self.every = every
        self.count = count
        self.end_ms = end_ms
        self.sent_ms = sent_ms
        # When it was sent and whether it was answered that it is defined.
        self.is_acknowledged = False
        # When its cancel was sent first, and when it was answered.
        self.cancel_sent_ms = -1
        self.cancelled_ms = -1

    def due_times(self, until_ms: int) -> list[int]:
        period_ms = self.every * MINUTE_MS
        first_ms = (self.sent_ms // period_ms + 1) * period_ms
        end_ms = until_ms if self.end_ms < 0 else min(self.end_ms, until_ms)
        times = list(range(first_ms, end_ms + 1, period_ms))
        return times if self.count < 0 else times[: self.count]


class Life:
    """Life of a broker, with chance for what happens to it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        settings = {"log.retention.check.interval.ms": "1000"}
        self.user = Recurrer(BrokerByHand(settings, seed), segment_bytes=str(1 << 20))
        self.defined: list[Defined] = []
        self.sequence = 0
        self.seen: dict[int, tuple[bytes, int]] = {}

    def step(self) -> None:
        draw = self.chance.random()
        user = self.user
        if draw < 0.18:
            self.define()
        elif draw < 0.26:
            self.cancel()
        elif draw < 0.30:
            large = b"." * self.chance.choice((10, 400_000))
            headers = (after(self.chance.randrange(1, 90_000)),)
            user.send_produce(a_batch(large, headers=headers))
        elif draw < 0.62:
            for _ in range(self.chance.randint(1, 6)):
                user.turn(self.chance.choice((0, 0, 1, 300, 2_000, 30_000, 61_000)))
        elif draw < 0.72:
            self.end()
        elif draw < 0.80:
            log = self.chance.choice(("orders-0/0", "orders-0.schedule/0"))
            user.hand.disk.fail_writes(count=self.chance.randint(1, 3), path_part=log)
        elif draw < 0.84:
            user.hand.turn(after_ms=self.chance.choice((0, 1_000)))
        elif draw < 0.90:
            self.look()
        elif draw < 0.93:
            self.look()
            user.hand.settle()
            user.delete_records()
        else:
            user.hand.settle()

    def define(self) -> None:
        """Send a definition; when no answer comes it is not sent again."""
        now_ms = self.user.hand.now_wall_ms
        every = self.chance.choice((1, 1, 2, 5))
        count = self.chance.choice((-1, -1, 1, 2, 5))
        end_ms = self.chance.choice((-1, -1, now_ms + self.chance.randrange(6) * MINUTE_MS))
        defined = Defined(b"d%d" % len(self.defined), every, count, end_ms, now_ms)
        if end_ms >= 0 and not defined.due_times(end_ms):
            return
        terms: dict[str, str | int] = {"misfire": "all", "id": f"i{len(self.defined)}"}
        if count >= 0:
            terms["count"] = count
        if end_ms >= 0:
            terms["end"] = end_ms
        headers = cron(f"*/{every} * * * *", **terms)
        codec = self.chance.choice((0, 1, 4))
        batch = a_batch(b"", defined.value, headers=(after(5), headers), codec=codec)
        self.defined.append(defined)
        defined.is_acknowledged = self.send(batch)

    def cancel(self) -> None:
        waiting = [each for each in self.defined if each.cancelled_ms < 0]
        if not waiting:
            return
        defined = self.chance.choice(waiting)
        if defined.cancel_sent_ms < 0:
            defined.cancel_sent_ms = self.user.hand.now_wall_ms
        schedule_id = defined.value.replace(b"d", b"i").decode()
        if self.send(a_batch(b"", headers=(cancel(schedule_id),))):
            defined.cancelled_ms = self.user.hand.now_wall_ms

    def send(self, batch: bytes) -> bool:
        user = self.user
        user.send_produce(batch)
        answers: list[Message] = []
        for _ in range(30):
            answers += user.answers()
            if not user.client._asked:
                # Nothing that was sent before has no answer yet: the last one is that of the batch.
                return produced(answers[-1])[0].error_code == errors.NONE
            user.turn(self.chance.choice((0, 0, 500)))
        return False

    def end(self) -> None:
        hand = self.user.hand
        self.chance.choice((hand.disk.crash, hand.disk.kill))()
        hand.disk.heal()
        hand.now_wall_ms += self.chance.choice((0, 5_000, 150_000))
        hand.start()
        self.user.client = hand.connect()
        if self.chance.random() < 0.7:
            hand.settle()

    def look(self) -> None:
        """Read what there is: it must stay as it is."""
        self.user.hand.settle()
        self.user.answers()
        offset = max(self.user.list_offsets(-2).offset, len(self.seen))
        end = self.user.list_offsets(-1).offset
        while offset < end:
            found = [each for each in self.user.records_from(offset) if each.offset >= offset]
            for record in found:
                assert record.offset not in self.seen
                assert record.timestamp <= self.user.hand.now_wall_ms, "early"
                self.seen[record.offset] = (record.value or b"", record.timestamp)
            offset = found[-1].offset + 1


def check(life: Life) -> None:
    hand = life.user.hand
    hand.disk.heal()
    for _ in range(20):
        life.user.pass_time(2_000)
    life.look()
    now_ms = hand.now_wall_ms
    for defined in life.defined:
        come = [time for value, time in life.seen.values() if value == defined.value]
        due = defined.due_times(now_ms)
        assert come == due[: len(come)], f"{defined.value!r}: {come} of {due}"
        if defined.cancel_sent_ms < 0:
            assert come == due or (not defined.is_acknowledged and not come), defined.value
            continue
        if defined.cancelled_ms >= 0:
            assert all(time <= defined.cancelled_ms for time in come), defined.value
    recurring = life.user.state().recurring
    alive = [each for each in life.defined if each.cancelled_ms < 0]
    assert len(recurring) <= len(alive)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_instance_comes_once(seed: int) -> None:
    life = Life(seed)
    for _ in range(STEPS):
        life.step()

    check(life)
