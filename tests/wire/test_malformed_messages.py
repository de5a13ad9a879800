"""Bytes that are no message end as MalformedData and as nothing else, in bounded memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tarry.protocol.api_keys import APIS
from tarry.protocol.registry import MESSAGES
from tarry.wire import MalformedData, Reader, Writer

CASES = [
    pytest.param(key, kind, version, id=f"{api.name}-{kind}-v{version}")
    for key, api in APIS.items()
    for kind in ("request", "response")
    for version in range(api.version_min, api.version_max + 1)
]
FLEXIBLE_CASES = [case for case in CASES if APIS[case.values[0]].is_flexible(case.values[2])]  # type: ignore[index,arg-type]
# The first, the first flexible and the last version of each; those between add no new reading.
EDGE_CASES = [
    case
    for case in CASES
    if case.values[2]
    in (
        APIS[case.values[0]].version_min,  # type: ignore[index]
        APIS[case.values[0]].flexible_from,  # type: ignore[index]
        APIS[case.values[0]].version_max,  # type: ignore[index]
    )
]


def decode(key: int, kind: str, data: bytes, version: int) -> object:
    codec = MESSAGES[key]
    reader = Reader(data)
    decoder = codec.decode_request if kind == "request" else codec.decode_response
    message = decoder(reader, version)
    reader.expect_end()
    return message


def encode(message: Any, version: int) -> bytes:
    writer = Writer()
    message.encode(writer, version)
    return writer.joined()


@pytest.mark.parametrize(("key", "kind", "version"), EDGE_CASES)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_a_message_cut_at_any_byte_is_malformed(
    key: int, kind: str, version: int, messages: Any, data: st.DataObject
) -> None:
    whole = encode(data.draw(messages.strategy(key, kind, version)), version)

    for size in range(len(whole)):
        with pytest.raises(MalformedData):
            decode(key, kind, whole[:size], version)


@pytest.mark.parametrize(("key", "kind", "version"), EDGE_CASES)
@settings(max_examples=8, deadline=None)
@given(data=st.data(), changes=st.lists(st.tuples(st.integers(0), st.integers(0, 255))))
def test_a_changed_message_decodes_or_is_malformed(
    key: int,
    kind: str,
    version: int,
    messages: Any,
    data: st.DataObject,
    changes: list[tuple[int, int]],
) -> None:
    changed = bytearray(encode(data.draw(messages.strategy(key, kind, version)), version))
    for place, value in changes:
        if changed:
            changed[place % len(changed)] = value

    try:
        decode(key, kind, bytes(changed), version)
    except MalformedData as error:
        assert str(error)


@pytest.mark.parametrize(("key", "kind", "version"), EDGE_CASES)
@settings(max_examples=12, deadline=None)
@given(noise=st.binary(max_size=120))
def test_noise_decodes_or_is_malformed(key: int, kind: str, version: int, noise: bytes) -> None:
    try:
        decode(key, kind, noise, version)
    except MalformedData as error:
        assert str(error)


@pytest.mark.parametrize(("key", "kind", "version"), EDGE_CASES)
@pytest.mark.parametrize("filler", [b"\x7f\xff\xff\xff", b"\x00", b"\x01", b"\xff\xff\xff\xff\x0f"])
def test_a_claim_larger_than_the_frame_takes_no_memory(
    key: int, kind: str, version: int, filler: bytes
) -> None:
    frame = filler * (20_000 // len(filler))
    tracemalloc.start()

    try:
        decode(key, kind, frame, version)
    except MalformedData:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    # An element of two bytes may become an object of some hundred; never what a count claims.
    assert peak < 200 * len(frame)


@pytest.mark.parametrize(("key", "kind", "version"), EDGE_CASES)
def test_a_byte_after_the_last_field_is_malformed(key: int, kind: str, version: int) -> None:
    codec = MESSAGES[key]
    whole = encode((codec.request_type if kind == "request" else codec.response_type)(), version)

    with pytest.raises(MalformedData, match="after the last field"):
        decode(key, kind, whole + b"\x00", version)


@pytest.mark.parametrize(("key", "kind", "version"), FLEXIBLE_CASES)
def test_an_unknown_tagged_field_is_skipped(
    key: int, kind: str, version: int, messages: Any
) -> None:
    codec = MESSAGES[key]
    message = (codec.request_type if kind == "request" else codec.response_type)()
    whole = encode(message, version)
    # The last byte is the count of tagged fields: one now, tag 100 of three bytes.
    assert whole[-1] == 0
    tagged = whole[:-1] + b"\x01\x64\x03abc"

    decoded = decode(key, kind, tagged, version)

    assert messages.plain(key, kind, decoded) == messages.plain(key, kind, message)


@pytest.mark.parametrize(("key", "kind", "version"), FLEXIBLE_CASES)
@pytest.mark.parametrize(
    "tagged",
    [
        pytest.param(b"\x02\x64\x01a\x64\x01a", id="twice the same"),
        pytest.param(b"\x02\x65\x01a\x64\x01a", id="descending"),
        pytest.param(b"\x01\x64\x05abc", id="longer than the frame"),
        pytest.param(b"\xff\xff\xff\xff\x0f", id="four billion"),
    ],
)
def test_tagged_fields_out_of_order_or_beyond_the_end_are_malformed(
    key: int, kind: str, version: int, tagged: bytes
) -> None:
    codec = MESSAGES[key]
    whole = encode((codec.request_type if kind == "request" else codec.response_type)(), version)

    with pytest.raises(MalformedData):
        decode(key, kind, whole[:-1] + tagged, version)
