"""Rows that are due later: tasks and driver by hand, against a broker with a clock."""

from __future__ import annotations

from typing import Any

import pyarrow
import pytest

from tarry.base.limits import SCHEDULE_HEADERS_MAX, SCHEDULE_PLACES_MAX
from tarry.client import SET, Admin, ConfigChange, Producer, SchedulingUnsupported
from tarry.client.core.producer.partitioner import partition_by_crc32, partition_for_key
from tarry.spark.writing.batch_files import TaskWriter
from tarry.spark.writing.columns import TYPES
from tarry.spark.writing.commit import commit
from tarry.spark.writing.directory import SinkDirectory
from tarry.spark.writing.plan import Plan, SinkInterrupted, SinkRefused
from tarry.spark.writing.write_options import WriteOptions, parse_write_options

HOUR_MS = 3_600_000
BY_HEADER = {"delay.enable": "true", "delay.source": "header"}
BY_TIMESTAMP = {"delay.enable": "true", "delay.source": "timestamp"}
SOURCES = [BY_HEADER, BY_TIMESTAMP]
PAIRS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))


class SinkScene:
    """Sink of a query, and a topic `a` that delays as the test says."""

    def __init__(self, tarry: Any, folder: Any) -> None:
        self.tarry = tarry
        self.folder = folder
        self.batch_id = 0

    def options(self, topic: str | None = "a", **more: str) -> WriteOptions:
        given = {
            "kafka.bootstrap.servers": self.tarry.bootstrap,
            "checkpointLocation": str(self.folder / "checkpoint"),
            "sinkLocation": str(self.folder / "sink"),
        }
        if topic is not None:
            given["topic"] = topic
        return parse_write_options({**given, **more}, is_stream=True)

    def task(self, options: WriteOptions, **columns: Any) -> Any:
        """Write the file of a task, and return what it tells the driver."""
        names = [name for name in TYPES if name in columns]
        return TaskWriter(options, names, 0).write([pyarrow.record_batch(columns)])

    def write(self, options: WriteOptions | None = None, **columns: Any) -> None:
        """Write a micro-batch of one task."""
        options = options or self.options()
        commit(options, "q", self.batch_id, [self.task(options, **columns)])
        self.batch_id += 1

    def save(self, more: list[tuple[str, str]], **columns: Any) -> None:
        """Write a batch at least once, of one task; `more` are names and types of its columns
        besides the value."""
        pytest.importorskip("pyspark", reason="PySpark is not installed: pip install pyspark")
        from pyspark.sql.types import StructType

        from tarry.spark.writing.writers import make_batch_writer

        schema = StructType().add("value", "binary")
        for name, kind in more:
            schema = schema.add(name, kind)
        given = {"kafka.bootstrap.servers": self.tarry.bootstrap, "topic": "a"}
        writer = make_batch_writer(given, schema, overwrite=False)
        writer.write(iter([pyarrow.record_batch(columns)]))

    def values(self, topic: str = "a") -> list[bytes | None]:
        """Return what has come, in its order."""
        return [record.value for record in self.tarry.records(topic)]

    def now_ms(self) -> int:
        return int(self.tarry.clock.now_ms)

    def task_files(self) -> list[str]:
        folder = self.folder / "sink"
        return [one.name for one in folder.glob("task-*")] if folder.exists() else []


@pytest.fixture
def scene(tarry, tmp_path):
    return SinkScene(tarry, tmp_path)


def times(*values_ms: int | None, unit: str = "us") -> Any:
    """A column of Spark's type timestamp."""
    factor = {"ms": 1, "us": 1_000}[unit]
    values = [None if value is None else value * factor for value in values_ms]
    return pyarrow.array(values, pyarrow.timestamp(unit, "Europe/Zurich"))


