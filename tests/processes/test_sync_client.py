"""The synchronous faces of the client over real sockets: threads, restarts, forgotten closes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.client.late import error_when_late
from tests.support.patience import PATIENCE_S

from tarry.client.core.admin.calls import NewTopic
from tarry.client.errors import (
    BufferFull,
    ClientClosed,
    ConcurrentUse,
    DeliveryFailed,
    PartitionerFailed,
    RecordTooLarge,
    UnknownTopic,
)
from tarry.client.sync.admin import Admin
from tarry.client.sync.consumer import Consumer
from tarry.client.sync.producer import Producer, Receipt
from tarry.link.errors import TimedOut

NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    process.start({"auto.create.topics.enable": "false"})
    yield process
    process.close()


def make_topic(broker: BrokerProcess, name: str, partitions: int = 1) -> str:
    with Admin(bootstrap_servers=broker.address) as admin:
        (outcome,) = admin.create_topics([NewTopic(name, partitions)])
    assert outcome.error is None
    return name


def producer_for(address: str, time_s: float) -> Producer:
    """Make a producer whose calls wait for so long."""
    return Producer(bootstrap_servers=address, max_block_ms=int(time_s * 1_000))


def values_of(broker: BrokerProcess, topic: str) -> list[bytes | None]:
    """All values of partition 0."""
    place = (topic, 0)
    with Consumer(bootstrap_servers=broker.address) as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([place])[place]
        found: list[bytes | None] = []
        while consumer.position(*place) < end:
            for group in consumer.poll(1.0):
                found += [record.value for record in group.records]
    return found


# --- Producer


def test_a_receipt_waits_for_its_record(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "receipt")

    with Producer(bootstrap_servers=broker.address) as producer:
        receipt = producer.send(topic, b"v", key=b"k", headers={"h": b"1"}).result(
            timeout=PATIENCE_S
        )

    assert (receipt.offset, receipt.partition) == (0, 0)


def test_whoever_waits_does_not_wait_for_the_linger(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "linger")

    linger_ms = 2 * int(PATIENCE_S) * 1_000

    with Producer(
        bootstrap_servers=broker.address, linger_ms=linger_ms, delivery_timeout_ms=2 * linger_ms
    ) as producer:
        for _ in range(5):
            producer.send(topic, b"v").result(timeout=PATIENCE_S)


def test_records_that_nobody_waits_for_leave_by_themselves(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "alone")

    with Producer(bootstrap_servers=broker.address) as producer:
        receipt = producer.send(topic, b"v")

        assert wait_until(lambda: "done" if receipt.is_done else "", "the record") == "done"


def test_many_threads_share_a_producer(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "threads")
    receipts: list[list[Receipt]] = [[] for _ in range(8)]

    def work(number: int) -> None:
        for place in range(300):
            receipt = producer.send(topic, b"%d-%04d" % (number, place))
            receipts[number].append(receipt)
            if place % 50 == 0:
                receipt.result(timeout=PATIENCE_S)

    with Producer(bootstrap_servers=broker.address, batch_size=2_000) as producer:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
        producer.flush(PATIENCE_S)

    found = values_of(broker, topic)
    assert len(found) == 2_400
    for number, mine in enumerate(receipts):
        wanted = [b"%d-%04d" % (number, place) for place in range(300)]
        assert [value for value in found if value and value.startswith(b"%d-" % number)] == wanted
        assert [found[receipt.offset] for receipt in mine] == wanted


def test_a_broker_that_is_killed_and_comes_back_loses_and_doubles_nothing(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.start()
    topic = make_topic(broker, "killed")
    wanted = [b"%06d" % number for number in range(3_000)]
    try:
        with Producer(
            bootstrap_servers=broker.address, batch_size=1_000, close_timeout_ms=PATIENCE_S * 1_000
        ) as producer:
            for number, value in enumerate(wanted):
                producer.send(topic, value)
                if number in (1_000, 2_000):
                    broker.kill()
                    broker.start()

        assert values_of(broker, topic) == wanted
    finally:
        broker.close()


def test_a_full_buffer_waits_and_then_says_so(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "full")
    small = {"bootstrap_servers": broker.address, "buffer_memory": 20_000, "batch_size": 1_000}
    with Producer(**small) as producer:
        for _ in range(2_000):
            producer.send(topic, b"x" * 100)
    with Producer(**small, max_block_ms=300) as producer:
        # The topic is known before the broker stops.
        producer.partition_count(topic, PATIENCE_S)
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            with pytest.raises(BufferFull, match="stayed full for 300 ms"):
                for _ in range(2_000):
                    producer.send(topic, b"x" * 100)
        finally:
            os.kill(broker.pid, signal.SIGCONT)


def test_flush_raises_for_records_that_nobody_looked_at(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "unseen")
    producer = Producer(bootstrap_servers=broker.address, max_request_size=4_000_000)

    producer.send(topic, b"x" * 2_000_000)
    seen = producer.send(topic, b"y" * 2_000_000)
    with pytest.raises(RecordTooLarge):
        seen.result(timeout=PATIENCE_S)

    with pytest.raises(DeliveryFailed, match="1 record was not delivered"):
        producer.close(PATIENCE_S)


def test_calls_of_on_delivery_come_from_the_producers_own_thread(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "told")
    heard: list[tuple[str, int]] = []

    def hear(receipt: Receipt) -> None:
        heard.append((threading.current_thread().name, receipt.offset))
        raise ZeroDivisionError

    with Producer(bootstrap_servers=broker.address, on_delivery=hear) as producer:
        for _ in range(100):
            producer.send(topic, b"v")
        producer.flush(PATIENCE_S)
        assert heard == [("tarry-sender", offset) for offset in range(100)]


def test_a_call_of_on_delivery_may_send_flush_and_close(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "chain")
    over = threading.Event()

    def end(receipt: Receipt) -> None:
        producer.close(PATIENCE_S)
        over.set()

    def go_on(receipt: Receipt) -> None:
        producer.send(topic, b"second", on_delivery=end)
        producer.flush(PATIENCE_S)

    producer = Producer(bootstrap_servers=broker.address)
    producer.send(topic, b"first", on_delivery=go_on)

    assert over.wait(PATIENCE_S)
    assert values_of(broker, topic) == [b"first", b"second"]


def test_what_was_not_sent_is_told_to_on_delivery(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "abandoned")
    heard: list[object] = []
    producer = Producer(bootstrap_servers=broker.address, linger_ms=60_000)
    producer.partition_count(topic)
    producer.send(topic, b"v", on_delivery=lambda receipt: heard.append(receipt.error))

    producer.abort()

    assert [type(error) for error in heard] == [ClientClosed]


def test_a_partitioner_that_raises_harms_its_own_record_alone(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "own-partitioner", partitions=3)

    def chosen(topic: str, key: bytes | None, count: int) -> int:
        assert key is not None
        # Whoever chooses may ask the producer.
        return producer.partition_count(topic) - 1 if key == b"last" else int(key)

    with Producer(bootstrap_servers=broker.address, partitioner=chosen) as producer:
        receipts = [producer.send(topic, b"v", key=key) for key in (b"0", b"last")]
        for key in (b"7", b"x", None):
            with pytest.raises(PartitionerFailed):
                producer.send(topic, b"v", key=key)
        receipts.append(producer.send(topic, b"v", key=b"1"))
        producer.flush(PATIENCE_S)

    assert [(one.partition, one.offset) for one in receipts] == [(0, 0), (2, 0), (1, 0)]


def test_an_unknown_topic_is_told_in_time(broker: BrokerProcess) -> None:
    def send(time_s: float) -> None:
        with producer_for(broker.address, time_s) as producer:
            producer.send("nowhere", b"x")

    error = error_when_late(send, "topic 'nowhere' does not exist", 1.5)

    assert isinstance(error, UnknownTopic)
    assert "topic 'nowhere' does not exist" in str(error)


def test_no_broker_at_all_is_told_in_time() -> None:
    def send(time_s: float) -> None:
        with producer_for(NOBODY, time_s) as producer:
            producer.send("t", b"x")

    error = error_when_late(send, "connection refused", 0.5)

    assert isinstance(error, TimedOut)
    assert "connection refused" in str(error)


def test_a_name_that_nobody_knows_is_told_in_time() -> None:
    def send(time_s: float) -> None:
        with producer_for("no.such.host.invalid:9092", time_s) as producer:
            producer.send("t", b"x")

    error = error_when_late(send, "is not known", 2)

    assert isinstance(error, TimedOut)
    assert "is not known" in str(error)


def test_close_is_bounded_and_tells_what_was_not_sent(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "bounded")
    producer = Producer(bootstrap_servers=broker.address, close_timeout_ms=300)
    producer.send(topic, b"there").result(timeout=PATIENCE_S)
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        producer.send(topic, b"not there")
        with pytest.raises(TimedOut):
            producer.close()
    finally:
        os.kill(broker.pid, signal.SIGCONT)

    with pytest.raises(ClientClosed):
        producer.send(topic, b"later")


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_an_error_in_the_block_is_not_hidden_by_the_close(
    broker: BrokerProcess, error: type[BaseException]
) -> None:
    topic = make_topic(broker, f"block-{error.__name__}")

    with (
        pytest.raises(error),
        Producer(bootstrap_servers=broker.address) as producer,
    ):
        producer.send(topic, b"sent all the same")
        raise error

    assert values_of(broker, topic) == [b"sent all the same"]


FORGETFUL = """
import sys
from tarry.client.sync.producer import Producer
producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=60_000)
for number in range(100):
    producer.send("forgotten", b"%d" % number)
