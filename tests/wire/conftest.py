"""Messages by schema: hypothesis strategies for them, and their comparison."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import pytest
from hypothesis import strategies as st

from tarry.protocol.api_names import OWN_TAG_MIN
from tarry.protocol.schema import ApiSchema, Field, Struct, load_all
from tarry.wire import ChunkList, Window, window_of

INTEGER_BITS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}

TEXTS = st.text(max_size=12) | st.just("x" * 200)
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "u16": st.integers(0, 2**16 - 1),
    "u32": st.integers(0, 2**32 - 1),
    "f64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": TEXTS,
    "bytes": st.binary(max_size=40),
    "records": st.binary(max_size=300).map(window_of),
    **{
        name: st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for name, bits in INTEGER_BITS.items()
    },
}


def is_own_tag(item: Field) -> bool:
    """Tells the tagged fields that Tarry alone has in Kafka's messages."""
    return item.tag is not None and item.tag >= OWN_TAG_MIN


class Messages:
    """Every API of our schema, and what tests do with any message of it."""

    def __init__(self) -> None:
        self.apis = {api.key: api for api in load_all()}
        self._strategies: dict[tuple[int, str, int, bool], st.SearchStrategy[Any]] = {}

    def struct(self, api_key: int, kind: str) -> Struct:
        api = self.apis[api_key]
        return api.request if kind == "request" else api.response

    def strategy(
        self, api_key: int, kind: str, version: int, *, has_own_tags: bool = True
    ) -> st.SearchStrategy[Any]:
        """Any message that this version can carry, with or without tagged fields of our own."""
        # Kept: hypothesis takes longer to build a strategy than to draw from it.
        case = (api_key, kind, version, has_own_tags)
        if case not in self._strategies:
            api, struct = self.apis[api_key], self.struct(api_key, kind)
            self._strategies[case] = self._struct_strategy(
                api, struct, version, has_own_tags=has_own_tags
            )
        return self._strategies[case]

    def _struct_strategy(
        self, api: ApiSchema, struct: Struct, version: int, *, has_own_tags: bool
    ) -> st.SearchStrategy[Any]:
        module = import_module(f"tarry.protocol.messages.{api.snake_name}")
        fields = {
            item.name: self._field_strategy(api, item, version, has_own_tags=has_own_tags)
            for item in struct.fields
            if version in item.versions and (has_own_tags or not is_own_tag(item))
        }
        return st.builds(getattr(module, struct.name), **fields)

    def _field_strategy(
        self, api: ApiSchema, item: Field, version: int, *, has_own_tags: bool
    ) -> st.SearchStrategy[Any]:
        if item.is_struct:
            inner = api.structs[item.type_name]
            strategy = self._struct_strategy(api, inner, version, has_own_tags=has_own_tags)
        elif item.name == "error_code" or item.name.endswith("_error_code"):
            # A code that every oracle knows.
            strategy = st.integers(-1, 119)
        elif item.name in ("log_append_time_ms", "timestamp", "retention_time_ms"):
            # kio takes them for times or spans, and has an end of time.
            strategy = st.just(-1) | st.integers(0, 4_000_000_000_000)
        else:
            strategy = SCALARS[item.type_name]
        if item.is_array:
            strategy = st.lists(strategy, max_size=3)
        nullable = item.nullable is not None and version in item.nullable
        optional_struct = item.tag is not None and item.is_struct and not item.is_array
        return st.none() | strategy if nullable or optional_struct else strategy

    def plain(self, api_key: int, kind: str, message: object) -> dict[str, Any]:
        """A message as dicts, lists and numbers, so that two can be compared and printed."""
        return self._plain_struct(self.apis[api_key], self.struct(api_key, kind), message)

    def _plain_struct(self, api: ApiSchema, struct: Struct, message: object) -> dict[str, Any]:
        return {
            item.name: self._plain_value(api, item, getattr(message, item.name))
            for item in struct.fields
        }

    def _plain_value(self, api: ApiSchema, item: Field, value: Any) -> Any:
        if isinstance(value, list):
            return [self._plain_value(api, item, element) for element in value]
        if isinstance(value, Window):
            return value.to_bytes()
        if isinstance(value, ChunkList):
            return b"".join(value.chunks)  # type: ignore[arg-type]
        if item.is_struct and value is not None:
            struct = api.structs[item.type_name]
            plain = self._plain_struct(api, struct, value)
            # A tagged struct that holds its defaults means the same as none.
            is_default = item.tag is not None and plain == self._plain_struct(
                api, struct, type(value)()
            )
            return None if is_default and not item.is_array else plain
        if isinstance(value, float):
            assert not math.isnan(value)
        return value


@pytest.fixture(scope="session")
def messages() -> Messages:
    return Messages()
