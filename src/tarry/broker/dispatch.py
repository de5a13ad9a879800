"""Dispatch of frames to their handlers: header, route, request, answer.  Hot.

A peer that breaks the protocol (an unknown key or version, a count beyond the bytes left) raises
`ProtocolViolation`, which closes its connection and no other.  Bytes behind a request are ignored
with a line in the log, as in Kafka.  Only ApiVersions answers a version that is not served.
"""

from __future__ import annotations

from typing import Any, Final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64

from tarry.base.errors import ProtocolViolation
from tarry.base.limits import ANSWER_BYTES_PER_TURN_MAX, LARGE_REQUEST_BYTES
from tarry.broker.apis import api_versions
from tarry.broker.delayed.long_answers import LONG_REQUEST_ELEMENTS, LongAnswers
from tarry.broker.kafka_connection import FrameHandler, KafkaConnection
from tarry.broker.request import RequestContext
from tarry.broker.route import Route
from tarry.broker.shutdown import Shutdown
from tarry.broker.unserved import api_sentence, version_sentence
from tarry.protocol import api_keys
from tarry.protocol.api_names import api_name
from tarry.protocol.headers import decode_request_header
from tarry.wire.reader import Reader

LIBRDKAFKA_REST: Final = 3


class Dispatch(FrameHandler):
    """Dispatch of all requests by their API keys."""

    def __init__(
        self,
        routes: dict[int, Route[Any]],
        long_answers: LongAnswers,
        shutdown: Shutdown,
    ) -> None:
        self._routes = routes
        self._long_answers = long_answers
        self._answers = long_answers.answers
        self._shutdown = shutdown

    def handle_frames(self, connection: KafkaConnection) -> None:
        """Handle the whole frames that have arrived, until the peer must take answers first.

        Frames beyond the connection's share of this turn are handled in the next one.
        """
        now_ms = self._answers.turn.now_ms
        held_max: i64 = connection.held + ANSWER_BYTES_PER_TURN_MAX
        while not connection.is_blocked() and not self._shutdown.is_begun:
            if connection.held >= held_max or connection.is_held():
                return
            if self._answers.turn.is_spent():
                self._answers.process_later(connection)
                return
            position: i64 = connection.next_frame(now_ms)
            if position < 0:
                return
            if (
                connection.position - position >= LARGE_REQUEST_BYTES
                and self._long_answers.puts_off(connection.data, position)
            ):
                connection.put_frame_back(position)
                self._answers.put_off(connection)
                return
            self._handle(connection, connection.data, position, connection.position)
            if connection.is_closed:
                return

    def _handle(self, connection: KafkaConnection, data: bytes, position: i64, end: i64) -> None:
        """Handle the request `data[position:end]`; its answer comes now or later."""
        answers = self._answers
        routes = self._routes
        api_key: int = read_i16_be(data, position)
        api_version: int = read_i16_be(data, position + 2)
        correlation_id: int = read_i32_be(data, position + 4)
        route = routes.get(api_key)
        context = RequestContext(answers, connection, api_key, api_version, correlation_id)
        if route is None:
            client_id = decode_request_header(Reader(data, position, end)).client_id
            raise ProtocolViolation(api_sentence(api_key, client_id, connection.client_software))
        if api_version < route.version_min or api_version > route.version_max:
            if api_key != api_keys.API_VERSIONS:
                client_id = decode_request_header(Reader(data, position, end)).client_id
                raise ProtocolViolation(
                    version_sentence(route, api_version, client_id, connection.client_software)
                )
            connection.open_slot(context)
            context.api_version = 0
            context.respond(api_versions.unsupported(routes))
            return
        reader = Reader(data, position, end)
        reader.expect_request()
        header = decode_request_header(reader)
        request = route.decode(reader, api_version)
        if reader.remaining() != 0:
            _report_rest(context, reader.remaining())
        context.client_id = header.client_id
        context.elements = reader.elements_read()
        if api_key != api_keys.FETCH:
            answers.turn.requests += 1
        answers.turn.elements_decoded += context.elements
        if end - position < LARGE_REQUEST_BYTES:
            answers.turn.small_elements_decoded += context.elements
        connection.open_slot(context)
        if context.elements > LONG_REQUEST_ELEMENTS:
            self._long_answers.postpone(route, context, request)
            return
        response = route.handle(context, request)
        if response is not None:
            context.respond(response)


def _report_rest(context: RequestContext, size: i64) -> None:
    # librdkafka 2.16 asks for all topics with such bytes behind its request, which are worth no
    # line.
    if context.api_key == api_keys.METADATA and size == LIBRDKAFKA_REST:
        return
    context.report(
        f"{size} bytes follow a request for version {context.api_version} of "
        f"{api_name(context.api_key)}"
    )
