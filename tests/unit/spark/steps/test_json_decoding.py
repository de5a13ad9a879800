"""JSON by a JSON Schema: what passes, what is refused, its sentences; jsonschema is the judge."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from tarry.spark.steps.formats.json_values import JsonDecoder, json_types
from tarry.spark.steps.formats.values import BadValue, decode_rows
from tarry.spark.steps.refused import StepRefused

ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["id", "amount"],
    "properties": {
        "id": {"type": "string"},
        "amount": {"type": "integer", "minimum": 0},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "state": {"enum": ["open", "paid", None]},
        "customer": {"$ref": "#/$defs/customer"},
        "prices": {"type": "object", "additionalProperties": {"type": "number"}},
        "lines": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/line"}},
    },
    "$defs": {
        "customer": {
            "type": ["object", "null"],
            "properties": {"mail-address": {"type": "string", "pattern": "@"}},
            "required": ["mail-address"],
        },
        "line": {
            "type": "object",
            "properties": {"count": {"type": "integer", "exclusiveMinimum": 0}},
            "additionalProperties": False,
        },
    },
}


def decoder_for(schema: object) -> JsonDecoder:
    return JsonDecoder(json_types(json.dumps(schema)))


def flaw_of(schema: object, value: bytes | None) -> str | None:
    return decoder_for(schema).decode_all([value]).errors[0]


def test_fields_become_columns() -> None:
    value = {
        "id": "a",
        "amount": 3,
        "at": "2026-01-01T01:00:00.5+01:00",
        "day": "2026-01-02",
        "state": None,
        "customer": {"mail-address": "a@b", "more": [1, {"x": 2}]},
        "prices": {"net": 1, "gross": 1.25},
        "lines": [{"count": 1}, {}],
        "unknown": True,
    }

    columns, errors = decoder_for(ORDER).decode_all([json.dumps(value).encode(), None])

    assert errors == [None, "the record has no value (null)"]
    assert columns.to_pylist() == [
        {
            "id": "a",
            "amount": 3,
            "at": datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC),
            "day": date(2026, 1, 2),
            "state": None,
            "customer": {"mail-address": "a@b"},
            "prices": [("net", 1.0), ("gross", 1.25)],
            "lines": [{"count": 1}, {"count": None}],
        },
        None,
    ]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (b"", "the value is no JSON: Input data was truncated"),
        (b"{]", "the value is no JSON: JSON is malformed: object keys must be strings (byte 1)"),
        (b"\xff", "the value is no JSON: it is not UTF-8"),
        (b'{"id":"\xff"}', "the value is no JSON: it is not UTF-8"),
        (
            b"\0\0\0\0\xff{]",
            "the value is no JSON: JSON is malformed: object keys must be strings (byte 1)",
        ),
        (b"[1]", "the value: expected object, got array"),
        (b'{"id":"a"}', "field amount is missing"),
        (b'{"id":1,"amount":1}', "field id: expected string, got integer"),
        (b'{"id":"a","amount":-1}', "field amount: expected integer >= 0"),
        (b'{"id":"a","amount":1,"at":"2026-01-01"}', "field at: invalid RFC3339 encoded datetime"),
        (b'{"id":"a","amount":1,"state":"x"}', "field state: invalid enum value 'x'"),
        (b'{"id":"a","amount":1,"customer":{}}', "field customer.mail-address is missing"),
        (
            b'{"id":"a","amount":1,"customer":3}',
            "field customer: expected object or null, got integer",
        ),
        (
            b'{"id":"a","amount":1,"lines":[{"count":1},{"n":1}]}',
            "field lines[1].n is not in the schema",
        ),
        (b'{"id":"a","amount":1,"x":' + b"[" * 50_000, "the value is nested too deeply"),
    ],
)
def test_a_wrong_value_gets_a_sentence_with_its_field(value: bytes, sentence: str) -> None:
    assert flaw_of(ORDER, value) == sentence


@pytest.mark.parametrize("value", [b'{"id":"a","amount":1,"state":"%s"}', b'{"id":"a","%s":1}'])
def test_a_sentence_is_short_whatever_the_record_has(value: bytes) -> None:
    # It goes into a header: a record of a megabyte would not fit into its topic any more.
    schema = {**ORDER, "additionalProperties": False}
    decoder = JsonDecoder(json_types(json.dumps(schema)))

    (error,) = decoder.decode_all([value % (b"x" * 1_000_000)]).errors

    assert error is not None
    assert error.startswith("field ")
    assert len(error) == 500


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ([], "must be an object that describes"),
        ({"type": "string"}, 'must be of type "object"'),
        ({"type": "object"}, "the JSON Schema has no properties"),
        ({"properties": {"a": {}}}, "#/properties/a of the JSON Schema says nothing of a type"),
        ({"properties": {"a": {"type": "string", "not": {}}}}, "uses 'not'"),
        ({"properties": {"a": {"type": ["string", "integer"]}}}, "has the types"),
        ({"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}}, "uses oneOf"),
        ({"properties": {"a": {"$ref": "#"}}}, "only places in the same file"),
        ({"properties": {"a": {"$ref": "#/$defs/b"}}}, "which is not in the file"),
        (
            {"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"$ref": "#/$defs/b"}}},
            "holds itself",
        ),
        ({"properties": {"a": {"type": "string"}}, "required": ["b"]}, "requires 'b'"),
        ({"properties": {"_time": {"type": "string"}}}, "a column of the steps"),
        ({"properties": {"a": {"type": "string"}, "A": {"type": "string"}}}, "cannot tell apart"),
        ({"properties": {'a"b': {"type": "string"}}}, "a field whose name cannot be read"),
        ({"properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}}}, "no number"),
        ({"properties": {"a": {"type": "string", "pattern": "("}}}, "has the pattern"),
    ],
)
def test_what_cannot_be_a_column_is_refused(schema: object, sentence: str) -> None:
    with pytest.raises(StepRefused) as refusal:
        decoder_for(schema)

    assert sentence in str(refusal.value)


NAMES = st.sampled_from(["a", "b", "c-d", "é"])


def bounds(least: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    names = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
    return st.dictionaries(st.sampled_from(names), least, max_size=1)


LEAVES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    bounds(st.integers(-3, 3)).map(lambda limits: {"type": "integer", **limits}),
    bounds(st.integers(-3, 3)).map(lambda limits: {"type": "number", **limits}),
    st.integers(0, 2).map(lambda least: {"type": "string", "minLength": least}),
    st.just({"type": ["string", "null"], "maxLength": 1}),
    st.just({"type": "boolean"}),
    st.just({"enum": ["a", "b"]}),
    st.just({"anyOf": [{"const": 2}, {"type": "null"}]}),
)


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    properties = st.dictionaries(NAMES, inner, min_size=1)
    return st.tuples(properties, st.booleans(), st.integers(0, 3)).map(
        lambda drawn: {
            "type": "object",
            "properties": drawn[0],
            "required": sorted(drawn[0])[: drawn[2]],
            "additionalProperties": drawn[1],
        }
    )


TREES = st.recursive(
    LEAVES,
    lambda inner: (
        objects(inner)
        | objects(inner).map(lambda item: {"anyOf": [item, {"type": "null"}]})
        | inner.map(lambda item: {"type": "array", "items": item, "maxItems": 2})
        | inner.map(lambda item: {"type": "object", "additionalProperties": item})
    ),
    max_leaves=6,
)

# Whole numbers with a point are integers to JSON Schema and none here: no such floats are drawn.
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-4, 4)
    | st.sampled_from([0.5, -2.5])
    | st.sampled_from(["", "a", "b", "long"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(objects(TREES), st.dictionaries(NAMES, VALUES, max_size=4))
def test_passes_what_jsonschema_passes(schema: dict[str, Any], value: dict[str, Any]) -> None:
    decoder = decoder_for(schema)
    is_valid = jsonschema.Draft202012Validator(schema).is_valid(value)

    columns, errors = decoder.decode_all([json.dumps(value).encode()])

    assert (errors[0] is None) == is_valid, errors
    if is_valid:
        row = columns.to_pylist()[0]
        assert {name: one for name, one in row.items() if one is not None}.keys() == {
            name for name, one in value.items() if one is not None and name in schema["properties"]
        }


def meeting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that meet a schema."""
    if "anyOf" in schema:
        return st.none() | meeting(schema["anyOf"][0])
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    kind = schema["type"]
    if kind == "array":
        return st.lists(meeting(schema["items"]), max_size=schema.get("maxItems", 3))
    if kind == "object" and "properties" not in schema:
        return st.dictionaries(NAMES, meeting(schema["additionalProperties"]), max_size=3)
    if kind == "object":
        fields = {name: meeting(one) for name, one in schema["properties"].items()}
        needed = {name: fields.pop(name) for name in schema["required"]}
        return st.fixed_dictionaries(needed, optional=fields)
    if kind == "boolean":
        return st.booleans()
    if kind in ("integer", "number"):
        drawn = st.integers(-9, 9).filter(jsonschema.Draft202012Validator(schema).is_valid)
        return drawn.map(float) if kind == "number" else drawn
    return st.text(min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 3))


