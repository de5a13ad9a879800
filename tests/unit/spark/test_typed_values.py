"""Values as typed columns: what options choose and refuse, and what becomes of bad values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

import pyarrow as pa
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, IsNotNull
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DecimalType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from tarry.spark.options import OptionRefused, OptionTexts
from tarry.spark.reading.columns.schema import TYPES
from tarry.spark.reading.columns.value_columns import (
    ROWS_MAX,
    VALUE_BYTES_MAX,
    ValueMalformed,
)
from tarry.spark.reading.columns.value_options import typed_schema, value_columns
from tarry.spark.reading.filters import filters_of_record, narrowed_range
from tarry.spark.reading.plan import ReadRange
from tarry.spark.reading.read_options import parse_read_options, schema_of
from tarry.spark.steps.decoding import decode_batch
from tarry.spark.steps.formats.decoders import decoder_of

SCHEMA = {
    "required": ["id"],
    "properties": {
        "id": {"type": "string"},
        "amount": {"type": "integer"},
        "at": {"type": "string", "format": "date-time"},
        "customer": {"type": "object", "properties": {"mail": {"type": "string"}}},
    },
}
VALUES = (
    b'{"id":"a","amount":1,"at":"2026-11-29T10:00:00Z","customer":{"mail":"x"}}',
    b'{"id":1}',
    None,
    b'{"id":"b"}',
)
WRITTEN_US = 1_795_953_600_000_000


@pytest.fixture
def schema_file(tmp_path: Path) -> str:
    path = tmp_path / "order.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def fetched(values: tuple[bytes | None, ...], columns: tuple[str, ...]) -> pa.RecordBatch:
    count = len(values)
    made = {
        "key": pa.nulls(count, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "topic": pa.array(["orders"] * count, pa.string()),
        "partition": pa.array([1] * count, pa.int32()),
        "offset": pa.array(range(7, 7 + count), pa.int64()),
        "timestamp": pa.array([WRITTEN_US] * count, pa.timestamp("us", "UTC")),
        "timestampType": pa.array([0] * count, pa.int32()),
    }
    return pa.record_batch({name: made[name] for name in columns})


def read(
    options: dict[str, str], *values: bytes | None, schema: StructType | None = None
) -> Iterator[pa.RecordBatch]:
    columns = value_columns(OptionTexts({"valueFormat": "json", **options}), schema)
    assert columns is not None
    return columns.batches([fetched(values, columns.fetched)])


def rows(
    options: dict[str, str], *values: bytes | None, schema: StructType | None = None
) -> list[dict[str, Any]]:
    return [row for one in read(options, *values, schema=schema) for row in one.to_pylist()]


@pytest.mark.parametrize("time", ["", "at"])
def test_all_columns_are_those_of_the_step_decode(schema_file: str, time: str) -> None:
    options = {"valueSchema": schema_file, "columns": "*, _record, _time, _rule, _error"}
    if time:
        options["eventTime"] = time
    columns = value_columns(OptionTexts({"valueFormat": "json", **options}), None)
    assert columns is not None
    batch = fetched(VALUES, tuple(TYPES)[:-1])

    (made,) = read(options, *VALUES)

    assert made.equals(decode_batch(decoder_of(columns.decoding), batch, time))


@pytest.mark.parametrize(
    ("columns", "names", "record"),
    [
        (
            None,
            "id amount at customer _record _error",
            "key value topic partition offset timestamp",
        ),
        ("*", "id amount at customer", ""),
        ("amount, id", "amount id", ""),
        ("_error, *, id", "_error id amount at customer", ""),
        ("id, _record.offset, _time", "id _record _time", "offset"),
        ("_record.offset, id, _record.key", "_record id", "offset key"),
    ],
)
def test_columns_are_chosen_by_the_option(
    schema_file: str, columns: str | None, names: str, record: str
) -> None:
    options = {"valueSchema": schema_file, **({"columns": columns} if columns else {})}

    (batch,) = read(options, *VALUES)

    assert " ".join(batch.schema.names) == names
    texts = OptionTexts({"valueFormat": "json", **options})
    assert " ".join(schema_of(texts).names) == names
    if record:
        inner = [field.name for field in batch.schema.field("_record").type]
        assert " ".join(inner).removesuffix(" timestampType") == record


def test_headers_are_in_the_record_where_they_are_asked_for(schema_file: str) -> None:
    texts = {"valueFormat": "json", "valueSchema": schema_file, "includeHeaders": "true"}

    whole = value_columns(OptionTexts(texts), None)
    part = value_columns(OptionTexts({**texts, "columns": "id, _record.offset"}), None)
    none = value_columns(OptionTexts({**texts, "columns": "id"}), None)

    assert whole is not None and whole.record == tuple(TYPES)
    assert part is not None and part.record == ("offset", "headers")
    assert none is not None and none.record == ()


def test_a_bad_value_is_null_with_its_reason(schema_file: str) -> None:
    found = rows({"valueSchema": schema_file, "columns": "id, _error"}, *VALUES)

    assert found == [
        {"id": "a", "_error": None},
        {"id": None, "_error": "field id: expected string, got integer"},
        {"id": None, "_error": "the record has no value (null)"},
        {"id": "b", "_error": None},
    ]


def test_a_bad_value_is_left_out(schema_file: str) -> None:
    options = {"valueSchema": schema_file, "mode": "DropMalformed", "columns": "id, _record.offset"}

    assert rows(options, *VALUES) == [
        {"id": "a", "_record": {"offset": 7}},
        {"id": "b", "_record": {"offset": 10}},
    ]


def test_a_bad_value_fails_the_task_with_its_place(schema_file: str) -> None:
    options = {"valueSchema": schema_file, "mode": "FAILFAST", "columns": "id"}

    with pytest.raises(ValueMalformed) as failure:
        rows(options, *VALUES)

    assert str(failure.value).startswith(
        "orders [1] offset 8: field id: expected string, got integer"
    )


def test_a_record_of_any_time_is_read_where_no_event_time_is_asked_for(schema_file: str) -> None:
    columns = value_columns(
        OptionTexts(
            {
                "valueFormat": "json",
                "valueSchema": schema_file,
                "columns": "id, _record.timestamp, _error",
            }
        ),
        None,
    )
    assert columns is not None
    batch = fetched(VALUES[:1], columns.fetched)
    times = pa.array([-1_000], pa.timestamp("us", "UTC"))
    place = batch.schema.get_field_index("timestamp")

    (made,) = columns.batches([batch.set_column(place, "timestamp", times)])

    (row,) = made.to_pylist()
    assert (row["id"], row["_error"]) == ("a", None)


def test_a_large_batch_is_decoded_in_parts(schema_file: str) -> None:
    values = [b'{"id":"%d"}' % number for number in range(2 * ROWS_MAX + 1)]

    made = list(read({"valueSchema": schema_file, "columns": "id, _record.offset"}, *values))

    assert [batch.num_rows for batch in made] == [ROWS_MAX, ROWS_MAX, 1]
    found = [row for batch in made for row in batch.to_pylist()]
    assert found == [
        {"id": str(number), "_record": {"offset": 7 + number}} for number in range(len(values))
    ]


def test_large_values_are_decoded_in_parts(schema_file: str) -> None:
    value = b'{"id":"%b"}' % (b"x" * (VALUE_BYTES_MAX // 3))

    made = list(read({"valueSchema": schema_file, "columns": "_record.offset"}, *[value] * 5))

    assert [batch.num_rows for batch in made] == [2, 1, 2]
    assert [row["_record"]["offset"] for batch in made for row in batch.to_pylist()] == list(
        range(7, 12)
    )


GIVEN = StructType(
    [
        StructField("tiny", ByteType()),
        StructField("count", IntegerType()),
        StructField("share", FloatType()),
        StructField("price", DecimalType(6, 2)),
        StructField("raw", BinaryType()),
        StructField("at", TimestampType()),
        StructField("local", TimestampNTZType()),
        StructField("lines", ArrayType(StructType([StructField("n", LongType())]))),
        StructField("tags", MapType(StringType(), StringType())),
        StructField("_error", StringType()),
    ]
)


def test_fields_of_json_may_be_given_as_a_schema_of_sparks() -> None:
    value = {
        "tiny": -128,
        "count": 7,
        "share": 0.5,
        "price": 12.5,
        "raw": "AAE=",
        "at": "2026-11-29T10:00:00+01:00",
        "local": "2026-11-29T10:00:00",
        "lines": [{"n": 1}, None],
        "tags": {"a": None, "b": "c"},
        "more": "is passed over",
    }

    assert rows({}, json.dumps(value).encode(), b"{}", schema=GIVEN) == [
        {
            "tiny": -128,
            "count": 7,
            "share": 0.5,
            "price": Decimal("12.50"),
            "raw": b"\0\1",
            "at": datetime(2026, 11, 29, 9, tzinfo=UTC),
            "local": datetime(2026, 11, 29, 10),
            "lines": [{"n": 1}, None],
            "tags": [("a", None), ("b", "c")],
            "_error": None,
        },
        dict.fromkeys(GIVEN.names),
    ]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"tiny": 128}, "field tiny: expected integer <= 127"),
        ({"count": 2**31}, "field count: expected integer <= 2147483647"),
        ({"count": 1.5}, "field count: expected integer or null, got number"),
        ({"price": 1.234}, "field price does not fit into decimal128(6, 2)"),
        ({"price": "NaN"}, "field price does not fit into decimal128(6, 2)"),
        ({"raw": "?"}, "field raw: invalid base64 encoded string"),
        ({"at": "2026-11-29T10:00:00"}, "field at: expected date-time with a timezone component"),
        ({"local": "2026-11-29T10:00:00Z"}, "field local: expected date-time with no timezone"),
        ({"share": 1e39}, "field share: expected number <= 3.4"),
        ({"tags": {"a": 1}}, "field tags[...]: expected string or null, got integer"),
    ],
)
def test_a_value_that_is_not_of_the_given_type_says_so(
    value: dict[str, Any], sentence: str
) -> None:
    bad, well = rows({}, json.dumps(value).encode(), b'{"count":1}', schema=GIVEN)

    assert bad["_error"].startswith(sentence)
    assert [one for name, one in bad.items() if name != "_error"] == [None] * 9
    assert well["count"] == 1 and well["_error"] is None


# Of the last one, pyarrow reads beyond its tables and ends the process.
@pytest.mark.parametrize("number", [b"1234.5", b"1E+400", b'"Infinity"', b"1E-50", b"1E-999999999"])
@pytest.mark.parametrize("kind", ["price", "prices", "by_name", "lines"])
def test_a_number_of_too_many_digits_spoils_its_own_row(number: bytes, kind: str) -> None:
    price = DecimalType(5, 2)
    given = struct(
        price=price,
        prices=ArrayType(price),
        by_name=MapType(StringType(), price),
        lines=ArrayType(struct(price=price)),
        _error=StringType(),
    )
    places = {
        "price": b"%b",
        "prices": b"[1.50,%b]",
        "by_name": b'{"a":%b}',
        "lines": b'[{"price":%b}]',
    }

    bad, well = rows(
        {},
        b'{"%b":%b}' % (kind.encode(), places[kind] % number),
        b'{"price":1.50,"prices":[2],"by_name":{"a":3e1},"lines":[null,{"price":-0.10}]}',
        schema=given,
    )

    assert bad["_error"] == (
        f"field {kind} does not fit into {decoder_type(given, kind)}: it is no number of at most 5 "
        "digits, 2 of them behind the point"
    )
    assert well == {
        "price": Decimal("1.50"),
        "prices": [Decimal("2.00")],
        "by_name": [("a", Decimal("30.00"))],
        "lines": [None, {"price": Decimal("-0.10")}],
        "_error": None,
    }


def decoder_type(given: StructType, name: str) -> pa.DataType:
    columns = value_columns(OptionTexts({"valueFormat": "json"}), given)
    assert columns is not None
    return decoder_of(columns.decoding).fields.field(name).type


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


def test_a_given_schema_chooses_among_the_fields_of_a_file(schema_file: str) -> None:
    given = struct(amount=LongType(), _record=struct(offset=LongType()), id=StringType())

    found = rows({"valueSchema": schema_file}, *VALUES, schema=given)

    assert found[0] == {"amount": 1, "_record": {"offset": 7}, "id": "a"}


NOT_NULL = StructType([StructField("id", StringType(), False)])
NOT_NULL_INSIDE = (
    struct(id=StringType(), customer=StructType([StructField("mail", StringType(), False)])),
    struct(id=ArrayType(ArrayType(StringType(), False))),
    struct(id=MapType(StringType(), MapType(StringType(), StringType(), False))),
)
ODD = StructType([StructField('a"b', StringType())])
OFFSET_TWICE = StructType([StructField("offset", LongType())] * 2)
TWICE = StructType([StructField("a", StringType()), StructField("a", StringType())])


@pytest.mark.parametrize(
    ("options", "given", "sentence"),
    [
        ({"valueFormat": ""}, None, "there is no format ''"),
        ({"valueFormat": "xml", "valueSchema": "x"}, None, "there are json, avro, protobuf, text"),
        ({}, None, "name a file of JSON Schema by the option valueSchema, or give .schema("),
        ({}, struct(_error=StringType()), "name a file of JSON Schema"),
        ({"valueFormat": "avro"}, struct(id=StringType()), "the format avro needs a schema"),
        ({"valueSchema": "nothing.json"}, None, "the schema nothing.json cannot be read"),
        ({"valueSchema": "FILE", "mode": "strict"}, None, "mode='strict' is none of permissive"),
        ({"valueSchema": "FILE", "eventTime": "id"}, None, "time='id' is string"),
        ({"valueSchema": "FILE", "columns": "amout"}, None, "names 'amout', and there are id, "),
        ({"valueSchema": "FILE", "columns": "_record.size"}, None, "of _record there are key, "),
        ({"valueSchema": "FILE", "valueMessage": "A"}, None, "the format json has no messages"),
        ({"valueSchema": "FILE"}, struct(no=StringType()), "has the column no, and there are id,"),
        ({"valueSchema": "FILE"}, struct(amount=IntegerType()), "amount as int, and it is bigint"),
        ({"valueSchema": "FILE"}, NOT_NULL, "id as not null, or something inside of it"),
        ({"mode": "failFast"}, NOT_NULL, "id as not null, or something inside of it"),
        ({}, NOT_NULL_INSIDE[0], "customer as not null, or something inside of it"),
        ({}, NOT_NULL_INSIDE[1], "id as not null, or something inside of it"),
        ({}, NOT_NULL_INSIDE[2], "id as not null, or something inside of it"),
        ({}, ODD, "a field whose name cannot be read"),
        ({}, struct(a=ODD), "a field whose name cannot be read"),
        ({}, TWICE, "the schema has two fields 'a' in one place"),
        ({}, struct(b=TWICE), "the schema has two fields 'a' in one place"),
        ({}, struct(id=StringType(), _record=OFFSET_TWICE), "the column _record.offset twice"),
        ({}, struct(id=StringType(), _record=StructType([])), "has _record without a column"),
        (
            {"valueSchema": "FILE", "columns": "id"},
            struct(amount=LongType()),
            "by .schema(...) or by the option columns, not by both",
        ),
        ({}, struct(a=VariantType()), "the column a is variant, and no value of JSON is"),
        ({}, struct(a=MapType(LongType(), LongType())), "the keys of the map a are no strings"),
        ({}, struct(_rule=StringType(), A=LongType(), a=LongType()), "cannot tell apart"),
        ({}, struct(a=struct(b=VariantType())), "the column a.b is variant"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    schema_file: str, options: dict[str, str], given: StructType | None, sentence: str
) -> None:
    texts = {"valueFormat": "json", **options}
    if texts.get("valueSchema") == "FILE":
        texts["valueSchema"] = schema_file

    with pytest.raises(OptionRefused) as refusal:
        value_columns(OptionTexts(texts), given)

    assert sentence in str(refusal.value)


def test_the_time_of_a_record_is_fetched_where_it_is_used(schema_file: str) -> None:
    # One that Spark's type cannot hold fails a task, so it can be left out.
    options = {"valueFormat": "json", "valueSchema": schema_file, "columns": "id, _record.offset"}

    plain = value_columns(OptionTexts(options), None)
    timed = value_columns(OptionTexts({**options, "eventTime": "at"}), None)

    assert plain is not None and plain.fetched == ("offset", "value")
    assert timed is not None and timed.fetched == ("offset", "value", "timestamp")


def test_options_of_values_need_a_format() -> None:
    with pytest.raises(OptionRefused, match="eventTime needs the option valueFormat"):
        value_columns(OptionTexts({"eventTime": "at"}), None)
    assert value_columns(OptionTexts({}), None) is None


LEAST = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "orders"}


def test_a_given_schema_chooses_columns_of_records() -> None:
    given = struct(offset=LongType(), value=BinaryType())

    options = parse_read_options(LEAST, is_stream=False, schema=given)

    assert options.columns == ("offset", "value") and options.values is None


@pytest.mark.parametrize(
    ("more", "given", "sentence"),
    [
        ({}, struct(id=LongType()), ".schema(...) has id bigint, and a record has struct<key:"),
        ({}, struct(value=StringType()), ".schema(...) has value string, and a record has struct<"),
        ({"columns": "key"}, struct(value=BinaryType()), "not by both"),
        ({}, StructType([StructField("key", BinaryType(), False)]), "key as not null, or"),
    ],
)
def test_a_given_schema_of_other_columns_is_refused(
    more: dict[str, str], given: StructType, sentence: str
) -> None:
    with pytest.raises(OptionRefused) as refusal:
        parse_read_options({**LEAST, **more}, is_stream=True, schema=given)

    assert sentence in str(refusal.value)


def test_conditions_narrow_by_the_record_and_not_by_a_field_of_its_name() -> None:
    conditions: list[Filter] = [
        IsNotNull(("_record", "offset")),
        GreaterThan(("_record", "offset"), 4),
        EqualTo(("offset",), 1),
        EqualTo(("_record", "partition"), 1),
        EqualTo(("partition",), 2),
    ]

    narrowed = narrowed_range(ReadRange("orders", 1, 0, 10), list(filters_of_record(conditions)))

    assert narrowed == ReadRange("orders", 1, 5, 10)


def test_types_are_those_that_spark_is_told(schema_file: str) -> None:
    texts = OptionTexts({"valueFormat": "json", "valueSchema": schema_file, "columns": "*, _time"})
    columns = value_columns(texts, None)
    assert columns is not None

    told = typed_schema(columns).simpleString()

    assert told == (
        "struct<id:string,amount:bigint,at:timestamp,customer:struct<mail:string>,_time:timestamp>"
    )
