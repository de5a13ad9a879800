"""Request and response headers, before every message on the wire.

Header versions follow from the message: flexible versions have tagged fields in their headers,
the others do not.  Two exceptions, both so that old and new peers can talk before they know each
other's versions: a request's client id always has the old two-byte length, and the response to
ApiVersions never has tagged fields.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.api_keys import API_VERSIONS, APIS
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer


class RequestHeader:
    """Header of a request: `client_id` is None if the client gave none."""

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None = None
    ) -> None:
        self.api_key: int = api_key
        self.api_version: int = api_version
        self.correlation_id: int = correlation_id
        self.client_id: str | None = client_id

    def encode(self, writer: Writer) -> None:
        writer.i16(self.api_key)
        writer.i16(self.api_version)
        writer.i32(self.correlation_id)
        writer.nullable_string(self.client_id)
        if has_flexible_header(self.api_key, self.api_version):
            writer.unsigned_varint(0)


def has_flexible_header(api_key: int, api_version: int) -> bool:
    """Return True if a request's header ends with tagged fields.

    False for an unknown key: its header cannot be decoded, and the message behind it is never
    read.  Versions newer than the known ones count as flexible.
    """
    api = APIS.get(api_key)
    return api is not None and api.is_flexible(api_version)


def decode_request_header(reader: Reader) -> RequestHeader:
    """Decode a request's header, up to the message; accept any key and version."""
    api_key = reader.i16()
    api_version = reader.i16()
    correlation_id = reader.i32()
    client_id = reader.nullable_string()
    if has_flexible_header(api_key, api_version):
        reader.skip_tagged_fields()
    return RequestHeader(api_key, api_version, correlation_id, client_id)


def encode_response_header(
    writer: Writer, api_key: int, api_version: int, correlation_id: int
) -> None:
    writer.i32(correlation_id)
    if api_key != API_VERSIONS and has_flexible_header(api_key, api_version):
        writer.unsigned_varint(0)


def decode_response_header(reader: Reader, api_key: int, api_version: int) -> i64:
    """Decode a response's header, up to the message; return the correlation id."""
    correlation_id = reader.i32()
    if api_key != API_VERSIONS and has_flexible_header(api_key, api_version):
        reader.skip_tagged_fields()
    return correlation_id
