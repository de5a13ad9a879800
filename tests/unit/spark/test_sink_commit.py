"""The sink's way without a Spark: tasks and driver by hand, against a broker."""

import datetime
import errno
import os
from contextlib import nullcontext

import msgspec
import pyarrow
import pytest

from tarry.base.errors import NOT_ENOUGH_REPLICAS
from tarry.client import NewTopic, RecordTooLarge
from tarry.client.arrow.finished_batches import FinishedBatch
from tarry.client.face.clock import wall_ms
from tarry.client.sync.publisher import Publisher
from tarry.spark import durable_files
from tarry.spark.options import OptionRefused
from tarry.spark.writing import directory as sink_directory, publishing, target
from tarry.spark.writing.batch_files import TaskWriter
from tarry.spark.writing.commit import commit, commit_batch, drop, query_id_of
from tarry.spark.writing.directory import SinkDirectory, local_path, refusal
from tarry.spark.writing.effects import SendRound
from tarry.spark.writing.plan import (
    NO_TOPIC_ID,
    Noted,
    SinkInterrupted,
    SinkRefused,
    amended,
    encode_plan,
    is_same_topic,
)
from tarry.spark.writing.publishing import Publishing
from tarry.spark.writing.topic_limits import TopicLimits
from tarry.spark.writing.write_options import TASK_BATCH_BYTES, parse_write_options
from tarry.testing import Tarry

COLUMNS = ["value", "key", "topic", "partition", "headers", "timestamp"]
IMPATIENT = {
    "kafka.request.timeout.ms": "200",
    "kafka.delivery.timeout.ms": "300",
    "kafka.default.api.timeout.ms": "2000",
}


@pytest.fixture
def options(tarry, tmp_path):
    tarry.topic("a", partitions=2)

    def make(**more):
        given = {
            "kafka.bootstrap.servers": tarry.bootstrap,
            "checkpointLocation": str(tmp_path / "checkpoint"),
            "sinkLocation": str(tmp_path / "sink"),
            "topic": "a",
        }
        return parse_write_options({**given, **more}, is_stream=True)

    return make


def written(options, *values, **columns):
    """The output of a task with these values."""
    rows = pyarrow.record_batch({"value": list(values), **columns})
    names = [name for name in COLUMNS if name in rows.schema.names]
    return TaskWriter(options, names, 0).write([rows])


def values_of(tarry, topic="a"):
    return sorted(record.value for record in tarry.records(topic))


def left(tmp_path, kind="task-"):
    return [path.name for path in (tmp_path / "sink").iterdir() if path.name.startswith(kind)]


def test_micro_batches_are_in_the_topic_once(tarry, options, tmp_path):
    for batch_id in range(3):
        made = options()
        outputs = [written(made, b"%d-%d" % (batch_id, task)) for task in range(2)]
        commit(made, "q", batch_id, outputs)
        # Spark asks again if the driver died before it noted the commit.
        commit(made, "q", batch_id, [written(made, b"%d-0" % batch_id, b"%d-1" % batch_id)])

    expected = [b"%d-%d" % (batch_id, task) for batch_id in range(3) for task in range(2)]
    assert values_of(tarry) == expected
    assert left(tmp_path) == []
    assert len(left(tmp_path, "done-")) == 3


def test_columns_become_records(tarry, options):
    tarry.topic("b", partitions=3)
    made = options(topic="")._replace(topic=None)
    when = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=datetime.UTC)
    pair = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
    columns = {
        "key": ["k", None],
        "topic": ["b", "a"],
        "partition": pyarrow.array([2, None], pyarrow.int32()),
        "headers": pyarrow.array([[("h", b"x"), ("h", None)], None], pair),
        "timestamp": pyarrow.array([when, when], pyarrow.timestamp("us", "UTC")),
    }

    commit(made, "q", 0, [written(made, "one", None, **columns)])

    one = tarry.records("b")[0]
    assert (one.partition, one.key, one.value) == (2, b"k", b"one")
    assert list(one.headers) == [("h", b"x"), ("h", None)]
    assert one.timestamp == int(when.timestamp() * 1000)
    assert [record.value for record in tarry.records("a")] == [None]


