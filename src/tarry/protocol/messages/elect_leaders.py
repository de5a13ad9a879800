"""ElectLeaders, API key 43: versions 0 to 2, flexible from 2.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class TopicPartitions:
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


def _decode_topic_partitions(reader: Reader, version: i64) -> TopicPartitions:
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
    return TopicPartitions(topic, partitions)


class ElectLeadersRequest(Message):
    def __init__(
        self,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | tuple[()] | None = (),
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type: int = election_type
        self.topic_partitions: list[TopicPartitions] | None = (
            [] if isinstance(topic_partitions, tuple) else topic_partitions
        )
        self.timeout_ms: int = timeout_ms

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if version >= 1:
            writer.i8(self.election_type)
        elif self.election_type != 0:
            raise ValueError("this version has no election_type")
        topic_partitions_ = self.topic_partitions
        if topic_partitions_ is None:
            if flexible:
                writer.compact_array_length(-1)
            else:
                writer.array_length(-1)
        else:
            if flexible:
                writer.compact_array_length(len(topic_partitions_))
            else:
                writer.array_length(len(topic_partitions_))
            for topic_partitions_element in topic_partitions_:
                topic_partitions_element.encode(writer, version)
        writer.i32(self.timeout_ms)
        if flexible:
            writer.unsigned_varint(0)


def decode_elect_leaders_request(reader: Reader, version: i64) -> ElectLeadersRequest:
    flexible = version >= 2
    election_type: i64 = 0
    topic_partitions: list[TopicPartitions] | None = []
    if version >= 1:
        election_type = reader.i8()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    topic_partitions = None
    if count >= 0:
        topic_partitions = []
        for _ in range(count):
            topic_partitions.append(_decode_topic_partitions(reader, version))
    timeout_ms = reader.i32()
    if flexible:
        reader.skip_tagged_fields()
    return ElectLeadersRequest(election_type, topic_partitions, timeout_ms)


class PartitionResult:
    def __init__(
        self,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_id: int = partition_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.partition_id)
        writer.i16(self.error_code)
        if flexible:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if flexible:
            writer.unsigned_varint(0)


def _decode_partition_result(reader: Reader, version: i64) -> PartitionResult:
    flexible = version >= 2
    partition_id = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.skip_tagged_fields()
    return PartitionResult(partition_id, error_code, error_message)


class ReplicaElectionResult:
    def __init__(
        self,
        topic: str = "",
        partition_result: list[PartitionResult] | tuple[()] = (),
    ) -> None:
        self.topic: str = topic
        self.partition_result: list[PartitionResult] = (
            [] if isinstance(partition_result, tuple) else partition_result
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        if flexible:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        partition_result_ = self.partition_result
        if flexible:
            writer.compact_array_length(len(partition_result_))
        else:
            writer.array_length(len(partition_result_))
        for partition_result_element in partition_result_:
            partition_result_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_replica_election_result(reader: Reader, version: i64) -> ReplicaElectionResult:
    flexible = version >= 2
    partition_result: list[PartitionResult] = []
    topic = reader.compact_string() if flexible else reader.string()
    count = reader.compact_array_length(8) if flexible else reader.array_length(8)
    if count < 0:
        raise MalformedData("partition_result must not be null")
    for _ in range(count):
        partition_result.append(_decode_partition_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return ReplicaElectionResult(topic, partition_result)


class ElectLeadersResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.replica_election_results: list[ReplicaElectionResult] = (
            [] if isinstance(replica_election_results, tuple) else replica_election_results
        )

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 2
        writer.i32(self.throttle_time_ms)
        if version >= 1:
            writer.i16(self.error_code)
        elif self.error_code != 0:
            raise ValueError("this version has no error_code")
        replica_election_results_ = self.replica_election_results
        if flexible:
            writer.compact_array_length(len(replica_election_results_))
        else:
            writer.array_length(len(replica_election_results_))
        for replica_election_results_element in replica_election_results_:
            replica_election_results_element.encode(writer, version)
        if flexible:
            writer.unsigned_varint(0)


def decode_elect_leaders_response(reader: Reader, version: i64) -> ElectLeadersResponse:
    flexible = version >= 2
    error_code: i64 = 0
    replica_election_results: list[ReplicaElectionResult] = []
    throttle_time_ms = reader.i32()
    if version >= 1:
        error_code = reader.i16()
    count = reader.compact_array_length(3) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("replica_election_results must not be null")
    for _ in range(count):
        replica_election_results.append(_decode_replica_election_result(reader, version))
    if flexible:
        reader.skip_tagged_fields()
    return ElectLeadersResponse(throttle_time_ms, error_code, replica_election_results)
