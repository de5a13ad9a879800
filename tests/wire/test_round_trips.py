"""What we encode in any version we decode to the same message, to the last byte."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tarry.protocol.api_keys import APIS
from tarry.protocol.registry import MESSAGES
from tarry.wire import Reader, Writer

CASES = [
    pytest.param(key, kind, version, id=f"{api.name}-{kind}-v{version}")
    for key, api in APIS.items()
    for kind in ("request", "response")
    for version in range(api.version_min, api.version_max + 1)
]


def decode(key: int, kind: str, data: bytes, version: int) -> object:
    codec = MESSAGES[key]
    reader = Reader(data)
    decoder = codec.decode_request if kind == "request" else codec.decode_response
    message = decoder(reader, version)
    reader.expect_end()
    return message


@pytest.mark.parametrize(("key", "kind", "version"), CASES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_a_decoded_message_equals_the_one_encoded(
    key: int, kind: str, version: int, messages: Any, data: st.DataObject
) -> None:
    message = data.draw(messages.strategy(key, kind, version))
    writer = Writer()
    message.encode(writer, version)

    decoded = decode(key, kind, writer.joined(), version)

    assert messages.plain(key, kind, decoded) == messages.plain(key, kind, message)


@pytest.mark.parametrize(("key", "kind", "version"), CASES)
def test_a_message_of_defaults_comes_back_as_one(
    key: int, kind: str, version: int, messages: Any
) -> None:
    codec = MESSAGES[key]
    message = (codec.request_type if kind == "request" else codec.response_type)()
    writer = Writer()
    message.encode(writer, version)

    decoded = decode(key, kind, writer.finish(), version)

    assert messages.plain(key, kind, decoded) == messages.plain(key, kind, message)
