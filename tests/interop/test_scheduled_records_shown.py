"""What waits, read by real clients from `__scheduled.<topic>`, also over long gaps; no writes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.interop.client_face import ClientFace, ClientMissing
from tests.support.interop.foreign_clients import BUILD_SECONDS_MAX, CLIENTS as FOREIGN_CLIENTS
from tests.support.interop.foreign_faces import ForeignFace
from tests.support.interop.records_sent import SentRecord
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, Consumer, NewTopic, Producer

MakeClient = Callable[[str, str], ClientFace]

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "java", "kcat")
TOPIC = "later"
SHOWN = f"__scheduled.{TOPIC}"
# With their notes they are more than a turn goes over: some answers only lead a client on.
GONE = 1_200
SOON_MS = 20_000
HOUR_MS = 3_600_000

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def fill(address: str) -> None:
    """A record that waits, very many that have come, two more that wait."""
    with Admin(bootstrap_servers=address) as admin:
        configs = {"delay.enable": "true", "delay.source": "timestamp"}
        admin.create_topics([NewTopic(TOPIC, 1, configs=configs)])
    now_ms = int(time.time() * 1_000)
    with Producer(bootstrap_servers=address) as producer:
        producer.send(TOPIC, b"first", timestamp=now_ms + HOUR_MS)
        producer.flush()
        for _ in range(GONE):
            # A batch each.
            producer.send(TOPIC, b"gone", timestamp=now_ms + SOON_MS)
            producer.flush()
        assert time.time() * 1_000 < now_ms + SOON_MS, "the machine is too slow for this test"
        for value in (b"second", b"third"):
            producer.send(TOPIC, value, timestamp=now_ms + HOUR_MS)
            producer.flush()


def released(address: str) -> int:
    with Consumer(bootstrap_servers=address) as consumer:
        return consumer.end_offsets([(TOPIC, 0)])[TOPIC, 0]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("shown"))
    process.start({})
    fill(process.address)
    wait_until(lambda: "all" if released(process.address) == GONE else "", "what is due")
    yield process
    process.close()


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_reads_what_waits_over_a_long_gap(broker, make_client: MakeClient, name: str):
    client = make_client(name, broker.address)

    end_offset = client.end_offset(SHOWN, 0)
    found = client.read(SHOWN, 0, 0, 3)
    # From here on the first answers show nothing.
    rest = client.read(SHOWN, 0, found[0].offset + 1, 2)

    assert [each.record.value for each in found] == [b"first", b"second", b"third"]
    assert found[0].offset == 2
    assert found[2].offset == found[1].offset + 2 < end_offset
    assert rest == found[1:]


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_cannot_write_there(broker, make_client: MakeClient, name: str):
    client = make_client(name, broker.address)
    producer = client.producer()

    # Each says it in its own words; kcat by how it ends.
    with pytest.raises(Exception, match=r"(?s).*"):
        producer.send(SHOWN, 0, SentRecord(b"a", b"k", (), None))
        producer.flush()

    (first,) = client.read(SHOWN, 0, 0, 1)
    assert first.record.value == b"first"


@pytest.mark.slow
@pytest.mark.timeout(BUILD_SECONDS_MAX + 60)
@pytest.mark.parametrize("name", FOREIGN_CLIENTS)
def test_clients_of_go_and_node_read_what_waits_over_a_long_gap(broker, name: str):
    try:
        client = ForeignFace(name, broker.address)
    except ClientMissing as reason:
        pytest.skip(f"{name} is missing: {reason}")

    found = client.read(SHOWN, 0, 0, 3)
    client.close()

    assert [each.record.value for each in found] == [b"first", b"second", b"third"]


def test_a_group_reads_commits_and_waits_for_more(broker):
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": broker.address,
            "group.id": "watchers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([SHOWN])

    found = [consumer.poll(PATIENCE_S) for _ in range(3)]
    with Producer(bootstrap_servers=broker.address) as producer:
        producer.send(TOPIC, b"more", timestamp=int(time.time() * 1_000) + HOUR_MS)
        producer.flush()
    more = consumer.poll(PATIENCE_S)
    consumer.commit(more, asynchronous=False)
    (committed,) = consumer.committed(consumer.assignment(), PATIENCE_S)
    consumer.close()

    assert [each.value() for each in found] == [b"first", b"second", b"third"]
    assert more.value() == b"more"
    assert committed.offset == more.offset() + 1


@pytest.mark.parametrize("command", ["list", "describe", "offsets"])
def test_the_command_line_tells_of_it_where_it_is_named(broker, command: str):
    run = [sys.executable, "-m", "tarry", "topics", command]
    options = ["--json", "--bootstrap-server", broker.address]

    named = subprocess.check_output([*run, SHOWN, *options], timeout=PATIENCE_S)
    others = subprocess.check_output([*run, "*", *options], timeout=PATIENCE_S)

    assert {each["topic"] for each in json.loads(named)} == {SHOWN}
    assert SHOWN not in {each["topic"] for each in json.loads(others)}


def test_our_own_consumer_reads_what_waits(broker):
    found: list[bytes | None] = []
    with Consumer(bootstrap_servers=broker.address, auto_offset_reset="earliest") as consumer:
        consumer.assign([(SHOWN, 0)])
        while len(found) < 3:
            found += [each.value for group in consumer.poll(5.0) for each in group.records]

    assert found[:3] == [b"first", b"second", b"third"]