def test_a_micro_batch_without_rows_is_done_at_once(tarry, options, tmp_path):
    made = options()

    plan = commit(made, "q", 0, [written(made)])

    assert plan.shares == ()
    assert len(left(tmp_path, "done-")) == 1


def test_a_directory_of_another_query_is_refused(options, tmp_path):
    made = options()
    commit(made, "q", 0, [written(made, b"x")])

    with pytest.raises(SinkRefused, match="belongs to query q, and this is query r"):
        commit(made, "r", 0, [written(made, b"x")])
    assert left(tmp_path) == []


def test_a_broker_that_takes_nothing_is_waited_for_and_then_told(tarry, options, tmp_path):
    made = options(**IMPATIENT)
    tarry.fail("Produce", code=NOT_ENOUGH_REPLICAS, times=1_000)

    with pytest.raises(SinkRefused, match=r"came no further for .* It is frozen"):
        commit(made, "q", 0, [written(made, b"x")])
    assert len(left(tmp_path)) == 1
    tarry.heal()
    commit(made, "q", 0, [written(made, b"another run of the task")])

    assert values_of(tarry) == [b"x"]
    assert left(tmp_path) == []


def test_a_cluster_that_is_away_is_told_and_nothing_stays_behind(tarry, options, tmp_path):
    made = options(**IMPATIENT)
    output = written(made, b"x")
    tarry.fail("InitProducerId", code=NOT_ENOUGH_REPLICAS, times=1_000)

    with pytest.raises(SinkRefused, match=r"micro-batch 0 was not written to its end: .* Start"):
        commit(made, "q", 0, [output])

    assert left(tmp_path) == left(tmp_path, "plan-") == []


@pytest.mark.parametrize("harm", ["gone", "shorter"])
def test_a_file_that_the_driver_does_not_see_freezes_nothing(tarry, options, tmp_path, harm):
    """As where a worker lacks the shared mount, and wrote to a disk of its own."""
    made = options()
    seen, unseen = written(made, b"x"), written(made, b"y")
    file = tmp_path / "sink" / unseen.file.name
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1])

    with pytest.raises(SinkInterrupted, match=f"{file}, .* do all workers share that directory"):
        commit(made, "q", 0, [seen, unseen])
    frozen_plans = left(tmp_path, "plan-")
    commit(made, "q", 0, [written(made, b"x"), written(made, b"y")])

    assert frozen_plans == []
    assert values_of(tarry) == [b"x", b"y"]
    assert left(tmp_path) == []


def frozen(tarry, options):
    """Options of a query whose first micro-batch is frozen, and not in the log."""
    made = options(**IMPATIENT, **{"kafka.batch.size": "100"})
    output = written(made, b"1" * 80, b"2" * 80, partition=pyarrow.array([0, 0], pyarrow.int32()))
    tarry.fail("Produce", code=NOT_ENOUGH_REPLICAS, times=1_000)
    with pytest.raises(SinkRefused, match="came no further"):
        commit(made, "q", 0, [output])
    tarry.heal()
    return made


def test_a_lost_answer_is_looked_up_in_the_log(tarry, options):
    made = options(**{"kafka.batch.size": "100"})
    for _ in range(3):
        tarry.cut("Produce")
    count = 20

    commit(made, "q", 0, [written(made, *[b"%02d" % n + b"x" * 80 for n in range(count)])])

    assert [value[:2] for value in values_of(tarry)] == [b"%02d" % n for n in range(count)]


WAITS = {"delay.enable": "true", "delay.default.ms": "3600000"}


def test_a_lost_answer_about_records_that_wait_is_looked_up_in_both_logs(tarry, options):
    topic = tarry.topic("later", 1, **WAITS)
    made = options(topic=topic, **{"kafka.batch.size": "100"})
    for _ in range(3):
        tarry.cut("Produce")
    count = 20

    commit(made, "q", 0, [written(made, *[b"%02d" % n + b"x" * 80 for n in range(count)])])
    before = values_of(tarry, topic)
    tarry.clock.advance("61m")

    assert before == []
    assert [value[:2] for value in values_of(tarry, topic)] == [b"%02d" % n for n in range(count)]


