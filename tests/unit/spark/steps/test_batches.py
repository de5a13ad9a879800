"""Batches as Spark's workers decode them: columns, event times, types that Spark is told of."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from tarry.spark.steps.columns import quoted
from tarry.spark.steps.decoding import BatchDecoding
from tarry.spark.steps.formats.decoders import ValueDecoding, decoder_of, value_decoding
from tarry.spark.steps.formats.values import TIME_US_MAX, TIME_US_MIN, is_extreme
from tarry.spark.steps.refused import StepRefused

EVENT = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "count", "type": "int"},
    ],
}
WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)


def source(*values: bytes | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(values, pa.binary()),
            "offset": pa.array(range(len(values)), pa.int64()),
            "timestamp": pa.array([WRITTEN] * len(values), pa.timestamp("us", "UTC")),
        }
    )


def event(at: datetime, count: bytes) -> bytes:
    micros = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    zigzag, out = micros << 1, bytearray()
    while zigzag >= 0x80:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    # The second branch of the union, then the time, then the count.
    return b"\x02" + bytes(out) + bytes([zigzag]) + count


@pytest.mark.parametrize("time", ["at", ""])
def test_rows_come_out_as_many_as_came_in(time: str) -> None:
    decoding = ValueDecoding("avro", json.dumps(EVENT).encode(), time=time)
    soon, far = WRITTEN + timedelta(days=1), WRITTEN + timedelta(days=1, microseconds=1)
    batch = source(event(soon, b"\x02"), event(far, b"\x02"), b"\x00\x04", None, b"?")

    # The form in which it goes to a worker.
    (made,) = pickle.loads(pickle.dumps(BatchDecoding(decoding)))([batch])

    rows = made.to_pylist()
    assert [row["_record"] for row in rows] == batch.to_pylist()
    assert [row["count"] for row in rows] == [1, 1, 2, None, None]
    assert [row["_rule"] for row in rows][3:] == ["decode"] * 2
    if time:
        assert [row["_time"] for row in rows] == [soon, None, None, None, None]
        assert [row["_error"] for row in rows][:4] == [
            None,
            "field at is the event time, and it is more than a day ahead of the record's time",
            "field at is the event time, and it is null",
            "the record has no value (null)",
        ]
    else:
        assert [row["_time"] for row in rows] == [WRITTEN] * 5
        assert [row["_rule"] for row in rows][:3] == [None] * 3


@pytest.mark.parametrize("name", ["meta.sent.at", "sent.at"])
def test_an_event_time_may_be_a_field_inside_another_one(name: str) -> None:
    at = {"type": "string", "format": "date-time"}
    sent = {"type": "object", "properties": {"at": at}}
    meta = {"type": "object", "properties": {"sent": sent}}
    # A field whose own name has a dot goes first.
    schema = {"properties": {"meta": meta, "sent.at": at, "sent": {"properties": {"at": at}}}}
    decoding = ValueDecoding("json", json.dumps(schema).encode(), time=name)
    time = "2026-01-01T00:00:00Z"
    values = [{"meta": {"sent": {"at": time}}, "sent.at": time}, {"meta": {}}, {}]

    (made,) = BatchDecoding(decoding)([source(*(json.dumps(one).encode() for one in values))])

    assert made.column("_time").to_pylist() == [WRITTEN, None, None]
    told = f"field {name} is the event time, and it is null"
    assert made.column("_error").to_pylist() == [None, told, told]


@pytest.mark.parametrize(
    ("name", "told"),
    [("meta", "is struct<"), ("meta.no", "is no field"), ("no.at", "is no field")],
)
def test_an_event_time_that_is_none_is_refused(name: str, told: str, tmp_path: Path) -> None:
    at = {"type": "string", "format": "date-time"}
    schema = tmp_path / "event.json"
    schema.write_text(json.dumps({"properties": {"meta": {"properties": {"at": at}}}}))

    with pytest.raises(StepRefused, match=told):
        value_decoding("json", schema, time=name)


def test_spark_knows_the_types_of_the_columns() -> None:
    decoder = decoder_of(ValueDecoding("avro", json.dumps(EVENT).encode()))

    told = from_arrow_schema(pa.schema(list(decoder.fields)))

    assert told.simpleString() == "struct<at:timestamp,count:int>"
    assert [to_arrow_type(field.dataType, timezone="UTC") for field in told] == [
        field.type for field in decoder.fields
    ]


def test_a_record_without_a_time_has_no_event_time_and_says_so() -> None:
    """-1 is Kafka's "no time"; the time of the last record is one that Python cannot tell."""
    micros = [0, -1_000, 253_402_300_800_000_000]
    batch = source(b"a", b"b", b"c").set_column(
        2, "timestamp", pa.array(micros, pa.timestamp("us", "UTC"))
    )

    (made,) = BatchDecoding(ValueDecoding("text"))([batch])

    assert made.column("_time").is_valid().to_pylist() == [True, False, False]
    assert made.column("_rule").to_pylist() == [None, "decode", "decode"]
    assert "the record's time is the event time" in made.column("_error")[1].as_py()
    assert made.column("text").to_pylist() == ["a", "b", "c"]