def as_a_column_has_it(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {one.name: as_a_column_has_it(value.get(one.name), one.type) for one in kind}
    if pa.types.is_list(kind):
        return [as_a_column_has_it(one, kind.value_type) for one in value]
    if pa.types.is_map(kind):
        return [(key, as_a_column_has_it(one, kind.item_type)) for key, one in value.items()]
    return value


@settings(max_examples=200, deadline=None)
@given(st.data(), objects(TREES))
def test_columns_have_the_values_of_each_row(data: st.DataObject, schema: dict[str, Any]) -> None:
    values = data.draw(st.lists(st.none() | meeting(schema), max_size=5))
    decoder = decoder_for(schema)

    columns, errors = decoder.decode_all(
        [None if value is None else json.dumps(value).encode() for value in values]
    )

    assert [error is None for error in errors] == [value is not None for value in values]
    assert columns.type == decoder.fields
    columns.validate(full=True)
    assert columns.to_pylist() == [as_a_column_has_it(value, decoder.fields) for value in values]


def test_values_with_and_without_a_frame_are_read_in_one_batch() -> None:
    frame = b"\0\0\0\xff\x07"
    values = [b'{"a":1}', frame + b'{"a":2}', None, frame, frame[:3], b"", frame + frame + b"{}"]

    columns, errors = decoder_for({"properties": {"a": {"type": "integer"}}}).decode_all(values)

    assert columns.to_pylist() == [{"a": 1}, {"a": 2}, None, None, None, None, None]
    assert [error is None for error in errors] == [True, True, False, False, False, False, False]


@given(st.binary(max_size=40))
def test_no_bytes_fail_a_task(value: bytes) -> None:
    columns, errors = decoder_for(ORDER).decode_all([value])

    assert len(columns) == len(errors) == 1


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**30])
def test_integers_have_64_bits(number: int) -> None:
    schema = {"properties": {"a": {"type": "integer"}}}

    columns, errors = decoder_for(schema).decode_all([json.dumps({"a": number}).encode()])

    fits = -(2**63) <= number < 2**63
    assert (errors[0] is None) == fits
    assert columns.to_pylist() == [{"a": number} if fits else None]


