"""UpdateFeatures, API key 57: versions 0 to 2, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class FeatureUpdateKey:
    def __init__(
        self,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
    ) -> None:
        self.feature: str = feature
        self.max_version_level: int = max_version_level
        self.allow_downgrade: bool = allow_downgrade
        self.upgrade_type: int = upgrade_type

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.feature)
        writer.i16(self.max_version_level)
        if version <= 0:
            writer.boolean(self.allow_downgrade)
        elif self.allow_downgrade:
            raise ValueError("this version has no allow_downgrade")
        if version >= 1:
            writer.i8(self.upgrade_type)
        elif self.upgrade_type != 1:
            raise ValueError("this version has no upgrade_type")
        writer.unsigned_varint(0)


def _decode_feature_update_key(reader: Reader, version: i64) -> FeatureUpdateKey:
    allow_downgrade: bool = False
    upgrade_type: i64 = 1
    feature = reader.compact_string()
    max_version_level = reader.i16()
    if version <= 0:
        allow_downgrade = reader.boolean()
    if version >= 1:
        upgrade_type = reader.i8()
    reader.skip_tagged_fields()
    return FeatureUpdateKey(feature, max_version_level, allow_downgrade, upgrade_type)


class UpdateFeaturesRequest(Message):
    def __init__(
        self,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] | tuple[()] = (),
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.feature_updates: list[FeatureUpdateKey] = (
            [] if isinstance(feature_updates, tuple) else feature_updates
        )
        self.validate_only: bool = validate_only

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.timeout_ms)
        feature_updates_ = self.feature_updates
        writer.compact_array_length(len(feature_updates_))
        for feature_updates_element in feature_updates_:
            feature_updates_element.encode(writer, version)
        if version >= 1:
            writer.boolean(self.validate_only)
        elif self.validate_only:
            raise ValueError("this version has no validate_only")
        writer.unsigned_varint(0)


def decode_update_features_request(reader: Reader, version: i64) -> UpdateFeaturesRequest:
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: bool = False
    timeout_ms = reader.i32()
    count = reader.compact_array_length(5)
    if count < 0:
        raise MalformedData("feature_updates must not be null")
    for _ in range(count):
        feature_updates.append(_decode_feature_update_key(reader, version))
    if version >= 1:
        validate_only = reader.boolean()
    reader.skip_tagged_fields()
    return UpdateFeaturesRequest(timeout_ms, feature_updates, validate_only)


class UpdatableFeatureResult:
    def __init__(
        self,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.feature: str = feature
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.feature)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unsigned_varint(0)


def _decode_updatable_feature_result(reader: Reader, version: i64) -> UpdatableFeatureResult:
    feature = reader.compact_string()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    reader.skip_tagged_fields()
    return UpdatableFeatureResult(feature, error_code, error_message)


class UpdateFeaturesResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[UpdatableFeatureResult] = [] if isinstance(results, tuple) else results

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        if version <= 1:
            results_ = self.results
            writer.compact_array_length(len(results_))
            for results_element in results_:
                results_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_update_features_response(reader: Reader, version: i64) -> UpdateFeaturesResponse:
    results: list[UpdatableFeatureResult] = []
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    if version <= 1:
        count = reader.compact_array_length(5)
        if count < 0:
            raise MalformedData("results must not be null")
        for _ in range(count):
            results.append(_decode_updatable_feature_result(reader, version))
    reader.skip_tagged_fields()
    return UpdateFeaturesResponse(throttle_time_ms, error_code, error_message, results)
