"""Steps of a pipeline in a real Spark: what they mark, what they refuse, where records go."""

from __future__ import annotations

import json

import pytest
from tests.support.spark.audit import make_topic

from tarry.spark.steps import StepRefused, check, clean, decode

ORDER = {
    "type": "object",
    "required": ["id", "at", "amount"],
    "properties": {
        "id": {"type": "string"},
        "at": {"type": "string", "format": "date-time"},
        "amount": {"type": "integer"},
        "country": {"type": ["string", "null"]},
    },
}


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "order.json"
    path.write_text(json.dumps(ORDER))
    return path


def order(name, amount=1, at="2026-01-01T00:00:00Z", **more):
    return json.dumps({"id": name, "at": at, "amount": amount, **more})


@pytest.fixture
def texts(spark):
    """Records of the source, made of texts."""

    def make(*values):
        rows = [(place, value) for place, value in enumerate(values)]
        return spark.createDataFrame(rows, "offset bigint, value string").selectExpr(
            "CAST(NULL AS BINARY) AS key",
            "CAST(value AS BINARY) AS value",
            "'orders' AS topic",
            "0 AS partition",
            "offset",
            "TIMESTAMP'2026-01-01 12:00:00' AS timestamp",
            "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers",
        )

    return make


def test_each_record_of_a_stream_goes_to_one_topic(spark, broker, schema, checkpoint):
    for name in ("steps", "steps.clean", "steps.rejected"):
        make_topic(broker.bootstrap, name, 2)
    values = [order("a", 5), order("b", 0), "broken", None, order("c", 7, country="DE")]
    with broker.producer() as producer:
        for value in values:
            producer.send(
                "steps", key=b"k", value=value and value.encode(), headers=[("own", b"1")]
            )
    records = (
        spark.readStream.format("tarry")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("subscribe", "steps")
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .load()
    )

    orders = check(decode(records, format="json", schema=schema, time="at"), {"some": "amount > 0"})
    out = clean(orders, topic="steps.clean", rejected="steps.rejected")
    query = (
        out.writeStream.format("tarry")
        .option("kafka.bootstrap.servers", broker.bootstrap)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    good, bad = broker.records("steps.clean"), broker.records("steps.rejected")
    assert [record.value.decode() for record in good] == [values[0], values[4]]
    assert [list(record.headers) for record in good] == [[("own", b"1")]] * 2
    assert [record.value and record.value.decode() for record in bad] == [values[1], "broken", None]
    told = [{name: value.decode() for name, value in record.headers} for record in bad]
    partition = good[0].partition
    assert told == [
        {
            "own": "1",
            "x-error-rule": "some",
            "x-error": "not true: amount > 0",
            "x-origin": f"steps/{partition}/1",
        },
        {
            "own": "1",
            "x-error-rule": "decode",
            "x-error": "the value is no JSON: JSON is malformed: invalid character (byte 0)",
            "x-origin": f"steps/{partition}/2",
        },
        {
            "own": "1",
            "x-error-rule": "decode",
            "x-error": "the record has no value (null)",
            "x-origin": f"steps/{partition}/3",
        },
    ]


def test_the_first_broken_rule_counts_and_null_breaks_one(texts, schema):
    frame = decode(
        texts(order("a", country="DE"), order("b"), order("c", 0), "x"),
        format="json",
        schema=schema,
    )

    rows = check(frame, {"positive": "amount > 0", "known": "country = 'DE'"}).collect()

    assert [(row.id, row["_rule"]) for row in rows] == [
        ("a", None),
        ("b", "known"),
        ("c", "positive"),
        (None, "decode"),
    ]
    assert {row["_time"] for row in rows} == {row["_record"].timestamp for row in rows}


def test_the_event_time_may_be_milliseconds(texts, tmp_path):
    path = tmp_path / "event.json"
    path.write_text(json.dumps({"properties": {"ms": {"type": ["integer", "null"]}}}))

    rows = decode(
        texts('{"ms": 1500}', '{"ms": null}', "{}", '{"ms": 999999999999999}'),
        format="json",
        schema=path,
        time="ms",
    )
    found = rows.selectExpr("unix_millis(_time) AS ms", "_error").collect()

    assert [tuple(row) for row in found] == [
        (1500, None),
        (None, "field ms is the event time, and it is null"),
        (None, "field ms is the event time, and it is null"),
        (
            None,
            "field ms is the event time, and it is 999999999999999, which is no time between the "
            "years 1 and 9999",
        ),
    ]


def test_text_is_a_column_where_it_is_utf8(texts):
    frame = texts("é", "x").selectExpr(
        "*", "IF(offset = 1, X'ff', value) AS other", "timestamp AS at"
    )
    frame = frame.drop("value").withColumnRenamed("other", "value")

    rows = decode(frame, format="text").collect()

    assert [(row.text, row["_error"]) for row in rows] == [
        ("é", None),
        (None, "the value is no UTF-8 at byte 0"),
    ]


def test_what_cannot_be_is_refused_before_it_starts(texts, schema):
    records = texts("x")
    orders = decode(records, format="json", schema=schema)
    attempts = {
        "there is no format 'xml'; there are": lambda: decode(records, format="xml"),
        "needs a schema": lambda: decode(records, format="json"),
        "cannot be read": lambda: decode(records, format="json", schema="/nowhere"),
        "time='no' is no field of the schema, which has id, at, amount, country": lambda: decode(
            records, format="json", schema=schema, time="no"
        ),
        "time='id' is string": lambda: decode(records, format="json", schema=schema, time="id"),
        "decode needs the column value": lambda: decode(
            records.drop("value"), format="json", schema=schema
        ),
        "the rule 'r' is no expression over the columns id, at, amount, country": lambda: check(
            orders, {"r": "amoun > 0"}
        ),
        "'amount >'": lambda: check(orders, {"r": "amount >"}),
        "it must be boolean": lambda: check(orders, {"r": "amount + 1"}),
        "the rule 'r' is no expression": lambda: check(orders, {"r": "sum(amount) > 1"}),
        "call decode before check": lambda: check(records, {"r": "true"}),
        "clean needs the column headers of the source": lambda: clean(
            decode(records.drop("headers"), format="json", schema=schema), topic="a", rejected="b"
        ),
        "go to one topic": lambda: clean(orders, topic="a", rejected="a"),
    }

    for sentence, attempt in attempts.items():
        with pytest.raises(StepRefused) as refusal:
            attempt()
        assert sentence in str(refusal.value)
