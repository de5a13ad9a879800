"""Readers that take their time, over real sockets and files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.raw_client import (
    FETCH_VERSION,
    RawClient,
    fetch_request,
    one_batch,
    record_bytes,
)

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import FetchResponse
from tarry.records import decode_records

TOPIC = "orders"
MIB = 1 << 20


@pytest.mark.slow
def test_a_segment_that_is_deleted_while_it_is_sent_is_sent_to_its_end(
    make_broker: Callable[[], BrokerProcess],
) -> None:
    broker = make_broker()
    broker.start({"log.retention.check.interval.ms": "500"})
    settings = {"segment_bytes": str(4 * MIB), "retention_bytes": str(MIB), "retention_ms": "-1"}
    batch = one_batch(bytes(1_000_000))
    with (
        RawClient(broker.port) as writer,
        RawClient(broker.port, receive_buffer_bytes=4096) as slow,
    ):
        writer.create_topic(TOPIC, **settings)
        for offset in range(4):
            assert writer.produce(batch, TOPIC).base_offset == offset
        first = broker.directory / "data" / f"{TOPIC}-0" / f"{0:020d}.log"
        request = fetch_request(0, TOPIC, max_bytes=4 * MIB)
        slow.socket.sendall(slow.encode(api_keys.FETCH, FETCH_VERSION, request))
        begun = slow.socket.recv(8)

        for _ in range(6):
            writer.produce(batch, TOPIC)
        wait_until(lambda: "" if first.exists() else "gone", "the removal of the first segment")
        gone = writer.fetch(0, TOPIC)
        body = slow.read_exactly(int.from_bytes(begun[:4], "big") - 4)

    assert gone.error_code == errors.OFFSET_OUT_OF_RANGE
    assert body.count(batch[61 : 61 + 500_000]) == 4
    offsets = []
    position = body.index((0).to_bytes(8, "big") + (len(batch) - 12).to_bytes(4, "big"))
    while position < len(body) - len(batch):
        (record,) = decode_records(body, size_max=2 * MIB, position=position)
        offsets.append(record.offset)
        position += len(batch)
    assert offsets[:3] == [0, 1, 2]


def test_peers_that_take_no_answers_do_not_keep_it_from_stopping_in_five_seconds(
    broker: BrokerProcess,
) -> None:
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(RawClient(broker.port))
        writer.create_topic(TOPIC)
        for _ in range(5):
            writer.produce(one_batch(bytes(1_000_000)), TOPIC)
        for _ in range(10):
            deaf = stack.enter_context(RawClient(broker.port, receive_buffer_bytes=4096))
            for _ in range(5):
                request = fetch_request(0, TOPIC, max_bytes=4 * MIB)
                deaf.socket.sendall(deaf.encode(api_keys.FETCH, FETCH_VERSION, request))
            deaf.socket.recv(8)

        code = broker.stop()

    # A broker that does not finish within five seconds ends with 1.
    assert code == 0
    assert (broker.directory / "data" / ".tarry_clean_shutdown").exists()


def test_a_fetch_that_waits_is_answered_when_the_broker_stops(broker: BrokerProcess) -> None:
    with RawClient(broker.port) as client:
        client.create_topic(TOPIC)
        request = fetch_request(0, TOPIC, max_wait_ms=60_000)
        client.socket.sendall(client.encode(api_keys.FETCH, FETCH_VERSION, request))
        wait_for_requests(broker, client)

        code = broker.stop()
        answer = client.answer(api_keys.FETCH, FETCH_VERSION)

        assert client.is_ended()
    assert isinstance(answer, FetchResponse)
    assert record_bytes(answer.responses[0].partitions[0]) == b""
    # A broker that does not finish within five seconds ends with 1.
    assert code == 0


def wait_for_requests(broker: BrokerProcess, client: RawClient) -> None:
    """Until the broker has read what the client sent: its receive queue is empty."""
    port = client.socket.getsockname()[1]

    def is_read() -> str:
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ends = f":{broker.port:04X}", f":{port:04X}"
        (row,) = [row for row in rows if (row[1][-5:], row[2][-5:]) == ends]
        return "read" if row[4].endswith(":00000000") else ""

    if not Path("/proc/net/tcp").exists():
        pytest.skip("no /proc here")
    wait_until(is_read, "the broker's reading of a request")
