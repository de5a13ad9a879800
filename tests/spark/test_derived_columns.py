"""Columns that are derived, and fields inside others, in a real Spark: values, refusals, a run."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from tests.support.spark.audit import make_topic, records_of, values_of

from tarry.client import Producer
from tarry.spark.pipeline.expressions import expression_mistakes
from tarry.spark.pipeline.file.reader import read_pipeline
from tarry.spark.pipeline.run import RunOptions, run_pipeline
from tarry.spark.steps import StepRefused, decode, derive
from tarry.spark.steps.deriving import with_nested

SCHEMA = {
    "properties": {
        "price": {"type": "integer"},
        "count": {"type": "integer"},
        "customer": {
            "type": ["object", "null"],
            "properties": {"country": {"type": ["string", "null"]}, "a.b": {"type": "integer"}},
        },
        "meta": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "at": {"type": "string", "format": "date-time"},
            },
        },
    }
}


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "order.json"
    path.write_text(json.dumps(SCHEMA))
    return path


@pytest.fixture
def orders(spark, schema):
    """Decoded orders, made of texts."""

    def make(*values: object):
        frame = spark.createDataFrame(
            [(json.dumps(value).encode(),) for value in values], "value binary"
        )
        return decode(frame.selectExpr("value", "now() AS timestamp"), format="json", schema=schema)

    return make


def test_columns_are_derived_in_their_order_and_null_where_they_cannot_be(orders):
    frame = orders({"price": 7, "count": 2}, {"price": 7, "count": 0}, {"price": "x"})

    derived = derive(frame, {"share": "price / count", "half": "share / 2", "place": "'x'"})

    assert derived.columns == [*frame.columns[:4], "share", "half", "place", *frame.columns[4:]]
    rows = [(row.share, row.half, row["_rule"]) for row in derived.collect()]
    assert rows == [(3.5, 1.75, None), (None, None, None), (None, None, "decode")]
    # The record stays as it came.
    assert json.loads(derived.first()["_record"].value) == {"price": 7, "count": 2}


def test_fields_inside_others_become_columns_of_their_paths(orders):
    frame = orders({"customer": {"country": "DE", "a.b": 3}}, {"customer": None}, {})

    lifted = with_nested(
        frame, ["customer.country", "Customer.Country", "price", "customer.no", "no.at"]
    )

    assert lifted.columns[:-4] == [*frame.columns[:4], "customer.country"]
    assert [row["customer.country"] for row in lifted.collect()] == ["DE", None, None]


def test_what_cannot_be_derived_is_refused(orders):
    frame = orders({"price": 1})
    attempts = {
        "a column 'price' already": {"price": "count"},
        "which Spark cannot tell apart": {"Price": "count"},
        "is the name of a column of the steps": {"_rule": "'x'"},
        "is no expression over the columns price, count, customer, meta: 'prize * 2'": {
            "double": "prize * 2"
        },
        "'price *'": {"double": "price *"},
        "derived column 'sum'": {"sum": "sum(price)"},
        "derived column 'each'": {"each": "explode(array(1, 2))"},
    }

    for sentence, columns in attempts.items():
        with pytest.raises(StepRefused) as refusal:
            derive(frame, columns)
        assert sentence in str(refusal.value)
    with pytest.raises(StepRefused, match="call decode before derive"):
        derive(frame.drop("_rule"), {"double": "price * 2"})


FILE = """\
name = "derived"
checkpoint = "checkpoint"
every = "100ms"
source = { topics = ["derived"], time = "meta.at" }
decode = { format = "json", schema = "order.json" }
deduplicate = { by = ["meta.id"], within = "1h" }
clean = { topic = "derived.clean", rejected = "derived.rejected" }
[derive]
total = "price * count"
is_large = "total > 100"
[check]
known = "customer.country IS NOT NULL"
small = "NOT is_large"
[[aggregate]]
name = "revenue"
window = "1h"
late = "1m"
by = ["customer.country"]
values = { revenue = "sum(total)" }
topic = "derived.revenue"
"""


def order_of(name: str, price: int, minute: int, country: str | None = "DE") -> bytes:
    at = f"2026-01-01T{minute // 60:02}:{minute % 60:02}:00Z"
    order = {"price": price, "count": 2, "customer": {"country": country}}
    return json.dumps({**order, "meta": {"id": name, "at": at}}).encode()


def test_a_pipeline_derives_columns_and_names_fields_by_their_paths(
    spark, broker, schema, tmp_path
):
    path = tmp_path / "derived.toml"
    path.write_text(FILE)
    pipeline = read_pipeline(path, {"TARRY_BOOTSTRAP_SERVERS": broker.bootstrap})
    make_topic(broker.bootstrap, "derived", 1)
    well = [order_of("a", 5, 0), order_of("b", 6, 10), order_of("end", 1, 200)]
    bad = [order_of("a", 5, 1), order_of("large", 51, 2), order_of("nowhere", 1, 3, None)]
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for value in (well[0], *bad, *well[1:]):
            producer.send("derived", value)

    assert expression_mistakes(spark, pipeline) == []
    sums = run_pipeline(spark, pipeline, RunOptions(once=True, restarts_max=20))

    assert sums["clean"].rejected == {"duplicate": 1, "small": 1, "known": 1}
    assert values_of(broker.bootstrap, "derived.clean") == dict.fromkeys(well, 1)
    assert values_of(broker.bootstrap, "derived.rejected") == dict.fromkeys(bad, 1)
    results = [json.loads(one.value) for _, one in records_of(broker.bootstrap, "derived.revenue")]
    window = {"start": "2026-01-01T00:00:00.000Z", "end": "2026-01-01T01:00:00.000Z"}
    assert results == [{**window, "customer.country": "DE", "revenue": 22}]


def test_mistakes_of_derived_columns_are_told_with_their_lines(spark, broker, schema, tmp_path):
    path = tmp_path / "derived.toml"
    path.write_text(
        FILE.replace("derived", "mistaken")
        .replace("price * count", "prize * count")
        .replace('["meta.id"]', '["meta.no"]')
    )
    pipeline = read_pipeline(path, {"TARRY_BOOTSTRAP_SERVERS": broker.bootstrap})
    make_topic(broker.bootstrap, "mistaken", 1)

    told = [(one.line, one.key) for one in expression_mistakes(spark, pipeline)]

    assert told[:2] == [(9, "derive.total"), (10, "derive.is_large")]
    assert (6, "deduplicate.by") in told
