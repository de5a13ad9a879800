"""RecordGroup: records of one partition, as a poll hands them out."""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

from tarry.client.codecs import Key, Value

KeyOut_co = TypeVar("KeyOut_co", covariant=True)
ValueOut_co = TypeVar("ValueOut_co", covariant=True)


class TypedRecord(Protocol[KeyOut_co, ValueOut_co]):
    """Record with a key and a value of any class: a `Record` has bytes, after codecs there are
    objects."""

    @property
    def offset(self) -> int: ...

    @property
    def timestamp(self) -> int: ...

    @property
    def key(self) -> KeyOut_co | None: ...

    @property
    def value(self) -> ValueOut_co | None: ...

    @property
    def headers(self) -> list[tuple[str, bytes | None]]: ...


class RecordGroup(NamedTuple, Generic[Key, Value]):
    """Records of one partition in the order of their offsets."""

    topic: str
    partition: int
    records: list[TypedRecord[Key, Value]]
