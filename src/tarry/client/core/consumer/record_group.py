"""RecordGroup: records of one partition, as a poll hands them out."""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

from tarry.client.codecs import Key, Value

KeyOut_co = TypeVar("KeyOut_co", covariant=True)
ValueOut_co = TypeVar("ValueOut_co", covariant=True)


class TypedRecord(Protocol[KeyOut_co, ValueOut_co]):
    """Record in a RecordGroup: a `Record` with bytes, or what codecs made of one."""

    @property
    def offset(self) -> int:
        """Offset in the partition."""

    @property
    def timestamp(self) -> int:
        """Time in milliseconds since 1970; -1: none."""

    @property
    def key(self) -> KeyOut_co | None:
        """Key; None if the record has none."""

    @property
    def value(self) -> ValueOut_co | None:
        """Value; None for a tombstone."""

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Headers in their order, as pairs of a name and bytes; a name may come twice."""


class RecordGroup(NamedTuple, Generic[Key, Value]):
    """Records of one partition in the order of their offsets."""

    topic: str
    partition: int
    records: list[TypedRecord[Key, Value]]
