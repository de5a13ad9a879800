"""Schemas of Avro and Protobuf with values of theirs, and a registry that tells them."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["open", "paid"]}},
        {"name": "before", "type": ["null", "State"], "default": None},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {
            "name": "lines",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Line",
                    "fields": [{"name": "n", "type": "int"}],
                },
            },
        },
    ],
}
VALUE: dict[str, Any] = {
    "id": "a",
    "amount": 3,
    "at": datetime(2026, 1, 1, 0, 0, 0, 5000, tzinfo=UTC),
    "price": Decimal("12.50"),
    "state": "paid",
    "before": None,
    "tags": {"x": 1},
    "lines": [{"n": 1}, {"n": 2}],
}


def avro(schema: dict[str, Any], value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


class FakeRegistry(HTTPServer):
    """Registry with schemas by id; it counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.schemas: dict[str, str] = {}
        self.asked: list[tuple[str, str | None]] = []
        # Of something else that answers at its address: status, body, and the length it tells.
        self.other: tuple[int, bytes, int] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, FakeRegistry)
        server.asked.append((self.path, self.headers.get("Authorization")))
        if server.other is not None:
            status, body, length = server.other
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)
            return
        schema = server.schemas.get(self.path.rpartition("/")[2])
        body = json.dumps({"schema": schema} if schema else {"error_code": 40403}).encode()
        self.send_response(200 if schema else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def fake_registry() -> Iterator[FakeRegistry]:
    """A registry that is down behind the block."""
    made = FakeRegistry()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


def framed(schema_id: int, value: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + value


FIELD = descriptor_pb2.FieldDescriptorProto


def shop() -> bytes:
    """A descriptor set: a message Order within which there is a Line, behind a message Other."""
    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    file.message_type.add(name="Other").field.add(
        name="x", number=1, type=FIELD.TYPE_INT32, label=1
    )
    order = file.message_type.add(name="Order")
    state = file.enum_type.add(name="State")
    state.value.add(name="OPEN", number=0)
    state.value.add(name="PAID", number=1)
    line = order.nested_type.add(name="Line")
    line.field.add(name="n", number=1, type=FIELD.TYPE_UINT64, label=1)
    entry = order.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=FIELD.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=FIELD.TYPE_INT32, label=1)
    for number, (name, kind, label, type_name) in enumerate(
        [
            ("id", FIELD.TYPE_STRING, 1, ""),
            ("amount", FIELD.TYPE_SINT32, 1, ""),
            ("state", FIELD.TYPE_ENUM, 1, ".shop.State"),
            ("at", FIELD.TYPE_MESSAGE, 1, ".google.protobuf.Timestamp"),
            ("lines", FIELD.TYPE_MESSAGE, 3, ".shop.Order.Line"),
            ("tags", FIELD.TYPE_MESSAGE, 3, ".shop.Order.TagsEntry"),
        ],
        1,
    ):
        field = order.field.add(name=name, number=number, type=kind, label=label)
        if type_name:
            field.type_name = type_name
    clock = descriptor_pb2.FileDescriptorProto(
        name="google/protobuf/timestamp.proto", package="google.protobuf", syntax="proto3"
    )
    stamp = clock.message_type.add(name="Timestamp")
    stamp.field.add(name="seconds", number=1, type=FIELD.TYPE_INT64, label=1)
    stamp.field.add(name="nanos", number=2, type=FIELD.TYPE_INT32, label=1)
    return descriptor_pb2.FileDescriptorSet(file=[clock, file]).SerializeToString()


# By the specification of the encoding: id "a", amount -2, state 1, at 1.5 s, lines of 2^64 - 1
# and of nothing, tags x = 3, and a field 100 that is not in the schema.
WIRE = bytes.fromhex(
    "0a016110031801220808011080cab5ee012a0b08ffffffffffffffffff012a0032050a01781003a00601"
)
EXPECTED = {
    "id": "a",
    "amount": -2,
    "state": "PAID",
    "at": datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
    "lines": [{"n": Decimal(2**64 - 1)}, {"n": Decimal(0)}],
    "tags": [("x", 3)],
}