@pytest.mark.parametrize("has_come", [True, False])
def test_a_driver_that_died_before_the_mark_parks_nothing_twice(
    tarry, options, monkeypatch, has_come
):
    topic = tarry.topic("later", 1, **WAITS)
    made = options(topic=topic, **{"kafka.batch.size": "100"})
    values = [b"%02d" % n + b"x" * 80 for n in range(10)]
    output = written(made, *values)

    def unmarked(directory, plan):
        raise SinkInterrupted("the disk is full")

    with monkeypatch.context() as patched, pytest.raises(SinkInterrupted):
        patched.setattr(SinkDirectory, "mark_done", unmarked)
        commit(made, "q", 0, [output])
    if has_come:
        tarry.clock.advance("61m")
    commit(made, "q", 0, [])
    commit(made, "q", 1, [written(made, b"next")])
    tarry.clock.advance("122m")

    assert values_of(tarry, topic) == sorted([*values, b"next"])


def test_files_are_there_until_the_micro_batch_is_marked(tarry, options, tmp_path, monkeypatch):
    made = options()
    output = written(made, b"1", b"2")

    def unmarked(directory, plan):
        raise SinkInterrupted("the disk is full")

    with monkeypatch.context() as patched, pytest.raises(SinkInterrupted):
        patched.setattr(SinkDirectory, "mark_done", unmarked)
        commit(made, "q", 0, [output])
    kept = left(tmp_path)
    commit(made, "q", 0, [])

    assert kept == [output.file.name]
    assert values_of(tarry) == [b"1", b"2"]
    assert left(tmp_path) == []


def test_a_log_that_begins_behind_the_plan_is_refused(tarry, options):
    made = frozen(tarry, options)
    tarry.send("a", b"other", partition=0)
    tarry.admin.delete_records({("a", 0): -1})

    with pytest.raises(SinkRefused, match=r"a \[0\] was to be written from offset 0 on, .* at 1 "):
        commit(made, "q", 0, [])


def test_a_topic_that_was_made_anew_is_refused(tarry, options):
    made = frozen(tarry, options)
    tarry.admin.delete_topics(["a"])
    tarry.admin.create_topics([NewTopic("a", 2)])

    with pytest.raises(SinkRefused, match="'a' was deleted and made anew"):
        commit(made, "q", 0, [])


@pytest.fixture
def asks_soon(monkeypatch):
    """No pauses before an unknown topic is asked for again."""
    monkeypatch.setattr(target, "GONE_SECONDS", 0)


@pytest.mark.usefixtures("asks_soon")
@pytest.mark.parametrize("times", [1, 3])
def test_a_topic_that_one_broker_does_not_know_for_a_moment_ends_no_micro_batch(
    tarry, options, times
):
    """As of a broker that has just started."""
    made = frozen(tarry, options)
    fault = tarry.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", times, topic="a")

    commit(made, "q", 0, [])
    tarry.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", times, topic="a")
    commit(made, "q", 1, [written(made, b"3")])

    assert fault.count == times
    assert [value[:1] for value in values_of(tarry)] == [b"1", b"2", b"3"]


@pytest.mark.usefixtures("asks_soon")
def test_a_frozen_micro_batch_waits_for_its_topic(tarry, options, tmp_path):
    made = frozen(tarry, options)
    tarry.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", None, topic="a")

    with pytest.raises(SinkInterrupted, match=r"'a' does not exist: start the query again when"):
        commit(made, "q", 0, [])
    with pytest.raises(SinkInterrupted, match="topic 'a' does not exist: make it before"):
        written(made, b"3")
    tarry.heal()
    commit(made, "q", 0, [])

    assert [value[:1] for value in values_of(tarry)] == [b"1", b"2"]
    assert left(tmp_path) == []