class OddDecoder:
    """Decoder whose values fit no column now and then."""

    fields = pa.struct([("a", pa.int8())])

    def decode(self, value: bytes) -> dict[str, Any]:
        if value == b"bad":
            raise BadValue("it is bad")
        return {"a": int(value)}


def test_a_value_that_fits_no_column_spoils_its_own_row_only() -> None:
    columns, errors = decode_rows(OddDecoder(), [b"1", b"300", b"bad", b"2"])

    assert columns.to_pylist() == [{"a": 1}, None, None, {"a": 2}]
    assert errors[0] is None and errors[3] is None
    assert errors[1] is not None and errors[1].startswith("field a does not fit into int8")
    assert errors[2] == "it is bad"


TIME = {"type": "string", "format": "date-time"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("plain", "0001-06-01T00:00:00Z"),
        ("plain", "9999-06-01T00:00:00Z"),
        ("inner", {"at": "0001-01-01T00:00:00Z"}),
        ("list", ["2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]),
        ("map", {"x": "0001-01-01T00:00:00Z"}),
    ],
)
def test_a_time_that_python_cannot_tell_everywhere_spoils_its_own_row(
    name: str, value: object
) -> None:
    schema = {
        "properties": {
            "plain": TIME,
            "inner": {"type": "object", "properties": {"at": TIME}},
            "list": {"type": "array", "items": TIME},
            "map": {"type": "object", "additionalProperties": TIME},
        }
    }
    well = b'{"plain": "0002-01-01T00:00:00Z", "list": ["9998-12-31T23:59:59Z"]}'

    columns, errors = decoder_for(schema).decode_all(
        [well, json.dumps({name: value}).encode(), b"{}"]
    )

    assert errors[0] is errors[2] is None
    assert errors[1] is not None and errors[1].startswith(f"field {name} does not fit into")
    assert columns.is_valid().to_pylist() == [True, False, True]
