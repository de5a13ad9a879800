"""Arguments of `send` of any type and size: taken as they are, or refused with nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.support.client.metadata_answers import as_read

from tarry.base import errors
from tarry.client.sync.producer import Producer
from tarry.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tarry.records.builder import BatchBuilder
from tarry.records.record import decode_records

contents = st.one_of(
    st.none(),
    st.binary(max_size=20),
    st.binary(max_size=20).map(bytearray),
    st.binary(max_size=20).map(memoryview),
)
others = st.one_of(
    st.text(max_size=5), st.integers(), st.floats(), st.booleans(), st.lists(st.integers()),
    st.just(object()), st.dictionaries(st.text(), st.text(), max_size=1),
)  # fmt: skip
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
good_headers = st.one_of(
    st.none(),
    st.dictionaries(names, contents, max_size=3),
    st.lists(st.tuples(names, contents), max_size=3),
)
bad_headers = st.one_of(
    st.text(min_size=1),
    st.integers(),
    st.binary(min_size=1),
    st.lists(others, min_size=1, max_size=2),
    st.lists(st.tuples(st.one_of(st.integers(), st.binary()), contents), min_size=1, max_size=1),
    st.lists(st.tuples(names, others), min_size=1, max_size=1),
    st.just([("\ud800", b"")]),
)
good: dict[str, Any] = {
    "value": contents,
    "key": contents,
    "headers": good_headers,
    "partition": st.sampled_from([None, 0]),
    "timestamp": st.one_of(st.none(), st.integers(0, 2**63 - 1)),
}
out_of_range = st.one_of(st.integers(max_value=-1), st.integers(min_value=2**63))
bad: dict[str, Any] = {
    "topic": st.one_of(
        st.none(), st.binary(), st.integers(), st.sampled_from(["", "\ud800", "t" * 250, "ü"])
    ),
    "value": others,
    "key": others,
    "headers": bad_headers,
    "partition": st.one_of(out_of_range, st.floats(), st.text(), st.booleans()),
    "timestamp": st.one_of(out_of_range, st.floats(), st.text(), st.booleans(), st.binary()),
}


@pytest.fixture
def producer() -> Iterator[Producer]:
    """One that knows topic t, and reaches nobody, so that records stay in their batch."""
    producer = Producer(bootstrap_servers="127.0.0.1:1", linger_ms=60_000, batch_size=1 << 20)
    core = producer._core
    core.metadata.track("t")
    answer = MetadataResponse(
        brokers=[MetadataResponseBroker(1, "127.0.0.1", 1, None)],
        topics=[
            MetadataResponseTopic(
                errors.NONE, "t", partitions=[MetadataResponsePartition(errors.NONE, 0, 1)]
            )
        ],
    )
    core.metadata.apply(as_read(answer), core.turned_ms)
    yield producer
    producer.abort()


def in_the_batch(producer: Producer) -> list[tuple[Any, Any]]:
    batch = producer._core.accumulator.queue("t", 0).open
    if batch is None:
        return []
    records = decode_records(batch.encode(0), size_max=1 << 20)
    return [(record.key, record.value) for record in records]


def as_bytes(content: Any) -> Any:
    return None if content is None else bytes(content)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(record=st.fixed_dictionaries(good), name=st.sampled_from(sorted(bad)), data=st.data())
def test_an_argument_is_taken_as_it_is_or_refused_by_its_name_with_nothing_changed(
    producer: Producer, record: dict[str, Any], name: str, data: st.DataObject
) -> None:
    flawed = {"topic": "t", **record, name: data.draw(bad[name])}
    # Of this example alone.
    producer._core.accumulator.queue("t", 0).open = None
    producer.send("t", **record)

    with pytest.raises((TypeError, ValueError), match=f"{name}|no name for a topic|header"):
        producer.send(**flawed)
    receipt = producer.send("t", b"neighbour")

    mine = (as_bytes(record["key"]), as_bytes(record["value"]))
    assert in_the_batch(producer) == [mine, (None, b"neighbour")]
    assert receipt.error is None


fields = st.one_of(contents, others)


@settings(max_examples=100)
@given(
    timestamp=st.one_of(st.integers(), st.floats(), st.text()),
    key=fields,
    value=fields,
    headers=st.one_of(st.none(), bad_headers, st.lists(st.tuples(names, contents), max_size=2)),
)
def test_a_builder_whose_append_failed_is_as_before(
    timestamp: Any, key: Any, value: Any, headers: Any
) -> None:
    builder = BatchBuilder()
    builder.append(-1, b"first", None)
    before = builder.build()

    try:
        builder.append(timestamp, key, value, headers)
    except Exception:
        assert builder.build() == before
        assert (builder.count, builder.size) == (1, len(before))
    builder.append(5, b"last", None)

    records = decode_records(builder.build(), size_max=1 << 20)
    assert [record.key for record in (records[0], records[-1])] == [b"first", b"last"]
    assert records[-1].timestamp == 5
