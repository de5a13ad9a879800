"""AlterUserScramCredentials, API key 51: versions 0 to 0, flexible from 0.

Written by tools/generate_messages.py from protocol/schema; change it there.
"""

from __future__ import annotations

from mypy_extensions import i64

from tarry.protocol.message import Message
from tarry.wire.reader import MalformedData, Reader
from tarry.wire.writer import Writer


class ScramCredentialDeletion:
    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        writer.i8(self.mechanism)
        writer.unsigned_varint(0)


def _decode_scram_credential_deletion(reader: Reader, version: i64) -> ScramCredentialDeletion:
    name = reader.compact_string()
    mechanism = reader.i8()
    reader.skip_tagged_fields()
    return ScramCredentialDeletion(name, mechanism)


class ScramCredentialUpsertion:
    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name: str = name
        self.mechanism: int = mechanism
        self.iterations: int = iterations
        self.salt: bytes = salt
        self.salted_password: bytes = salted_password

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.name)
        writer.i8(self.mechanism)
        writer.i32(self.iterations)
        writer.compact_bytes(self.salt)
        writer.compact_bytes(self.salted_password)
        writer.unsigned_varint(0)


def _decode_scram_credential_upsertion(reader: Reader, version: i64) -> ScramCredentialUpsertion:
    name = reader.compact_string()
    mechanism = reader.i8()
    iterations = reader.i32()
    salt = reader.compact_bytes()
    salted_password = reader.compact_bytes()
    reader.skip_tagged_fields()
    return ScramCredentialUpsertion(name, mechanism, iterations, salt, salted_password)


class AlterUserScramCredentialsRequest(Message):
    def __init__(
        self,
        deletions: list[ScramCredentialDeletion] | tuple[()] = (),
        upsertions: list[ScramCredentialUpsertion] | tuple[()] = (),
    ) -> None:
        self.deletions: list[ScramCredentialDeletion] = (
            [] if isinstance(deletions, tuple) else deletions
        )
        self.upsertions: list[ScramCredentialUpsertion] = (
            [] if isinstance(upsertions, tuple) else upsertions
        )

    def encode(self, writer: Writer, version: i64) -> None:
        deletions_ = self.deletions
        writer.compact_array_length(len(deletions_))
        for deletions_element in deletions_:
            deletions_element.encode(writer, version)
        upsertions_ = self.upsertions
        writer.compact_array_length(len(upsertions_))
        for upsertions_element in upsertions_:
            upsertions_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_alter_user_scram_credentials_request(
    reader: Reader, version: i64
) -> AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []
    count = reader.compact_array_length(3)
    if count < 0:
        raise MalformedData("deletions must not be null")
    for _ in range(count):
        deletions.append(_decode_scram_credential_deletion(reader, version))
    count = reader.compact_array_length(9)
    if count < 0:
        raise MalformedData("upsertions must not be null")
    for _ in range(count):
        upsertions.append(_decode_scram_credential_upsertion(reader, version))
    reader.skip_tagged_fields()
    return AlterUserScramCredentialsRequest(deletions, upsertions)


class AlterUserScramCredentialsResult:
    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.user: str = user
        self.error_code: int = error_code
        self.error_message: str | None = error_message

    def encode(self, writer: Writer, version: i64) -> None:
        writer.compact_string(self.user)
        writer.i16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unsigned_varint(0)


def _decode_alter_user_scram_credentials_result(
    reader: Reader, version: i64
) -> AlterUserScramCredentialsResult:
    user = reader.compact_string()
    error_code = reader.i16()
    error_message = reader.compact_nullable_string()
    reader.skip_tagged_fields()
    return AlterUserScramCredentialsResult(user, error_code, error_message)


class AlterUserScramCredentialsResponse(Message):
    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] | tuple[()] = (),
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterUserScramCredentialsResult] = (
            [] if isinstance(results, tuple) else results
        )

    def encode(self, writer: Writer, version: i64) -> None:
        writer.i32(self.throttle_time_ms)
        results_ = self.results
        writer.compact_array_length(len(results_))
        for results_element in results_:
            results_element.encode(writer, version)
        writer.unsigned_varint(0)


def decode_alter_user_scram_credentials_response(
    reader: Reader, version: i64
) -> AlterUserScramCredentialsResponse:
    results: list[AlterUserScramCredentialsResult] = []
    throttle_time_ms = reader.i32()
    count = reader.compact_array_length(5)
    if count < 0:
        raise MalformedData("results must not be null")
    for _ in range(count):
        results.append(_decode_alter_user_scram_credentials_result(reader, version))
    reader.skip_tagged_fields()
    return AlterUserScramCredentialsResponse(throttle_time_ms, results)
