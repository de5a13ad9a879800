"""Records that real clients schedule: each comes once, when it is due, also over kill -9."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.client_face import ClientFace, ClientMissing
from tests.support.interop.foreign_clients import (
    BUILD_SECONDS_MAX,
    CLIENTS as FOREIGN_CLIENTS,
    ask_client,
)
from tests.support.interop.records_sent import SentRecord

from tarry.client import Admin

MakeBroker = Callable[[], BrokerProcess]
MakeClient = Callable[[str, str], ClientFace]

# kcat cannot give a record a time: it writes to a topic in which every record waits.
CLIENTS = ("java", "confluent-kafka", "kafka-python", "aiokafka", "kcat")
BY_TIMESTAMP = {"delay.enable": "true", "delay.source": "timestamp"}
LATER_MS = 3_000
BY_HEADER = {"delay.enable": "true", "delay.source": "header"}
EVERY_RECORD_WAITS = {"delay.enable": "true", "delay.default.ms": str(LATER_MS)}

# Old importlib calls of kafka-python, and sockets that clients leave to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def broker(make_broker: MakeBroker) -> Iterator[BrokerProcess]:
    yield make_broker()


def client_with_topic(
    make_client: MakeClient, name: str, broker: BrokerProcess, configs: dict[str, str]
) -> tuple[ClientFace, ClientFace]:
    """Create the topic `later`; return the client, and the one that administers for it."""
    client = make_client(name, broker.address)
    admin = client if client.has_admin else make_client("confluent-kafka", broker.address)
    admin.create_topic("later", 1, configs)
    return client, admin


def wall_ms() -> int:
    return int(time.time() * 1000)


@pytest.mark.parametrize("ends", ["", "kill"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_record_comes_once_when_it_is_due(
    broker: BrokerProcess, make_client: MakeClient, name: str, ends: str
):
    has_times = name != "kcat"
    configs = BY_TIMESTAMP if has_times else EVERY_RECORD_WAITS
    client, _ = client_with_topic(make_client, name, broker, configs)
    producer = client.producer()
    due_ms = wall_ms() + LATER_MS

    # A batch each; the second one shows that the first did not come twice.
    for value, after_ms in ((b"first", 0), (b"second", 500)):
        producer.send(
            "later", 0, SentRecord(value, b"k", (), due_ms + after_ms if has_times else None)
        )
        producer.flush()
    if ends == "kill":
        broker.kill()
        broker.start()
    (first,) = client.read("later", 0, 0, 1)
    came_ms = wall_ms()
    (second,) = client.read("later", 0, 1, 1)
    producer.close()

    assert came_ms >= due_ms
    assert [each.record.value for each in (first, second)] == [b"first", b"second"]
    assert [first.offset, second.offset] == [0, 1]
    if has_times:
        assert first.record.timestamp_ms == due_ms
    assert client.end_offset("later", 0) == 2


@pytest.mark.parametrize("is_idempotent", [True, False])
@pytest.mark.parametrize("name", CLIENTS[:-1])
def test_what_clients_say_of_the_offset_of_a_record_that_waits(
    broker: BrokerProcess, make_client: MakeClient, name: str, is_idempotent: bool
):
    client = make_client(name, broker.address)
    client.create_topic("later", 1, BY_TIMESTAMP)
    producer = client.producer(is_idempotent=is_idempotent)

    producer.send("later", 0, SentRecord(b"a", b"k", (), wall_ms() + 3_600_000))
    offsets = producer.flush()
    producer.close()

    # The broker answers -1: the record has no offset yet.
    assert offsets == [None if name == "confluent-kafka" else -1]
    assert client.end_offset("later", 0) == 0


@pytest.mark.parametrize("name", CLIENTS)
def test_headers_say_when_a_record_comes_and_take_it_back(
    broker: BrokerProcess, make_client: MakeClient, name: str
):
    client, _ = client_with_topic(make_client, name, broker, BY_HEADER)
    producer = client.producer()
    now_ms = wall_ms()

    def send(value: bytes, *headers: tuple[str, bytes]) -> None:
        producer.send("later", 0, SentRecord(value, b"k", headers, None))

    send(b"taken back", ("x-deliver-after", b"2s"), ("x-sched-id", b"one"))
    send(b"second", ("x-deliver-at", b"%d" % (now_ms + LATER_MS)), ("x-sched-id", b"two"))
    send(b"third", ("x-deliver-after", b"4000"), ("other", b"kept"))
    send(b"at once")
    producer.flush()
    send(b"", ("x-sched-id", b"one"), ("x-sched-cancel", b"1"))
    producer.flush()
    broker.kill()
    broker.start()
    at_once, second = client.read("later", 0, 0, 2)
    came_ms = wall_ms()
    (third,) = client.read("later", 0, 2, 1)
    producer.close()

    assert came_ms >= now_ms + LATER_MS
    values = [each.record.value for each in (at_once, second, third)]
    assert values == [b"at once", b"second", b"third"]
    assert ("other", b"kept") in third.record.headers
    assert client.end_offset("later", 0) == 3


# Headers that no broker can follow, and what its sentence says.
Headers = tuple[tuple[str, bytes], ...]
BAD_HEADERS: tuple[tuple[Headers, str], ...] = (
    ((("x-deliver-after", b"soon"),), "x-deliver-after=soon"),
    ((("x-deliver-at", b"4000000000000"), ("x-deliver-after", b"1h")), "both say when"),
    ((("x-deliver-after", b"48h"),), "delay.max.ms is 86400000"),
    ((("x-sched-cancel", b"1"),), "x-sched-cancel needs x-sched-id"),
    ((("x-deliver-after", b"1h"), ("x-sched-id", b"i" * 100_000)), "1024 are the most"),
    ((("x-sched-cron", b"0 0 30 2 *"),), "never comes"),
    ((("x-sched-cron", b"* * * * * *"),), "has 6 fields"),
    ((("x-sched-cron", b"0 8 * * *"), ("x-sched-tz", b"Mars/Olympus")), "Mars/Olympus"),
)
# Java and kafka-python pass the broker's sentence on.  The others have words of their own for its
# code, aiokafka none for INVALID_RECORD, and kcat says it by how it ends.
OWN_WORDS = {
    "confluent-kafka": r"INVALID_RECORD|INVALID_TIMESTAMP",
    "aiokafka": r"UnknownError|InvalidTimestampError",
    "kcat": r"^$",
}


@pytest.mark.parametrize("name", CLIENTS)
def test_what_headers_cannot_mean_is_told_to_the_producer_and_not_stored(
    broker: BrokerProcess, make_client: MakeClient, name: str
):
    client, admin = client_with_topic(
        make_client, name, broker, {**BY_HEADER, "delay.max.ms": "86400000"}
    )

    for headers, sentence in BAD_HEADERS:
        producer = client.producer()
        with pytest.raises(Exception, match=OWN_WORDS.get(name, re.escape(sentence))):
            producer.send("later", 0, SentRecord(b"a", b"k", headers, None))
            producer.flush()
        producer.close()

    assert admin.end_offset("later", 0) == 0
    with Admin(bootstrap_servers=broker.address) as own:
        assert own.scheduled("later").entries == []


@pytest.mark.slow
@pytest.mark.timeout(BUILD_SECONDS_MAX + 60)
@pytest.mark.parametrize("header", ["", "x-deliver-at"])
@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_records_of_clients_of_go_and_node_come_once_when_they_are_due(
    broker: BrokerProcess, make_client: MakeClient, name: str, header: str
):
    admin = make_client("kafka-python", broker.address)
    admin.create_topic("later", 1, BY_HEADER if header else BY_TIMESTAMP)

    try:
        parked = ask_client(name, "park", broker.address, "later", *[header] if header else [])
    except ClientMissing as reason:
        pytest.skip(f"{name} is missing: {reason}")
    assert "error" not in parked, parked
    broker.kill()
    broker.start()
    found = admin.read("later", 0, 0, 2)
    came_ms = wall_ms()
    read = ask_client(name, "read", broker.address, "later", "2")

    assert came_ms >= parked["begun"] + 2_500
    assert [each.record.value for each in found] == [b"first", b"second"]
    assert read["read"] == [[[0, "first"], [1, "second"]]]
    assert admin.end_offset("later", 0) == 2
    # The answer has no offset yet.
    assert parked["offsets"] == [-1, -1]
