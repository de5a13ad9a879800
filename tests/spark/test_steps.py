"""Steps of a pipeline in a real Spark: what they mark, what they refuse, where records go."""

from __future__ import annotations

import json
import os
import re
import shutil
from datetime import UTC, datetime, timedelta

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from pyspark.errors import ArithmeticException, StreamingQueryException
from pyspark.sql.functions import expr
from tests.support.spark.audit import make_topic
from tests.support.spark.page_examples import blocks_of
from tests.support.spark.schemas import (
    EXPECTED,
    ORDER as AVRO_ORDER,
    VALUE,
    WIRE,
    avro,
    fake_registry,
    framed,
    shop,
)

from tarry.spark.backfill.results import KIND, NEW, OLD_KEY, OLD_VALUE, REMOVED, compared
from tarry.spark.pipeline.file.sections import AggregateSection
from tarry.spark.steps import StepRefused, aggregate, check, clean, decode, deduplicate, wait
from tarry.spark.steps.aggregation import result_columns, windows_of
from tarry.spark.steps.states import PROVIDER_KEY, ROCKSDB

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
    """Records of the source, made of texts or bytes."""

    def make(*values):
        rows = [
            (place, value.encode() if isinstance(value, str) else value)
            for place, value in enumerate(values)
        ]
        return spark.createDataFrame(rows, "offset bigint, value binary").selectExpr(
            "CAST(NULL AS BINARY) AS key",
            "value",
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


def test_avro_is_read_by_the_schema_that_the_registry_tells(texts, tmp_path):
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(AVRO_ORDER))
    grown = {**AVRO_ORDER, "fields": [*AVRO_ORDER["fields"], {"name": "new", "type": "int"}]}
    broken = {**AVRO_ORDER, "fields": AVRO_ORDER["fields"][1:]}
    values = [
        framed(1, avro(AVRO_ORDER, VALUE)),
        framed(2, avro(grown, {**VALUE, "new": 5})),
        framed(3, avro(broken, VALUE)),
        framed(9, avro(AVRO_ORDER, VALUE)),
        framed(1, b"\xff"),
        avro(AVRO_ORDER, VALUE),
        None,
    ]

    with fake_registry() as registry:
        told = enumerate([AVRO_ORDER, grown, broken], 1)
        registry.schemas = {str(number): json.dumps(one) for number, one in told}
        frame = decode(texts(*values), format="avro", schema=path, registry=registry.url, time="at")
        rows = frame.withColumn("at", expr("unix_micros(at)")).collect()

    fields = {**VALUE, "lines": [(1,), (2,)], "at": int(VALUE["at"].timestamp() * 1_000_000)}
    for row in rows[:2]:
        assert {name: row[name] for name in fields} == fields
        assert row["_rule"] is None
    assert [row["_rule"] for row in rows[2:]] == ["decode"] * 5
    assert all(row[name] is None for row in rows[2:] for name in fields)
    sentences = [
        "schema 3 of its writer does not fit the reader's",
        f"the registry {registry.url} knows no schema 9",
        "the value is not of the Avro schema",
        "the value has no frame of a registry",
        "the record has no value",
    ]
    for row, sentence in zip(rows[2:], sentences, strict=True):
        assert row["_error"].startswith(sentence)
    assert {path for path, _ in registry.asked} == {f"/schemas/ids/{one}" for one in (1, 2, 3, 9)}


def test_protobuf_is_read_by_the_schema_of_a_file(texts, tmp_path):
    path = tmp_path / "order.desc"
    path.write_bytes(shop())

    frame = decode(
        texts(WIRE, b"\x0a\x05a", None), format="protobuf", schema=path, message="shop.Order"
    )
    good, cut, nothing = frame.withColumn("at", expr("unix_micros(at)")).collect()

    fields = {
        **EXPECTED,
        "at": 1_500_000,
        "lines": [(line["n"],) for line in EXPECTED["lines"]],
        "tags": dict(EXPECTED["tags"]),
    }
    assert {name: good[name] for name in fields} == fields
    assert (good["_rule"], good["_error"]) == (None, None)
    assert [row["_rule"] for row in (cut, nothing)] == ["decode"] * 2
    assert cut["_error"].startswith("the value is no shop.Order")
    assert nothing["_error"] == "the record has no value (null)"
    assert all(row[name] is None for row in (cut, nothing) for name in fields)


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


