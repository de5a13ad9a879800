"""DescribeLogDirs, API key 35: versions 1 to 5, flexible from 2.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class DescribableLogDirTopic:
    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | tuple[()] = (),
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if isinstance(partitions, tuple) else partitions

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if flexible:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        partitions_ = self.partitions
        if flexible:
            writer.compact_array_length(len(partitions_))
        else:
            writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            writer.i32(partitions_element)
        if flexible:
            writer.unsigned_varint(0)


def _decode_describable_log_dir_topic(reader: Reader, version: i64) -> DescribableLogDirTopic:
    flexible = version >= 2
    partitions: list[int] = []
    topic = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(4) if flexible else reader.array_length(4)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(reader.i32())
    if flexible:
        reader.skip_tagged_fields()
    return DescribableLogDirTopic(topic, partitions)


class DescribeLogDirsRequest(Message):
    def __init__(
        self,
        topics: list[DescribableLogDirTopic] | tuple[()] | None = (),
    ) -> None:
        self.topics: list[DescribableLogDirTopic] | None = (
            [] if isinstance(topics, tuple) else topics
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        topics_ = self.topics
        if topics_ is None:
            if flexible:
                writer.compact_array_length(-1)
            else:
                writer.array_length(-1)
        else:
            if flexible:
                writer.compact_array_length(len(topics_))
            else:
                writer.array_length(len(topics_))
            for topics_element in topics_:
                topics_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_describe_log_dirs_request(reader: Reader, version: i64) -> DescribeLogDirsRequest:
    flexible = version >= 2
    topics: list[DescribableLogDirTopic] | None = []
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    topics = None
    if count >= 0:
        topics = []
        for _ in range(count):
            topics.append(_decode_describable_log_dir_topic(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DescribeLogDirsRequest(topics)


class DescribeLogDirsPartition:
    def __init__(
        self,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_size: int = partition_size
        self.offset_lag: int = offset_lag
        self.is_future_key: bool = is_future_key

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.partition_index)
        writer.i64(self.partition_size)
        writer.i64(self.offset_lag)
        writer.boolean(self.is_future_key)
        if flexible:
            writer.unsigned_varint(0)


def _decode_describe_log_dirs_partition(reader: Reader, version: i64) -> DescribeLogDirsPartition:
    flexible = version >= 2
    partition_index = reader.i32()
    partition_size = reader.i64()
    offset_lag = reader.i64()
    is_future_key = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return DescribeLogDirsPartition(partition_index, partition_size, offset_lag, is_future_key)


class DescribeLogDirsTopic:
    def __init__(
        self,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] | tuple[()] = (),
    ) -> None:
        self.name: str = name
        self.partitions: list[DescribeLogDirsPartition] = (
            [] if isinstance(partitions, tuple) else partitions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if flexible:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        partitions_ = self.partitions
        if flexible:
            writer.compact_array_length(len(partitions_))
        else:
            writer.array_length(len(partitions_))
        for partitions_element in partitions_:
            partitions_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_describe_log_dirs_topic(reader: Reader, version: i64) -> DescribeLogDirsTopic:
    flexible = version >= 2
    partitions: list[DescribeLogDirsPartition] = []
    name = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(22) if flexible else reader.array_length(21)
    if count < 0:
        raise MalformedData("partitions must not be null")
    for _ in range(count):
        partitions.append(_decode_describe_log_dirs_partition(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DescribeLogDirsTopic(name, partitions)


class DescribeLogDirsResult:
    def __init__(
        self,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] | tuple[()] = (),
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code: int = error_code
        self.log_dir: str = log_dir
        self.topics: list[DescribeLogDirsTopic] = [] if isinstance(topics, tuple) else topics
        self.total_bytes: int = total_bytes
        self.usable_bytes: int = usable_bytes
        self.is_cordoned: bool = is_cordoned

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i16(self.error_code)
        if flexible:
            writer.compact_string(self.log_dir)
        else:
            writer.string(self.log_dir)
        topics_ = self.topics
        if flexible:
            writer.compact_array_length(len(topics_))
        else:
            writer.array_length(len(topics_))
        for topics_element in topics_:
            topics_element.encode(writer, version)
        if version >= 4:
            writer.i64(self.total_bytes)
            writer.i64(self.usable_bytes)
        if version >= 5:
            writer.boolean(self.is_cordoned)
        if flexible:
            writer.unsigned_varint(0)


def _decode_describe_log_dirs_result(reader: Reader, version: i64) -> DescribeLogDirsResult:
    flexible = version >= 2
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: i64 = -1
    usable_bytes: i64 = -1
    is_cordoned: bool = False
    error_code = reader.i16()
    log_dir = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("topics must not be null")
    for _ in range(count):
        topics.append(_decode_describe_log_dirs_topic(reader, version))
    if version >= 4:
        total_bytes = reader.i64()
        usable_bytes = reader.i64()
    if version >= 5:
        is_cordoned = reader.boolean()
    if flexible:
        reader.skip_tagged_fields()
    return DescribeLogDirsResult(
        error_code, log_dir, topics, total_bytes, usable_bytes, is_cordoned
    )


class DescribeLogDirsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results: list[DescribeLogDirsResult] = [] if isinstance(results, tuple) else results

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.throttle_time_ms)
        if version >= 3:
            writer.i16(self.error_code)
        results_ = self.results
        if flexible:
            writer.compact_array_length(len(results_))
        else:
            writer.array_length(len(results_))
        for results_element in results_:
            results_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_describe_log_dirs_response(reader: Reader, version: i64) -> DescribeLogDirsResponse:
    flexible = version >= 2
    error_code: i64 = 0
    results: list[DescribeLogDirsResult] = []
    throttle_time_ms = reader.i32()
    if version >= 3:
        error_code = reader.i16()
    count = reader.compact_array_length(5) if flexible else reader.array_length(8)
    if count < 0:
        raise MalformedData("results must not be null")
    for _ in range(count):
        results.append(_decode_describe_log_dirs_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return DescribeLogDirsResponse(throttle_time_ms, error_code, results)
