"""DescribeUserScramCredentials, API key 50: versions 0 to 0, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class UserName:
    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name: str = name

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        writer.unsigned_varint(0)


def _decode_user_name(reader: Reader, version: i64) -> UserName:
    name = reader.compact_string()
    reader.skip_tagged_fields()
    return UserName(name)


class DescribeUserScramCredentialsRequest(Message):
    def __init__(
        self,
        users: list[UserName] | tuple[()] | None = (),
    ) -> None:
        self.users: list[UserName] | None = [] if isinstance(users, tuple) else users

    def encode(self, writer: Writer, version: i64) -> None:
        users_ = self.users
        if users_ is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(users_))
            for users_element in users_:
                users_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_describe_user_scram_credentials_request(
    reader: Reader, version: i64
) -> DescribeUserScramCredentialsRequest:
    users: list[UserName] | None = []
    count = reader.compact_array_length(2)
    users = None
    if count >= 0:
        users = []
        for _ in range(count):
            users.append(_decode_user_name(reader, version))
    reader.skip_tagged_fields()
    return DescribeUserScramCredentialsRequest(users)


class CredentialInfo:
    def __init__(
        self,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism: int = mechanism
        self.iterations: int = iterations

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i8(self.mechanism)
        writer.i32(self.iterations)
        writer.unsigned_varint(0)


def _decode_credential_info(reader: Reader, version: i64) -> CredentialInfo:
    mechanism = reader.i8()
    iterations = reader.i32()
    reader.skip_tagged_fields()
    return CredentialInfo(mechanism, iterations)


class DescribeUserScramCredentialsResult:
    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] | tuple[()] = (),
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.credential_infos: list[CredentialInfo] = (
            [] if isinstance(credential_infos, tuple) else credential_infos
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.user)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        credential_infos_ = self.credential_infos
        writer.compact_array_length(len(credential_infos_))
        for credential_infos_element in credential_infos_:
            credential_infos_element.encode(writer, version)
        writer.unsigned_varint(0)


def _decode_describe_user_scram_credentials_result(
    reader: Reader, version: i64
) -> DescribeUserScramCredentialsResult:
    credential_infos: list[CredentialInfo] = []
    user = reader.compact_string()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    count = reader.compact_array_length(6)
    if count < 0:
        raise MalformedData("credential_infos must not be null")
    for _ in range(count):
        credential_infos.append(_decode_credential_info(reader, version))
    reader.skip_tagged_fields()
    return DescribeUserScramCredentialsResult(user, error_code, error_message, credential_infos)


class DescribeUserScramCredentialsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.results: list[DescribeUserScramCredentialsResult] = (
            [] if isinstance(results, tuple) else results
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        results_ = self.results
        writer.compact_array_length(len(results_))
        for results_element in results_:
            results_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_describe_user_scram_credentials_response(
    reader: Reader, version: i64
) -> DescribeUserScramCredentialsResponse:
    results: list[DescribeUserScramCredentialsResult] = []
    throttle_time_ms = reader.i32()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    count = reader.compact_array_length(6)
    if count < 0:
        raise MalformedData("results must not be null")
    for _ in range(count):
        results.append(_decode_describe_user_scram_credentials_result(reader, version))
    reader.skip_tagged_fields()
    return DescribeUserScramCredentialsResponse(
        throttle_time_ms, error_code, error_message, results
    )
