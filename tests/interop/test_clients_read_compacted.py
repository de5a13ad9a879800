"""Real clients read a topic that was compacted: gaps in the offsets, empty batches, a horizon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.interop.client_face import ClientFace
from tests.support.interop.records_sent import SentRecord

from tarry.client.core.admin.calls import NewTopic
from tarry.client.sync.admin import Admin
from tarry.client.sync.consumer import Consumer
from tarry.client.sync.producer import Producer
from tarry.records.batch import decode_batch_header
from tarry.wire.compression import NAMES

TOPIC = "last-values"
MakeClient = Callable[[str, str], ClientFace]

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "java", "kcat")
TEXTS = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.01"}
KEYS = 3
BATCHES = 20
START_MS = 1_700_000_000_000

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def fill(address: str) -> None:
    """Batches of three keys in all codecs, a tombstone among the last, each in its own segment."""
    admin = Admin(bootstrap_servers=address)
    configs = {"cleanup.policy": "compact", "segment.ms": "1"}
    admin.create_topics([NewTopic(TOPIC, 1, 1, configs)])
    admin.close()
    for number in range(BATCHES):
        codec = NAMES[number % 5]
        # Only `flush` sends: one batch, however slow the machine is.
        with Producer(
            bootstrap_servers=address, compression_type=codec, linger_ms=60_000
        ) as producer:
            for key in range(KEYS):
                value = None if number == BATCHES - 3 and key == 1 else b"%d" % number
                # The key of the tombstone is written no more.
                if number > BATCHES - 3 and key == 1:
                    continue
                producer.send(TOPIC, value, key=b"k%d" % key, timestamp=START_MS + 10 * number)
            producer.flush()


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("compacted"))
    broker.start(TEXTS)
    fill(broker.address)
    broker.wait_for_log(f"{TOPIC}-0 is compacted below offset {KEYS * BATCHES - 4}")
    # A thread removes the records that were replaced.
    wait_until(lambda: "yes" if len(segments(broker)) == 2 else "", "two segments")
    yield broker
    broker.close()


def segments(broker: BrokerProcess) -> list[Path]:
    return sorted(Path(broker.directory, "data", f"{TOPIC}-0").glob("*.log"))


def headers(broker: BrokerProcess) -> list[tuple[int, int]]:
    """Base offset and record count of each batch that lies there."""
    found = []
    for path in segments(broker):
        data = path.read_bytes()
        position = 0
        while position < len(data):
            header = decode_batch_header(data, position)
            found.append((header.base_offset, header.record_count))
            position += header.size
    return found


EXPECTED = [
    (KEYS * (BATCHES - 3) + 1, SentRecord(None, b"k1", (), START_MS + 10 * (BATCHES - 3))),
    (KEYS * (BATCHES - 2), SentRecord(b"18", b"k0", (), START_MS + 10 * (BATCHES - 2))),
    (KEYS * (BATCHES - 2) + 1, SentRecord(b"18", b"k2", (), START_MS + 10 * (BATCHES - 2))),
    (KEYS * (BATCHES - 2) + 2, SentRecord(b"19", b"k0", (), START_MS + 10 * (BATCHES - 1))),
    (KEYS * (BATCHES - 2) + 3, SentRecord(b"19", b"k2", (), START_MS + 10 * (BATCHES - 1))),
]


def test_what_lies_there_has_gaps_and_empty_batches(compacted):
    found = headers(compacted)

    # Each batch came from a producer of its own, whose last one it is.
    assert len(found) == BATCHES
    assert [count for _, count in found[: BATCHES - 3]] == [0] * (BATCHES - 3)
    assert [count for _, count in found[BATCHES - 3 :]] == [1, 2, 2]


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("offset", [0, 10, KEYS * (BATCHES - 3)])
def test_a_client_reads_on_over_what_is_gone(compacted, make_client: MakeClient, name, offset):
    client = make_client(name, compacted.address)

    found = client.read(TOPIC, 0, offset, len(EXPECTED))

    assert [tuple(each) for each in found] == EXPECTED


@pytest.mark.parametrize("name", CLIENTS[:4])
def test_a_client_finds_a_time_whose_records_are_gone(compacted, make_client: MakeClient, name):
    client = make_client(name, compacted.address)

    assert client.offset_for_time(TOPIC, 0, START_MS) == EXPECTED[0][0]
    assert client.end_offset(TOPIC, 0) == KEYS * BATCHES - 2


def test_our_own_consumer_reads_on_over_what_is_gone(compacted):
    found = []
    with Consumer(bootstrap_servers=compacted.address) as consumer:
        consumer.assign([(TOPIC, 0)])
        consumer.seek_to_beginning()
        while len(found) < len(EXPECTED):
            found += [record for group in consumer.poll(5.0) for record in group.records]

    assert [(record.offset, record.key, record.value) for record in found] == [
        (offset, record.key, record.value) for offset, record in EXPECTED
    ]
