"""kill -9 of the broker under load: each codec, five requests in flight, records and tables.

A reader works all the while, by the face that is tested.  Nothing may be lost, doubled or reordered
in a partition, neither by those who write nor by those who read.
"""

from __future__ import annotations

import hashlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, Consumer, NewTopic, Producer

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS: Final = 2
IN_FLIGHT: Final = 5
# A load gives so many at a time while fewer than the next number are under way.
ROWS: Final = 40
UNDER_WAY_MIN: Final = 600

SETTINGS: Final[dict[str, Any]] = {
    # Small batches, so that many requests are under way.
    "batch.size": 1_000,
    "linger.ms": 0,
    "max.in.flight.requests.per.connection": IN_FLIGHT,
    "delivery.timeout.ms": int(PATIENCE_S) * 1_000,
    "max.block.ms": int(PATIENCE_S) * 1_000,
    "reconnect.backoff.max.ms": 100,
}

# Offset and value of what was written or read, by topic and partition.
Found = dict[tuple[str, int], list[tuple[int, bytes]]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that may be killed; whoever does so starts it again."""
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    process.start()
    yield process
    process.close()


class Load:
    """A producer of one codec that writes into a topic of its own; by records."""

    def __init__(self, broker: BrokerProcess, codec: str) -> None:
        self.topic = f"{type(self).__name__}-{codec}"
        self.values: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.producer = self.make(
            {"bootstrap.servers": broker.address, "compression.type": codec, **SETTINGS}
        )
        self.receipts: list[Any] = []
        # The last of each partition when the broker was killed: those before are answered first.
        self.last_given: list[Any] = []

    def make(self, settings: dict[str, Any]) -> Any:
        return Producer(settings)

    def next_values(self) -> list[tuple[int, bytes]]:
        """Return partitions and values of the next rows."""
        made = []
        for number in range(ROWS):
            partition = number % PARTITIONS
            name = f"{self.topic}-{partition}-{len(self.values[partition])}".encode()
            # Something that no codec makes small, so that batches are many.
            value = name + hashlib.sha256(name).hexdigest().encode()
            self.values[partition].append(value)
            made.append((partition, value))
        return made

    def send(self) -> None:
        for partition, value in self.next_values():
            self.receipts.append(self.producer.send(self.topic, value, partition=partition))

    def keep_busy(self) -> None:
        while self.producer.metrics().buffered < UNDER_WAY_MIN:
            self.send()

    def is_going_on(self) -> bool:
        """True when records are acknowledged and none is left that had to be repeated.

        Counts do not tell: one partition runs ahead while another still repeats its batches, one
        at a time, and then a broker that stands still gets no five requests.
        """
        is_repeated = all(receipt.is_done for receipt in self.last_given)
        return is_repeated and self.producer.metrics().records > 0

    def is_full(self) -> bool:
        return bool(self.producer.metrics().in_flight == IN_FLIGHT)

    def offsets(self) -> dict[tuple[str, int], list[int]]:
        """Return the offsets that the receipts have, by partition, in the order of the records."""
        found: dict[tuple[str, int], list[int]] = {}
        for receipt in self.receipts:
            receipt.result(timeout=PATIENCE_S)
            found.setdefault((self.topic, receipt.partition), []).append(receipt.offset)
        return found

    def written(self) -> Found:
        return {
            (self.topic, partition): list(enumerate(values))
            for partition, values in enumerate(self.values)
        }


class TableLoad(Load):
    """The same by tables."""

    def make(self, settings: dict[str, Any]) -> Any:
        from tarry.client.arrow import ArrowProducer

        return ArrowProducer(settings)

    def send(self) -> None:
        import pyarrow as pa

        partitions, values = zip(*self.next_values(), strict=True)
        table = pa.table({"value": values, "partition": pa.array(partitions, pa.int32())})
        self.receipts.append(self.producer.send(self.topic, table))

    def offsets(self) -> dict[tuple[str, int], list[int]]:
        found: dict[tuple[str, int], list[int]] = {}
        for receipt in self.receipts:
            for rows in receipt.result(timeout=PATIENCE_S).batches:
                offsets = range(rows.offset, rows.offset + rows.row_count)
                found.setdefault((self.topic, rows.partition), []).extend(offsets)
        return found


class Reader:
    """A thread that reads all topics until it is told to stop; by records."""

    def __init__(self, broker: BrokerProcess, topics: list[str]) -> None:
        self.found: Found = {
            (topic, partition): [] for topic in topics for partition in range(PARTITIONS)
        }
        self.count = 0
        self.consumer = self.make(
            {
                "bootstrap.servers": broker.address,
                "auto.offset.reset": "earliest",
                "max.partition.fetch.bytes": 4_000,
                "reconnect.backoff.max.ms": 100,
            }
        )
        self.consumer.assign(self.found)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def make(self, settings: dict[str, Any]) -> Any:
        return Consumer(settings)

    def read(self) -> None:
        for group in self.consumer.batches():
            place = (group.topic, group.partition)
            self.found[place] += [(record.offset, record.value) for record in group.records]
            self.count += len(group.records)

    def stop_behind(self, count: int) -> None:
        """Wait for so many records, and end."""
        wait_until(lambda: "yes" if self.count >= count else "", f"{count} records")
        self.consumer.wakeup()
        self.thread.join(PATIENCE_S)
        self.consumer.close()


class TableReader(Reader):
    """The same by columns."""

    def make(self, settings: dict[str, Any]) -> Any:
        from tarry.client.arrow import ArrowConsumer

        return ArrowConsumer(settings)

    def read(self) -> None:
        names = ["topic", "partition", "offset", "value"]
        for batch in self.consumer.batches(columns=names, max_rows=100):
            for topic, partition, offset, value in zip(*batch.to_pydict().values(), strict=True):
                self.found[topic, partition].append((offset, value))
            self.count += batch.num_rows


def keep_busy_until_all(loads: list[Load], is_reached: Callable[[Load], bool]) -> None:
    """Keep records under way until each load has been where `is_reached` says, once."""
    left = list(loads)

    def send() -> str:
        for load in loads:
            load.keep_busy()
        left[:] = [load for load in left if not is_reached(load)]
        return "" if left else "yes"

    wait_until(send, "a load on the broker")


@pytest.mark.parametrize("kind", ["records", "tables"])
def test_kills_under_load_lose_double_and_reorder_nothing_in_any_codec(
    broker: BrokerProcess, kind: str
) -> None:
    if kind == "tables":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install tarry[arrow]")
    loads = [(Load if kind == "records" else TableLoad)(broker, codec) for codec in CODECS]
    topics = [load.topic for load in loads]
    with Admin(bootstrap_servers=broker.address) as admin:
        outcomes = admin.create_topics([NewTopic(topic, PARTITIONS) for topic in topics])
        assert [outcome.error for outcome in outcomes] == [None] * len(topics)
    reader = (Reader if kind == "records" else TableReader)(broker, topics)

    # One kill meets requests in every stage.  Before the other one the broker stands still until
    # each producer has five requests under way; on a broker that answers that is a matter of luck.
    keep_busy_until_all(loads, Load.is_going_on)
    for load in loads:
        load.keep_busy()
    broker.kill()
    for load in loads:
        load.send()
        load.last_given = load.receipts[-PARTITIONS:]
    broker.start()
    keep_busy_until_all(loads, Load.is_going_on)
    broker.send_signal(signal.SIGSTOP)
    keep_busy_until_all(loads, Load.is_full)
    broker.kill()
    broker.start()
    offsets: dict[tuple[str, int], list[int]] = {}
    written: Found = {}
    for load in loads:
        offsets |= load.offsets()
        written |= load.written()
        load.producer.close()
    reader.stop_behind(sum(len(values) for values in written.values()))

    assert offsets == {place: [at for at, _ in values] for place, values in written.items()}
    assert reader.found == written
