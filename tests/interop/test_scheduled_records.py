"""Records that real clients schedule: each comes once, when it is due, also over kill -9."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.client_face import ClientFace
from tests.support.interop.records_sent import SentRecord

MakeBroker = Callable[[], BrokerProcess]
MakeClient = Callable[[str, str], ClientFace]

# kcat cannot give a record a time: it writes to a topic in which every record waits.
CLIENTS = ("java", "confluent-kafka", "kafka-python", "aiokafka", "kcat")
BY_TIMESTAMP = {"delay.enable": "true", "delay.source": "timestamp"}
LATER_MS = 3_000
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


def wall_ms() -> int:
    return int(time.time() * 1000)


@pytest.mark.parametrize("ends", ["", "kill"])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_record_comes_once_when_it_is_due(
    broker: BrokerProcess, make_client: MakeClient, name: str, ends: str
):
    client = make_client(name, broker.address)
    has_times = name != "kcat"
    admin = client if client.has_admin else make_client("confluent-kafka", broker.address)
    admin.create_topic("later", 1, BY_TIMESTAMP if has_times else EVERY_RECORD_WAITS)
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
