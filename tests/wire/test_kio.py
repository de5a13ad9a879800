"""A foreign codec as oracle: kio decodes our bytes and we decode kio's, for every version."""

from __future__ import annotations

import datetime
import io
from dataclasses import fields
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings, strategies as st
from kio.index import load_payload_module
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType
from tests.support.kio_versions import kio_knows
from tests.wire.conftest import is_own_tag

from tarry.protocol.api_keys import APIS
from tarry.protocol.registry import MESSAGES
from tarry.protocol.schema import Field, Struct
from tarry.wire import Reader, Writer

CASES = [
    pytest.param(key, kind, version, id=f"{api.name}-{kind}-v{version}")
    for key, api in APIS.items()
    for kind in ("request", "response")
    for version in range(api.version_min, api.version_max + 1)
    if kio_knows(key, version)
]


def foreign_type(name: str, key: int, kind: str, version: int) -> Any:
    entity_type = EntityType.request if kind == "request" else EntityType.response
    return getattr(load_payload_module(key, version, entity_type), name)


def plain_number(value: Any) -> Any:
    """kio's times, durations, ids and codes as what is on the wire."""
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.datetime):
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return (value - epoch) // datetime.timedelta(milliseconds=1)
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, Enum):
        return int(value.value)
    return value


def is_same_value(item: Field, ours: Any, theirs: Any, structs: dict[str, Struct]) -> bool:
    if isinstance(theirs, tuple):
        return len(ours) == len(theirs) and all(
            is_same_value(item, *pair, structs) for pair in zip(ours, theirs, strict=True)
        )
    if item.is_struct and item.tag is not None and ours is None:
        return bool(theirs == type(theirs)())
    if item.is_struct and ours is not None and theirs is not None:
        return all(
            is_same_value(inner, ours[inner.name], getattr(theirs, field.name), structs)
            for inner, field in paired(structs[item.type_name], theirs)
        )
    theirs = plain_number(theirs)
    if theirs is None and item.type_name == "uuid":
        theirs = bytes(16)
    if theirs is None and item.name == "log_append_time_ms":
        theirs = -1
    return bool(ours == theirs)


def paired(struct: Struct, theirs: Any) -> list[tuple[Field, Any]]:
    """Our fields beside kio's, which stand in the same order and leave out other versions'."""
    ours = [
        item
        for item in struct.fields
        if theirs.__version__ in item.versions and not is_own_tag(item)
    ]
    pairs = list(zip(ours, fields(theirs), strict=True))
    for item, field in pairs:
        # kio drops the unit of times and durations.
        assert item.name.removesuffix("_ms") == field.name.removesuffix("_ms")
    return pairs


@pytest.mark.parametrize(("key", "kind", "version"), CASES)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_kio_and_tarry_read_each_other(
    key: int, kind: str, version: int, messages: Any, data: st.DataObject
) -> None:
    structs, struct = messages.apis[key].structs, messages.struct(key, kind)
    kio_type = foreign_type(struct.name, key, kind, version)
    message = data.draw(messages.strategy(key, kind, version, has_own_tags=False))
    ours = messages.plain(key, kind, message)
    writer = Writer()
    message.encode(writer, version)

    theirs, size = entity_reader(kio_type)(writer.joined(), 0)
    buffer = io.BytesIO()
    entity_writer(kio_type)(buffer, theirs)
    reader = Reader(buffer.getvalue())
    codec = MESSAGES[key]
    decoder = codec.decode_request if kind == "request" else codec.decode_response
    decoded = decoder(reader, version)
    reader.expect_end()

    assert size == len(writer.joined())
    for item, field in paired(struct, theirs):
        value = getattr(theirs, field.name)
        assert is_same_value(item, ours[item.name], value, structs), item.name
    assert messages.plain(key, kind, decoded) == ours
