"""Decoding: keys and values of a consumer's records, decoded by its codecs.

A record that does not decode holds its partition: the records before it are handed out, then each
poll raises its DecodeError until `skip()` or a seek.  Meanwhile no record behind it is handed out
or committed.
"""

from __future__ import annotations

from typing import Any, Generic

from tarry.client.codecs import Codec, Key, Value, check_codec
from tarry.client.core.consumer.position import PartitionPosition
from tarry.client.errors import DecodeError
from tarry.records.record import Record


class DecodedRecord(Generic[Key, Value]):
    """Record whose key and value were decoded by codecs; null stays None."""

    __slots__ = ("_record", "key", "value")

    def __init__(self, record: Record, key: Key | None, value: Value | None) -> None:
        self._record = record
        self.key = key
        self.value = value

    @property
    def topic(self) -> str:
        return self._record.topic

    @property
    def partition(self) -> int:
        return self._record.partition

    @property
    def offset(self) -> int:
        return self._record.offset

    @property
    def timestamp(self) -> int:
        return self._record.timestamp

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        return self._record.headers

    @property
    def record(self) -> Record:
        """Record as received, with bytes."""
        return self._record

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DecodedRecord)
            and self._record == other._record
            and self.key == other.key
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return self._record.offset

    def __reduce__(self) -> tuple[object, ...]:
        return DecodedRecord, (self._record, self.key, self.value)

    def __repr__(self) -> str:
        return f"DecodedRecord({self.offset}, {self.timestamp}, {self.key!r}, {self.value!r})"


class Decoding:
    """Codecs of one consumer; without a codec, keys or values stay bytes."""

    def __init__(self, key: Codec[Any] | None, value: Codec[Any] | None) -> None:
        self._key = key
        self._value = value
        # True while a codec, which is code of the user, runs.
        self.is_decoding = False

    def decode(self, position: PartitionPosition, taken: list[Any]) -> list[Any]:
        """Return decoded records, up to the first record that does not decode.

        That record and those behind it go back to the position, which it holds.  Records that were
        given back earlier may be decoded already.
        """
        self.is_decoding = True
        try:
            return self._decode_all(position, taken)
        finally:
            self.is_decoding = False

    def _decode_all(self, position: PartitionPosition, taken: list[Any]) -> list[Any]:
        decoded: list[Any] = []
        for place, record in enumerate(taken):
            if isinstance(record, DecodedRecord):
                decoded.append(record)
                continue
            try:
                decoded.append(self._decode_one(position, record))
            except DecodeError as error:
                position.give_back(taken[place:])
                position.hold(error)
                break
        return decoded

    def _decode_one(
        self, position: PartitionPosition, record: Record
    ) -> DecodedRecord[object, object]:
        key: object = record.key
        value: object = record.value
        part, data, codec = "key", record.key, self._key
        # A codec is code of the user: any exception means that this record does not decode.
        try:
            if codec is not None and data is not None:
                key = codec.decode(data)
            part, data, codec = "value", record.value, self._value
            if codec is not None and data is not None:
                value = codec.decode(data)
        except Exception as error:
            raise DecodeError(
                f"the {part} of {position} at offset {record.offset} does not decode "
                f"({type(error).__name__}: {error!s:.200}); skip() goes on behind it",
                position.topic,
                position.partition,
                record,
                part,
            ) from error
        return DecodedRecord(record, key, value)


def decoding_of(key: Codec[Any] | None, value: Codec[Any] | None) -> Decoding | None:
    """Return the decoding of a consumer, or None without codecs; raise TypeError for an invalid
    codec."""
    if key is not None:
        check_codec("key", key)
    if value is not None:
        check_codec("value", value)
    return None if key is None and value is None else Decoding(key, value)
