"""The runs of `tarry perf`: what is done between the two looks at the clocks."""

from __future__ import annotations

import os
import time
from collections import deque
from typing import Final

from tarry.base.errors import TarryError
from tarry.cli.perf_figures import CpuClock, Figures
from tarry.cli.status_line import StatusLine
from tarry.cli.tables import count_of
from tarry.client import Consumer, Producer, Receipt
from tarry.client.errors import BufferFull

# Records from one whose latency is measured to the next, at full speed.
SAMPLE_EVERY: Final = 100

# Longest sleep of a run with a rate: acknowledgements are looked at between two sleeps.
TICK_SECONDS: Final = 0.001

POLL_SECONDS: Final = 0.1
POLL_RECORDS_MAX: Final = 10_000


class NothingCame(TarryError):
    """A record that was sent, or that has to be there, was not read in time."""


class Run:
    """Counts and clocks of one run; Ctrl-C ends it early, and what was measured counts."""

    def __init__(self, command: str, topic: str, broker_pid: int | None) -> None:
        self.command = command
        self.topic = topic
        self.records = 0
        self.size = 0
        self.is_interrupted = False
        self.latencies_ms: list[float] = []
        self._line = StatusLine()
        self._cpu = CpuClock(broker_pid)
        self._started = time.perf_counter()
        self._broker_pid = broker_pid

    def begin(self) -> None:
        """Start the clocks again, behind what only prepares."""
        self._cpu = CpuClock(self._broker_pid)
        self._started = time.perf_counter()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._started

    def show(self) -> None:
        if self._line.is_live:
            self._line.show(
                f"{count_of(self.records, 'record')}, "
                f"{self.records / max(self.elapsed, 0.001):,.0f} records/s"
            )

    def figures(self) -> Figures:
        """Measurements up to now."""
        seconds = self.elapsed
        client, broker = self._cpu.client, self._cpu.broker
        self._line.clear()
        return Figures(
            self.command,
            self.topic,
            self.records,
            self.size,
            seconds,
            client,
            broker,
            self.latencies_ms,
        )


