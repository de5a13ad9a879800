"""The same questions to every real client: what it writes it reads, and a restart loses nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.client_face import CODECS, STEP_SECONDS_MAX, ClientFace
from tests.support.interop.records_sent import (
    LARGEST_VALUE,
    START_MS,
    ReadRecord,
    SentRecord,
    numbered,
    without_times,
)

from tarry.records.batch import decode_batch_header

CLIENTS_WITH_ADMIN = ("confluent-kafka", "kafka-python", "aiokafka", "java")
CLIENTS = (*CLIENTS_WITH_ADMIN, "kcat")

# Above the largest value with its key, headers and batch header.
TOPIC_BYTES_MAX = {"max.message.bytes": str(LARGEST_VALUE + 10_000)}

# Of the records that are sent while the broker is stopped and started again.
STOPS_AFTER = (200, 600, 1_000)
STARTS_AFTER = (300, 700, 1_100)

MakeBroker = Callable[[], BrokerProcess]
MakeClient = Callable[[str, str], ClientFace]

# Old importlib calls of kafka-python, and sockets that clients leave to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(params=CLIENTS)
def client(
    request: pytest.FixtureRequest, shared_broker: BrokerProcess, make_client: MakeClient
) -> ClientFace:
    return make_client(request.param, shared_broker.address)


def create(client: ClientFace, topic: str, partitions: int = 1) -> str:
    client.create_topic(topic, partitions, TOPIC_BYTES_MAX if client.has_admin else {})
    return topic


def produce(
    client: ClientFace, topic: str, records: list[SentRecord], codec: str = "none"
) -> list[int] | None:
    producer = client.producer(codec)
    for record in records:
        producer.send(topic, 0, record)
    offsets = producer.flush()
    producer.close()
    return offsets


def codecs_in_log(broker: BrokerProcess, topic: str) -> set[str]:
    """By which codecs the batches of the topic's first partition are compressed."""
    found = set()
    for path in sorted(Path(broker.directory, "data", f"{topic}-0").glob("*.log")):
        data = path.read_bytes()
        position = 0
        while position < len(data):
            header = decode_batch_header(data, position)
            found.add(CODECS[header.codec])
            position += header.size
    return found