def test_a_file_that_is_gone_or_damaged_is_told(tarry, options, tmp_path):
    made = frozen(tarry, options)
    file = tmp_path / "sink" / left(tmp_path)[0]
    content = file.read_bytes()

    file.write_bytes(content[:-1] + b"?")
    with pytest.raises(SinkRefused, match="the file is damaged"):
        commit(made, "q", 0, [])
    file.unlink()
    with pytest.raises(SinkRefused, match="are missing or damaged"):
        commit(made, "q", 0, [])
    file.write_bytes(content)
    commit(made, "q", 0, [])

    assert len(values_of(tarry)) == 2


def test_a_late_micro_batch_is_refused(options, tmp_path):
    made = options()
    for batch_id in range(3):
        commit(made, "q", batch_id, [])
    # Plans of old releases look so.
    for name in left(tmp_path, f"plan-{1:020d}"):
        (tmp_path / "sink" / name).unlink()

    with pytest.raises(SinkRefused, match="micro-batch 1 comes late: the sink is at micro-batch 2"):
        commit(made, "q", 1, [written(made, b"late")])
    assert left(tmp_path) == []


def test_files_of_a_frozen_micro_batch_are_not_dropped(tarry, options, tmp_path):
    made = options(**IMPATIENT)
    output = written(made, b"x")
    tarry.fail("Produce", code=NOT_ENOUGH_REPLICAS, times=1_000)
    with pytest.raises(SinkRefused):
        commit(made, "q", 0, [output])

    drop(made, 0, [output, other := written(made, b"y")])

    assert left(tmp_path) == [output.file.name]
    assert other.file.name != output.file.name


@pytest.mark.parametrize(
    ("configs", "columns", "sentence"),
    [
        ({"cleanup_policy": "compact"}, {}, "has no key, and the topic is compacted"),
        ({"cleanup_policy": "compact,delete"}, {}, "has no key, and the topic is compacted"),
        ({"max_message_bytes": 100}, {}, "max.message.bytes is 100: raise that"),
        (
            {"message_timestamp_after_max_ms": 60_000},
            {"timestamp": pyarrow.array([2**42], pyarrow.timestamp("ms", "UTC"))},
            "has a time that lies .* ms ahead",
        ),
        (
            {"message_timestamp_before_max_ms": 60_000},
            {"timestamp": pyarrow.array([10**12 * 1_000], pyarrow.timestamp("us", "UTC"))},
            "ms back, and its message.timestamp.before.max.ms is 60000: raise that",
        ),
    ],
)
def test_what_no_broker_takes_fails_its_task(tarry, options, tmp_path, configs, columns, sentence):
    tarry.topic("strict", **configs)
    made = options(topic="strict")

    with pytest.raises(SinkRefused, match=sentence):
        written(made, b"x" * 200, **columns)

    assert not (tmp_path / "sink").exists() or left(tmp_path) == []


@pytest.mark.parametrize(("beyond", "is_taken"), [(0, True), (1, False)])
def test_what_is_at_a_limit_of_its_topic_is_taken(beyond, is_taken):
    """Brokers take a time that is just as far away as the topic allows, and so large a batch."""
    now_ms = 1_760_000_000_000
    limits = TopicLimits("a", batch_bytes_max=9, ahead_ms_max=1_000, behind_ms_max=2_000)
    kind = pyarrow.timestamp("us", "UTC")
    old = pyarrow.array([(now_ms - 2_000 - beyond) * 1_000], kind)
    rows = pyarrow.record_batch({"value": [b"x"], "timestamp": old})
    early = FinishedBatch(0, 1, now_ms + 1_000 + beyond, b"x")
    large = FinishedBatch(0, 1, now_ms, b"x" * (9 + beyond))

    for check in (
        lambda: limits.check_rows(rows, now_ms),
        lambda: limits.check_batch(early, now_ms),
        lambda: limits.check_batch(large, now_ms),
    ):
        with nullcontext() if is_taken else pytest.raises(SinkRefused):
            check()


