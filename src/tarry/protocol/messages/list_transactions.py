"""ListTransactions, API key 66: versions 0 to 2, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ListTransactionsRequest(Message):
    def __init__(
        self,
        state_filters: list[str] | tuple[()] = (),
        producer_id_filters: list[int] | tuple[()] = (),
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters: list[str] = [] if isinstance(state_filters, tuple) else state_filters
        self.producer_id_filters: list[int] = (
            [] if isinstance(producer_id_filters, tuple) else producer_id_filters
        )
        self.duration_filter: int = duration_filter
        self.transactional_id_pattern: str | None = transactional_id_pattern

    def encode(self, writer: Writer, version: i64) -> None:
        state_filters_ = self.state_filters
        writer.compact_array_length(len(state_filters_))
        for state_filters_element in state_filters_:
            writer.compact_string(state_filters_element)
        producer_id_filters_ = self.producer_id_filters
        writer.compact_array_length(len(producer_id_filters_))
        for producer_id_filters_element in producer_id_filters_:
            writer.i64(producer_id_filters_element)
        if version >= 1:
            writer.i64(self.duration_filter)
        elif self.duration_filter != -1:
            raise ValueError("this version has no duration_filter")
        if version >= 2:
            writer.compact_nullable_string(self.transactional_id_pattern)
        elif self.transactional_id_pattern is not None:
            raise ValueError("this version has no transactional_id_pattern")
        writer.unsigned_varint(0)


def decode_list_transactions_request(reader: Reader, version: i64) -> ListTransactionsRequest:
    state_filters: list[str] = []
    producer_id_filters: list[int] = []
    duration_filter: i64 = -1
    transactional_id_pattern: str | None = None
    count = reader.compact_array_length(1)
    if count < 0:
        raise MalformedData("state_filters must not be null")
    for _ in range(count):
        state_filters.append(reader.compact_string())
    count = reader.compact_array_length(8)
    if count < 0:
        raise MalformedData("producer_id_filters must not be null")
    for _ in range(count):
        producer_id_filters.append(reader.i64())
    if version >= 1:
        duration_filter = reader.i64()
    if version >= 2:
        transactional_id_pattern = reader.compact_nullable_string()
    reader.skip_tagged_fields()
    return ListTransactionsRequest(
        state_filters, producer_id_filters, duration_filter, transactional_id_pattern
    )


class TransactionState:
    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.transaction_state: str = transaction_state

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.transactional_id)
        writer.i64(self.producer_id)
        writer.compact_string(self.transaction_state)
        writer.unsigned_varint(0)


def _decode_transaction_state(reader: Reader, version: i64) -> TransactionState:
    transactional_id = reader.compact_string()
    producer_id = reader.i64()
    transaction_state = reader.compact_string()
    reader.skip_tagged_fields()
    return TransactionState(transactional_id, producer_id, transaction_state)


class ListTransactionsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] | tuple[()] = (),
        transaction_states: list[TransactionState] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_state_filters: list[str] = (
            [] if isinstance(unknown_state_filters, tuple) else unknown_state_filters
        )
        self.transaction_states: list[TransactionState] = (
            [] if isinstance(transaction_states, tuple) else transaction_states
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        unknown_state_filters_ = self.unknown_state_filters
        writer.compact_array_length(len(unknown_state_filters_))
        for unknown_state_filters_element in unknown_state_filters_:
            writer.compact_string(unknown_state_filters_element)
        transaction_states_ = self.transaction_states
        writer.compact_array_length(len(transaction_states_))
        for transaction_states_element in transaction_states_:
            transaction_states_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_list_transactions_response(reader: Reader, version: i64) -> ListTransactionsResponse:
    unknown_state_filters: list[str] = []
    transaction_states: list[TransactionState] = []
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    count = reader.compact_array_length(1)
    if count < 0:
        raise MalformedData("unknown_state_filters must not be null")
    for _ in range(count):
        unknown_state_filters.append(reader.compact_string())
    count = reader.compact_array_length(11)
    if count < 0:
        raise MalformedData("transaction_states must not be null")
    for _ in range(count):
        transaction_states.append(_decode_transaction_state(reader, version))
    reader.skip_tagged_fields()
    return ListTransactionsResponse(
        throttle_time_ms, error_code, unknown_state_filters, transaction_states
    )
