"""Tables and real clients: what others wrote is a table, and they read what a table became."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.client_face import CODECS, ClientFace
from tests.support.interop.records_sent import LARGEST_VALUE, SentRecord

from tarry.client import Admin, Consumer, NewTopic

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'tarry[arrow]'")

from tarry.client.arrow import ArrowConsumer, ArrowProducer, scan  # noqa: E402

TOPIC_BYTES_MAX = {"max.message.bytes": str(LARGEST_VALUE + 10_000)}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", HEADERS),
        ("timestamp", pa.timestamp("ms", "UTC")),
    ]
)

MakeClient = Callable[[str, str], ClientFace]

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def table_of(records: list[SentRecord]) -> Any:
    rows = [
        {
            "key": one.key,
            "value": one.value,
            "headers": [{"key": name, "value": value} for name, value in one.headers],
            "timestamp": one.timestamp_ms,
        }
        for one in records
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def read_table(batches: Iterator[Any], count: int) -> Any:
    """A table of so many rows, from an iteration that may have no end."""
    found: list[Any] = []
    while sum(batch.num_rows for batch in found) < count:
        found.append(next(batches))
    return pa.Table.from_batches(found)


@pytest.mark.parametrize("name", ["confluent-kafka", "java"])
def test_what_a_client_wrote_is_a_table_and_what_a_table_wrote_it_reads(
    name: str, shared_broker: BrokerProcess, make_client: MakeClient
) -> None:
    address = shared_broker.address
    client = make_client(name, address)
    records = client.records()
    written = table_of(records)
    codecs = [codec for codec in CODECS if codec in client.codecs]
    foreign, ours = f"{name}-written", f"{name}-read"
    for topic in (foreign, ours):
        client.create_topic(topic, len(codecs), TOPIC_BYTES_MAX)
    for partition, codec in enumerate(codecs):
        producer = client.producer(codec)
        for record in records:
            producer.send(foreign, partition, record)
        producer.flush()
        producer.close()
        with ArrowProducer(
            bootstrap_servers=address, compression_type=codec, max_request_size=2_000_000
        ) as arrow_producer:
            place = pa.array([partition] * len(records), pa.int32())
            table = written.append_column("partition", place)
            arrow_producer.send(ours, table)

    ranges = {(foreign, partition): (0, len(records)) for partition in range(len(codecs))}
    scanned = pa.Table.from_batches(scan(ranges, {"bootstrap.servers": address}))
    with ArrowConsumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        consumer.assign(ranges)
        consumed = read_table(consumer.batches(max_rows=4), len(records) * len(codecs))

    for partition in range(len(codecs)):
        for table in (scanned, consumed):
            part = table.filter(pa.compute.equal(table["partition"], partition))
            assert part["offset"].to_pylist() == list(range(len(records)))
            # The metadata says where a batch ends.
            assert part.select(SCHEMA.names).replace_schema_metadata().equals(written)
        found = client.read(ours, partition, 0, len(records))
        assert [one.record for one in found] == records


@pytest.mark.parametrize("broker", ["tarry", "kafka"])
def test_a_group_goes_on_behind_what_was_committed(
    broker: str, request: pytest.FixtureRequest
) -> None:
    if broker == "kafka":
        address = request.getfixturevalue("apache_kafka")
    else:
        address = request.getfixturevalue("shared_broker").address
    topic = f"lake-{uuid.uuid4().hex[:8]}"
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(topic, 2)])
    values = [b"%d" % number for number in range(100)]
    with ArrowProducer(bootstrap_servers=address) as producer:
        table = pa.table({"value": values, "key": [b"%d" % (number % 7) for number in range(100)]})
        receipt = producer.send(topic, table).result()
    assert receipt.row_count == 100
    settings = {
        "bootstrap.servers": address,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }

    seen: list[bytes] = []
    with ArrowConsumer(topic, settings) as consumer:
        for batch in consumer.batches(max_rows=30, columns=["value"]):
            seen += batch["value"].to_pylist()
            consumer.commit(batch)
            break
    with ArrowConsumer(topic, settings) as consumer:
        for batch in consumer.batches(max_rows=30, columns=["value"], views=True):
            seen += batch["value"].to_pylist()
            if len(seen) >= 100:
                consumer.wakeup()

    assert sorted(seen) == sorted(values)
    # Views outlive their client.
    assert batch["value"].cast(pa.binary()).to_pylist() == seen[-batch.num_rows :]
    with Consumer(settings) as records:
        places = [(topic, 0), (topic, 1)]
        committed = records.committed(places)
    assert sum(one.offset for one in committed.values() if one is not None) == 30
