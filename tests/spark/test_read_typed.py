"""Values that the source decodes, read as columns by a real Spark from a real broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarry.testing import Tarry

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader, SparkSession

PySparkException = pytest.importorskip(
    "pyspark.errors", reason="pyspark is not installed"
).PySparkException

FIELDS = {
    "required": ["id"],
    "properties": {
        "id": {"type": "string"},
        # The name of one of a record's own columns.
        "offset": {"type": "integer"},
        "customer": {"type": "object", "properties": {"mail": {"type": "string"}}},
    },
}


@pytest.fixture
def schema_file(tmp_path: Path) -> str:
    path = tmp_path / "order.json"
    path.write_text(json.dumps(FIELDS))
    return str(path)


def send_orders(broker: Tarry, topic: str) -> None:
    broker.topic(topic)
    orders = [
        {"id": "a", "offset": 9, "customer": {"mail": "a@b"}},
        {"id": 1},
        {"id": "b", "more": True},
    ]
    broker.send(topic, *(json.dumps(order).encode() for order in orders))


def test_a_batch_has_fields_as_columns(
    read: DataFrameReader, broker: Tarry, schema_file: str
) -> None:
    send_orders(broker, "typed")
    reader = read.option("subscribe", "typed").option("valueFormat", "json")

    frame = reader.option("valueSchema", schema_file).load()

    assert frame.columns == ["id", "offset", "customer", "_record", "_error"]
    rows = frame.select("id", "offset", "customer.mail", "_record.offset", "_error").collect()
    assert [tuple(row) for row in rows] == [
        ("a", 9, "a@b", 0, None),
        (None, None, None, 1, "field id: expected string, got integer"),
        ("b", None, None, 2, None),
    ]
    assert bytes(frame.where("_error IS NOT NULL").first()["_record"]["value"]) == b'{"id": 1}'
    with pytest.raises(PySparkException, match=r"typed \[0\] offset 1: field id: expected string"):
        reader.option("valueSchema", schema_file).option("mode", "FAILFAST").load().collect()


def test_conditions_on_the_record_narrow_what_is_fetched(
    spark: SparkSession, read: DataFrameReader, broker: Tarry, schema_file: str
) -> None:
    send_orders(broker, "typed.narrowed")
    reader = read.option("subscribe", "typed.narrowed").option("valueFormat", "json")
    reader = reader.option("valueSchema", schema_file).option("filters", "true")
    # A value that would fail the query if it were fetched.
    reader = reader.option("mode", "failFast").option("columns", "id, offset, _record.offset")

    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        rows = reader.load().where("_record.offset >= 2").collect()
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")

    assert [(row.id, row["_record"].offset) for row in rows] == [("b", 2)]


def test_a_stream_has_the_columns_of_a_given_schema(
    spark: SparkSession, broker: Tarry, tmp_path: Path
) -> None:
    send_orders(broker, "typed.stream")
    reader = spark.readStream.format("tarry").option("kafka.bootstrap.servers", broker.bootstrap)
    reader = reader.option("subscribe", "typed.stream").option("startingOffsets", "earliest")
    reader = reader.option("valueFormat", "json").option("mode", "dropMalformed")

    frame = reader.schema("id STRING, customer STRUCT<mail: STRING>").load()
    writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "orders"))
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()

    rows = spark.read.parquet(str(tmp_path / "orders")).selectExpr("id", "customer.mail").collect()
    assert sorted(tuple(row) for row in rows) == [("a", "a@b"), ("b", None)]
