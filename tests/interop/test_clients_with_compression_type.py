"""Topics that recompress: every client writes in every codec, every client reads what is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.client_face import CODECS, ClientFace
from tests.support.interop.records_sent import SentRecord, numbered

from tarry.records.batch import decode_batch_header

CLIENTS = ("confluent-kafka", "kafka-python", "aiokafka", "java", "kcat")
TYPES = ("uncompressed", "gzip", "snappy", "lz4", "zstd")

# Far from the defaults, which our own client writes.
LEVELS = {
    "compression.gzip.level": "9",
    "compression.lz4.level": "17",
    "compression.zstd.level": "-131072",
}

# More than an LZ4 block, a snappy block, and a step of our compressors.
LARGE = b"".join(b"%d," % number for number in range(60_000))

MakeClient = Callable[[str, str], ClientFace]

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def codecs_in_log(broker: BrokerProcess, topic: str) -> set[str]:
    found = set()
    for path in sorted(Path(broker.directory, "data", f"{topic}-0").glob("*.log")):
        data = path.read_bytes()
        position = 0
        while position < len(data):
            header = decode_batch_header(data, position)
            found.add(CODECS[header.codec])
            position += header.size
    return found


def written(client: ClientFace, topic: str, codec: str) -> list[SentRecord]:
    """What the client wrote, in as few batches as it makes of it."""
    records = [one for one in client.records() if len(one.value or b"") < 10_000]
    records += [*numbered(0, 50), SentRecord(LARGE, b"large")]
    producer = client.producer(codec)
    for record in records:
        producer.send(topic, 0, record)
    producer.flush()
    producer.close()
    return records


@pytest.mark.parametrize("type_", TYPES)
def test_every_client_reads_what_was_recompressed_of_every_client(
    shared_broker: BrokerProcess, make_client: MakeClient, type_: str
) -> None:
    clients = [make_client(name, shared_broker.address) for name in CLIENTS]
    topic = f"stored-in-{type_}"
    clients[0].create_topic(topic, 1, {"compression.type": type_, **LEVELS})
    sent: list[SentRecord] = []
    for number, client in enumerate(clients):
        # In each topic another codec, so that in the end each codec met each.
        codec = CODECS[(number + TYPES.index(type_)) % len(CODECS)]
        sent += written(client, topic, codec if codec in client.codecs else "none")

    read_by = [client.read(topic, 0, 0, len(sent)) for client in clients]

    assert codecs_in_log(shared_broker, topic) == {type_.replace("uncompressed", "none")}
    for client, found in zip(clients, read_by, strict=True):
        assert [one.offset for one in found] == list(range(len(sent))), client.name
        for one, record in zip(found, sent, strict=True):
            assert one.record[:3] == record[:3], client.name
            assert record.timestamp_ms in (None, one.record.timestamp_ms), client.name
        assert found == read_by[0], client.name