class ProduceRun(Run):
    """Records of one size, at full speed, at a rate, or one after the other."""

    def __init__(self, producer: Producer, topic: str, broker_pid: int | None) -> None:
        super().__init__("produce", topic, broker_pid)
        self._producer = producer
        self._samples: deque[tuple[float, Receipt]] = deque()

    def run(self, count: int, value: bytes, rate: float | None, *, one_at_a_time: bool) -> None:
        # Do not measure the first record: it opens the connection and gets the producer's id.
        self._producer.send(self.topic, value).result()
        self.begin()
        try:
            if one_at_a_time:
                self._one_at_a_time(count, value)
            else:
                self._at_speed(count, value, rate)
                self._drain()
        except KeyboardInterrupt:
            self.is_interrupted = True
            self._producer.abort()

    def _one_at_a_time(self, count: int, value: bytes) -> None:
        for _ in range(count):
            sent = time.perf_counter()
            self._producer.send(self.topic, value).result()
            self.latencies_ms.append((time.perf_counter() - sent) * 1000)
            self._count(value)
            self.show()

    def _at_speed(self, count: int, value: bytes, rate: float | None) -> None:
        every = SAMPLE_EVERY if rate is None else max(int(rate) // 1000, 1)
        for number in range(count):
            if rate is not None:
                self._wait_until(number / rate)
            receipt = self._send(value)
            if number % every == 0:
                self._samples.append((time.perf_counter(), receipt))
                self.show()
            self._look()
            self._count(value)

    def _send(self, value: bytes) -> Receipt:
        """Wait for room as long as there is progress; the producer's own patience ends it."""
        settled = self._producer.settled
        while True:
            try:
                return self._producer.send(self.topic, value)
            except BufferFull:
                if self._producer.settled == settled:
                    raise
                settled = self._producer.settled

    def _count(self, value: bytes) -> None:
        self.records += 1
        self.size += len(value)

    def _wait_until(self, due: float) -> None:
        while (left := due - self.elapsed) > 0:
            time.sleep(min(left, TICK_SECONDS))
            self._look()

    def _look(self) -> None:
        """Note the latency of samples that were acknowledged meanwhile."""
        samples = self._samples
        while samples and samples[0][1].is_done:
            sent, _ = samples.popleft()
            self.latencies_ms.append((time.perf_counter() - sent) * 1000)

    def _drain(self) -> None:
        while self._samples:
            sent, receipt = self._samples.popleft()
            receipt.result()
            self.latencies_ms.append((time.perf_counter() - sent) * 1000)
        self._producer.flush()


class ConsumeRun(Run):
    """Records of all partitions, from the beginning to the end of now."""

    def __init__(self, consumer: Consumer, topic: str, broker_pid: int | None) -> None:
        super().__init__("consume", topic, broker_pid)
        self._consumer = consumer

    def run(self, count_max: int | None, timeout: float) -> None:
        consumer = self._consumer
        places = [(self.topic, one) for one in consumer.partitions_of(self.topic, timeout)]
        begins = consumer.beginning_offsets(places, timeout)
        ends = consumer.end_offsets(places, timeout)
        places = [place for place in places if begins[place] < ends[place]]
        consumer.assign(places)
        for place in places:
            consumer.seek(place, begins[place])
        patience_ends = time.monotonic() + timeout
        self.begin()
        try:
            while places and (count_max is None or self.records < count_max):
                groups = consumer.poll(POLL_SECONDS, POLL_RECORDS_MAX)
                for group in groups:
                    self.records += len(group.records)
                    for record in group.records:
                        self.size += len(record.value or b"") + len(record.key or b"")
                if groups:
                    patience_ends = time.monotonic() + timeout
                elif time.monotonic() > patience_ends:
                    trouble = consumer.trouble or "the brokers sent no records"
                    raise NothingCame(f"no record came for {timeout:g} s: {trouble}")
                places = [one for one in places if consumer.position(one) < ends[one]]
                self.show()
        except KeyboardInterrupt:
            self.is_interrupted = True


class LatencyRun(Run):
    """Run of one record after the other, from `send` until a consumer has it."""

    def __init__(
        self, producer: Producer, consumer: Consumer, topic: str, broker_pid: int | None
    ) -> None:
        super().__init__("latency", topic, broker_pid)
        self._producer = producer
        self._consumer = consumer

    def run(self, count: int, value: bytes, partition: int, timeout: float) -> None:
        consumer = self._consumer
        place = (self.topic, partition)
        consumer.assign([place])
        consumer.seek(place, consumer.end_offsets([place], timeout)[place])
        # Other producers may write to the topic: the keys of this run's records begin with its id.
        run_id = os.urandom(8)
        # Do not measure the first record: it opens the connections.
        self._there_and_back(run_id + bytes(8), value, partition, timeout)
        self.begin()
        try:
            for number in range(1, count + 1):
                key = run_id + number.to_bytes(8, "big")
                self.latencies_ms.append(self._there_and_back(key, value, partition, timeout))
                self.records += 1
                self.size += len(value)
                self.show()
        except KeyboardInterrupt:
            self.is_interrupted = True
            self._producer.abort()

    def _there_and_back(self, key: bytes, value: bytes, partition: int, timeout: float) -> float:
        """Milliseconds until the record with this key was read."""
        sent = time.perf_counter()
        receipt = self._producer.send(self.topic, value, key=key, partition=partition)
        while True:
            for group in self._consumer.poll(POLL_SECONDS, POLL_RECORDS_MAX):
                if any(record.key == key for record in group.records):
                    return (time.perf_counter() - sent) * 1000
            if receipt.is_done and receipt.error is not None:
                raise receipt.error
            if time.perf_counter() - sent > timeout:
                raise NothingCame(f"a record was sent and did not come back within {timeout:g} s")
