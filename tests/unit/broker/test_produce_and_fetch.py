"""Producing and fetching through the whole broker: what is answered, and when."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tarry.base import errors
from tarry.base.doors import drained, received
from tarry.base.errors import StorageError
from tarry.protocol import api_keys
from tarry.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tarry.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from tarry.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tarry.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from tarry.records import decode_records
from tarry.simulation.by_hand import BrokerByHand, ClientByHand
from tarry.wire.reader import Window

PRODUCE_VERSION = 11
FETCH_VERSION = 12

Batch = Callable[..., bytes]
Produce = Callable[..., ProduceRequest]
Fetch = Callable[..., FetchRequest]


def produced(answer: object) -> PartitionProduceResponse:
    assert isinstance(answer, ProduceResponse)
    return answer.responses[0].partition_responses[0]


def fetched(answer: object) -> PartitionData:
    assert isinstance(answer, FetchResponse)
    assert answer.error_code == errors.NONE
    return answer.responses[0].partitions[0]


def values(answer: object) -> list[bytes | None]:
    records = fetched(answer).records
    assert isinstance(records, Window)
    found: list[bytes | None] = []
    position = records.start
    while position < records.end:
        size = int.from_bytes(records.data[position + 8 : position + 12], "big") + 12
        found += [
            record.value
            for record in decode_records(records.data, size_max=1 << 20, position=position)
        ]
        position += size
    return found


@pytest.mark.parametrize("acks", [-1, 1])
def test_an_answer_waits_until_its_records_are_flushed(
    hand: BrokerByHand, batch: Batch, produce: Produce, acks: int
) -> None:
    client = hand.connect()

    client.send(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a"), acks=acks))
    before = client.answers()
    hand.settle()
    after = client.answers()

    assert before == []
    assert [produced(answer).error_code for answer in after] == [errors.NONE]
    assert produced(after[0]).base_offset == 0


def test_with_the_page_cache_policy_an_answer_follows_the_write(
    batch: Batch, produce: Produce, topic: Callable[..., None]
) -> None:
    hand = BrokerByHand({"flush.policy": "os"})
    client = hand.connect()
    topic(client, "orders")

    client.send(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a"), acks=-1))

    assert [produced(answer).error_code for answer in client.answers()] == [errors.NONE]


def test_a_reader_never_sees_what_is_not_flushed(
    hand: BrokerByHand, batch: Batch, produce: Produce, fetch: Fetch
) -> None:
    client = hand.connect()
    reader = hand.connect()
    client.send(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a"), acks=0))

    reader.send(api_keys.FETCH, FETCH_VERSION, fetch(0))
    before = reader.answers()
    hand.settle()
    reader.send(api_keys.FETCH, FETCH_VERSION, fetch(0))
    after = reader.answers()

    assert [values(answer) for answer in before] == [[]]
    assert fetched(before[0]).high_watermark == 0
    assert [values(answer) for answer in after] == [[b"a"]]


def test_a_waiting_fetch_is_woken_by_a_produce(
    hand: BrokerByHand, batch: Batch, produce: Produce, fetch: Fetch
) -> None:
    reader = hand.connect()
    reader.send(api_keys.FETCH, FETCH_VERSION, fetch(0, max_wait_ms=10_000))
    hand.settle()
    assert reader.answers() == []

    hand.connect().ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a")))

    assert [values(answer) for answer in reader.answers()] == [[b"a"]]


def test_a_waiting_fetch_answers_with_what_is_there_when_its_time_is_over(
    hand: BrokerByHand, batch: Batch, produce: Produce, fetch: Fetch
) -> None:
    hand.connect().ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a")))
    reader = hand.connect()
    reader.send(api_keys.FETCH, FETCH_VERSION, fetch(0, max_wait_ms=100, min_bytes=10_000))

    hand.turn(after_ms=99)
    early = reader.answers()
    hand.turn(after_ms=1)

    assert early == []
    assert [values(answer) for answer in reader.answers()] == [[b"a"]]


def test_min_bytes_are_gathered_over_several_produces(
    hand: BrokerByHand, batch: Batch, produce: Produce, fetch: Fetch
) -> None:
    one = batch(b"a")
    reader = hand.connect()
    reader.send(api_keys.FETCH, FETCH_VERSION, fetch(0, max_wait_ms=1_000, min_bytes=2 * len(one)))
    writer = hand.connect()

    writer.ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(one))
    early = reader.answers()
    writer.ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(one))

    assert early == []
    assert [values(answer) for answer in reader.answers()] == [[b"a", b"a"]]


def test_answers_keep_the_order_of_their_requests_behind_a_fetch_that_waits(
    hand: BrokerByHand, fetch: Fetch
) -> None:
    client = hand.connect()
    client.send(api_keys.FETCH, FETCH_VERSION, fetch(0, max_wait_ms=50))
    client.send(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
    early = client.answers()

    hand.turn(after_ms=50)
    hand.settle()

    assert early == []
    first, second = client.answers()
    assert isinstance(first, FetchResponse)
    assert isinstance(second, ApiVersionsResponse)


def test_a_second_fetch_is_handled_when_the_first_is_answered(
    hand: BrokerByHand, fetch: Fetch
) -> None:
    client = hand.connect()
    frames = client.encode(api_keys.FETCH, FETCH_VERSION, fetch(0, max_wait_ms=50))
    frames += client.encode(api_keys.FETCH, FETCH_VERSION, fetch(0))
    client.send_bytes(frames)

    hand.turn(after_ms=50)
    hand.settle()

    assert len(client.answers()) == 2


def test_a_failed_write_is_a_storage_error_and_leaves_the_log_as_it_was(
    hand: BrokerByHand, batch: Batch, produce: Produce, fetch: Fetch
) -> None:
    client = hand.connect()
    hand.disk.fail_writes(1, path_part="orders-0")

    failed = client.ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"lost")))
    kept = client.ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"kept")))
    read = client.ask(api_keys.FETCH, FETCH_VERSION, fetch(0))

    assert produced(failed).error_code == errors.KAFKA_STORAGE_ERROR
    assert (produced(kept).error_code, produced(kept).base_offset) == (errors.NONE, 0)
    assert values(read) == [b"kept"]


def test_a_failed_flush_stops_the_broker_without_an_answer(
    hand: BrokerByHand, batch: Batch, produce: Produce
) -> None:
    client = hand.connect()
    client.send(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a")))
    hand.disk.fail_flushes(1)

    hand.turn(*hand.disk.complete_flushes())

    assert hand.broker.is_stopped
    assert "flush failed" in hand.broker.stop_reason
    assert client.answers() == []


def test_a_retried_batch_is_answered_with_its_first_offset(
    hand: BrokerByHand, batch: Batch, produce: Produce, fetch: Fetch
) -> None:
    client = hand.connect()
    client.ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"first")))
    once = produce(batch(b"a", b"b", producer_id=7, sequence=0))

    first = client.ask(api_keys.PRODUCE, PRODUCE_VERSION, once)
    again = client.ask(api_keys.PRODUCE, PRODUCE_VERSION, once)

    assert produced(first).base_offset == 1
    assert (produced(again).error_code, produced(again).base_offset) == (errors.NONE, 1)
    assert values(client.ask(api_keys.FETCH, FETCH_VERSION, fetch(0))) == [b"first", b"a", b"b"]


def test_a_produce_of_unknown_acks_is_refused(
    hand: BrokerByHand, batch: Batch, produce: Produce
) -> None:
    answer = hand.connect().ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a"), acks=2))

    assert produced(answer).error_code == errors.INVALID_REQUIRED_ACKS


def test_a_refused_produce_without_acks_closes_the_connection(
    hand: BrokerByHand, batch: Batch, produce: Produce
) -> None:
    client = hand.connect()

    client.send(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a"), "nobody", acks=0))

    assert client.is_closed


@pytest.mark.parametrize("offset", [-1, 1])
def test_an_offset_out_of_range_is_told_at_both_ends(
    hand: BrokerByHand, fetch: Fetch, offset: int
) -> None:
    answer = hand.connect().ask(api_keys.FETCH, FETCH_VERSION, fetch(offset, max_wait_ms=1_000))

    assert fetched(answer).error_code == errors.OFFSET_OUT_OF_RANGE


def test_a_fetch_from_inside_a_batch_returns_the_whole_batch_even_if_too_large(
    hand: BrokerByHand, batch: Batch, produce: Produce, fetch: Fetch
) -> None:
    client = hand.connect()
    client.ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a", b"b", b"c")))

    answer = client.ask(api_keys.FETCH, FETCH_VERSION, fetch(1, max_bytes=1))

    assert values(answer) == [b"a", b"b", b"c"]


def test_a_peer_that_does_not_take_its_answers_is_no_longer_read_from(
    hand: BrokerByHand, batch: Batch, produce: Produce, fetch: Fetch
) -> None:
    client = hand.connect()
    for _ in range(20):
        client.ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"x" * 1_000_000)))
    reader = hand.connect()
    hand.transport.stuck[reader.connection_id] = True
    frames = [reader.encode(api_keys.FETCH, FETCH_VERSION, fetch(offset)) for offset in range(20)]

    hand.turn(received(reader.connection_id, b"".join(frames)))
    hand.settle()
    stuck = len(reader.answers())
    hand.transport.stuck[reader.connection_id] = False
    hand.transport.unsent[reader.connection_id] = 0
    paused = hand.transport.paused[reader.connection_id]
    hand.turn(drained(reader.connection_id))
    hand.settle()

    assert stuck < 20
    assert paused
    assert stuck + len(reader.answers()) == 20
    assert not hand.transport.paused[reader.connection_id]


def test_a_broker_that_was_stopped_for_a_while_expires_nothing_that_it_could_not_hear(
    hand: BrokerByHand, fetch: Fetch
) -> None:
    client = hand.connect()
    client.send(api_keys.FETCH, FETCH_VERSION, fetch(0, max_wait_ms=2_000))
    hand.settle()

    hand.turn(after_ms=30_000)
    at_once = client.answers()
    for _ in range(5):
        hand.turn(after_ms=400)

    assert at_once == []
    assert len(client.answers()) == 1


def test_a_fetch_that_waits_is_given_up_with_its_connection(
    hand: BrokerByHand, fetch: Fetch
) -> None:
    client: ClientByHand = hand.connect()
    client.send(api_keys.FETCH, FETCH_VERSION, fetch(0, max_wait_ms=2_000_000_000))

    client.send_bytes(b"GET / HTTP/1.1\r\n\r\n")

    assert client.is_closed
    assert hand.broker.fetches.purgatory.delayed == 0


def test_a_peer_that_never_takes_its_answers_is_let_go_when_its_idle_time_is_over(
    batch: Batch, produce: Produce, fetch: Fetch, topic: Callable[..., None]
) -> None:
    hand = BrokerByHand({"connections.max.idle.ms": "60000"})
    client = hand.connect()
    topic(client, "orders")
    client.ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a")))
    reader = hand.connect()
    hand.transport.stuck[reader.connection_id] = True
    reader.send(api_keys.FETCH, FETCH_VERSION, fetch(0))

    for _ in range(200):
        hand.turn(after_ms=400)

    assert reader.is_closed


def test_bytes_behind_a_request_are_ignored_as_kafka_ignores_them(hand: BrokerByHand) -> None:
    # Origin: librdkafka 2.16.1 asks for all topics, Metadata version 13, with three bytes too
    # many: its placeholder of four zero bytes stays where a compact null array takes one.
    client = hand.connect()
    frame = client.encode(api_keys.METADATA, 13, MetadataRequest(topics=None))
    frame = (len(frame) - 4 + 3).to_bytes(4, "big") + frame[4:] + b"\x01\x00\x00"

    client.send_bytes(frame)
    hand.settle()

    (answer,) = client.answers()
    assert isinstance(answer, MetadataResponse)
    assert [topic.name for topic in answer.topics] == ["orders"]


def test_a_topic_whose_directory_the_disk_refuses_is_hosted_when_it_takes_it(
    hand: BrokerByHand,
    batch: Batch,
    produce: Produce,
    topic: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = hand.connect()
    make_directory = hand.disk.make_directory
    refused = []

    def refuse_once(path: str) -> None:
        if path.startswith("late-") and not refused:
            refused.append(path)
            raise StorageError("no space left on device")
        make_directory(path)

    monkeypatch.setattr(hand.disk, "make_directory", refuse_once)
    topic(client, "late")

    before = client.ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a"), "late"))
    hand.turn(after_ms=1_000)
    after = client.ask(api_keys.PRODUCE, PRODUCE_VERSION, produce(batch(b"a"), "late"))

    assert produced(before).error_code == errors.KAFKA_STORAGE_ERROR
    assert produced(after).error_code == errors.NONE
