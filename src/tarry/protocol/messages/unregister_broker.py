"""UnregisterBroker, API key 64: versions 0 to 0, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer


class UnregisterBrokerRequest(Message):
    def __init__(
        self,
        broker_id: int = 0,
    ) -> None:
        self.broker_id: int = broker_id

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.broker_id)
        writer.unsigned_varint(0)


def decode_unregister_broker_request(reader: Reader, version: i64) -> UnregisterBrokerRequest:
    broker_id = reader.i32()
    reader.skip_tagged_fields()
    return UnregisterBrokerRequest(broker_id)


class UnregisterBrokerResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unsigned_varint(0)


def decode_unregister_broker_response(reader: Reader, version: i64) -> UnregisterBrokerResponse:
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    reader.skip_tagged_fields()
    return UnregisterBrokerResponse(throttle_time_ms, error_code, error_message)