@pytest.mark.parametrize(("late_ms", "is_late"), [(0, False), (1, True)])
def test_a_round_may_be_sent_up_to_its_last_millisecond(
    tarry, options, tmp_path, monkeypatch, late_ms, is_late
):
    made = frozen(tarry, options)
    directory = SinkDirectory(tmp_path / "sink")
    plan = directory.read_plan(0).plan
    until_ms = wall_ms() + 60_000
    monkeypatch.setattr(publishing, "wall_ms", lambda: until_ms + late_ms)

    with Publisher(made.client_settings) as publisher:
        sent = Publishing(directory, publisher, 1_000)._send(
            SendRound(plan, {("a", 0): 0}, until_ms)
        )

    assert sent.is_late == is_late
    assert len(values_of(tarry)) == (0 if is_late else 1)


def test_the_topic_says_how_large_records_and_batches_are(tarry, options):
    tarry.topic("large", max_message_bytes=4_000_000)
    tarry.topic("narrow", max_message_bytes=2_000)
    large, values = b"x" * 3_000_000, [b"%04d" % number * 20 for number in range(100)]

    commit(options(topic="large"), "q", 0, [written(options(topic="large"), large)])
    commit(options(topic="narrow"), "q", 1, [written(options(topic="narrow"), *values)])

    assert values_of(tarry, "large") == [large]
    assert values_of(tarry, "narrow") == sorted(values)
    given = options(topic="large", **{"kafka.max.request.size": "1000000"})
    with pytest.raises(RecordTooLarge, match=r"max\.request\.size is 1000000"):
        written(given, large)


def test_what_is_too_large_for_its_topic_is_compressed(tarry, options):
    """One such record, which came compressed, would else hold a stream up for ever."""
    tarry.topic("small", max_message_bytes=50_000)
    large, other = b"x" * 1_000_000, b"y" * 100
    made = options(topic="small")

    commit(made, "q", 0, [written(made, other, large, other)])

    assert values_of(tarry, "small") == sorted([large, other, other])
    plain = options(topic="small", **{"kafka.compression.type": "none"})
    with pytest.raises(SinkRefused, match=r"takes 1000\d* bytes, and its max\.message"):
        written(plain, large)


@pytest.mark.usefixtures("asks_soon")
def test_a_topic_that_is_not_there_is_told(options):
    with pytest.raises(SinkRefused, match="topic 'nowhere' does not exist: make it before"):
        written(options(topic="nowhere"), b"x")


def test_a_batch_at_least_once_is_split_where_its_topic_takes_less(tarry):
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install pyspark")
    from pyspark.sql.types import BinaryType, StructField, StructType

    from tarry.spark.writing.writers import make_batch_writer

    tarry.topic("narrow", partitions=1, max_message_bytes=20_000)
    given = {"kafka.bootstrap.servers": tarry.bootstrap, "topic": "narrow"}
    values = [b"%0100d" % number for number in range(2_000)]
    schema = StructType([StructField("value", BinaryType())])
    assert TASK_BATCH_BYTES > len(b"".join(values)) > 20_000

    writer = make_batch_writer(given, schema, overwrite=False)
    writer.write(iter([pyarrow.record_batch({"value": values})]))

    assert values_of(tarry, "narrow") == values


def test_a_row_without_a_topic_is_told(options):
    made = options()._replace(topic=None)

    with pytest.raises(OptionRefused, match="a row has no topic"):
        written(made, b"x", topic=pyarrow.array([None], pyarrow.string()))


def test_a_batch_write_is_done_once_for_its_directory(tarry, options):
    made = options()
    commit_batch(made, [written(made, b"x", b"y")])
    commit_batch(made, [written(made, b"x", b"y")])

    with pytest.raises(
        SinkRefused, match="a write of 2 records, which is done, and this one has 1"
    ):
        commit_batch(made, [written(made, b"z")])

    assert values_of(tarry) == [b"x", b"y"]


def test_a_batch_write_without_rows_is_done_once_too(tarry, options):
    made = options()

    for _ in range(2):
        commit_batch(made, [written(made)])

    assert values_of(tarry) == []