def test_names_of_fields_may_have_dots_and_backticks(texts, tmp_path):
    user = {"type": "object", "properties": {"id": {"type": "string"}}}
    fields = {"user": user, "user.id": {"type": "integer"}, "a`b": {"type": "integer"}}
    path = tmp_path / "dots.json"
    path.write_text(json.dumps({"type": "object", "properties": fields}))
    value = json.dumps({"user": {"id": "in"}, "user.id": 7, "a`b": 8})
    decoded = decode(texts(value, value), format="json", schema=path)

    checked = check(decoded, {"known": "`user.id` = 7"})
    marked = deduplicate(checked, by=["user.id", "a`b"], within="1h")
    counts = aggregate(
        checked,
        window="1h",
        late="1m",
        by=["user.id", "a`b"],
        values={"n`.n": "count(*)"},
        topic="t",
    )

    assert checked.schema == marked.schema == decoded.schema
    rows = marked.collect()
    assert [row["user.id"] for row in rows] == [7, 7]
    assert {row["_rule"] for row in rows} == {None, "duplicate"}
    told = [json.loads(row.value) for row in counts.collect()]
    assert [(one["user.id"], one["a`b"], one["n`.n"]) for one in told] == [(7, 8, 2)]
    # A session of before, which has grown since.
    one = AggregateSection(
        name="n",
        window=None,
        slide=None,
        session="1h",
        late="1m",
        by=("user.id", "a`b"),
        values={"n": "count(*)"},
        topic="t",
    )
    windows = windows_of(
        checked, window=None, slide=None, session="1h", late="1m", by=one.by, values=one.values
    )
    (key,) = windows.select(result_columns(one.by, one.values)[0]).first()
    before = json.dumps({**json.loads(key), "end": json.loads(key)["start"].replace(".0", ".1")})
    old = checked.sparkSession.createDataFrame([(before, "{}")], [OLD_KEY, OLD_VALUE])
    found = {row["key"]: row[KIND] for row in compared(windows, one, old).collect()}
    assert found == {key: NEW, before: REMOVED}


def test_the_event_time_may_be_milliseconds(texts, tmp_path):
    path = tmp_path / "event.json"
    path.write_text(json.dumps({"properties": {"ms": {"type": ["integer", "null"]}}}))

    rows = decode(
        texts(
            '{"ms": 1500}',
            '{"ms": null}',
            "{}",
            '{"ms": 999999999999999}',
            # A second and a day after the record.
            '{"ms": 1767355201000}',
        ),
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
            "years 2 and 9998",
        ),
        (
            None,
            "field ms is the event time, and it is more than a day ahead of the record's time",
        ),
    ]


def test_a_record_without_a_usable_time_gets_that_of_its_writing(texts, schema):
    far = "timestamp_micros(253402300800000000)"
    times = f"CASE offset WHEN 0 THEN timestamp_millis(-1) WHEN 1 THEN {far} ELSE timestamp END"
    records = texts(order("a"), order("b"), order("c"))
    records = records.withColumns({"timestamp": expr(times)})

    orders = decode(records, format="json", schema=schema, time="at")
    out = clean(orders, topic="good", rejected="bad")

    found = out.selectExpr("topic", "timestamp IS NULL").collect()
    assert [tuple(row) for row in found] == [("good", True), ("good", True), ("good", False)]


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


