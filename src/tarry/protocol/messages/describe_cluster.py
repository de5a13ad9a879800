"""DescribeCluster, API key 60: versions 0 to 2, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class DescribeClusterRequest(Message):
    def __init__(
        self,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations: bool = include_cluster_authorized_operations
        self.endpoint_type: int = endpoint_type
        self.include_fenced_brokers: bool = include_fenced_brokers

    def encode(self, writer: Writer, version: i64) -> None:
        writer.boolean(self.include_cluster_authorized_operations)
        if version >= 1:
            writer.i8(self.endpoint_type)
        elif self.endpoint_type != 1:
            raise ValueError("this version has no endpoint_type")
        if version >= 2:
            writer.boolean(self.include_fenced_brokers)
        elif self.include_fenced_brokers:
            raise ValueError("this version has no include_fenced_brokers")
        writer.unsigned_varint(0)


def decode_describe_cluster_request(reader: Reader, version: i64) -> DescribeClusterRequest:
    endpoint_type: i64 = 1
    include_fenced_brokers: bool = False
    include_cluster_authorized_operations = reader.boolean()
    if version >= 1:
        endpoint_type = reader.i8()
    if version >= 2:
        include_fenced_brokers = reader.boolean()
    reader.skip_tagged_fields()
    return DescribeClusterRequest(
        include_cluster_authorized_operations, endpoint_type, include_fenced_brokers
    )


class DescribeClusterBroker:
    def __init__(
        self,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> None:
        self.broker_id: int = broker_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack
        self.is_fenced: bool = is_fenced

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.broker_id)
        writer.compact_string(self.host)
        writer.i32(self.port)
        writer.compact_nullable_string(self.rack)
        if version >= 2:
            writer.boolean(self.is_fenced)
        elif self.is_fenced:
            raise ValueError("this version has no is_fenced")
        writer.unsigned_varint(0)


def _decode_describe_cluster_broker(reader: Reader, version: i64) -> DescribeClusterBroker:
    is_fenced: bool = False
    broker_id = reader.i32()
    host = reader.compact_string()
    port = reader.i32()
    rack = reader.compact_nullable_string()
    if version >= 2:
        is_fenced = reader.boolean()
    reader.skip_tagged_fields()
    return DescribeClusterBroker(broker_id, host, port, rack, is_fenced)


class DescribeClusterResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] | tuple[()] = (),
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.endpoint_type: int = endpoint_type
        self.cluster_id: str = cluster_id
        self.controller_id: int = controller_id
        self.brokers: list[DescribeClusterBroker] = [] if isinstance(brokers, tuple) else brokers
        self.cluster_authorized_operations: int = cluster_authorized_operations

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        if version >= 1:
            writer.i8(self.endpoint_type)
        elif self.endpoint_type != 1:
            raise ValueError("this version has no endpoint_type")
        writer.compact_string(self.cluster_id)
        writer.i32(self.controller_id)
        brokers_ = self.brokers
        writer.compact_array_length(len(brokers_))
        for brokers_element in brokers_:
            brokers_element.encode(writer, version)
        writer.i32(self.cluster_authorized_operations)
        writer.unsigned_varint(0)


def decode_describe_cluster_response(reader: Reader, version: i64) -> DescribeClusterResponse:
    endpoint_type: i64 = 1
    brokers: list[DescribeClusterBroker] = []
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    if version >= 1:
        endpoint_type = reader.i8()
    cluster_id = reader.compact_string()
    controller_id = reader.i32()
    count = reader.compact_array_length(11)
    if count < 0:
        raise MalformedData("brokers must not be null")
    for _ in range(count):
        brokers.append(_decode_describe_cluster_broker(reader, version))
    cluster_authorized_operations = reader.i32()
    reader.skip_tagged_fields()
    return DescribeClusterResponse(
        throttle_time_ms,
        error_code,
        error_message,
        endpoint_type,
        cluster_id,
        controller_id,
        brokers,
        cluster_authorized_operations,
    )