def test_a_batch_write_to_another_topic_is_refused(tarry, options, tmp_path):
    tarry.topic("b", partitions=2)
    commit_batch(options(), [written(options(), b"x")])
    made = options(topic="b")

    with pytest.raises(
        SinkRefused, match=r"stands for a write to a, which is done, and this one is to b"
    ):
        commit_batch(made, [written(made, b"x")])

    assert tarry.records("b") == []
    assert left(tmp_path) == []


def test_a_batch_write_that_is_begun_comes_to_its_end_though_the_next_one_has_more(
    tarry, options, tmp_path
):
    for name in ("b", "c"):
        tarry.topic(name, partitions=1)
    made = options(**IMPATIENT)._replace(topic=None)
    tarry.fail("Produce", code=NOT_ENOUGH_REPLICAS, times=1_000, topic="b")
    with pytest.raises(SinkInterrupted, match="It is frozen"):
        commit_batch(made, [written(made, b"x", b"y", topic=["a", "b"])])
    tarry.heal()

    with pytest.raises(SinkRefused, match=r"to a, b, which is done, and this one is to a, b, c"):
        commit_batch(made, [written(made, b"x", b"y", b"z", topic=["a", "b", "c"])])

    assert [values_of(tarry, name) for name in "abc"] == [[b"x"], [b"y"], []]
    assert left(tmp_path) == []


def test_a_batch_write_of_which_one_topic_was_made_anew_says_which(tarry, options, tmp_path):
    tarry.topic("b", partitions=1)
    made = options()._replace(topic=None)
    rows = [b"x", b"y"], {"topic": ["a", "b"]}
    commit_batch(made, [written(made, *rows[0], **rows[1])])
    tarry.admin.delete_topics(["b"])
    tarry.admin.create_topics([NewTopic("b", 1)])

    with pytest.raises(SinkRefused, match=r"to a, b, and b was .* rows of b again .* those of a"):
        commit_batch(made, [written(made, *rows[0], **rows[1])])

    assert [values_of(tarry, name) for name in "ab"] == [[b"x"], []]


def test_a_plan_of_a_cluster_without_topic_ids_is_of_the_same_topics(tarry, options, tmp_path):
    """As where brokers were brought to a version that has them since."""
    made = options()
    commit_batch(made, [written(made, b"x")])
    plan = SinkDirectory(tmp_path / "sink").read_plan(0).plan
    (path,) = (tmp_path / "sink").glob("plan-*")
    path.write_bytes(encode_plan(msgspec.structs.replace(plan, topic_ids={"a": NO_TOPIC_ID})))

    commit_batch(made, [written(made, b"x")])

    assert is_same_topic(NO_TOPIC_ID, "1" * 32) and is_same_topic("1" * 32, NO_TOPIC_ID)
    assert not is_same_topic("2" * 32, "1" * 32) and not is_same_topic(None, "1" * 32)
    assert values_of(tarry) == [b"x"]


def test_a_micro_batch_that_was_frozen_without_topic_ids_goes_on_when_topics_have_them(
    tarry, options, tmp_path
):
    made = options(**IMPATIENT)
    tarry.fail("Produce", code=NOT_ENOUGH_REPLICAS, times=1_000)
    with pytest.raises(SinkInterrupted):
        commit(made, "q", 0, [written(made, b"x")])
    tarry.heal()
    plan = SinkDirectory(tmp_path / "sink").read_plan(0).plan
    (path,) = (tmp_path / "sink").glob("plan-*")
    path.write_bytes(encode_plan(msgspec.structs.replace(plan, topic_ids={"a": NO_TOPIC_ID})))

    commit(made, "q", 0, [])
    commit(made, "q", 1, [written(made, b"y")])

    assert values_of(tarry) == [b"x", b"y"]
    assert SinkDirectory(tmp_path / "sink").read_plan(1).plan.topic_ids == plan.topic_ids