EVENT = {
    "type": "object",
    "required": ["id", "at", "kind"],
    "properties": {
        "id": {"type": ["string", "null"]},
        "at": {"type": "string", "format": "date-time"},
        "kind": {"type": "string"},
    },
}

# Events of four micro-batches: id, minute, kind.
BATCHES = [
    [
        ("a", 0, "placed"),
        ("b", 1, "placed"),
        ("a", 2, "paid"),
        None,
        (None, 3, "x"),
        (None, 3, "x"),
    ],
    [
        ("c", 90, "placed"),
        ("b", 80, "paid"),
        ("a", 2, "paid"),
        ("d", 95, "paid"),
        ("d", 94, "placed"),
    ],
    [("z", 10, "placed"), ("c", 200, "paid"), ("a", 150, "placed")],
    [("q", 300, "placed")],
]

START = datetime(2026, 1, 1, tzinfo=UTC)


def minute(number):
    return f"{START + timedelta(minutes=number):%Y-%m-%dT%H:%M:%S}.000Z"


def write_files(directory, batches):
    """Write lines of offset and value, a file for each micro-batch."""
    directory.mkdir()
    offset = 0
    for number, events in enumerate(batches):
        lines = []
        for event in events:
            value = "broken"
            if event is not None:
                value = json.dumps({"id": event[0], "at": minute(event[1]), "kind": event[2]})
            lines.append(f"{offset}|{value}\n")
            offset += 1
        path = directory / f"{number}.txt"
        path.write_text("".join(lines))
        # A stream of files takes the oldest first.
        os.utime(path, (1_000_000 + number * 10,) * 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of the micro-batches, and the schema of their events."""
    made = tmp_path_factory.mktemp("events")
    (made / "event.json").write_text(json.dumps(EVENT))
    write_files(made / "in", BATCHES)
    return made


@pytest.fixture
def events(spark, folder):
    """Decoded events, as a stream or as a batch."""

    def make(*, stream, directory=folder / "in"):
        reader = spark.readStream.option("maxFilesPerTrigger", 1) if stream else spark.read
        records = reader.text(str(directory)).selectExpr(
            "CAST(NULL AS BINARY) AS key",
            "CAST(substring_index(value, '|', -1) AS BINARY) AS value",
            "'orders' AS topic",
            "0 AS partition",
            "CAST(substring_index(value, '|', 1) AS BIGINT) AS offset",
            "TIMESTAMP'2026-01-01 05:00:00.123456' AS timestamp",
        )
        return decode(records, format="json", schema=folder / "event.json", time="at")

    return make


@pytest.fixture
def rocksdb(spark):
    partitions = spark.conf.get(PARTITIONS_KEY)
    spark.conf.set(PROVIDER_KEY, ROCKSDB)
    yield
    spark.conf.unset(PROVIDER_KEY)
    spark.conf.set(PARTITIONS_KEY, partitions)


PARTITIONS_KEY = "spark.sql.shuffle.partitions"

# Spark gives a Python worker 10 s to come up, whatever its settings: a busy machine needs longer.
TOO_BUSY = "Python worker failed to connect back"


def run(frame, directory, attempts=5):
    """Run a query up to where its files end, or on from where it stopped; return all its rows."""
    out, checkpoint = str(directory / "out"), str(directory / "checkpoint")
    for attempt in range(attempts):
        writer = frame.writeStream.format("parquet").option("checkpointLocation", checkpoint)
        try:
            writer.trigger(availableNow=True).start(out).awaitTermination()
        except StreamingQueryException as flaw:
            if TOO_BUSY not in str(flaw) or attempt == attempts - 1:
                raise
        else:
            return frame.sparkSession.read.schema(frame.schema).parquet(out).collect()
    raise AssertionError("no attempt")


def test_doubles_are_marked_and_nothing_is_dropped(spark, events, folder, rocksdb, tmp_path):
    def marks(rows):
        assert {row["_record"].timestamp.microsecond for row in rows} == {123456}
        return {
            row["_record"].offset: row["_rule"] for row in rows if row["_rule"] is not None
        }, sorted(row["_record"].offset for row in rows)

    options = {"by": ["id", "kind"], "within": "1h"}
    whole = list(range(sum(len(batch) for batch in BATCHES)))
    came = tmp_path / "in"
    came.mkdir()
    files = sorted((folder / "in").iterdir())

    # Stopped after two micro-batches, and started again with another number of partitions.
    for some, partitions in ((files[:2], "2"), (files[2:], "3")):
        for file in some:
            shutil.copy2(file, came)
        spark.conf.set(PARTITIONS_KEY, partitions)
        frame = deduplicate(events(stream=True, directory=came), **options)
        streamed = run(frame, tmp_path)
    at_once = deduplicate(events(stream=False), **options).collect()

    assert marks(streamed) == ({3: "decode", 8: "duplicate", 11: "late"}, whole)
    assert marks(at_once) == ({3: "decode", 8: "duplicate"}, whole)
    told = {row["_error"] for row in streamed if row["_rule"] in ("duplicate", "late")}
    assert told == {
        "an event with the same id, kind came before, within 1h",
        "the event is of 2026-01-01 00:10:00 UTC, and what came before 2026-01-01 00:35:00 UTC is "
        "forgotten: it may be a double or not",
    }


def test_a_double_exactly_within_is_one_on_a_stream_and_in_a_batch(events, rocksdb, tmp_path):
    came = [("a", 0), ("a", 60), ("b", 0), ("b", 61), ("c", 60), ("c", 0), ("d", 61), ("d", 0)]
    write_files(tmp_path / "in", [[(*one, "placed") for one in came]])

    def doubles(rows):
        return {row["_record"].offset for row in rows if row["_rule"] == "duplicate"}

    frames = [events(stream=flag, directory=tmp_path / "in") for flag in (True, False)]
    stream, batch = (deduplicate(frame, by=["id"], within="1h") for frame in frames)

    assert doubles(run(stream, tmp_path)) == doubles(batch.collect()) == {1, 5}


def test_an_event_that_a_rule_rejected_makes_no_other_one_late(events, rocksdb, tmp_path):
    batches = [
        [("a", 0, "placed")],
        [("x", 300, "wrong")],
        [("b", 1, "placed"), ("a", 2, "placed")],
    ]
    write_files(tmp_path / "in", batches)
    checked = check(events(stream=True, directory=tmp_path / "in"), {"kind": "kind <> 'wrong'"})

    # A name that Spark must not take apart.
    named = checked.withColumnRenamed("id", "i`d.x")
    rows = run(deduplicate(named, by=["i`d.x"], within="1h"), tmp_path)

    marks = {row["_record"].offset: row["_rule"] for row in rows}
    assert marks == {0: None, 1: "kind", 2: None, 3: "duplicate"}
    assert rows[0].asDict().keys() == dict.fromkeys(named.columns).keys()


def unpaid(frame, key):
    """Waits for the payments of orders."""
    return wait(
        frame,
        key=key,
        start="kind = 'placed'",
        until="kind = 'paid'",
        within="30m",
        late="10m",
        topic="unpaid",
    )


def test_each_wait_ends_once_and_says_how(events, rocksdb, tmp_path):
    rows = run(unpaid(events(stream=True), "id"), tmp_path)

    assert {row.topic for row in rows} == {"unpaid"}
    assert sorted(
        (row.key, told["key"], told["outcome"], told["began"], told["ended"], told["waited_ms"])
        for row in rows
        for told in [json.loads(row.value)]
    ) == [
        ("a", "a", "completed", minute(0), minute(2), 120_000),
        ("a", "a", "expired", minute(150), minute(180), 1_800_000),
        ("b", "b", "expired", minute(1), minute(31), 1_800_000),
        ("c", "c", "expired", minute(90), minute(120), 1_800_000),
        ("d", "d", "completed", minute(94), minute(95), 60_000),
        ("z", "z", "expired", minute(10), minute(40), 1_800_000),
    ]
    # The page's example is of that form, with a key and times of its own.
    (shown,) = blocks_of("pipeline-steps.md", "json")
    (expired,) = [row.value for row in rows if row.key == "z"]
    same_key = shown.strip().replace('"17"', '"z"')
    assert re.sub(r"\d", "0", expired) == re.sub(r"\d", "0", same_key)


def test_an_event_at_the_watermark_is_late_and_one_behind_it_is_not(events, rocksdb, tmp_path):
    """Late is ten minutes: the watermark is at minute 50 when the last events come."""
    at_limit = [("a", 50, "placed"), ("b", 51, "placed")]
    more = [[("x", 60, "viewed")], [("x", 60, "viewed")], at_limit, [("x", 120, "viewed")]]
    write_files(tmp_path / "in", more)

    rows = run(unpaid(events(stream=True, directory=tmp_path / "in"), "id"), tmp_path)

    assert [row.key for row in rows] == ["b"]


def test_a_wait_expires_while_only_other_events_come(events, rocksdb, tmp_path):
    # The last event has no key, and begins and completes nothing.
    write_files(tmp_path / "in", [[("a", 0, "placed")], [(None, 120, "viewed")]])
    # A name that Spark must not take apart.
    named = events(stream=True, directory=tmp_path / "in").withColumnRenamed("id", "i`d.x")

    rows = run(unpaid(named, "i`d.x"), tmp_path)

    assert [(row.key, json.loads(row.value)["outcome"]) for row in rows] == [("a", "expired")]


@pytest.mark.parametrize(
    ("span", "late", "watermark"),
    [
        ({"window": "1h", "slide": "30m"}, "10m", 290),
        ({"session": "10m"}, "10m", 290),
        # A window and a session end exactly at the watermark.
        ({"window": "1h", "slide": "30m"}, "60m", 240),
        ({"session": "10m"}, "90m", 210),
    ],
)
def test_results_of_windows_are_those_computed_in_one_go(events, span, late, watermark, tmp_path):
    def results(rows):
        assert {row.topic for row in rows} == {"counts"}
        return {row.key: json.loads(row.value) for row in rows}

    options = {"late": late, "by": ["kind"], "values": {"n": "count(*)"}, "topic": "counts"}

    streamed = run(aggregate(events(stream=True), **span, **options), tmp_path)
    at_once = results(aggregate(events(stream=False), **span, **options).collect())

    # The watermark is so far behind the newest event.
    closed = {key: value for key, value in at_once.items() if value["end"] <= minute(watermark)}
    if watermark != 290:
        assert minute(watermark) in {value["end"] for value in closed.values()}
    assert results(streamed) == closed
    assert len(streamed) == len(closed) < len(at_once)
    key, value = next(iter(closed.items()))
    assert json.loads(key) == {name: value[name] for name in ("start", "end", "kind")}
    session = {"start": minute(0), "end": minute(20), "kind": "placed", "n": 3}
    window = {"start": minute(0), "end": minute(60), "kind": "placed", "n": 3}
    assert (session if "session" in span else window) in closed.values()


def test_steps_with_state_and_windows_refuse_what_cannot_be(events):
    stream, batch = events(stream=True), events(stream=False)
    waits = {"key": "id", "start": "true", "until": "true", "within": "1h", "late": "1m"}
    counts = {"late": "1m", "values": {"n": "count(*)"}, "topic": "t"}
    attempts = {
        'spark.conf.set("spark.sql.streaming.stateStore.providerClass"': lambda: deduplicate(
            stream, by=["id"], within="1h"
        ),
        "there is no column 'no' among id, at, kind": lambda: deduplicate(
            batch, by=["no"], within="1h"
        ),
        "within='soon' is no time": lambda: deduplicate(batch, by=["id"], within="soon"),
        "within='0' must be longer": lambda: deduplicate(batch, by=["id"], within="0"),
        "wait needs a stream": lambda: wait(batch, topic="t", **waits),
        "start is no expression": lambda: wait(stream, topic="t", **{**waits, "start": "a +"}),
        "either a window": lambda: aggregate(batch, **counts),
        "leave out slide": lambda: aggregate(batch, session="1m", slide="1m", **counts),
        "is longer than window": lambda: aggregate(batch, window="1m", slide="2m", **counts),
        "the field 'start' twice": lambda: aggregate(
            batch, window="1m", **{**counts, "values": {"start": "count(*)"}}
        ),
        "the value 'n' is no aggregate": lambda: aggregate(
            batch, window="1m", **{**counts, "values": {"n": "id"}}
        ),
        "a stream cannot have count(distinct id): Distinct aggregations are not": lambda: aggregate(
            stream, window="1m", **{**counts, "values": {"n": "count(distinct id)"}}
        ),
        "Window function is not supported": lambda: check(
            stream, {"first": "row_number() OVER (ORDER BY id) = 1"}
        ),
        "The generator is not supported": lambda: check(batch, {"each": "explode(array(true))"}),
    }

    for sentence, attempt in attempts.items():
        with pytest.raises(StepRefused) as refusal:
            attempt()
        assert sentence in str(refusal.value)


def test_a_refusal_leaves_the_errors_of_spark_as_they_are(spark, events):
    with pytest.raises(StepRefused):
        check(events(stream=False), {"none": "none > 0"})

    # PySpark logs such an error, by a logger of its own class.
    with pytest.raises(ArithmeticException, match="DIVIDE_BY_ZERO"):
        spark.sql("SELECT 1 / 0").collect()


def test_what_a_rule_cannot_compute_is_rejected(spark, texts, schema):
    records = texts(order("well", 2), order("zero", 0), order("x", 5), order("large", 2**62))
    decoded = decode(records, format="json", schema=schema, time="at")
    rules = {"share": "10 / amount > 1", "short": "CAST(id AS INT) IS NULL AND amount * 4 <> 1"}

    rows = check(decoded, rules).collect()

    assert [(row["id"], row["_rule"]) for row in rows] == [
        ("well", None),
        ("zero", "share"),
        ("x", None),
        ("large", "share"),
    ]
    # Four times 2^62 is 0 in 64 bits.
    asked = {"around": "amount * 4 < 100", "tried": "try_multiply(amount, 4) < 100"}
    assert [row["_rule"] for row in check(decoded, asked).collect()] == [None] * 3 + ["tried"]
    # For the rest of the session errors are errors.
    with pytest.raises(ArithmeticException):
        spark.sql("SELECT 1 / 0").collect()


def test_groups_of_times_are_those_that_their_keys_tell(texts, schema):
    at = "2026-01-01T00:00:00.{}Z"
    records = texts(*[order("a", at=at.format(micros)) for micros in ("0001", "0002", "001")])
    decoded = decode(records, format="json", schema=schema)
    counts = {"late": "1m", "values": {"n": "count(*)"}, "topic": "t"}

    rows = aggregate(decoded, window="1h", by=["at"], **counts).collect()

    # Two results under one key would be one record of a compacted topic.
    assert {json.loads(row.key)["at"]: json.loads(row.value)["n"] for row in rows} == {
        at.format("000"): 2,
        at.format("001"): 1,
    }
    assert len(rows) == 2


def test_a_key_of_bytes_that_are_no_text_is_waited_for(events, rocksdb, tmp_path):
    frame = events(stream=True).withColumn("id", expr("unhex('ff')"))
    waits = {"start": "kind = 'placed'", "until": "kind = 'paid'", "within": "30m", "late": "10m"}

    rows = run(wait(frame, key="id", topic="t", **waits), tmp_path)

    assert {(row.key, json.loads(row.value)["key"]) for row in rows} == {("/w==", "/w==")}