def as_sent(found: list[ReadRecord], sent: list[SentRecord]) -> list[ReadRecord]:
    """What a reader must find: offsets from 0 on, and where none was given, the client's time."""
    return [
        ReadRecord(
            offset,
            record
            if record.timestamp_ms is not None
            else record._replace(timestamp_ms=found[offset].record.timestamp_ms),
        )
        for offset, record in enumerate(sent)
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_a_client_reads_back_what_it_wrote(client, shared_broker, codec):
    if codec not in client.codecs:
        pytest.skip(f"{client.name} {client.version} has no {codec} here")
    topic = create(client, f"kinds-{codec}-{client.name.replace(' ', '-')}")
    sent = client.records()

    offsets = produce(client, topic, sent, codec)
    found = client.read(topic, 0, 0, len(sent))

    assert offsets in (None, list(range(len(sent))))
    assert found == as_sent(found, sent)
    assert client.end_offset(topic, 0) == len(sent)
    assert codec in codecs_in_log(shared_broker, topic)


@pytest.mark.parametrize("acks", ["0", "1"])
def test_producers_without_idempotence_are_served(client, acks):
    topic = create(client, f"acks-{acks}-{client.name.replace(' ', '-')}")
    sent = numbered(0, 50)
    producer = client.producer("none", acks, is_idempotent=False)

    for record in sent:
        producer.send(topic, 0, record)
    producer.flush()
    producer.close()
    found = client.read(topic, 0, 0, len(sent))

    assert without_times([one.record for one in found]) == sent
    assert [one.offset for one in found] == list(range(len(sent)))


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_client_starts_reading_inside_a_batch(client, codec):
    topic = create(client, f"inside-{codec}-{client.name.replace(' ', '-')}")
    produce(client, topic, numbered(0, 60), codec)

    found = client.read(topic, 0, 37, 10)

    assert [(one.offset, one.record.value) for one in found] == [
        (number, b"%d" % number) for number in range(37, 47)
    ]


def test_a_client_seeks_by_time(client):
    topic = create(client, f"times-{client.name.replace(' ', '-')}")
    sent = client.records()
    produce(client, topic, sent, "zstd" if "zstd" in client.codecs else "none")
    times = [one.record.timestamp_ms or 0 for one in client.read(topic, 0, 0, len(sent))]

    for asked in sorted({0, START_MS, *times, max(times) + 1}):
        later = [offset for offset, time in enumerate(times) if time >= asked]
        assert client.offset_for_time(topic, 0, asked) == (later[0] if later else None)


def test_every_client_reads_what_the_others_wrote(shared_broker, make_client):
    clients = [make_client(name, shared_broker.address) for name in CLIENTS]
    topic = create(clients[0], "written-by-all")
    sent = []
    for client in clients:
        for codec in client.codecs:
            records = [one for one in client.records() if len(one.value or b"") < 10_000]
            produce(client, topic, records, codec)
            sent += records

    read_by = [client.read(topic, 0, 0, len(sent)) for client in clients]

    assert read_by[0] == as_sent(read_by[0], sent)
    for client, found in zip(clients, read_by, strict=True):
        assert found == read_by[0], client.name


@pytest.mark.parametrize("client", CLIENTS_WITH_ADMIN, indirect=True)
def test_a_topic_is_created_with_settings_and_deleted(client, shared_broker):
    topic = create(client, f"deleted-{client.name.replace(' ', '-')}", partitions=3)
    produce(client, topic, numbered(0, 3))
    directories = sorted(Path(shared_broker.directory, "data").glob(f"{topic}-*"))

    client.delete_topic(topic)
    client.create_topic(topic, 1, {})

    assert [path.name for path in directories] == [f"{topic}-{index}" for index in range(3)]
    assert client.end_offset(topic, 0) == 0


@pytest.mark.parametrize("end", ["SIGTERM", "SIGKILL"])
@pytest.mark.parametrize("name", CLIENTS)
def test_restarts_in_the_middle_of_producing_lose_and_double_nothing(
    name, end, make_broker, make_client
):
    broker = make_broker()
    client = make_client(name, broker.address)
    partitions = 2 if client.has_admin else 1
    client.create_topic("numbers", partitions, {})
    sent = numbered(0, 1_300)
    producer = client.producer("gzip")

    for number, record in enumerate(sent):
        producer.send("numbers", number % partitions, record)
        if number in STOPS_AFTER:
            code = broker.stop(signal.Signals[end])
            assert code == (0 if end == "SIGTERM" else -signal.SIGKILL)
        if number in STARTS_AFTER:
            broker.start()
    offsets = producer.flush()
    producer.close()

    for partition in range(partitions):
        expected = sent[partition::partitions]
        found = client.read("numbers", partition, 0, len(expected))
        assert without_times([one.record for one in found]) == expected
        assert client.end_offset("numbers", partition) == len(expected)
        if offsets is not None:
            assert offsets[partition::partitions] == list(range(len(expected)))


@pytest.mark.parametrize("name", CLIENTS)
def test_a_reader_goes_on_over_a_kill_and_a_restart(name, make_broker, make_client):
    broker = make_broker()
    writer = make_client("aiokafka", broker.address)
    reader = make_client(name, broker.address)
    writer.create_topic("numbers", 1, {})
    sent = numbered(0, 300)
    producer = writer.producer()

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.read, "numbers", 0, 0, len(sent))
        for number, record in enumerate(sent):
            producer.send("numbers", 0, record)
            if number % 100 == 50:
                producer.flush()
                broker.kill()
                broker.start()
        producer.flush()
        found = reading.result(STEP_SECONDS_MAX)
    producer.close()

    assert without_times([one.record for one in found]) == sent
