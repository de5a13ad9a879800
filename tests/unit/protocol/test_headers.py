"""Headers: the version follows from the message's, with Kafka's two exceptions."""

from __future__ import annotations

import pytest

from tarry.protocol import api_keys
from tarry.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_response_header,
)
from tarry.wire import MalformedData, Reader, Writer

INFLEXIBLE = b"\x00\x00\x00\x08\x00\x00\x00\x05\x00\x02me"
FLEXIBLE = b"\x00\x00\x00\x09\x00\x00\x00\x05\x00\x02me\x00"


@pytest.mark.parametrize(("frame", "version"), [(INFLEXIBLE, 8), (FLEXIBLE, 9)])
def test_a_request_header_has_tagged_fields_from_the_first_flexible_version(
    frame: bytes, version: int
) -> None:
    reader = Reader(frame)

    header = decode_request_header(reader)

    assert (header.api_key, header.api_version) == (api_keys.PRODUCE, version)
    assert (header.correlation_id, header.client_id) == (5, "me")
    reader.expect_end()


@pytest.mark.parametrize("frame", [INFLEXIBLE, FLEXIBLE])
def test_a_request_header_is_written_as_it_is_read(frame: bytes) -> None:
    writer = Writer()

    decode_request_header(Reader(frame)).encode(writer)

    assert writer.finish() == frame


def test_a_client_without_an_id_is_none() -> None:
    writer = Writer()
    RequestHeader(api_keys.PRODUCE, 9, 1).encode(writer)

    assert decode_request_header(Reader(writer.finish())).client_id is None


def test_unknown_tagged_fields_of_a_request_header_are_skipped() -> None:
    reader = Reader(FLEXIBLE[:-1] + b"\x01\x09\x02ab" + b"!")

    decode_request_header(reader)

    assert reader.remaining() == 1


@pytest.mark.parametrize("frame", [INFLEXIBLE, FLEXIBLE])
def test_a_request_header_cut_anywhere_is_malformed(frame: bytes) -> None:
    for size in range(len(frame)):
        with pytest.raises(MalformedData):
            decode_request_header(Reader(frame[:size]))


@pytest.mark.parametrize(("key", "version"), [(9999, 3), (-1, 0), (0, -1), (18, 99)])
def test_unknown_keys_and_versions_are_left_to_the_broker(key: int, version: int) -> None:
    writer = Writer()
    RequestHeader(key, version, 7, "me").encode(writer)

    header = decode_request_header(Reader(writer.finish()))

    assert (header.api_key, header.api_version, header.correlation_id) == (key, version, 7)


# Protocol trap 1: the peer does not know yet what the versions mean.
@pytest.mark.parametrize("version", [0, 2, 3, 4])
def test_trap_1_the_header_of_an_api_versions_response_has_no_tagged_fields(version: int) -> None:
    writer = Writer()

    encode_response_header(writer, api_keys.API_VERSIONS, version, 5)

    assert writer.finish() == b"\x00\x00\x00\x05"


@pytest.mark.parametrize(
    ("key", "version", "expected"),
    [
        (api_keys.PRODUCE, 8, b"\x00\x00\x00\x05"),
        (api_keys.PRODUCE, 9, b"\x00\x00\x00\x05\x00"),
        (api_keys.DESCRIBE_CLUSTER, 0, b"\x00\x00\x00\x05\x00"),
    ],
)
def test_a_response_header_has_tagged_fields_from_the_first_flexible_version(
    key: int, version: int, expected: bytes
) -> None:
    writer = Writer()

    encode_response_header(writer, key, version, 5)

    assert writer.finish() == expected


@pytest.mark.parametrize("version", [2, 4, 9, 13])
@pytest.mark.parametrize("key", sorted(api_keys.APIS))
def test_a_response_header_is_read_as_it_is_written(key: int, version: int) -> None:
    writer = Writer()
    encode_response_header(writer, key, version, -7)
    reader = Reader(writer.finish())

    assert decode_response_header(reader, key, version) == -7
    reader.expect_end()
