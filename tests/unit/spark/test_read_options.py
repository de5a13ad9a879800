"""Options of a reader: Spark's names and defaults, and a sentence for each refusal."""

from __future__ import annotations

import logging

import pytest

from tarry.spark.options import OptionRefused
from tarry.spark.reading.bounds import Bound, TopicChoice
from tarry.spark.reading.read_options import ReadOptions, parse_read_options

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
LEAST = {**SERVERS, "subscribe": "orders"}


def parse(more: dict[str, str], *, is_stream: bool = False) -> ReadOptions:
    return parse_read_options({**LEAST, **more}, is_stream=is_stream)


def test_defaults_are_those_of_sparks_kafka_source() -> None:
    batch, stream = parse({}), parse({}, is_stream=True)

    assert (batch.starting, batch.ending) == (Bound("earliest"), Bound("latest"))
    assert stream.starting == Bound("latest")
    assert batch.fail_on_data_loss
    assert stream.trigger_delay_ms_max == 15 * 60 * 1_000
    assert batch.columns == (
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    )


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"STARTINGOFFSETS": "Latest"}, "starting", Bound("latest")),
        (
            {"startingOffsets": '{"b": {"1": 5, "0": -2}, "a": {"0": -1}}'},
            "starting",
            Bound("offsets", {("a", 0): -1, ("b", 0): -2, ("b", 1): 5}),
        ),
        (
            # A progress shows them in this form.
            {"startingOffsets": '{"a": {"id": "Vx8sT0aPQ2yJc1xE2mWk3A", "0": 7}}'},
            "starting",
            Bound("offsets", {("a", 0): 7}),
        ),
        ({"startingTimestamp": "1000"}, "starting", Bound("time", time_ms=1_000)),
        (
            {"startingTimestamp": "1000", "startingOffsets": "earliest"},
            "starting",
            Bound("time", time_ms=1_000),
        ),
        (
            {"startingOffsetsByTimestamp": '{"a": {"0": 7}}', "startingOffsets": "earliest"},
            "starting",
            Bound("times", {("a", 0): 7}),
        ),
        (
            {"includeHeaders": "TRUE", "columns": "offset, VALUE"},
            "columns",
            ("offset", "value", "headers"),
        ),
        (
            {"includeHeaders": "true", "columns": "headers,value"},
            "columns",
            ("headers", "value"),
        ),
        ({"includeHeaders": "false", "columns": "offset"}, "columns", ("offset",)),
        ({"columns": "headers"}, "columns", ("headers",)),
        ({"failOnDataLoss": "false"}, "fail_on_data_loss", False),
        ({"maxTriggerDelay": "90s"}, "trigger_delay_ms_max", 90_000),
        ({"maxTriggerDelay": "2min"}, "trigger_delay_ms_max", 120_000),
        ({"maxTriggerDelay": "1500"}, "trigger_delay_ms_max", 1_500),
        ({"maxOffsetsPerTrigger": "100"}, "trigger_offsets_max", 100),
        ({"minPartitions": "4"}, "partitions_min", 4),
        ({"maxRecordsPerPartition": "1000"}, "partition_records_max", 1_000),
        ({"groupId": "job"}, "group_id", "job"),
        ({"tasks": "3"}, "tasks", 3),
        ({"cores": "3"}, "cores", 3),
        ({"startingOffsetsByTimestampStrategy": "LATEST"}, "is_late_start_latest", True),
    ],
)
def test_an_option_is_taken(given: dict[str, str], name: str, value: object) -> None:
    assert getattr(parse(given, is_stream=True), name) == value