@pytest.mark.parametrize("configs", SOURCES)
@pytest.mark.parametrize("kind", ["timestamp", "milliseconds", "text", "duration"])
def test_each_row_comes_at_its_time_and_one_without_at_once(tarry, scene, configs, kind):
    tarry.topic("a", **configs)
    now_ms = scene.now_ms()
    column = {
        "timestamp": {"deliverAt": times(now_ms + 2 * HOUR_MS, None, now_ms + HOUR_MS)},
        "milliseconds": {"deliverAt": [now_ms + 2 * HOUR_MS, None, now_ms + HOUR_MS]},
        "text": {"deliverAfter": ["2h", None, "59m60s"]},
        "duration": {"deliverAfter": [2 * HOUR_MS, None, HOUR_MS]},
    }[kind]

    scene.write(value=["two", "now", "one"], **column)
    come = [scene.values()]
    for step in ("59m", "2m", "58m", "2m"):
        tarry.clock.advance(step)
        come.append(scene.values())

    assert come == [
        [b"now"],
        [b"now"],
        [b"now", b"one"],
        [b"now", b"one"],
        [b"now", b"one", b"two"],
    ]
    now = tarry.records("a")[0]
    assert list(now.headers) == []


@pytest.mark.parametrize("configs", SOURCES)
def test_many_due_times_in_one_task_hold_none_of_the_others_up(tarry, scene, configs):
    tarry.topic("a", partitions=2, **configs)
    minutes = [7, 3, 3, 9, 1]

    scene.write(
        key=[f"k{number}" for number in range(5)],
        value=[f"{minute}" for minute in minutes],
        deliverAfter=[f"{minute}m" for minute in minutes],
    )
    come = []
    for _ in range(10):
        tarry.clock.advance("1m")
        come.append(len(scene.values()))

    assert come == [1, 1, 3, 3, 3, 3, 4, 4, 5, 5]


