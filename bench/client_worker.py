"""One client doing one kind of work in a process of its own; prints its figures as JSON.

    client_worker.py CLIENT WORK ADDRESS TOPIC COUNT

`bench/client.py` runs it.  CPU is user and system time of this process, in µs a record; the time of
imports, connections and warm-up is left out.
"""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

# Alike for all clients: acks=all and idempotent, 64 KiB batches, 5 ms of linger.
BATCH_BYTES: Final = 65_536
LINGER_MS: Final = 5

# Records that a producer sends before it looks at their outcomes.
PORTION: Final = 10_000

# Rows of a batch of columns.
ROWS_MAX: Final = 20_000

# Before anything is counted; no more than is counted then.
WARM_RECORDS = 20_000
WARM_ROUND_TRIPS: Final = 100

GROUP_SIZE: Final = 20
STABLE_SECONDS_MAX: Final = 60

Figures = dict[str, float]


class Measure:
    """CPU and wall time between two moments of this process."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.wall = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        yield
        after = resource.getrusage(resource.RUSAGE_SELF)
        self.wall = time.perf_counter() - begun
        self.cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def per(self, count: int) -> Figures:
        return {"cpu_us": self.cpu / count * 1e6, "wall_us": self.wall / count * 1e6}


def round_trips(send_and_wait: Callable[[], object], count: int) -> Figures:
    """Quantiles of `count` round trips, in ms."""
    for _ in range(WARM_ROUND_TRIPS):
        send_and_wait()
    taken: list[float] = []
    for _ in range(count):
        begun = time.perf_counter()
        send_and_wait()
        taken.append((time.perf_counter() - begun) * 1e3)
    return quantiles(taken)


def quantiles(taken: list[float]) -> Figures:
    cuts = statistics.quantiles(taken, n=100)
    return {"p50_ms": cuts[49], "p99_ms": cuts[98]}


def portions(count: int) -> list[int]:
    return [min(PORTION, count - done) for done in range(0, count, PORTION)]


async def read(consumer: Any, count: int) -> None:
    """Read so many records of an asyncio client, one by one."""
    left = count
    async for record in consumer:
        _ = record.value
        left -= 1
        if not left:
            break


def members_until_stable(poll: Callable[[int], None], owned: list[int]) -> Figures:
    """Poll every member in a thread of its own until each owns one partition, all at one time."""
    over = threading.Event()

    def run(number: int) -> None:
        while not over.is_set():
            poll(number)

    threads = [threading.Thread(target=run, args=(one,), daemon=True) for one in range(GROUP_SIZE)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    while owned != [1] * GROUP_SIZE and time.perf_counter() - begun < STABLE_SECONDS_MAX:
        time.sleep(0.002)
    taken = time.perf_counter() - begun
    over.set()
    for thread in threads:
        thread.join(10)
    return {"stable_s": taken}


# --- tarry.client


class Tarry:
    def __init__(self, address: str, topic: str) -> None:
        self.address = address
        self.topic = topic

    def producer(self) -> Any:
        from tarry.client import Producer

        return Producer(bootstrap_servers=self.address, batch_size=BATCH_BYTES, linger_ms=LINGER_MS)

    def produce(self, value: bytes, count: int) -> Figures:
        measure = Measure()
        with self.producer() as producer:
            self.send(producer, value, WARM_RECORDS)
            with measure.running():
                self.send(producer, value, count)
        return measure.per(count)

    def send(self, producer: Any, value: bytes, count: int) -> None:
        for portion in portions(count):
            send, topic = producer.send, self.topic
            receipts = [send(topic, value) for _ in range(portion)]
            producer.flush()
            for receipt in receipts:
                assert receipt.error is None

    def latency(self, count: int) -> Figures:
        with self.producer() as producer:
            return round_trips(lambda: producer.send(self.topic, b"x" * 100).result(), count)

    def consumer(self) -> Any:
        from tarry.client import Consumer

        consumer = Consumer(bootstrap_servers=self.address)
        consumer.assign([(self.topic, partition) for partition in range(4)])
        consumer.seek_to_beginning()
        return consumer

    def consume(self, count: int) -> Figures:
        measure = Measure()
        with self.consumer() as consumer:
            for record in islice(consumer, WARM_RECORDS):
                _ = record.value
            with measure.running():
                for record in islice(consumer, count):
                    _ = record.value
        return measure.per(count)

    def consume_batches(self, count: int) -> Figures:
        measure = Measure()
        with self.consumer() as consumer:
            left = WARM_RECORDS
            while left > 0:
                left -= sum(len(group.records) for group in consumer.poll(1.0, max_records=500))
            left = count
            with measure.running():
                while left > 0:
                    for group in consumer.poll(1.0, max_records=500):
                        for record in group.records:
                            _ = record.value
                        left -= len(group.records)
        return measure.per(count - left)

    def group(self, count: int) -> Figures:
        from tarry.client import Consumer

        name = f"bench-{time.time_ns()}"
        members = [
            Consumer(self.topic, bootstrap_servers=self.address, group_id=name)
            for _ in range(GROUP_SIZE)
        ]
        owned = [0] * GROUP_SIZE

        def poll(number: int) -> None:
            members[number].poll(0.05)
            owned[number] = len(members[number].assignment())

        figures = members_until_stable(poll, owned)
        for member in members:
            member.close()
        return figures

    def arrow_views(self, count: int) -> Figures:
        """Read into views of three columns."""
        return self._columns(count, ["offset", "timestamp", "value"], views=True)

    def arrow_all(self, count: int) -> Figures:
        """Read into all columns, as copies."""
        return self._columns(count, None, views=False)

    def _columns(self, count: int, columns: list[str] | None, *, views: bool) -> Figures:
        from tarry.client.arrow import ArrowConsumer

        measure = Measure()
        with ArrowConsumer(bootstrap_servers=self.address) as consumer:
            consumer.assign([(self.topic, partition) for partition in range(4)])
            consumer.seek_to_beginning()
            batches = consumer.batches(max_rows=ROWS_MAX, columns=columns, views=views)
            skim(batches, WARM_RECORDS)
            with measure.running():
                taken = skim(batches, count)
        return measure.per(taken)

    def table(self, count: int) -> Figures:
        """Send a table of so many rows, and wait for the outcome of all."""
        import pyarrow

        from tarry.client.arrow import ArrowProducer

        measure = Measure()
        portion = pyarrow.table({"value": [b"x" * 100] * PORTION})
        with ArrowProducer(
            bootstrap_servers=self.address, batch_size=BATCH_BYTES, linger_ms=LINGER_MS
        ) as producer:
            for _ in portions(WARM_RECORDS):
                producer.send(self.topic, portion).result()
            sent = 0
            with measure.running():
                for _ in portions(count):
                    sent += producer.send(self.topic, portion).result().row_count
        return measure.per(sent)


def skim(batches: Iterator[Any], count: int) -> int:
    """Take batches of at least so many rows; return the number of rows."""
    taken = 0
    for batch in batches:
        taken += batch.num_rows
        if taken >= count:
            break
    return taken


# --- tarry.client.aio


class TarryAio:
    def __init__(self, address: str, topic: str) -> None:
        self.address = address
        self.topic = topic

    def produce(self, value: bytes, count: int) -> Figures:
        return asyncio.run(self._produce(value, count))

    async def _produce(self, value: bytes, count: int) -> Figures:
        from tarry.client import aio

        measure = Measure()
        async with aio.Producer(
            bootstrap_servers=self.address, batch_size=BATCH_BYTES, linger_ms=LINGER_MS
        ) as producer:
            await self._send(producer, value, WARM_RECORDS)
            with measure.running():
                await self._send(producer, value, count)
        return measure.per(count)

    async def _send(self, producer: Any, value: bytes, count: int) -> None:
        for portion in portions(count):
            receipts = [await producer.send(self.topic, value) for _ in range(portion)]
            await producer.flush()
            for receipt in receipts:
                assert receipt.error is None

    def consume(self, count: int) -> Figures:
        return asyncio.run(self._consume(count))

    async def _consume(self, count: int) -> Figures:
        from tarry.client import aio

        measure = Measure()
        async with aio.Consumer(bootstrap_servers=self.address) as consumer:
            consumer.assign([(self.topic, partition) for partition in range(4)])
            consumer.seek_to_beginning()
            await read(consumer, WARM_RECORDS)
            with measure.running():
                await read(consumer, count)
        return measure.per(count)


# --- confluent-kafka


class Confluent:
    def __init__(self, address: str, topic: str) -> None:
        self.settings = {"bootstrap.servers": address}
        self.topic = topic

    def producer(self) -> Any:
        import confluent_kafka

        return confluent_kafka.Producer(
            {
                **self.settings,
                "enable.idempotence": True,
                "batch.size": BATCH_BYTES,
                "linger.ms": LINGER_MS,
                "queue.buffering.max.messages": 1_000_000,
            }
        )

    def produce(self, value: bytes, count: int) -> Figures:
        measure, producer = Measure(), self.producer()
        self.send(producer, value, WARM_RECORDS)
        with measure.running():
            self.send(producer, value, count)
        return measure.per(count)

    def send(self, producer: Any, value: bytes, count: int) -> None:
        for portion in portions(count):
            outcomes: list[Any] = []

            def told(error: Any, message: Any, outcomes: list[Any] = outcomes) -> None:
                outcomes.append(error)

            send, topic = producer.produce, self.topic
            for _ in range(portion):
                send(topic, value, on_delivery=told)
            producer.flush()
            assert outcomes == [None] * portion

    def latency(self, count: int) -> Figures:
        producer = self.producer()
        outcomes: list[Any] = []

        def send_and_wait() -> None:
            outcomes.clear()
            producer.produce(
                self.topic, b"x" * 100, on_delivery=lambda error, _: outcomes.append(error)
            )
            producer.flush()
            assert outcomes == [None]

        return round_trips(send_and_wait, count)

    def consumer(self, **settings: Any) -> Any:
        import confluent_kafka

        return confluent_kafka.Consumer(
            {**self.settings, "group.id": f"bench-{time.time_ns()}", **settings}
        )

    def reader(self) -> Any:
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        consumer = self.consumer()
        consumer.assign([TopicPartition(self.topic, one, OFFSET_BEGINNING) for one in range(4)])
        return consumer

    def consume(self, count: int) -> Figures:
        measure, consumer = Measure(), self.reader()
        left = WARM_RECORDS
        while left:
            left -= consumer.poll(1.0) is not None
        left = count
        poll = consumer.poll
        with measure.running():
            while left:
                message = poll(1.0)
                if message is not None:
                    _ = message.value()
                    left -= 1
        consumer.close()
        return measure.per(count)

    def consume_batches(self, count: int) -> Figures:
        measure, consumer = Measure(), self.reader()
        left = WARM_RECORDS
        while left > 0:
            left -= len(consumer.consume(500, 1.0))
        left = count
        with measure.running():
            while left > 0:
                messages = consumer.consume(500, 1.0)
                for message in messages:
                    _ = message.value()
                left -= len(messages)
        consumer.close()
        return measure.per(count - left)

    def group(self, count: int) -> Figures:
        name = f"bench-{time.time_ns()}"
        members = [self.consumer(**{"group.id": name}) for _ in range(GROUP_SIZE)]
        for member in members:
            member.subscribe([self.topic])
        owned = [0] * GROUP_SIZE

        def poll(number: int) -> None:
            members[number].poll(0.05)
            owned[number] = len(members[number].assignment())

        figures = members_until_stable(poll, owned)
        for member in members:
            member.close()
        return figures


# --- aiokafka


class Aiokafka:
    def __init__(self, address: str, topic: str) -> None:
        self.settings = {"bootstrap_servers": address}
        self.topic = topic

    def producer(self) -> Any:
        import aiokafka

        return aiokafka.AIOKafkaProducer(
            **self.settings,
            enable_idempotence=True,
            max_batch_size=BATCH_BYTES,
            linger_ms=LINGER_MS,
        )

    def produce(self, value: bytes, count: int) -> Figures:
        return asyncio.run(self._produce(value, count))

    async def _produce(self, value: bytes, count: int) -> Figures:
        measure = Measure()
        async with self.producer() as producer:
            await self._send(producer, value, WARM_RECORDS)
            with measure.running():
                await self._send(producer, value, count)
        return measure.per(count)

    async def _send(self, producer: Any, value: bytes, count: int) -> None:
        for portion in portions(count):
            futures = [await producer.send(self.topic, value) for _ in range(portion)]
            await producer.flush()
            for future in futures:
                assert future.exception() is None

    def latency(self, count: int) -> Figures:
        return asyncio.run(self._latency(count))

    async def _latency(self, count: int) -> Figures:
        taken: list[float] = []
        async with self.producer() as producer:
            for _ in range(WARM_ROUND_TRIPS + count):
                begun = time.perf_counter()
                await producer.send_and_wait(self.topic, b"x" * 100)
                taken.append((time.perf_counter() - begun) * 1e3)
        return quantiles(taken[WARM_ROUND_TRIPS:])

    async def reader(self) -> Any:
        import aiokafka

        consumer = aiokafka.AIOKafkaConsumer(**self.settings)
        await consumer.start()
        places = [aiokafka.TopicPartition(self.topic, one) for one in range(4)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        return consumer

    def consume(self, count: int) -> Figures:
        return asyncio.run(self._consume(count))

    async def _consume(self, count: int) -> Figures:
        measure, consumer = Measure(), await self.reader()
        await read(consumer, WARM_RECORDS)
        with measure.running():
            await read(consumer, count)
        await consumer.stop()
        return measure.per(count)

    def consume_batches(self, count: int) -> Figures:
        return asyncio.run(self._consume_batches(count))

    async def _consume_batches(self, count: int) -> Figures:
        measure, consumer = Measure(), await self.reader()
        left = WARM_RECORDS
        while left > 0:
            found = await consumer.getmany(timeout_ms=1000, max_records=500)
            left -= sum(map(len, found.values()))
        left = count
        with measure.running():
            while left > 0:
                found = await consumer.getmany(timeout_ms=1000, max_records=500)
                for messages in found.values():
                    for message in messages:
                        _ = message.value
                    left -= len(messages)
        await consumer.stop()
        return measure.per(count - left)

    def group(self, count: int) -> Figures:
        return asyncio.run(self._group())

    async def _group(self) -> Figures:
        import aiokafka

        name = f"bench-{time.time_ns()}"
        members = [
            aiokafka.AIOKafkaConsumer(self.topic, **self.settings, group_id=name)
            for _ in range(GROUP_SIZE)
        ]
        begun = time.perf_counter()
        await asyncio.gather(*(member.start() for member in members))
        while any(len(member.assignment()) != 1 for member in members):
            assert time.perf_counter() - begun < STABLE_SECONDS_MAX
            await asyncio.sleep(0.002)
        taken = time.perf_counter() - begun
        await asyncio.gather(*(member.stop() for member in members))
        return {"stable_s": taken}


# --- kafka-python


class KafkaPython:
    def __init__(self, address: str, topic: str) -> None:
        self.settings = {"bootstrap_servers": address}
        self.topic = topic

    def producer(self) -> Any:
        import kafka

        return kafka.KafkaProducer(
            **self.settings,
            acks="all",
            enable_idempotence=True,
            batch_size=BATCH_BYTES,
            linger_ms=LINGER_MS,
        )

    def produce(self, value: bytes, count: int) -> Figures:
        measure, producer = Measure(), self.producer()
        self.send(producer, value, WARM_RECORDS)
        with measure.running():
            self.send(producer, value, count)
        producer.close()
        return measure.per(count)

    def send(self, producer: Any, value: bytes, count: int) -> None:
        for portion in portions(count):
            futures = [producer.send(self.topic, value) for _ in range(portion)]
            producer.flush()
            for future in futures:
                assert future.succeeded()

    def latency(self, count: int) -> Figures:
        producer = self.producer()
        figures = round_trips(lambda: producer.send(self.topic, b"x" * 100).get(), count)
        producer.close()
        return figures

    def reader(self) -> Any:
        import kafka

        consumer = kafka.KafkaConsumer(**self.settings)
        places = [kafka.TopicPartition(self.topic, one) for one in range(4)]
        consumer.assign(places)
        consumer.seek_to_beginning(*places)
        return consumer

    def consume(self, count: int) -> Figures:
        measure, consumer = Measure(), self.reader()
        for message in islice(consumer, WARM_RECORDS):
            _ = message.value
        with measure.running():
            for message in islice(consumer, count):
                _ = message.value
        consumer.close()
        return measure.per(count)

    def consume_batches(self, count: int) -> Figures:
        measure, consumer = Measure(), self.reader()
        left = WARM_RECORDS
        while left > 0:
            left -= sum(map(len, consumer.poll(1000, max_records=500).values()))
        left = count
        with measure.running():
            while left > 0:
                for messages in consumer.poll(1000, max_records=500).values():
                    for message in messages:
                        _ = message.value
                    left -= len(messages)
        consumer.close()
        return measure.per(count - left)

    def group(self, count: int) -> Figures:
        import kafka

        name = f"bench-{time.time_ns()}"
        members = [
            kafka.KafkaConsumer(self.topic, **self.settings, group_id=name)
            for _ in range(GROUP_SIZE)
        ]
        owned = [0] * GROUP_SIZE

        def poll(number: int) -> None:
            members[number].poll(50)
            owned[number] = len(members[number].assignment())

        figures = members_until_stable(poll, owned)
        for member in members:
            member.close()
        return figures


CLIENTS: Final[dict[str, Callable[[str, str], Any]]] = {
    "tarry": Tarry,
    "tarry-aio": TarryAio,
    "confluent-kafka": Confluent,
    "aiokafka": Aiokafka,
    "kafka-python": KafkaPython,
}


def main() -> None:
    global WARM_RECORDS
    client_name, work, address, topic, count_text = sys.argv[1:]
    warnings.simplefilter("ignore")
    logging.disable(logging.ERROR)
    client, count = CLIENTS[client_name](address, topic), int(count_text)
    WARM_RECORDS = min(WARM_RECORDS, count)
    if work.startswith("produce"):
        figures = client.produce(b"x" * int(work.removeprefix("produce-")), count)
    else:
        figures = getattr(client, work.replace("-", "_"))(count)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