@pytest.mark.parametrize(
    ("given", "choice"),
    [
        ({"subscribe": " b , a,b "}, TopicChoice(names=("a", "b"))),
        ({"assign": '{"b": [1, 0], "a": [2]}'}, TopicChoice(assigned={"a": (2,), "b": (0, 1)})),
        ({"subscribePattern": "orders-.*"}, TopicChoice(pattern="orders-.*")),
    ],
)
def test_topics_are_chosen_in_one_of_three_ways(given: dict[str, str], choice: TopicChoice) -> None:
    assert parse_read_options({**SERVERS, **given}, is_stream=False).choice == choice


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"subscrib": "a"},
            "there is no option 'subscrib'; did you mean subscribe? A setting of the",
        ),
        ({"path": "orders"}, "load and save take no path here"),
        ({"endingOffsets": '{"orders": {"0": 9223372036854775808}}'}, "is not of the form"),
        ({"startingTimestamp": "9223372036854775808"}, "is no time in milliseconds"),
        ({"startingTimestamp": "9" * 10_000}, "is no time in milliseconds"),
        ({"maxRecordsPerPartition": "9223372036854775808"}, "is more than 9223372036854775807"),
        ({"startingOffsets": "[" * 100_000}, "is not of the form"),
        ({"startingOffsets": "latest"}, "startingOffsets=latest would read nothing in a batch"),
        ({"endingOffsets": "earliest"}, "endingOffsets=earliest would read nothing in a batch"),
        ({"startingOffsets": '{"a": {"0": -1}}'}, r"startingOffsets has -1 (latest) for a [0]"),
        ({"endingOffsets": '{"a": {"0": -2}}'}, r"endingOffsets has -2 (earliest) for a [0]"),
        ({"startingOffsets": "first"}, "startingOffsets='first' is not of the form"),
        ({"startingOffsets": '{"a": {"0": -3}}'}, "is not of the form"),
        ({"startingOffsets": '{"a": {"0": 1.5}}'}, "is not of the form"),
        ({"startingOffsets": '{"a": {"zero": 1}}'}, "is not of the form"),
        ({"startingOffsets": '{"a": [0]}'}, "is not of the form"),
        ({"startingOffsets": "[]"}, "is not of the form"),
        ({"startingOffsetsByTimestamp": '{"a": {"0": -1}}'}, "is not of the form"),
        ({"startingTimestamp": "yesterday"}, "is no time in milliseconds since 1970"),
        ({"startingTimestamp": "-5"}, "is no time in milliseconds since 1970"),
        ({"startingOffsetsByTimestampStrategy": "skip"}, "is neither error nor latest"),
        ({"assign": '{"a": [0]}'}, "give one of the options"),
        ({"failOnDataLoss": "yes"}, "failOnDataLoss='yes' is neither true nor false"),
        ({"minPartitions": "0"}, "minPartitions='0' is not a whole number of 1 or more"),
        ({"maxRecordsPerPartition": "many"}, "is not a whole number of 1 or more"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay='soon' is no time"),
        ({"columns": "value,body"}, "columns='value,body' takes each of these names once"),
        ({"columns": "value,value"}, "takes each of these names once"),
        ({"kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset is not taken"),
        ({"kafka.key.deserializer": "x"}, "kafka.key.deserializer is not taken: keys are bytes"),
        ({"kafka.value.deserializer": "x"}, "kafka.value.deserializer is not taken"),
        ({"kafka.enable.auto.commit": "true"}, "the option groupId commits offsets"),
        ({"kafka.interceptor.classes": "x"}, "kafka.interceptor.classes is not taken"),
        ({"kafka.fetch.max.byte": "1"}, "did you mean fetch.max.bytes?"),
        ({"kafka.fetch.max.bytes": "none"}, "it must be a whole number"),
        (
            {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "minOffsetsPerTrigger=9 is more than maxOffsetsPerTrigger=8",
        ),
    ],
)
def test_a_refusal_is_a_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(OptionRefused) as caught:
        parse(given)

    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"subscribe": "a"}, "the option kafka.bootstrap.servers is missing"),
        (SERVERS, "give one of the options assign, subscribe, subscribePattern; none is given"),
        ({**SERVERS, "subscribe": " , "}, "subscribe=' , ' names no topic"),
        ({**SERVERS, "subscribePattern": " "}, "subscribePattern is empty"),
        ({**SERVERS, "subscribePattern": "("}, "is no regular expression"),
        ({**SERVERS, "assign": "orders"}, "assign='orders' is not of the form"),
        ({**SERVERS, "assign": '{"orders": []}'}, "is not of the form"),
        ({**SERVERS, "assign": '{"orders": ["0"]}'}, "is not of the form"),
        ({**SERVERS, "assign": "{}"}, "is not of the form"),
    ],
)
def test_what_is_missing_is_told(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(OptionRefused) as caught:
        parse_read_options(given, is_stream=False)

    assert sentence in str(caught.value)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionRefused, match=f"{name} is no option of a stream"):
        parse({name: "latest"}, is_stream=True)


def test_what_has_no_effect_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tarry.spark"):
        options = parse({"kafka.group.id": "g", "maxOffsetsPerTrigger": "5", "groupId": "lake"})

    assert "group.id" not in options.settings
    assert [record.message for record in caplog.records] == [
        "the option maxOffsetsPerTrigger has no effect in a batch",
        "the option groupId has no effect in a batch",
        "the option kafka.group.id has no effect: no group is joined to read; groupId names one "
        "that offsets are committed to",
    ]


def test_what_has_no_effect_in_a_stream_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tarry.spark"):
        parse({"filters": "true", "groupId": "lake", "maxOffsetsPerTrigger": "5"}, is_stream=True)

    assert [record.message for record in caplog.records] == [
        "the option filters has no effect in a stream",
    ]


def test_filters_that_are_off_are_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tarry.spark"):
        parse({"filters": "false"}, is_stream=True)

    assert not caplog.records
