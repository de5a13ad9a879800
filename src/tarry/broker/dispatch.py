"""Dispatch of a frame to its handler: header, route, request, answer.  Hot.

A peer that breaks the protocol (an unknown key or version, a count beyond the bytes left) raises
`ProtocolViolation`; its connection is closed and nobody else notices.  Bytes behind a request are
passed over, as Kafka does, with a line in the log.  Only ApiVersions answers a version that is not
served.
"""

from __future__ import annotations

from typing import Any, Final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64

from tarry.base.errors import ProtocolViolation
from tarry.broker.answers import Answers
from tarry.broker.apis import api_versions
from tarry.broker.connection import Connection
from tarry.broker.request import RequestContext
from tarry.broker.route import Route
from tarry.protocol import api_keys
from tarry.protocol.headers import decode_request_header
from tarry.wire.reader import Reader

LIBRDKAFKA_REST: Final = 3


def handle_frame(
    routes: dict[int, Route[Any]],
    answers: Answers,
    connection: Connection,
    data: bytes,
    position: i64,
    end: i64,
) -> None:
    """Handle the request `data[position:end]`; its answer comes now or later."""
    api_key: int = read_i16_be(data, position)
    api_version: int = read_i16_be(data, position + 2)
    correlation_id: int = read_i32_be(data, position + 4)
    route = routes.get(api_key)
    context = RequestContext(answers, connection, api_key, api_version, correlation_id)
    if route is None:
        raise ProtocolViolation(f"API key {api_key} is not served here")
    if api_version < route.version_min or api_version > route.version_max:
        if api_key != api_keys.API_VERSIONS:
            raise ProtocolViolation(
                f"version {api_version} of API key {api_key} is not served; "
                f"{route.version_min} to {route.version_max} are"
            )
        connection.open_slot(context)
        context.api_version = 0
        context.respond(api_versions.unsupported(routes))
        return
    reader = Reader(data, position, end)
    header = decode_request_header(reader)
    request = route.decode(reader, api_version)
    if reader.remaining() != 0:
        _report_rest(context, reader.remaining())
    context.client_id = header.client_id
    connection.open_slot(context)
    response = route.handle(context, request)
    if response is not None:
        context.respond(response)


def _report_rest(context: RequestContext, size: i64) -> None:
    # librdkafka 2.16 asks for all topics with the placeholder of a longer count: no news to anyone.
    if context.api_key == api_keys.METADATA and size == LIBRDKAFKA_REST:
        return
    context.report(
        f"{size} bytes follow a request with API key {context.api_key} "
        f"version {context.api_version}"
    )
