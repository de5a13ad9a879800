"""CreateTopics, API key 19: versions 2 to 7, flexible from 5.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import ZERO_UUID, Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class CreatableReplicaAssignment:
    def __init__(
        self,
        partition_index: int = 0,
        broker_ids: list[int] | tuple[()] = (),
    ) -> None:
        self.partition_index: int = partition_index
        self.broker_ids: list[int] = [] if isinstance(broker_ids, tuple) else broker_ids

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 5
        writer.i32(self.partition_index)
        broker_ids_ = self.broker_ids
        if flexible:
            writer.compact_array_length(len(broker_ids_))
        else:
            writer.array_length(len(broker_ids_))
        for broker_ids_element in broker_ids_:
            writer.i32(broker_ids_element)
        if flexible:
            writer.unsigned_varint(0)


def _decode_creatable_replica_assignment(
    reader: Reader, version: i64
) -> CreatableReplicaAssignment:
    flexible = version >= 5
    broker_ids: list[int] = []
    partition_index = reader.i32()
    count = reader.compact_array_length(4) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("broker_ids must not be null")
    for _ in range(count):
        broker_ids.append(reader.i32())
    if flexible:
        reader.skip_tagged_fields()
    return CreatableReplicaAssignment(partition_index, broker_ids)


class CreatableTopicConfig:
    def __init__(
        self,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name: str = name
        self.value: str | None = value

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 5
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if flexible:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        if flexible:
            writer.unsigned_varint(0)


def _decode_creatable_topic_config(reader: Reader, version: i64) -> CreatableTopicConfig:
    flexible = version >= 5
    name = reader.compact_string() if flexible else reader.string()
    value = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return CreatableTopicConfig(name, value)


class CreatableTopic:
    def __init__(
        self,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] | tuple[()] = (),
        configs: list[CreatableTopicConfig] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.assignments: list[CreatableReplicaAssignment] = (
            [] if isinstance(assignments, tuple) else assignments
        )
        self.configs: list[CreatableTopicConfig] = [] if isinstance(configs, tuple) else configs

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 5
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        writer.i32(self.num_partitions)
        writer.i16(self.replication_factor)
        assignments_ = self.assignments
        if flexible:
            writer.compact_array_length(len(assignments_))
        else:
            writer.array_length(len(assignments_))
        for assignments_element in assignments_:
            assignments_element.encode(writer, version)
        configs_ = self.configs
        if flexible:
            writer.compact_array_length(len(configs_))
        else:
            writer.array_length(len(configs_))
        for configs_element in configs_:
            configs_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_creatable_topic(reader: Reader, version: i64) -> CreatableTopic:
    flexible = version >= 5
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []
    name = reader.compact_string() if flexible else reader.string()
    num_partitions = reader.i32()
    replication_factor = reader.i16()
    count = reader.compact_array_length(6) if flexible else reader.array_length(8)
    if count < 0:
        raise MalformedData("assignments must not be null")
    for _ in range(count):
        assignments.append(_decode_creatable_replica_assignment(reader, version))
    count = reader.compact_array_length(3) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("configs must not be null")
    for _ in range(count):
        configs.append(_decode_creatable_topic_config(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return CreatableTopic(name, num_partitions, replication_factor, assignments, configs)


class CreateTopicsRequest(Message):
    def __init__(
        self,
        topics: list[CreatableTopic] | tuple[()] = (),
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics: list[CreatableTopic] = [] if isinstance(topics, tuple) else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 5
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


def decode_create_topics_request(reader: Reader, version: i64) -> CreateTopicsRequest:
    flexible = version >= 5
    topics: list[CreatableTopic] = []
    count = reader.compact_array_length(10) if flexible else reader.array_length(16)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_creatable_topic(reader, version))
    timeout_ms = reader.i32()
    validate_only = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return CreateTopicsRequest(topics, timeout_ms, validate_only)


class CreatableTopicConfigs:
    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        writer.compact_nullable_string(self.value)
        writer.boolean(self.read_only)
        writer.i8(self.config_source)
        writer.boolean(self.is_sensitive)
        writer.unsigned_varint(0)


def _decode_creatable_topic_configs(reader: Reader, version: i64) -> CreatableTopicConfigs:
    name = reader.compact_string()
    value = reader.compact_nullable_string()
    read_only = reader.boolean()
    config_source = reader.i8()
    is_sensitive = reader.boolean()
    reader.skip_tagged_fields()
    return CreatableTopicConfigs(name, value, read_only, config_source, is_sensitive)


class CreatableTopicResult:
    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | tuple[()] | None = (),
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topic_config_error_code: int = topic_config_error_code
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.configs: list[CreatableTopicConfigs] | None = (
            [] if isinstance(configs, tuple) else configs
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 5
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 7:
            writer.uuid(self.topic_id)
        writer.i16(self.error_code)
        if flexible:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 5:
            writer.i32(self.num_partitions)
            writer.i16(self.replication_factor)
            configs_ = self.configs
            if configs_ is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(configs_))
                for configs_element in configs_:
                    configs_element.encode(writer, version)
        tag_count: i64 = 0
        if version >= 5 and self.topic_config_error_code != 0:
            tag_count += 1
        if flexible:
            writer.unsigned_varint(tag_count)
            if tag_count > 0:
                self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if self.topic_config_error_code != 0:
            content = Writer()
            content.i16(self.topic_config_error_code)
            writer.tagged_field(0, content)


def _decode_creatable_topic_result(reader: Reader, version: i64) -> CreatableTopicResult:
    flexible = version >= 5
    topic_id: bytes = ZERO_UUID
    topic_config_error_code: i64 = 0
    num_partitions: i64 = -1
    replication_factor: i64 = -1
    configs: list[CreatableTopicConfigs] | None = []
    name = reader.compact_string() if flexible else reader.string()
    if version >= 7:
        topic_id = reader.uuid()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if version >= 5:
        num_partitions = reader.i32()
        replication_factor = reader.i16()
        count = reader.compact_array_length(6)
        configs = None
        if count >= 0:
            configs = []
            for _ in range(count):
                configs.append(_decode_creatable_topic_configs(reader, version))
    if flexible:
        tag: i64 = -1
        for _ in range(reader.tagged_field_count()):
            tag = reader.tag_after(tag)
            end = reader.tagged_field_end()
            if tag == 0:
                topic_config_error_code = reader.i16()
                reader.expect_position(end)
            else:
                reader.position = end
    return CreatableTopicResult(
        name,
        topic_id,
        error_code,
        error_message,
        topic_config_error_code,
        num_partitions,
        replication_factor,
        configs,
    )


class CreateTopicsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[CreatableTopicResult] = [] if isinstance(topics, tuple) else topics

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 5
        writer.i32(self.throttle_time_ms)
        topics_ = self.topics
        if flexible:
            writer.compact_array_length(len(topics_))
        else:
            writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_create_topics_response(reader: Reader, version: i64) -> CreateTopicsResponse:
    flexible = version >= 5
    topics: list[CreatableTopicResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(12) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_creatable_topic_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return CreateTopicsResponse(throttle_time_ms, topics)