def test_a_batch_write_to_another_cluster_is_refused(options, tmp_path):
    commit_batch(options(), [written(options(), b"x")])

    with Tarry() as other:
        other.topic("a", partitions=2)
        made = options(**{"kafka.bootstrap.servers": other.bootstrap})
        with pytest.raises(SinkRefused, match=r"write to cluster .* lead to cluster .* sinkLoc"):
            commit_batch(made, [written(made, b"x")])
        assert other.records("a") == []

    assert left(tmp_path) == []


def test_a_batch_write_whose_topic_was_made_anew_is_refused(tarry, options, tmp_path):
    made = options()
    commit_batch(made, [written(made, b"x")])
    tarry.admin.delete_topics(["a"])
    tarry.admin.create_topics([NewTopic("a", 2)])

    with pytest.raises(SinkRefused, match=r"a was deleted and made anew .* of its own"):
        commit_batch(made, [written(made, b"x")])
    anew = options(sinkLocation=f"{tmp_path}/new")
    commit_batch(anew, [written(anew, b"x")])

    assert values_of(tarry) == [b"x"]


def test_a_batch_write_that_cannot_be_asked_about_does_not_succeed(tarry, options, tmp_path):
    made = options(**IMPATIENT)
    commit_batch(made, [written(made, b"x")])
    output = written(made, b"x")
    tarry.cut("Metadata", None)
    tarry.cut("DescribeCluster", None)

    with pytest.raises(SinkInterrupted, match="what became of it cannot be asked: "):
        commit_batch(made, [output])
    tarry.heal()
    commit_batch(made, [written(made, b"x")])

    assert values_of(tarry) == [b"x"]
    assert left(tmp_path) == []


def test_a_frozen_micro_batch_is_not_written_to_another_cluster(tarry, options):
    frozen(tarry, options)

    with Tarry() as other:
        made = options(**{"kafka.bootstrap.servers": other.bootstrap})
        with pytest.raises(SinkRefused, match=r"belongs to cluster .* leads to cluster") as told:
            commit(made, "q", 0, [])

    assert not isinstance(told.value, SinkInterrupted)


def test_a_batch_write_that_was_amended_is_known_when_it_is_done_again(tarry, options, tmp_path):
    made = options()
    rows = [b"x", b"y"], {"partition": pyarrow.array([0, 0], pyarrow.int32())}
    commit_batch(made, [written(made, *rows[0], **rows[1])])
    directory = SinkDirectory(tmp_path / "sink")
    plan = directory.read_plan(0).plan
    noted = Noted({("a", 0): 2}, {}, plan.cluster_id)
    assert directory.create_plan(amended(plan, (plan.producer_id + 1, 0), {("a", 0): 1}, noted))

    commit_batch(made, [written(made, *rows[0], **rows[1])])

    assert values_of(tarry) == [b"x", b"y"]


def test_more_files_than_a_process_may_open_are_sent(tarry, options, monkeypatch):
    made = options()
    opened = []
    open_file = Publishing._open

    def counted(self, file):
        opened.append(len(self._files))
        return open_file(self, file)

    monkeypatch.setattr(publishing, "OPEN_FILES_MAX", 2)
    monkeypatch.setattr(Publishing, "_open", counted)
    places = [pyarrow.array([0, 1], pyarrow.int32()), pyarrow.array([1, 0], pyarrow.int32())]

    commit(
        made,
        "q",
        0,
        [written(made, b"%d a" % n, b"%d b" % n, partition=places[n % 2]) for n in range(6)],
    )

    assert values_of(tarry) == sorted(
        b"%d %s" % (n, part) for n in range(6) for part in (b"a", b"b")
    )
    assert len(opened) >= 6
    assert max(opened) < 2


