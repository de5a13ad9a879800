"""Mutated frames of every API and version, thrown at the broker's core.

The oracle: no exception leaves a turn; the peer is answered, waits, or is closed; an honest client
beside it goes on; memory stays bounded by what was sent; and the log is sound at the next start.
"""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.support.sound_requests import fetch_request, produce_request, request_of

from tarry.base import errors
from tarry.base.doors import disconnected
from tarry.protocol import api_keys
from tarry.protocol.api_keys import APIS
from tarry.protocol.frames import encode_request
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.fetch import FetchResponse
from tarry.protocol.messages.produce import ProduceResponse
from tarry.records import BatchBuilder, decode_records
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand, ClientByHand
from tarry.wire.reader import Window

# Largest peak of memory for one frame, whatever the frame claims.
PEAK_BYTES_MAX = 8 << 20

VERSIONS = [
    pytest.param(key, version, id=f"{APIS[key].name}-v{version}")
    for key, route in BrokerByHand().broker.routes.items()
    for version in range(route.version_min, route.version_max + 1)
]

EXTREMES = st.sampled_from(
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"\x80\x00\x00\x00",
        b"\x00\x00\x00\x00",
        b"\xff\xff\xff\xff\x0f",
        b"\xff" * 10,
        b"\x7f\xff",
        b"\x80",
        b"\x00",
        b"\xff\xfe",
    ]
)


def one_batch() -> bytes:
    builder = BatchBuilder()
    builder.append(START_WALL_MS, b"key", b"value", [("header", b"x")])
    builder.append(START_WALL_MS, None, None)
    return builder.build()


def sound_frame(key: int, version: int, topic_id: bytes) -> bytes:
    return encode_request(
        key, version, 1, "mutant", request_of(key, version, topic_id, one_batch())
    )


@st.composite
def mutations(draw: st.DrawFn) -> list[tuple[str, int, bytes]]:
    """What is done to a frame, in order: kind, a place (taken modulo its size), bytes."""
    kinds = st.sampled_from(["flip", "replace", "insert", "cut", "drop", "double"])
    steps = st.tuples(kinds, st.integers(0, 1 << 16), EXTREMES | st.binary(min_size=1, max_size=6))
    return draw(st.lists(steps, min_size=1, max_size=4))


def mutated(body: bytes, steps: list[tuple[str, int, bytes]]) -> bytes:
    """The frame's body after the steps; key and version stay, so that a handler is reached."""
    head, rest = body[:4], bytearray(body[4:])
    for kind, place, data in steps:
        at = place % (len(rest) + 1)
        if kind == "flip" and at < len(rest):
            rest[at] ^= data[0] or 1
        elif kind == "replace":
            rest[at : at + len(data)] = data
        elif kind == "insert":
            rest[at:at] = data
        elif kind == "cut":
            del rest[at:]
        elif kind == "drop":
            del rest[at : at + len(data)]
        elif kind == "double":
            rest += rest[at:]
    return head + bytes(rest)


def new_broker() -> tuple[BrokerByHand, ClientByHand, bytes]:
    hand = BrokerByHand()
    honest = hand.connect()
    topics = [CreatableTopic(name="orders", num_partitions=1, replication_factor=1)]
    honest.ask(api_keys.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=1_000))
    return hand, honest, hand.broker.topics["orders"].topic_id


def assert_honest_client_goes_on(honest: ClientByHand, topic_id: bytes) -> None:
    answer = honest.ask(api_keys.PRODUCE, 13, produce_request(13, topic_id, one_batch()))
    assert isinstance(answer, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == errors.NONE


def assert_log_is_sound(client: ClientByHand, topic_id: bytes) -> None:
    answer = client.ask(api_keys.FETCH, 13, fetch_request(13, topic_id))
    assert isinstance(answer, FetchResponse)
    partition = answer.responses[0].partitions[0]
    assert partition.error_code == errors.NONE
    records = partition.records
    assert isinstance(records, Window)
    position, offset = records.start, 0
    while position < records.end:
        size = int.from_bytes(records.data[position + 8 : position + 12], "big") + 12
        for record in decode_records(records.data, size_max=1 << 20, position=position):
            assert record.offset == offset
            offset += 1
        position += size
    assert offset == partition.high_watermark


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=mutations())
def test_a_mutated_frame_harms_nobody_but_its_sender(
    key: int, version: int, steps: list[tuple[str, int, bytes]]
) -> None:
    hand, honest, topic_id = new_broker()
    if "orders" not in hand.broker.topics:
        return
    mutant = hand.connect()
    body = mutated(sound_frame(key, version, topic_id)[4:], steps)

    tracemalloc.start()
    mutant.send_bytes(len(body).to_bytes(4, "big") + body)
    hand.settle()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < PEAK_BYTES_MAX
    if not mutant.is_closed:
        hand.turn(disconnected(mutant.connection_id))
    survivors = hand.broker.topics
    if "orders" in survivors and survivors["orders"].topic_id == topic_id:
        assert_honest_client_goes_on(honest, topic_id)
        hand.crash()
        assert_log_is_sound(hand.connect(), topic_id)
    assert hand.broker.fetches.purgatory.delayed == 0


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_bytes_at_all_harm_nobody(data: bytes) -> None:
    hand, honest, topic_id = new_broker()
    stranger = hand.connect()

    if data:
        stranger.send_bytes(data)
    hand.settle()

    assert_honest_client_goes_on(honest, topic_id)


@settings(max_examples=100, deadline=None)
@given(size=st.integers(-(2**31), 2**31 - 1), rest=st.binary(max_size=64))
def test_a_frame_takes_memory_by_the_bytes_that_came_and_not_by_its_claim(
    size: int, rest: bytes
) -> None:
    hand, _, _ = new_broker()
    stranger = hand.connect()

    tracemalloc.start()
    stranger.send_bytes(size.to_bytes(4, "big", signed=True) + rest)
    hand.settle()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 1 << 20