def test_a_time_is_rounded_up_to_whole_milliseconds(tarry, scene):
    tarry.topic("a", **BY_HEADER)
    due_us = (scene.now_ms() + HOUR_MS) * 1_000 + 1

    scene.write(value=["x"], deliverAt=pyarrow.array([due_us], pyarrow.timestamp("us", "UTC")))
    tarry.clock.advance("61m")

    (record,) = tarry.records("a")
    assert dict(record.headers)["x-deliver-at"] == b"%d" % (due_us // 1_000 + 1)


@pytest.mark.parametrize("configs", SOURCES)
def test_what_is_due_already_comes_at_once(tarry, scene, configs):
    tarry.topic("a", **configs)

    scene.write(value=["old", "now"], deliverAt=[scene.now_ms() - HOUR_MS, None])
    scene.write(value=["none"], deliverAfter=["0s"])

    assert sorted(scene.values()) == [b"none", b"now", b"old"]


def test_headers_of_a_row_stay_and_come_first(tarry, scene):
    tarry.topic("a", **BY_HEADER)
    own = [[("a", b"1"), ("b", None)], [("c", b"3")], None, []]

    scene.write(
        value=["x", "now", "y", "z"],
        headers=pyarrow.array(own, PAIRS),
        deliverAfter=["1s", None, "2s", "3s"],
    )
    tarry.clock.advance("1m")

    found = {record.value: list(record.headers) for record in tarry.records("a")}
    assert found[b"now"] == [("c", b"3")]
    assert found[b"x"][:3] == [("a", b"1"), ("b", None), ("x-deliver-after", b"1000")]
    assert found[b"y"][0] == ("x-deliver-after", b"2000")
    assert found[b"z"][0] == ("x-deliver-after", b"3000")


def test_ids_choose_partitions_replace_and_are_cancelled(tarry, scene):
    tarry.topic("a", partitions=3, **BY_HEADER)
    ids = [f"call-{number}" for number in range(20)]
    scene.write(value=ids, deliverAfter=["1h"] * 20, scheduleId=ids)

    scene.write(value=["moved"], deliverAfter=["2h"], scheduleId=["call-3"])
    with Producer(bootstrap_servers=tarry.bootstrap) as producer:
        producer.cancel("a", schedule_id="call-7").result(10)
    tarry.clock.advance("61m")
    places = {record.value: record.partition for record in tarry.records("a")}
    tarry.clock.advance("61m")

    expected = {one.encode(): partition_for_key(one.encode(), 3) for one in ids}
    del expected[b"call-3"], expected[b"call-7"]
    assert places == expected
    assert b"moved" in scene.values()


@pytest.mark.parametrize("partitioner", ["murmur2", "crc32"])
def test_a_key_and_a_partition_count_before_an_id(tarry, scene, partitioner):
    tarry.topic("a", partitions=4, **BY_HEADER)
    options = scene.options(**{"kafka.partitioner": partitioner})
    by_hash = {"murmur2": partition_for_key, "crc32": partition_by_crc32}[partitioner]

    scene.write(
        options,
        value=["by id", "by key", "by number", "empty key"],
        key=[None, b"key", None, b""],
        partition=pyarrow.array([None, None, 2, None], pyarrow.int32()),
        scheduleId=["i", "j", "k", "l"],
    )

    places = {record.value: record.partition for record in tarry.records("a")}
    assert places == {
        b"by id": by_hash(b"i", 4),
        b"by key": by_hash(b"key", 4),
        b"by number": 2,
        b"empty key": by_hash(b"l" if partitioner == "crc32" else b"", 4),
    }


def test_more_times_than_one_batch_may_have_are_in_several(tarry, scene):
    tarry.topic("a", **BY_HEADER)
    count = SCHEDULE_PLACES_MAX + 10

    scene.write(
        value=pyarrow.nulls(count, pyarrow.binary()),
        deliverAfter=[number % 9 + 1 for number in range(count)],
    )
    tarry.clock.advance("1m")

    assert len(scene.values()) == count


@pytest.mark.parametrize(
    ("configs", "columns", "sentence"),
    [
        (
            BY_HEADER,
            {"key": ["k"], "deliverAt": [5], "deliverAfter": ["1s"]},
            "the row with the key 'k' for topic 'a': deliverAt and deliverAfter both say when",
        ),
        (BY_HEADER, {"deliverAt": [-1]}, r"the row with the value 'x' .*: deliverAt=-1 is not"),
        (BY_HEADER, {"deliverAfter": [-1]}, "deliverAfter=-1 is not between 0 and"),
        (BY_HEADER, {"deliverAfter": ["soon"]}, "deliverAfter='soon' is no duration: write it"),
        (BY_HEADER, {"deliverAfter": [1], "scheduleId": [""]}, "scheduleId has 0 bytes, not 1"),
        (
            {**BY_HEADER, "delay.max.ms": "60000"},
            {"deliverAfter": ["61s"]},
            "it is due in 61000 ms, and delay.max.ms of the topic is 60000: raise that",
        ),
        (
            {**BY_TIMESTAMP, "delay.max.ms": "60000"},
            {"deliverAfter": ["61s"]},
            "it is due in 61000 ms, and delay.max.ms of the topic is 60000: raise that",
        ),
        (
            {**BY_TIMESTAMP, "delay.max.ms": "60000"},
            {"timestamp": pyarrow.array([2**42], pyarrow.timestamp("ms", "UTC"))},
            "ms ahead, and its delay.max.ms is 60000",
        ),
        (
            BY_TIMESTAMP,
            {"deliverAfter": [1], "timestamp": pyarrow.array([1], pyarrow.timestamp("us"))},
            "give timestamp or deliverAt, not both",
        ),
        (
            {**BY_HEADER, "delay.replace": "key"},
            {"deliverAfter": [1], "key": [b"k" * 1025]},
            "has a key of 1025 bytes, and with delay.replace=key 1024 are the most",
        ),
        (
            BY_HEADER,
            {"deliverAfter": [1], "headers": pyarrow.array([[("x-deliver-at", b"5")]], PAIRS)},
            "headers holds x-deliver-at, and deliverAt, deliverAfter and scheduleId set such",
        ),
        (
            BY_TIMESTAMP,
            {"deliverAfter": [1], "headers": pyarrow.array([[("x-deliver-at", b"5")]], PAIRS)},
            "headers holds x-deliver-at, and deliverAt, deliverAfter and scheduleId set such",
        ),
        (
            BY_HEADER,
            {
                "deliverAfter": [1],
                "headers": pyarrow.array([[("a", b"")] * SCHEDULE_HEADERS_MAX], PAIRS),
            },
            "it has 1001 headers, and a topic that delays by headers takes 1000 of a record",
        ),
    ],
)
def test_a_row_that_no_broker_takes_fails_its_task(tarry, scene, configs, columns, sentence):
    tarry.topic("a", **configs)

    with pytest.raises(SinkRefused, match=sentence):
        scene.task(scene.options(), value=["x"], **columns)

    assert scene.task_files() == []


def test_a_time_far_ahead_is_taken_where_timestamps_are_due_times(tarry, scene):
    """message.timestamp.after.max.ms, an hour by default, does not apply there."""
    tarry.topic("a", **BY_TIMESTAMP)

    scene.write(value=["x"], timestamp=times(scene.now_ms() + 2 * HOUR_MS))
    before = scene.values()
    tarry.clock.advance("121m")

    assert (before, scene.values()) == ([], [b"x"])


@pytest.mark.parametrize(
    ("configs", "columns", "sentence"),
    [
        ({}, {"deliverAfter": ["1m"]}, "set delay.enable=true and delay.source=header on it"),
        ({}, {"deliverAt": times(None)}, "topic 'a' does not delay records"),
        (
            {"delay.enable": "true", "delay.default.ms": "1000"},
            {"deliverAfter": ["1m"]},
            "delays all its records alike",
        ),
        (BY_TIMESTAMP, {"scheduleId": ["i"]}, "set delay.source=header on it to use scheduleId"),
    ],
)
def test_a_topic_that_does_not_delay_is_refused_before_anything_is_written(
    tarry, scene, configs, columns, sentence
):
    tarry.topic("a", **configs)

    with pytest.raises(SchedulingUnsupported, match=sentence):
        scene.task(scene.options(), value=["x"], **columns)

    assert (scene.values(), scene.task_files()) == ([], [])


def test_rows_that_are_not_delayed_may_go_to_a_topic_that_does_not_delay(tarry, scene):
    tarry.topic("a", **BY_HEADER)
    tarry.topic("b")

    scene.write(
        scene.options(topic=None),
        value=["later", "now"],
        topic=["a", "b"],
        deliverAfter=["1m", None],
    )
    with pytest.raises(SchedulingUnsupported, match="topic 'b' does not delay records"):
        scene.task(
            scene.options(topic=None), value=["x", "y"], topic=["a", "b"], deliverAfter=[None, "1m"]
        )
    tarry.clock.advance("1m")

    assert (scene.values("a"), scene.values("b")) == ([b"later"], [b"now"])
    assert scene.task_files() == []


# --- Exactly once


def unmarked(directory: SinkDirectory, plan: Plan) -> None:
    raise SinkInterrupted("the disk is full")


@pytest.mark.parametrize("configs", SOURCES)
def test_a_lost_answer_parks_no_row_twice(tarry, scene, configs):
    tarry.topic("a", **configs)
    for _ in range(3):
        tarry.cut("Produce")
    values = [b"%02d" % number + b"x" * 80 for number in range(20)]

    scene.write(
        scene.options(**{"kafka.batch.size": "300"}),
        value=values,
        deliverAfter=[f"{number % 3}m" for number in range(20)],
    )
    tarry.clock.advance("5m")

    assert sorted(scene.values()) == values


@pytest.mark.parametrize("configs", SOURCES)
@pytest.mark.parametrize("come", ["nothing", "some", "all"])
def test_a_driver_that_died_before_the_mark_delivers_each_row_once(
    tarry, scene, monkeypatch, configs, come
):
    tarry.topic("a", **configs)
    options = scene.options(**{"kafka.batch.size": "300"})
    values = [b"%02d" % number + b"x" * 80 for number in range(20)]
    output = scene.task(
        options, value=values, deliverAfter=[f"{number % 3}h" for number in range(20)]
    )

    with monkeypatch.context() as patched, pytest.raises(SinkInterrupted):
        patched.setattr(SinkDirectory, "mark_done", unmarked)
        commit(options, "q", 0, [output])
    tarry.clock.advance({"nothing": "1s", "some": "61m", "all": "121m"}[come])
    before = len(scene.values())
    # Spark runs the tasks of the micro-batch again: what they write now is dropped.
    again = scene.task(options, value=values, deliverAfter=["9h"] * 20)
    commit(options, "q", 0, [again])
    tarry.clock.advance("121m")

    assert before == {"nothing": 7, "some": 14, "all": 20}[come]
    assert sorted(scene.values()) == values


def test_a_row_that_was_cancelled_is_not_parked_again(tarry, scene, monkeypatch):
    tarry.topic("a", **BY_HEADER)
    options = scene.options()
    output = scene.task(
        options, value=["x", "y"], deliverAfter=["1h", "1h"], scheduleId=["id-x", "id-y"]
    )
    with monkeypatch.context() as patched, pytest.raises(SinkInterrupted):
        patched.setattr(SinkDirectory, "mark_done", unmarked)
        commit(options, "q", 0, [output])

    with Producer(bootstrap_servers=tarry.bootstrap) as producer:
        producer.cancel("a", schedule_id="id-x").result(10)
    commit(options, "q", 0, [])
    tarry.clock.advance("61m")

    assert scene.values() == [b"y"]


def test_a_wait_counts_from_the_append_however_long_the_plan_lay(tarry, scene):
    tarry.topic("a", **BY_HEADER)
    options = scene.options(
        **{"kafka.delivery.timeout.ms": "300", "kafka.request.timeout.ms": "200"}
    )
    tarry.fail("Produce", code=19, times=1_000)
    output = scene.task(options, value=["x"], deliverAfter=["1h"])
    with pytest.raises(SinkInterrupted, match="came no further"):
        commit(options, "q", 0, [output])
    tarry.heal()
    tarry.clock.advance("59m")

    commit(options, "q", 0, [])
    tarry.clock.advance("59m")
    before = scene.values()
    tarry.clock.advance("2m")

    assert (before, scene.values()) == ([], [b"x"])


def test_a_frozen_row_that_the_topic_refuses_since_says_why_and_goes_on(tarry, scene):
    tarry.topic("a", **BY_HEADER)
    options = scene.options()
    output = scene.task(options, value=["x"], deliverAfter=["1h"])
    alter(tarry, "60000")

    with pytest.raises(
        SinkRefused, match=r"frozen, and a broker does not take it: .*delay\.max\.ms"
    ):
        commit(options, "q", 0, [output])
    alter(tarry, "7200000")
    commit(options, "q", 0, [])
    tarry.clock.advance("61m")

    assert scene.values() == [b"x"]


def alter(tarry: Any, delay_max_ms: str) -> None:
    with Admin(bootstrap_servers=tarry.bootstrap) as admin:
        admin.change_topic_configs("a", [ConfigChange("delay.max.ms", SET, delay_max_ms)])


# --- A batch at least once


@pytest.mark.parametrize("configs", SOURCES)
def test_a_batch_at_least_once_delivers_each_row_at_its_time(tarry, scene, configs):
    tarry.topic("a", **configs)
    now_ms = scene.now_ms()

    scene.save(
        [("deliverAt", "timestamp")],
        value=[b"two", b"now", b"one"],
        deliverAt=times(now_ms + 2 * HOUR_MS, None, now_ms + HOUR_MS),
    )
    come = [scene.values()]
    for _ in range(2):
        tarry.clock.advance("61m")
        come.append(scene.values())

    assert come == [[b"now"], [b"now", b"one"], [b"now", b"one", b"two"]]


def test_a_batch_at_least_once_is_refused_before_its_first_row(tarry, scene):
    tarry.topic("a")

    with pytest.raises(SchedulingUnsupported):
        scene.save([("deliverAfter", "string")], value=[b"now", b"x"], deliverAfter=[None, "1m"])

    assert scene.values() == []


@pytest.mark.slow
def test_batches_that_are_too_much_together_are_sent_alone(tarry, scene):
    """A leader opens batches of different due times; it takes 64 MB of them in one request."""
    partitions = 140
    tarry.topic("a", partitions=partitions, **BY_HEADER)
    options = scene.options(**{"kafka.compression.type": "gzip"})
    count = 2 * partitions

    scene.write(
        options,
        value=[b"x" * 250_000] * count,
        partition=pyarrow.array([number % partitions for number in range(count)], pyarrow.int32()),
        deliverAfter=[number + 1 for number in range(count)],
    )
    tarry.clock.advance("1m")

    assert len(scene.values()) == count


def test_a_batch_at_least_once_with_a_row_that_cannot_be_meant_writes_none_before_it(tarry, scene):
    tarry.topic("a", **BY_HEADER)

    with pytest.raises(SinkRefused, match=r"row with the value b'x' .*: deliverAfter='soon' is no"):
        scene.save([("deliverAfter", "string")], value=[b"now", b"x"], deliverAfter=[None, "soon"])

    assert scene.values() == []
