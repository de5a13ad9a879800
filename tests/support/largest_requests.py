"""Largest requests that a broker takes, made from the schema: an array filled up to the bound.

For each array of a request there are three: one element as often as it fits, as many different
ones, and for an array within another one as many of the outer as fit with one inner each.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final, NamedTuple

from tarry.base.limits import REQUEST_ELEMENTS_MAX
from tarry.protocol.message import ZERO_UUID, Message
from tarry.protocol.schema.notation import ApiSchema, Field, Struct, load_all

SCHEMAS: Final = {api.key: api for api in load_all()}

# Values with which a request is worth its work, by field.
VALUES: Final[dict[str, Any]] = {
    "group_id": "g",
    "generation_id": 1,
    "generation_id_or_member_epoch": -1,
    "member_id": "",
    "protocol_type": "consumer",
    "session_timeout_ms": 10_000,
    "acks": -1,
    "timeout_ms": 1_000,
    "replica_id": -1,
    "max_bytes": 1 << 20,
    "partition_max_bytes": 1 << 10,
    "name": "orders",
    "topic": "orders",
    "resource_type": 2,
    "resource_name": "orders",
    "response_partition_limit": 1_000_000,
    "current_leader_epoch": -1,
    "timestamp": 0,
    "count": 3,
}

# Fields in which one element differs from the next.
_VARIED: Final = ("string", "i32", "uuid", "i64")


class Largest(NamedTuple):
    """A request and the name of what is large in it."""

    label: str
    request: Message


def largest_requests(
    key: int, version: int, count: int = REQUEST_ELEMENTS_MAX, topic_id: bytes = ZERO_UUID
) -> Iterator[Largest]:
    """Make the largest requests of this version.

    `topic_id` is the id of the topic `orders`, for the versions that name topics by their ids.
    """
    maker = _Maker(SCHEMAS[key], version, topic_id)
    for path in _paths(maker.api, maker.api.request, version, ()):
        label = ".".join(item.name for item in path)
        yield Largest(f"{label} alike", maker.made(path, count, is_varied=False))
        yield Largest(f"{label} different", maker.made(path, count, is_varied=True))
        if len(path) > 1:
            yield Largest(f"{label} spread", maker.spread(path, count))


def _paths(
    api: ApiSchema, struct: Struct, version: int, before: tuple[Field, ...]
) -> Iterator[tuple[Field, ...]]:
    for item in struct.fields:
        if version not in item.versions or item.tag is not None:
            continue
        if item.is_array:
            yield (*before, item)
        if item.is_array and item.is_struct:
            yield from _paths(api, api.structs[item.type_name], version, (*before, item))


class _Maker:
    """Makes the requests of one version of an API."""

    def __init__(self, api: ApiSchema, version: int, topic_id: bytes) -> None:
        self.api = api
        self._version = version
        self._topic_id = topic_id

    def made(self, path: tuple[Field, ...], count: int, *, is_varied: bool) -> Message:
        left = count - (len(path) - 1)
        return self._around(path, self._elements(path[-1], left, is_varied=is_varied))

    def spread(self, path: tuple[Field, ...], count: int) -> Message:
        """Make many of the array around the last, each with one element."""
        outer, inner = path[-2], path[-1]
        many = (count - (len(path) - 2)) // 2
        elements = self._elements(outer, many, is_varied=True)
        for each in elements:
            setattr(each, inner.name, self._elements(inner, 1, is_varied=False))
        return self._around(path[:-1], elements)

    def _around(self, path: tuple[Field, ...], elements: list[Any]) -> Message:
        for outer, inner in zip(path[-2::-1], path[:0:-1], strict=False):
            around = self._element(outer, -1)
            setattr(around, inner.name, elements)
            elements = [around]
        request = self._struct(self.api.request)
        setattr(request, path[0].name, elements)
        assert isinstance(request, Message)
        return request

    def _elements(self, item: Field, count: int, *, is_varied: bool) -> list[Any]:
        if is_varied:
            return [self._element(item, number) for number in range(count)]
        return [self._element(item, 0)] * count

    def _element(self, item: Field, number: int) -> Any:
        """Make an element; one of a number below 0 has the values of the table alone."""
        if not item.is_struct:
            return _varied(item, number)
        struct = self.api.structs[item.type_name]
        made = self._struct(struct)
        if number < 0:
            return made
        for each in struct.fields:
            if self._version in each.versions and each.type_name in _VARIED and not each.is_array:
                setattr(made, each.name, _varied(each, number))
                break
        return made

    def _struct(self, struct: Struct) -> Any:
        module = import_module(f"tarry.protocol.messages.{self.api.snake_name}")
        made = getattr(module, struct.name)()
        for item in struct.fields:
            if self._version not in item.versions or item.is_array:
                continue
            if item.name == "topic_id":
                made.topic_id = self._topic_id
            elif item.name in VALUES and item.type_name in ("string", "i8", "i16", "i32", "i64"):
                setattr(made, item.name, VALUES[item.name])
        return made


def _varied(item: Field, number: int) -> Any:
    if item.type_name == "string":
        return f"{number}" if number else ""
    if item.type_name == "uuid":
        return number.to_bytes(16, "big", signed=True)
    if item.type_name == "i8":
        return number % 100
    return number
