"""DeleteTopics, API key 20: versions 1 to 6, flexible from 4.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class DeleteTopicState:
    def __init__(
        self,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.name: str | None = name
        self.topic_id: bytes = topic_id

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_nullable_string(self.name)
        writer.uuid(self.topic_id)
        writer.unsigned_varint(0)


def _decode_delete_topic_state(reader: Reader, version: i64) -> DeleteTopicState:
    name = reader.compact_nullable_string()
    topic_id = reader.uuid()
    reader.skip_tagged_fields()
    return DeleteTopicState(name, topic_id)


class DeleteTopicsRequest(Message):
    def __init__(
        self,
        topics: list[DeleteTopicState] | tuple[()] = (),
        topic_names: list[str] | tuple[()] = (),
        timeout_ms: int = 0,
    ) -> None:
        self.topics: list[DeleteTopicState] = [] if isinstance(topics, tuple) else topics
        self.topic_names: list[str] = [] if isinstance(topic_names, tuple) else topic_names
        self.timeout_ms: int = timeout_ms

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if version >= 6:
            topics_ = self.topics
            writer.compact_array_length(len(topics_))
            for topics_element in topics_:
                topics_element.encode(writer, version)
        elif self.topics:
            raise ValueError("this version has no topics")
        if version <= 5:
            topic_names_ = self.topic_names
            if flexible:
                writer.compact_array_length(len(topic_names_))
            else:
                writer.array_length(len(topic_names_))
            for topic_names_element in topic_names_:
                if flexible:
                    writer.compact_string(topic_names_element)
                else:
                    writer.string(topic_names_element)
        writer.i32(self.timeout_ms)
        if flexible:
            writer.unsigned_varint(0)


def decode_delete_topics_request(reader: Reader, version: i64) -> DeleteTopicsRequest:
    flexible = version >= 4
    topics: list[DeleteTopicState] = []
    topic_names: list[str] = []
    if version >= 6:
        count = reader.compact_array_length(18)
        if count < 0:
            raise MalformedData("topics must not be null")
        for _ in range(count):
            topics.append(_decode_delete_topic_state(reader, version))
    if version <= 5:
        count = reader.compact_array_length(1) if flexible else reader.array_length(2)
        if count < 0:
            raise MalformedData("topic_names must not be null")
        for _ in range(count):
            topic_names.append(reader.compact_string() if flexible else reader.string())
    timeout_ms = reader.i32()
    if flexible:
        reader.skip_tagged_fields()
    return DeleteTopicsRequest(topics, topic_names, timeout_ms)


class DeletableTopicResult:
    def __init__(
        self,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        if self.name is None and version < 6:
            raise ValueError("name must not be None in this version")
        if flexible:
            writer.compact_nullable_string(self.name)
        else:
            writer.nullable_string(self.name)
        if version >= 6:
            writer.uuid(self.topic_id)
        writer.i16(self.error_code)
        if version >= 5:
            writer.compact_nullable_string(self.error_message)
        if flexible:
            writer.unsigned_varint(0)


def _decode_deletable_topic_result(reader: Reader, version: i64) -> DeletableTopicResult:
    flexible = version >= 4
    topic_id: bytes = ZERO_UUID
    error_message: str | None = None
    name = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if name is None and version < 6:
        raise MalformedData("name must not be null")
    if version >= 6:
        topic_id = reader.uuid()
    error_code = reader.i16()
    if version >= 5:
        error_message = reader.compact_nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return DeletableTopicResult(name, topic_id, error_code, error_message)


class DeleteTopicsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[DeletableTopicResult] = (
            [] if isinstance(responses, tuple) else responses
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 4
        writer.i32(self.throttle_time_ms)
        responses_ = self.responses
        if flexible:
            writer.compact_array_length(len(responses_))
        else:
            writer.array_length(len(responses_))
        for responses_element in responses_:
            responses_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_delete_topics_response(reader: Reader, version: i64) -> DeleteTopicsResponse:
    flexible = version >= 4
    responses: list[DeletableTopicResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(4) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("responses must not be null")
    for _ in range(count):
        responses.append(_decode_deletable_topic_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DeleteTopicsResponse(throttle_time_ms, responses)
