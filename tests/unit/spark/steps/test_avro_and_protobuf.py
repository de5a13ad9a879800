"""Avro and Protobuf to columns: bytes of other encoders, frames of a registry, and its absence."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings, strategies as st
from tests.support.spark.schemas import (
    EXPECTED,
    ORDER,
    VALUE,
    WIRE,
    FakeRegistry,
    avro,
    fake_registry,
    framed,
    shop,
)

from tarry.spark.steps.formats import registry
from tarry.spark.steps.formats.avro_values import AvroDecoder
from tarry.spark.steps.formats.broken_schemas import TOLD_MAX, TOLD_S, BrokenSchemas
from tarry.spark.steps.formats.framing import read_indexes
from tarry.spark.steps.formats.protobuf_values import ProtobufDecoder
from tarry.spark.steps.formats.registry import RegistryUnreachable, SchemaRegistry
from tarry.spark.steps.formats.values import BadValue, ValueDecoder
from tarry.spark.steps.refused import StepRefused


def rows_of(decoder: ValueDecoder, *values: bytes) -> tuple[list[Any], list[str | None]]:
    columns, errors = decoder.decode_all(values)
    return columns.to_pylist(), errors


def test_records_of_avro_become_columns() -> None:
    rows, errors = rows_of(AvroDecoder(json.dumps(ORDER), None), avro(ORDER, VALUE))

    assert errors == [None]
    assert rows == [{**VALUE, "tags": [("x", 1)]}]


def test_bytes_by_the_specification_of_avro() -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}],
    }

    # Its own example: 27 and "foo".
    rows, errors = rows_of(AvroDecoder(json.dumps(schema), None), bytes.fromhex("3606666f6f"))

    assert (rows, errors) == ([{"a": 27, "b": "foo"}], [None])


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_no_bytes_fail_a_task(value: bytes) -> None:
    decoder = AvroDecoder(json.dumps(ORDER), None)

    rows, errors = rows_of(decoder, value, value + b"\0")

    assert len(rows) == len(errors) == 2
    assert errors[0] is not None or errors[1] is not None


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("{", "cannot be read"),
        ('"string"', "must be a record"),
        ('{"type":"record","name":"R","fields":[]}', "has no fields"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":["int","string"]}]}', "a union"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"null"}]}', "is null"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":["null","R"]}]}',
            "the Avro schema.a holds itself",
        ),
        ('{"type":"record","name":"R","fields":[{"name":"_rule","type":"int"}]}', "of the steps"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":'
            '{"type":"string","logicalType":"uuid"}}]}',
            "the logical type uuid",
        ),
    ],
)
def test_what_cannot_be_a_column_is_refused(schema: str, sentence: str) -> None:
    with pytest.raises(StepRefused) as refusal:
        AvroDecoder(schema, None)

    assert sentence in str(refusal.value)


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as made:
        yield made


def registry_of(server: FakeRegistry, cache: Path, user: str = "") -> SchemaRegistry:
    return SchemaRegistry(f"http://{user}127.0.0.1:{server.server_port}/", cache, lambda _: None)


def test_writers_that_grew_go_on_and_those_that_broke_are_rejected(
    server: FakeRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grown = {**ORDER, "fields": [*ORDER["fields"], {"name": "new", "type": ["null", "int"]}]}
    broken = {**ORDER, "fields": ORDER["fields"][1:]}
    server.schemas = {"1": json.dumps(ORDER), "2": json.dumps(grown), "3": json.dumps(broken)}
    decoder = AvroDecoder(json.dumps(ORDER), registry_of(server, tmp_path, "me:secret@"))

    _, errors = rows_of(
        decoder,
        framed(1, avro(ORDER, VALUE)),
        framed(2, avro(grown, {**VALUE, "new": 5})),
        framed(3, avro(broken, VALUE)),
        framed(3, avro(broken, VALUE)),
        framed(9, b""),
        framed(9, b""),
        avro(ORDER, VALUE),
    )

    assert errors[:2] == [None, None]
    told = "schema 3 of its writer does not fit the reader's: "
    assert [error and error.startswith(told) for error in errors[2:4]] == [True, True]
    unknown = f"the registry http://127.0.0.1:{server.server_port} knows no schema 9"
    assert errors[4:] == [
        unknown,
        unknown,
        "the value has no frame of a registry: a zero byte and a schema's id",
    ]
    assert [
        record.getMessage().startswith("records are rejected") for record in caplog.records
    ] == [True]
    assert [path for path, _ in server.asked] == [
        f"/schemas/ids/{number}" for number in (1, 2, 3, 9)
    ]
    assert {given for _, given in server.asked} == {"Basic bWU6c2VjcmV0"}


class Minutes:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says of rejected records, by schema."""
    told = [record.getMessage() for record in caplog.records]
    assert all(line.startswith("records are rejected: schema ") for line in told)
    return [line.removeprefix("records are rejected: ").split()[1].rstrip(":") for line in told]


