"""CreatePartitions, API key 37: versions 0 to 3, flexible from 2.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class CreatePartitionsAssignment:
    def __init__(
        self,
        broker_ids: list[int] | tuple[()] = (),
    ) -> None:
        self.broker_ids: list[int] = [] if isinstance(broker_ids, tuple) else broker_ids

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        broker_ids_ = self.broker_ids
        if flexible:
            writer.compact_array_length(len(broker_ids_))
        else:
            writer.array_length(len(broker_ids_))
        for broker_ids_element in broker_ids_:
            writer.i32(broker_ids_element)
        if flexible:
            writer.unsigned_varint(0)


def _decode_create_partitions_assignment(
    reader: Reader, version: i64
) -> CreatePartitionsAssignment:
    flexible = version >= 2
    broker_ids: list[int] = []
    count = reader.compact_array_length(4) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("broker_ids must not be null")
    for _ in range(count):
        broker_ids.append(reader.i32())
    if flexible:
        reader.skip_tagged_fields()
    return CreatePartitionsAssignment(broker_ids)


class CreatePartitionsTopic:
    def __init__(
        self,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | tuple[()] | None = (),
    ) -> None:
        self.name: str = name
        self.count: int = count
        self.assignments: list[CreatePartitionsAssignment] | None = (
            [] if isinstance(assignments, tuple) else assignments
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        writer.i32(self.count)
        assignments_ = self.assignments
        if assignments_ is None:
            if flexible:
                writer.compact_array_length(-1)
            else:
                writer.array_length(-1)
        else:
            if flexible:
                writer.compact_array_length(len(assignments_))
            else:
                writer.array_length(len(assignments_))
            for assignments_element in assignments_:
                assignments_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_create_partitions_topic(reader: Reader, version: i64) -> CreatePartitionsTopic:
    flexible = version >= 2
    assignments: list[CreatePartitionsAssignment] | None = []
    name = reader.compact_string() if flexible else reader.string()
    count_ = reader.i32()
    count = reader.compact_array_length(2) if flexible else reader.array_length(4)
    assignments = None
    if count >= 0:
        assignments = []
        for _ in range(count):
            assignments.append(_decode_create_partitions_assignment(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return CreatePartitionsTopic(name, count_, assignments)


class CreatePartitionsRequest(Message):
    def __init__(
        self,
        topics: list[CreatePartitionsTopic] | tuple[()] = (),
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatePartitionsTopic] = [] if isinstance(topics, tuple) else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        topics_ = self.topics
        if flexible:
            writer.compact_array_length(len(topics_))
        else:
            writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        writer.i32(self.timeout_ms)
        writer.boolean(self.validate_only)
        if flexible:
            writer.unsigned_varint(0)


def decode_create_partitions_request(reader: Reader, version: i64) -> CreatePartitionsRequest:
    flexible = version >= 2
    topics: list[CreatePartitionsTopic] = []
    count = reader.compact_array_length(7) if flexible else reader.array_length(10)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_create_partitions_topic(reader, version))
    timeout_ms = reader.i32()
    validate_only = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return CreatePartitionsRequest(topics, timeout_ms, validate_only)


class CreatePartitionsTopicResult:
    def __init__(
        self,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name: str = name
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        writer.i16(self.error_code)
        if flexible:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if flexible:
            writer.unsigned_varint(0)


def _decode_create_partitions_topic_result(
    reader: Reader, version: i64
) -> CreatePartitionsTopicResult:
    flexible = version >= 2
    name = reader.compact_string() if flexible else reader.string()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return CreatePartitionsTopicResult(name, error_code, error_message)


class CreatePartitionsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[CreatePartitionsTopicResult] = (
            [] if isinstance(results, tuple) else results
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.throttle_time_ms)
        results_ = self.results
        if flexible:
            writer.compact_array_length(len(results_))
        else:
            writer.array_length(len(results_))
        for results_element in results_:
            results_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_create_partitions_response(reader: Reader, version: i64) -> CreatePartitionsResponse:
    flexible = version >= 2
    results: list[CreatePartitionsTopicResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(5) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("results must not be null")
    for _ in range(count):
        results.append(_decode_create_partitions_topic_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return CreatePartitionsResponse(throttle_time_ms, results)
