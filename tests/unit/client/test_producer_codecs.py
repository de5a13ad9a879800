"""Codecs of a producer: objects in, bytes out; what a codec refuses harms nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tarry.client import Json, Producer, Text
from tarry.client.core.topic import PartitionMetadata, Topic
from tarry.records.record import decode_records

NOBODY = "127.0.0.1:1"


class Upper:
    """A codec of the user's own."""

    def encode(self, content: str, /) -> bytes:
        return content.upper().encode()

    def decode(self, data: bytes, /) -> str:
        return data.decode().lower()


def known(producer: Producer[Any, Any]) -> Producer[Any, Any]:
    """Let a producer know topic t, without a broker."""
    topic = Topic("t")
    topic.partitions = {0: PartitionMetadata(0, -1)}
    metadata = producer._driver.core.metadata
    metadata.track("t")
    metadata.topics["t"] = topic
    return producer


def sent(producer: Producer[Any, Any]) -> list[tuple[bytes | None, bytes | None]]:
    queue = producer._driver.core.accumulator.queue("t", 0)
    assert queue.open is not None
    records = decode_records(queue.open.encode(0), size_max=100_000)
    return [(record.key, record.value) for record in records]


def test_keys_and_values_go_through_their_codecs() -> None:
    producer = known(
        Producer(bootstrap_servers=NOBODY, linger_ms=20_000, key=Upper(), value=Json())
    )
    try:
        producer.send("t", {"a": 1}, key="k")
        producer.send("t", None, key="gone")
        producer.send("t", [1, None])

        assert sent(producer) == [(b"K", b'{"a":1}'), (b"GONE", None), (None, b"[1,null]")]
    finally:
        producer.abort()


def test_what_a_codec_refuses_is_raised_and_the_others_are_sent() -> None:
    producer = known(Producer(bootstrap_servers=NOBODY, linger_ms=20_000, value=Text()))
    wrong: Any = 5
    try:
        producer.send("t", "before", key=b"bytes")
        with pytest.raises(TypeError, match="Text encodes a str"):
            producer.send("t", wrong)
        producer.send("t", "after")

        assert sent(producer) == [(b"bytes", b"before"), (None, b"after")]
    finally:
        producer.abort()


@pytest.mark.parametrize("given", [str, "utf-8", Text])
def test_what_is_no_codec_is_refused(given: Any) -> None:
    with pytest.raises(TypeError, match="give an object with encode"):
        Producer(bootstrap_servers=NOBODY, value=given)
