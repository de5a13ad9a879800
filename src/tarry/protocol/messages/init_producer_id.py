"""InitProducerId, API key 22: versions 0 to 5, flexible from 2.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import Reader
from tarry.wire.writer import Writer


class InitProducerIdRequest(Message):
    def __init__(
        self,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if flexible:
            writer.compact_nullable_string(self.transactional_id)
        else:
            writer.nullable_string(self.transactional_id)
        writer.i32(self.transaction_timeout_ms)
        if version >= 3:
            writer.i64(self.producer_id)
            writer.i16(self.producer_epoch)
        elif self.producer_id != -1:
            raise ValueError("this version has no producer_id")
        elif self.producer_epoch != -1:
            raise ValueError("this version has no producer_epoch")
        if flexible:
            writer.unsigned_varint(0)


def decode_init_producer_id_request(reader: Reader, version: i64) -> InitProducerIdRequest:
    flexible = version >= 2
    producer_id: i64 = -1
    producer_epoch: i64 = -1
    transactional_id = reader.compact_nullable_string() if flexible else reader.nullable_string()
    transaction_timeout_ms = reader.i32()
    if version >= 3:
        producer_id = reader.i64()
        producer_epoch = reader.i16()
    if flexible:
        reader.skip_tagged_fields()
    return InitProducerIdRequest(
        transactional_id, transaction_timeout_ms, producer_id, producer_epoch
    )


class InitProducerIdResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        writer.i64(self.producer_id)
        writer.i16(self.producer_epoch)
        if flexible:
            writer.unsigned_varint(0)


def decode_init_producer_id_response(reader: Reader, version: i64) -> InitProducerIdResponse:
    flexible = version >= 2
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    producer_id = reader.i64()
    producer_epoch = reader.i16()
    if flexible:
        reader.skip_tagged_fields()
    return InitProducerIdResponse(throttle_time_ms, error_code, producer_id, producer_epoch)