def test_a_schema_that_breaks_is_told_once_a_minute(
    server: FakeRegistry, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Minutes()
    broken = {**ORDER, "fields": ORDER["fields"][1:]}
    server.schemas = {"3": json.dumps(broken), "4": json.dumps(broken), "5": "no JSON"}
    decoder = AvroDecoder(json.dumps(ORDER), registry_of(server, tmp_path), BrokenSchemas(clock))
    values = [framed(number, avro(broken, VALUE)) for number in (3, 4, 3, 5, 5)]

    rows_of(decoder, *values)
    clock.now_s += TOLD_S - 1
    rows_of(decoder, *values)
    first = lines_of(caplog)
    clock.now_s += 1
    rows_of(decoder, *values)

    assert first == ["3", "4", "5"]
    assert lines_of(caplog) == first * 2


def test_messages_of_another_type_are_told_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Minutes()
    decoder = ProtobufDecoder(shop(), "shop.Order", is_framed=True, broken=BrokenSchemas(clock))
    others = [framed(7, b"\x00"), framed(7, b"\x00"), framed(8, b"\x00")]

    rows_of(decoder, *others, framed(7, b"\x02\x02" + WIRE))
    clock.now_s += TOLD_S
    rows_of(decoder, others[0])

    assert lines_of(caplog) == ["7", "8", "7"]


def test_a_producer_of_any_ids_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = Minutes()
    decoder = ProtobufDecoder(shop(), "shop.Order", is_framed=True, broken=BrokenSchemas(clock))

    for _ in range(2):
        rows_of(decoder, *[framed(number, b"\x00") for number in range(10 * TOLD_MAX)])
        clock.now_s += TOLD_S

    assert len(caplog.records) == 2 * TOLD_MAX


def test_a_registry_that_is_down_stops_only_what_nobody_asked_for(tmp_path: Path) -> None:
    with fake_registry() as server:
        server.schemas = {"1": json.dumps(ORDER)}
        known = registry_of(server, tmp_path)
        assert json.loads(known.find(1)["schema"]) == ORDER

    # Another process has the directory alone.
    another = registry_of(server, tmp_path)

    assert another.find(1) == known.find(1)
    with pytest.raises(RegistryUnreachable) as failure:
        another.find(2)
    assert "does not tell schema 2" in str(failure.value)
    assert len(server.asked) == 1


def test_ids_that_nobody_knows_are_forgotten_in_the_order_in_which_they_came(
    server: FakeRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Frames may have any id: a hostile producer has four billion of them.
    monkeypatch.setattr(registry, "UNKNOWN_MAX", 2)
    known = registry_of(server, tmp_path)

    for schema_id in (1, 2, 2, 3, 2, 3, 1):
        with pytest.raises(BadValue, match=f"knows no schema {schema_id}"):
            known.find(schema_id)

    assert [path.rpartition("/")[2] for path, _ in server.asked] == ["1", "2", "3", "1"]


def test_a_password_may_have_any_sign(server: FakeRegistry, tmp_path: Path) -> None:
    server.schemas = {"1": json.dumps(ORDER)}

    registry_of(server, tmp_path, "me:a%40b%3Ac@").find(1)

    (told,) = [text for _, text in server.asked]
    assert told is not None
    assert base64.b64decode(told.removeprefix("Basic ")) == b"me:a@b:c"


@pytest.mark.parametrize(
    ("status", "body", "more", "sentence"),
    [
        (404, b"<html>no such page</html>", 0, "as a registry does, so see that the address is"),
        (404, b'{"error_code": 404}', 0, "HTTP 404 Not Found; it does not answer as a registry"),
        (404, b"[" * 100_000, 0, "as a registry does"),
        (401, b"", 0, "give the address a user, as in http://USER:PASSWORD@HOST"),
        (403, b"", 0, "may not read schemas"),
        (503, b"", 0, "HTTP 503 Service Unavailable. The records wait in their topic"),
        (200, b"{}", 0, "its answer has no schema"),
        (200, b'{"schema": 5}', 0, "its answer has no schema"),
        # It ended in the middle of its answer.
        (200, b'{"schema"', 9, "does not tell schema 2: "),
        (404, b"{", 9, "as a registry does"),
    ],
)
def test_what_is_no_registry_rejects_no_record(
    server: FakeRegistry, tmp_path: Path, status: int, body: bytes, more: int, sentence: str
) -> None:
    server.other = status, body, len(body) + more
    decoder = AvroDecoder(json.dumps(ORDER), registry_of(server, tmp_path))

    with pytest.raises(RegistryUnreachable) as failure:
        rows_of(decoder, framed(2, avro(ORDER, VALUE)))
    server.other, server.schemas = None, {"2": json.dumps(ORDER)}
    rows, errors = rows_of(decoder, framed(2, avro(ORDER, VALUE)))

    assert sentence in str(failure.value)
    assert ([row["id"] for row in rows], errors) == (["a"], [None])


def test_messages_of_protobuf_become_columns() -> None:
    decoder = ProtobufDecoder(shop(), "shop.Order", is_framed=False)

    rows, errors = rows_of(decoder, WIRE, b"", b"\x0a\x05a", b"\x0a\x01\xff")

    assert rows[0] == EXPECTED
    assert rows[1] == {
        "id": "",
        "amount": 0,
        "state": "OPEN",
        "at": None,
        "lines": [],
        "tags": [],
    }
    assert errors[:2] == [None, None]
    assert all(error and error.startswith("the value is no shop.Order") for error in errors[2:])


@pytest.mark.parametrize("wire", ["0a01ff", "32050a01ff1003"])
def test_a_text_of_proto2_that_is_no_utf8_spoils_its_own_record(wire: str) -> None:
    files = descriptor_pb2.FileDescriptorSet.FromString(shop())
    files.file[1].syntax = "proto2"
    decoder = ProtobufDecoder(files.SerializeToString(), "shop.Order", is_framed=False)

    rows, errors = rows_of(decoder, bytes.fromhex(wire), b"\x0a\x01a")

    assert (rows[0], rows[1]["id"], errors[1]) == (None, "a", None)
    assert errors[0] is not None


def test_the_frame_says_which_message_it_is() -> None:
    decoder = ProtobufDecoder(shop(), "shop.Order", is_framed=True)
    inner = ProtobufDecoder(shop(), "shop.Order.Line", is_framed=True)

    # One index, 1; a lone 0 is the first message; two indexes, 1 and 0.
    rows, errors = rows_of(
        decoder, framed(7, b"\x02\x02" + WIRE), framed(7, b"\x00"), framed(7, b"\x02")
    )
    lines, no_errors = rows_of(inner, framed(7, b"\x04\x02\x00\x08\x05"))

    assert rows[0] == EXPECTED
    assert errors == [
        None,
        "the value is message 0 of its file, and shop.Order is 1",
        "the frame's message indexes are cut off",
    ]
    assert (lines, no_errors) == ([{"n": Decimal(5)}], [None])


@given(st.binary(max_size=20))
def test_indexes_are_read_or_refused(value: bytes) -> None:
    try:
        indexes, rest = read_indexes(value)
    except BadValue:
        return
    assert indexes
    assert value.endswith(rest)


@pytest.mark.parametrize(
    ("schema", "name", "sentence"),
    [
        (b"syntax = 'proto3';", "shop.Order", "make one by protoc"),
        (
            shop(),
            "shop.No",
            "has no message 'shop.No'; it has google.protobuf.Timestamp, shop.Other",
        ),
    ],
)
def test_a_set_without_the_message_is_refused(schema: bytes, name: str, sentence: str) -> None:
    with pytest.raises(StepRefused) as refusal:
        ProtobufDecoder(schema, name, is_framed=False)

    assert sentence in str(refusal.value)