def test_a_round_is_bounded_in_bytes_and_comes_in_time_or_not_at_all(
    tarry, options, tmp_path, monkeypatch
):
    made = options(**IMPATIENT)
    places = pyarrow.array([0, 1], pyarrow.int32())
    output = written(made, b"x", b"y", partition=places)
    tarry.fail("Produce", code=NOT_ENOUGH_REPLICAS, times=1_000)
    with pytest.raises(SinkInterrupted):
        commit(made, "q", 0, [output])
    tarry.heal()
    directory = SinkDirectory(tmp_path / "sink")
    plan = directory.read_plan(0).plan
    left_over = {("a", 0): 0, ("a", 1): 0}
    monkeypatch.setattr(publishing, "ROUND_BYTES_MAX", 1)

    with Publisher(made.client_settings) as publisher:
        sending = Publishing(directory, publisher, 1_000)
        late = sending._send(SendRound(plan, left_over, wall_ms() - 1))
        sent = sending._send(SendRound(plan, left_over, wall_ms() + 60_000))

    assert (late.is_late, late.outcomes) == (True, {})
    assert (sent.is_late, list(sent.outcomes)) == (False, [("a", 0)])
    assert values_of(tarry) == [b"x"]
    commit(made, "q", 0, [])
    assert values_of(tarry) == [b"x", b"y"]


def test_a_file_that_cannot_be_read_is_told(tarry, options, monkeypatch):
    made = frozen(tarry, options)

    def full(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Publishing, "_open", full)
        with pytest.raises(SinkInterrupted, match="cannot be read: Too many open files"):
            commit(made, "q", 0, [])
    commit(made, "q", 0, [])

    assert len(values_of(tarry)) == 2


def test_the_directory_of_plans_has_a_durable_name(options, tmp_path, monkeypatch):
    flushed = []
    for module in (durable_files, sink_directory):
        monkeypatch.setattr(module, "flush_directory", flushed.append)

    written(options(), b"x")
    by_task = list(flushed)
    flushed.clear()
    SinkDirectory(tmp_path / "sink").bind("q")
    SinkDirectory(tmp_path / "sink").bind("q")

    assert tmp_path in by_task
    assert flushed.count(tmp_path) == 1


def test_old_plans_and_files_of_nobody_go(options, tmp_path):
    plan = commit(options(), "q", 0, [])
    directory = SinkDirectory(tmp_path / "sink", plans_kept=2)
    orphan, young = (tmp_path / "sink" / directory.new_task_file() for _ in range(2))
    for file in (orphan, young):
        file.write_bytes(b"")
    os.utime(orphan, (1, 1))

    for batch_id in range(1, 6):
        later = msgspec.structs.replace(plan, batch_id=batch_id)
        assert directory.create_plan(later)
        assert not directory.create_plan(later)
        directory.mark_done(later)

    assert len(left(tmp_path, "plan-")) == len(left(tmp_path, "done-")) == 3
    assert left(tmp_path) == [young.name]
    assert left(tmp_path, "tmp-") == []


def test_the_query_is_read_from_its_checkpoint(tmp_path):
    (tmp_path / "metadata").write_text('{"id": "abc"}')

    assert query_id_of(f"file://{tmp_path}") == query_id_of(str(tmp_path)) == "abc"
    with pytest.raises(SinkRefused, match="does not tell which query"):
        query_id_of(str(tmp_path / "nowhere"))


def test_a_location_that_is_no_directory_is_refused():
    # Spark itself takes the location of a checkpoint so.
    for given, path in (
        ("file:///a%20b/c", "/a%20b/c"),
        ("file:/a#b?c d/", "/a#b?c d"),
        ("file://localhost/a", "/a"),
        ("/a b#c", "/a b#c"),
    ):
        assert str(local_path(given)) == path
    for location in ("s3a://bucket/sink", "hdfs:/sink", "file://host/sink"):
        with pytest.raises(SinkRefused, match="needs a directory of a file system"):
            local_path(location)


def test_a_full_disk_and_one_without_links_are_told(tmp_path):
    full = refusal(tmp_path, "cannot be written", OSError(errno.ENOSPC, "No space left on device"))
    linkless = refusal(
        tmp_path, "cannot be written", OSError(errno.EPERM, "Operation not permitted")
    )

    assert "No space left on device. Advice: make room and start the query again" in str(full)
    assert "hard link" in str(linkless)
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkRefused, match=r"cannot be made: (File exists|Not a directory)"):
        SinkDirectory(tmp_path / "file").bind("q")