def test_an_event_time_of_a_field_is_not_held_against_a_record_without_a_time() -> None:
    decoding = ValueDecoding("avro", json.dumps(EVENT).encode(), time="at")
    micros = [-1_000, 2**63 - 1]
    batch = source(event(WRITTEN, b"\x02"), event(WRITTEN, b"\x02")).set_column(
        2, "timestamp", pa.array(micros, pa.timestamp("us", "UTC"))
    )

    (made,) = BatchDecoding(decoding)([batch])

    assert made.column("_time").to_pylist() == [WRITTEN, WRITTEN]
    assert made.column("_rule").null_count == 2


def test_the_first_and_the_last_time_are_times() -> None:
    """Those of the years 2 and 9998; a millisecond further is none."""
    schema = {"type": "object", "properties": {"at": {"type": "integer"}}}
    decoding = ValueDecoding("json", json.dumps(schema).encode(), time="at")
    first, last = TIME_US_MIN // 1_000, TIME_US_MAX // 1_000
    batch = source(*(b'{"at": %d}' % at for at in (first - 1, first, last, last + 1)))
    # A record without a time says nothing of its event's.
    batch = batch.set_column(2, "timestamp", pa.array([-1_000] * 4, pa.timestamp("us", "UTC")))

    (made,) = BatchDecoding(decoding)([batch])

    assert made.column("_time").is_valid().to_pylist() == [False, True, True, False]
    assert made.column("_rule").is_valid().to_pylist() == [True, False, False, True]


def test_a_time_of_a_record_is_known_up_to_the_last_one() -> None:
    micros = [0, TIME_US_MAX, TIME_US_MAX + 1]
    batch = source(b"a", b"b", b"c").set_column(
        2, "timestamp", pa.array(micros, pa.timestamp("us", "UTC"))
    )

    (made,) = BatchDecoding(ValueDecoding("text"))([batch])

    assert made.column("_time").is_valid().to_pylist() == [True, True, False]


@pytest.mark.parametrize("micros", [TIME_US_MIN, TIME_US_MAX])
def test_a_column_with_the_first_or_the_last_time_is_not_extreme(micros: int) -> None:
    kind = pa.timestamp("us", "UTC")
    outside = micros - 1 if micros < 0 else micros + 1

    assert not is_extreme(pa.array([micros], pa.int64()).cast(kind))
    assert is_extreme(pa.array([outside], pa.int64()).cast(kind))


@pytest.mark.parametrize(("name", "text"), [("user.id", "`user.id`"), ("a`b", "`a``b`")])
def test_a_name_in_an_expression_is_quoted_whatever_is_in_it(name: str, text: str) -> None:
    assert quoted(name) == text
