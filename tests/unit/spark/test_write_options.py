"""What a write takes, and the sentences for what it refuses."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tarry.client.errors import InvalidSetting
from tarry.spark.options import OptionRefused
from tarry.spark.writing.columns import check_columns
from tarry.spark.writing.plan import SinkRefused
from tarry.spark.writing.write_options import BATCH_BYTES, parse_write_options
from tarry.spark.writing.writers import (
    BatchWriter,
    ExactBatchWriter,
    StreamWriter,
    make_batch_writer,
    make_stream_writer,
)

SERVERS = {"kafka.bootstrap.servers": "h:1"}
STREAM = {**SERVERS, "checkpointlocation": "/c"}
VALUE = StructType([StructField("value", StringType())])
PAIR = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "kafka.bootstrap.servers is missing"),
        ({**SERVERS, "topics": "a"}, "no option 'topics'; did you mean topic"),
        ({**SERVERS, "kafka.acks": "1"}, "kafka.acks cannot be set: the sink always waits"),
        ({**SERVERS, "kafka.transactional.id": "t"}, "needs no transactions"),
        ({**SERVERS, "kafka.key.serializer": "x"}, "keys are bytes or text already"),
        ({**SERVERS, "delivery": "twice"}, "delivery='twice' is neither at-least-once nor"),
        ({**SERVERS, "delivery": "exactly-once"}, "needs the option sinkLocation"),
        (
            {**SERVERS, "sinklocation": "/s"},
            "sinkLocation acts with delivery=exactly-once only: add that, or leave it out",
        ),
        (
            {**SERVERS, "sinklocation": "/s", "delivery": "at-least-once"},
            "sinkLocation acts with delivery=exactly-once only",
        ),
    ],
)
def test_options_of_a_batch_that_are_refused(options, sentence):
    with pytest.raises(OptionRefused, match=sentence):
        parse_write_options(options, is_stream=False)


@pytest.mark.parametrize("more", [{}, {"sinklocation": "/s", "delivery": "exactly-once"}])
def test_a_batch_that_is_given_a_checkpoint_goes_on_and_says_that_it_has_none(more, caplog):
    """As in foreachBatch, with the options of its stream."""
    parse_write_options({**STREAM, **more}, is_stream=False)

    assert caplog.messages == ["the option checkpointLocation has no effect in a batch"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (SERVERS, "a stream needs the option checkpointLocation at its own writer"),
        ({**STREAM, "delivery": "at-least-once"}, "a stream is written exactly-once"),
    ],
)
def test_options_of_a_stream_that_are_refused(options, sentence):
    with pytest.raises(OptionRefused, match=sentence):
        parse_write_options(options, is_stream=True)


def test_a_checkpoint_in_an_object_store_is_refused_before_the_query_starts():
    for more in ({}, {"sinklocation": "/shared/sink"}):
        given = {**SERVERS, "checkpointlocation": "s3a://b/c", **more}
        with pytest.raises(SinkRefused, match="such a directory as the option checkpointLocation"):
            parse_write_options(given, is_stream=True)
    with pytest.raises(SinkRefused, match="give such a directory as the option sinkLocation"):
        parse_write_options({**STREAM, "sinklocation": "s3a://b/c"}, is_stream=True)


def test_a_setting_of_no_producer_is_refused():
    with pytest.raises(InvalidSetting, match="a setting of a consumer; this is a producer"):
        parse_write_options({**SERVERS, "kafka.fetch.min.bytes": "1"}, is_stream=False)


def test_defaults_and_the_settings_of_every_client():
    options = parse_write_options(
        {**STREAM, "kafka.linger.ms": "7", "kafka.request.timeout.ms": "9", "kafka.acks": "all"},
        is_stream=True,
    )

    assert (options.location, options.is_exactly_once) == ("/c/sink", True)
    assert options.batch_bytes == BATCH_BYTES
    assert options.client_settings == {"bootstrap.servers": "h:1", "request.timeout.ms": "9"}
    assert options.producer_settings.linger_ms == 7
    relative = parse_write_options({**STREAM, "sinklocation": "sink"}, is_stream=True)
    assert relative.location == str(Path("sink").absolute())
    small = parse_write_options({**STREAM, "kafka.batch.size": "10"}, is_stream=True)
    assert small.batch_bytes == 10


def test_writers_by_delivery():
    given = {**SERVERS, "topic": "t"}
    exact = {**given, "delivery": "exactly-once", "sinklocation": "/s"}

    assert isinstance(make_batch_writer(given, VALUE, overwrite=False), BatchWriter)
    assert isinstance(make_batch_writer(exact, VALUE, overwrite=False), ExactBatchWriter)
    stream = make_stream_writer({**STREAM, "topic": "t"}, VALUE, overwrite=False)
    assert isinstance(stream, StreamWriter)
    with pytest.raises(OptionRefused, match="cannot be overwritten"):
        make_batch_writer(given, VALUE, overwrite=True)
    with pytest.raises(OptionRefused, match="the output mode complete would write every row again"):
        make_stream_writer({**STREAM, "topic": "t"}, VALUE, overwrite=True)


@pytest.mark.parametrize(
    ("columns", "topic", "sentence"),
    [
        ({"value": StringType()}, None, "nothing says which topic the rows go to"),
        ({"id": LongType()}, "t", "there is no column value among id"),
        ({"value": LongType()}, "t", "column value is of type bigint, and it must be string or"),
        ({"value": StringType(), "key": LongType()}, "t", "column key is of type bigint"),
        ({"value": StringType(), "topic": LongType()}, None, "column topic is of type bigint"),
        ({"value": StringType(), "partition": LongType()}, "t", "partition is of type bigint"),
        ({"value": StringType(), "headers": StringType()}, "t", "headers is of type string"),
        ({"value": StringType(), "timestamp": LongType()}, "t", "timestamp is of type bigint"),
        (
            {"value": StringType(), "deliverAt": TimestampNTZType()},
            "t",
            "column deliverAt is of type timestamp_ntz, and it must be timestamp or bigint: cast",
        ),
        ({"value": StringType(), "deliverAt": IntegerType()}, "t", "deliverAt is of type int"),
        (
            {"value": StringType(), "deliverAfter": DayTimeIntervalType()},
            "t",
            "deliverAfter is of type interval day to second, and it must be bigint or int or str",
        ),
        ({"value": StringType(), "scheduleId": LongType()}, "t", "scheduleId is of type bigint"),
    ],
)
def test_columns_that_are_refused(columns, topic, sentence):
    with pytest.raises(OptionRefused, match=sentence):
        check_columns(schema(**columns), topic)


def test_columns_that_are_written():
    whole = schema(
        key=BinaryType(),
        value=BinaryType(),
        topic=StringType(),
        partition=IntegerType(),
        offset=LongType(),
        timestamp=TimestampType(),
        timestampType=IntegerType(),
        headers=ArrayType(PAIR),
        deliverAt=TimestampType(),
        deliverAfter=StringType(),
        scheduleId=BinaryType(),
    )

    assert sorted(check_columns(whole, None)) == [
        "deliverAfter", "deliverAt", "headers", "key", "partition", "scheduleId", "timestamp",
        "topic", "value",
    ]  # fmt: skip
    assert "topic" not in check_columns(whole, "t")
