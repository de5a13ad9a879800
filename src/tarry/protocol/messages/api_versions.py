"""ApiVersions, API key 18: versions 0 to 5, flexible from 3.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ApiVersionsRequest(Message):
    def __init__(
        self,
        client_software_name: str = "",
        client_software_version: str = "",
        cluster_id: str | None = None,
        node_id: int = -1,
    ) -> None:
        self.client_software_name: str = client_software_name
        self.client_software_version: str = client_software_version
        self.cluster_id: str | None = cluster_id
        self.node_id: int = node_id

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 3
        if version >= 3:
            writer.compact_string(self.client_software_name)
            writer.compact_string(self.client_software_version)
        if version >= 5:
            writer.compact_nullable_string(self.cluster_id)
            writer.i32(self.node_id)
        if flexible:
            writer.unsigned_varint(0)


def decode_api_versions_request(reader: Reader, version: i64) -> ApiVersionsRequest:
    flexible = version >= 3
    client_software_name: str = ""
    client_software_version: str = ""
    cluster_id: str | None = None
    node_id: i64 = -1
    if version >= 3:
        client_software_name = reader.compact_string()
        client_software_version = reader.compact_string()
    if version >= 5:
        cluster_id = reader.compact_nullable_string()
        node_id = reader.i32()
    if flexible:
        reader.skip_tagged_fields()
    return ApiVersionsRequest(client_software_name, client_software_version, cluster_id, node_id)


class ApiVersion:
    def __init__(
        self,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key: int = api_key
        self.min_version: int = min_version
        self.max_version: int = max_version

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 3
        writer.i16(self.api_key)
        writer.i16(self.min_version)
        writer.i16(self.max_version)
        if flexible:
            writer.unsigned_varint(0)


def _decode_api_version(reader: Reader, version: i64) -> ApiVersion:
    flexible = version >= 3
    api_key = reader.i16()
    min_version = reader.i16()
    max_version = reader.i16()
    if flexible:
        reader.skip_tagged_fields()
    return ApiVersion(api_key, min_version, max_version)


class SupportedFeatureKey:
    def __init__(
        self,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name: str = name
        self.min_version: int = min_version
        self.max_version: int = max_version

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        writer.i16(self.min_version)
        writer.i16(self.max_version)
        writer.unsigned_varint(0)


def _decode_supported_feature_key(reader: Reader, version: i64) -> SupportedFeatureKey:
    name = reader.compact_string()
    min_version = reader.i16()
    max_version = reader.i16()
    reader.skip_tagged_fields()
    return SupportedFeatureKey(name, min_version, max_version)


class FinalizedFeatureKey:
    def __init__(
        self,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name: str = name
        self.max_version_level: int = max_version_level
        self.min_version_level: int = min_version_level

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        writer.i16(self.max_version_level)
        writer.i16(self.min_version_level)
        writer.unsigned_varint(0)


def _decode_finalized_feature_key(reader: Reader, version: i64) -> FinalizedFeatureKey:
    name = reader.compact_string()
    max_version_level = reader.i16()
    min_version_level = reader.i16()
    reader.skip_tagged_fields()
    return FinalizedFeatureKey(name, max_version_level, min_version_level)


class ApiVersionsResponse(Message):
    def __init__(
        self,
        error_code: int = 0,
        api_keys: list[ApiVersion] | tuple[()] = (),
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] | tuple[()] = (),
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] | tuple[()] = (),
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code: int = error_code
        self.api_keys: list[ApiVersion] = [] if isinstance(api_keys, tuple) else api_keys
        self.throttle_time_ms: int = throttle_time_ms
        self.supported_features: list[SupportedFeatureKey] = (
            [] if isinstance(supported_features, tuple) else supported_features
        )
        self.finalized_features_epoch: int = finalized_features_epoch
        self.finalized_features: list[FinalizedFeatureKey] = (
            [] if isinstance(finalized_features, tuple) else finalized_features
        )
        self.zk_migration_ready: bool = zk_migration_ready

    def encode(self, writer: Writer, version: i64) -> None:
        flexible = version >= 3
        writer.i16(self.error_code)
        api_keys_ = self.api_keys
        if flexible:
            writer.compact_array_length(len(api_keys_))
        else:
            writer.array_length(len(api_keys_))
        for api_keys_element in api_keys_:
            api_keys_element.encode(writer, version)
        if version >= 1:
            writer.i32(self.throttle_time_ms)
        tag_count: i64 = 0
        if version >= 3 and self.supported_features:
            tag_count += 1
        if version >= 3 and self.finalized_features_epoch != -1:
            tag_count += 1
        if version >= 3 and self.finalized_features:
            tag_count += 1
        if version >= 3 and self.zk_migration_ready:
            tag_count += 1
        if flexible:
            writer.unsigned_varint(tag_count)
            if tag_count > 0:
                self._encode_tagged_fields(writer, version)

    def _encode_tagged_fields(self, writer: Writer, version: i64) -> None:
        if self.supported_features:
            content = Writer()
            supported_features_ = self.supported_features
            content.compact_array_length(len(supported_features_))
            for supported_features_element in supported_features_:
                supported_features_element.encode(content, version)
            writer.tagged_field(0, content)
        if self.finalized_features_epoch != -1:
            content = Writer()
            content.i64(self.finalized_features_epoch)
            writer.tagged_field(1, content)
        if self.finalized_features:
            content = Writer()
            finalized_features_ = self.finalized_features
            content.compact_array_length(len(finalized_features_))
            for finalized_features_element in finalized_features_:
                finalized_features_element.encode(content, version)
            writer.tagged_field(2, content)
        if self.zk_migration_ready:
            content = Writer()
            content.boolean(self.zk_migration_ready)
            writer.tagged_field(3, content)


def decode_api_versions_response(reader: Reader, version: i64) -> ApiVersionsResponse:
    flexible = version >= 3
    api_keys: list[ApiVersion] = []
    throttle_time_ms: i64 = 0
    supported_features: list[SupportedFeatureKey] = []
    finalized_features_epoch: i64 = -1
    finalized_features: list[FinalizedFeatureKey] = []
    zk_migration_ready: bool = False
    error_code = reader.i16()
    count = reader.compact_array_length(7) if flexible else reader.array_length(6)
    if count < 0:
        raise MalformedData("api_keys must not be null")
    for _ in range(count):
        api_keys.append(_decode_api_version(reader, version))
    if version >= 1:
        throttle_time_ms = reader.i32()
    if flexible:
        tag: i64 = -1
        for _ in range(reader.tagged_field_count()):
            tag = reader.tag_after(tag)
            end = reader.tagged_field_end()
            if tag == 0:
                count = reader.compact_array_length(6)
                if count < 0:
                    raise MalformedData("supported_features must not be null")
                for _ in range(count):
                    supported_features.append(_decode_supported_feature_key(reader, version))
                reader.expect_position(end)
            elif tag == 1:
                finalized_features_epoch = reader.i64()
                reader.expect_position(end)
            elif tag == 2:
                count = reader.compact_array_length(6)
                if count < 0:
                    raise MalformedData("finalized_features must not be null")
                for _ in range(count):
                    finalized_features.append(_decode_finalized_feature_key(reader, version))
                reader.expect_position(end)
            elif tag == 3:
                zk_migration_ready = reader.boolean()
                reader.expect_position(end)
            else:
                reader.position = end
    return ApiVersionsResponse(
        error_code,
        api_keys,
        throttle_time_ms,
        supported_features,
        finalized_features_epoch,
        finalized_features,
        zk_migration_ready,
    )