"""


def test_a_program_that_forgets_to_close_still_delivers(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "forgotten")
    command = [sys.executable, "-W", "default", "-c", FORGETFUL, broker.address]

    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert done.returncode == 0, done.stderr
    assert "a Producer was not closed" in done.stderr
    assert values_of(broker, topic) == [b"%d" % number for number in range(100)]


DROPPED = """
import gc, sys, threading, time
from tarry.client.sync.producer import Producer
def send():
    producer = Producer(bootstrap_servers=sys.argv[1], linger_ms=200)
    for number in range(100):
        producer.send("dropped", b"%d" % number)
send()
gc.collect()
end = time.monotonic() + 300
while threading.active_count() > 1 and time.monotonic() < end:
    time.sleep(0.01)
print(threading.active_count())
"""


def test_a_producer_that_is_dropped_sends_what_it_took_and_ends_its_thread(
    broker: BrokerProcess,
) -> None:
    topic = make_topic(broker, "dropped")
    command = [sys.executable, "-W", "default", "-c", DROPPED, broker.address]

    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert done.stdout == "1\n"
    assert done.stderr.count("ResourceWarning: a Producer was not closed") == 1
    assert values_of(broker, topic) == [b"%d" % number for number in range(100)]


def test_a_receipt_outlives_its_producer(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "outlived")

    with pytest.warns(ResourceWarning, match="a Producer was not closed"):
        receipt = Producer(bootstrap_servers=broker.address).send(topic, b"x")

    assert receipt.result(timeout=PATIENCE_S).offset == 0


# --- Consumer and Admin


def test_two_threads_in_one_consumer_are_both_named(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "concurrent")
    consumer = Consumer(bootstrap_servers=broker.address)
    consumer.assign([(topic, 0)])
    poller = threading.Thread(target=lambda: consumer.poll(PATIENCE_S), name="poller")
    poller.start()

    def refusal() -> str:
        try:
            consumer.seek(topic, 0, 0)
        except ConcurrentUse as error:
            return str(error)
        return ""

    assert "MainThread uses it while poller does" in wait_until(refusal, "a refusal")
    consumer.wakeup()
    poller.join(PATIENCE_S)
    consumer.close()


def test_a_consumer_that_is_closed_under_a_poll_ends_it(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "closing")
    consumer = Consumer(bootstrap_servers=broker.address)
    consumer.assign([(topic, 0)])
    errors: list[BaseException] = []

    def poll() -> None:
        try:
            consumer.poll(PATIENCE_S)
        except ClientClosed as error:
            errors.append(error)

    poller = threading.Thread(target=poll)
    poller.start()
    consumer.close()
    poller.join(PATIENCE_S)

    assert len(errors) == 1
    with pytest.raises(ClientClosed):
        consumer.poll(0.1)


def test_a_consumer_goes_on_when_its_broker_was_killed_and_came_back(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.start()
    topic = make_topic(broker, "followed")
    try:
        with (
            Producer(bootstrap_servers=broker.address) as producer,
            Consumer(bootstrap_servers=broker.address, auto_offset_reset="earliest") as consumer,
        ):
            consumer.assign([(topic, 0)])
            found: list[bytes | None] = []
            for round_ in range(3):
                producer.send(topic, b"%d" % round_).result(timeout=PATIENCE_S)
                while len(found) <= round_:
                    for group in consumer.poll(1.0):
                        found += [record.value for record in group.records]
                broker.kill()
                broker.start()

        assert found == [b"0", b"1", b"2"]
    finally:
        broker.close()


def test_offsets_of_a_partition_that_is_not_there_are_refused(broker: BrokerProcess) -> None:
    topic = make_topic(broker, "few", partitions=2)

    with Consumer(bootstrap_servers=broker.address) as consumer:
        error = error_when_late(
            lambda time_s: consumer.end_offsets([(topic, 5)], timeout=time_s),
            "partitions 0 to 1, not 5",
            1.0,
        )

    assert isinstance(error, UnknownTopic)
    assert "partitions 0 to 1, not 5" in str(error)


def test_an_admin_call_without_a_broker_is_told_in_time() -> None:
    with Admin(bootstrap_servers=NOBODY) as admin:
        error = error_when_late(
            lambda time_s: admin.list_topics(timeout=time_s), "connection refused", 0.5
        )

    assert isinstance(error, TimedOut)
    assert "connection refused" in str(error)


LOADED = """
import sys
from tarry.client import Producer
loaded = [name for name in sys.modules if name.startswith("tarry.client")]
print([name for name in loaded if "consumer" in name or "admin" in name or "group" in name])
"""


def test_a_program_that_produces_loads_nothing_of_consumers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )

    assert done.stdout == "[]\n"
