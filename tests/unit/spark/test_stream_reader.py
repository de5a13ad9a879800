"""Reader of a stream, asked as Spark asks it, against a broker and without a Java process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from tarry.base.ids import TopicPartition
from tarry.client import Admin, NewTopic, TopicRecreated
from tarry.spark.options import OptionRefused
from tarry.spark.reading import resolve, stream
from tarry.spark.reading.batch import BatchReader
from tarry.spark.reading.bounds import TopicChoice
from tarry.spark.reading.cluster import FoundTopic, LiveCluster
from tarry.spark.reading.loss import DataLost
from tarry.spark.reading.read_options import parse_read_options
from tarry.spark.reading.stream import StreamReader
from tarry.testing import Tarry

TOPIC = "orders"


@pytest.fixture
def broker(shared: Tarry) -> Iterator[Tarry]:
    """The broker, with a topic of two partitions that have the offsets 2 to 5 and 0 to 3."""
    shared.topic(TOPIC, partitions=2, retention_ms=-1)
    shared.send(TOPIC, *[b"%d" % number for number in range(5)], partition=0)
    shared.send(TOPIC, *[b"%d" % number for number in range(3)], partition=1)
    with Admin(bootstrap_servers=shared.bootstrap) as admin:
        admin.delete_records({(TOPIC, 0): 2})
    yield shared
    with Admin(bootstrap_servers=shared.bootstrap) as admin:
        admin.delete_topics([TOPIC])


@pytest.fixture
def make(broker: Tarry) -> Iterator[Any]:
    made: list[StreamReader] = []

    def reader(**options: str) -> StreamReader:
        choice = {} if "assign" in options else {"subscribe": TOPIC}
        given = {"kafka.bootstrap.servers": broker.bootstrap, **choice, **options}
        made.append(StreamReader(parse_read_options(given, is_stream=True)))
        return made[-1]

    yield reader
    for one in made:
        one.stop()


def offsets(told: Any) -> dict[str, int]:
    """Offsets by partition, without the topic's id and the leader epochs."""
    return {partition: at for partition, at in told[TOPIC].items() if partition.isdigit()}


def at(told: Any, zero: int, one: int) -> dict[str, Any]:
    """The same offsets with others in place."""
    return {TOPIC: {**told[TOPIC], "0": zero, "1": one}}


@pytest.mark.parametrize(
    ("options", "begin"),
    [
        ({}, {"0": 5, "1": 3}),
        ({"startingOffsets": "earliest"}, {"0": 2, "1": 0}),
        ({"startingOffsets": '{"orders": {"0": 3, "1": -1}}'}, {"0": 3, "1": 3}),
        ({"startingOffsets": '{"orders": {"0": -2, "1": 1}}'}, {"0": 2, "1": 1}),
        # Partitions that are not there are left out where the user said so.
        (
            {"startingOffsets": '{"orders": {"0": 0, "1": 9}}', "failOnDataLoss": "false"},
            {"0": 2, "1": 3},
        ),
    ],
)
def test_a_new_query_begins_where_it_is_told(
    make: Any, options: dict[str, str], begin: dict[str, int]
) -> None:
    assert offsets(make(**options).initialOffset()) == begin


def test_a_begin_that_is_not_there_fails(make: Any) -> None:
    reader = make(startingOffsets='{"orders": {"0": 0, "1": 9}}')

    with pytest.raises(DataLost, match=r"orders \[0\] from offset 0 on .*the offsets 2 to 5"):
        reader.initialOffset()


def test_a_time_behind_the_last_record_is_refused_or_the_end(make: Any) -> None:
    late = {"startingTimestamp": "4000000000000"}

    with pytest.raises(OptionRefused, match="no record is as young as the start"):
        make(**late).initialOffset()
    at_end = make(**late, startingOffsetsByTimestampStrategy="latest").initialOffset()
    assert offsets(at_end) == {"0": 5, "1": 3}


def test_few_records_wait_for_more_but_not_for_too_long(broker: Tarry, make: Any) -> None:
    reader = make(startingOffsets="earliest", minOffsetsPerTrigger="3")
    limit = reader.getDefaultReadLimit()
    begin = reader.initialOffset()
    first = reader.latestOffset(begin, limit)
    broker.send(TOPIC, b"a", b"b", partition=1)
    waiting = reader.latestOffset(first, limit)
    broker.send(TOPIC, b"c", partition=0)
    enough = reader.latestOffset(first, limit)

    assert offsets(first) == {"0": 5, "1": 3}
    assert waiting == first
    assert offsets(enough) == {"0": 6, "1": 5}
    impatient = make(minOffsetsPerTrigger="9", maxTriggerDelay="0")
    assert impatient.latestOffset(begin, limit) == enough
    assert impatient.latestOffset(first, limit) == enough


def test_available_now_ends_where_the_topics_ended_at_first(broker: Tarry, make: Any) -> None:
    reader = make(startingOffsets="earliest", minOffsetsPerTrigger="100")
    begin = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    part = reader.latestOffset(begin, ReadMaxRows(2))
    broker.send(TOPIC, b"late", partition=0)

    reached = reader.latestOffset(part, ReadAllAvailable())

    assert sum(offsets(part).values()) == sum(offsets(begin).values()) + 2
    assert offsets(reached) == {"0": 5, "1": 3}
    reader.prepareForTriggerAvailableNow()
    assert offsets(reader.latestOffset(reached, ReadAllAvailable())) == {"0": 6, "1": 3}


def test_what_a_log_has_lost_fails_or_is_left_out(make: Any, tmp_path: Path) -> None:
    file = tmp_path / "lost.jsonl"
    strict, lax = make(lossFile=str(file)), make(failOnDataLoss="false", lossFile=str(file))
    end = strict.initialOffset()

    with pytest.raises(DataLost, match=r"from offset 0 to 2 \(the log starts at 2\)"):
        strict.partitions(at(end, 0, 0), end)
    with pytest.raises(DataLost, match=r"from offset 5 to 9 \(the log ends at 5\)"):
        strict.latestOffset(at(end, 9, 3), ReadAllAvailable())
    (task,) = lax.partitions(at(end, 0, 0), end)
    (line,) = file.read_text().splitlines()
    assert '"first":0,"end":2,"reason":"the log starts at 2"' in line
    assert task.value == {TOPIC: [(0, 2, 5), (1, 0, 3)]}
    assert lax.partitions(at(end, 0, 3), at(end, 2, 3)) == []
    assert lax.partitions(end, end) == []
    assert lax.latestOffset(at(end, 9, 3), ReadAllAvailable()) == end


def test_a_limited_micro_batch_passes_over_what_is_gone_and_tells_it_once(
    make: Any, tmp_path: Path
) -> None:
    file = tmp_path / "lost.jsonl"
    lax = make(failOnDataLoss="false", lossFile=str(file))
    end = lax.initialOffset()
    # The query has not begun with the first partition, which has the offsets 2 to 5.
    begun = at(end, 0, 0)
    del begun[TOPIC]["0"]

    reached = lax.latestOffset(begun, ReadMaxRows(2))
    (task,) = lax.partitions(begun, reached)
    final = lax.latestOffset(reached, ReadMaxRows(9))
    lax.partitions(reached, final)

    assert offsets(reached) == {"0": 3, "1": 1}
    assert task.value == {TOPIC: [(0, 2, 3), (1, 0, 1)]}
    (line,) = file.read_text().splitlines()
    assert '"partition":0,"first":0,"end":2' in line
    assert final == end


def test_what_retention_takes_while_a_query_ends_takes_no_share(broker: Tarry, make: Any) -> None:
    lax = make(failOnDataLoss="false", startingOffsets="earliest")
    begin = lax.initialOffset()
    lax.prepareForTriggerAvailableNow()
    first = lax.latestOffset(begin, ReadMaxRows(2))
    broker.admin.delete_records({(TOPIC, 0): 4})

    second = lax.latestOffset(first, ReadMaxRows(2))
    broker.admin.delete_topics([TOPIC])
    third = lax.latestOffset(second, ReadMaxRows(9))
    broker.topic(TOPIC)

    assert offsets(first) == {"0": 3, "1": 1}
    assert offsets(second) == {"0": 5, "1": 2}
    # Records that are gone with a topic are missed when the micro-batch is planned.
    assert offsets(third) == {"0": 5, "1": 3}


def test_records_that_are_gone_are_none_that_a_micro_batch_waits_for(
    broker: Tarry, make: Any
) -> None:
    lax = make(failOnDataLoss="false", minOffsetsPerTrigger="3")
    limit = lax.getDefaultReadLimit()
    end = lax.initialOffset()
    lax.latestOffset(at(end, 5, 2), limit)
    broker.send(TOPIC, *[b"more"] * 5, partition=0)
    broker.admin.delete_records({(TOPIC, 0): 9})

    assert lax.latestOffset(end, limit) == end
    broker.send(TOPIC, *[b"more"] * 2, partition=0)
    assert offsets(lax.latestOffset(end, limit)) == {"0": 12, "1": 3}


class CountedStarts(LiveCluster):
    """Cluster that counts how often it is asked for the begins of logs."""

    asked = 0

    def starts(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self.asked += 1
        return super().starts(places)


@pytest.mark.parametrize(
    ("name", "number", "asked"),
    [
        ("maxOffsetsPerTrigger", 3, 1),
        ("maxOffsetsPerTrigger", 4, 0),
        ("minOffsetsPerTrigger", 4, 1),
        ("minOffsetsPerTrigger", 5, 0),
    ],
)
def test_begins_of_logs_are_asked_for_where_a_limit_depends_on_them(
    make: Any, monkeypatch: pytest.MonkeyPatch, name: str, number: int, asked: int
) -> None:
    """Of four records: each question costs a micro-batch time."""
    monkeypatch.setattr(stream, "LiveCluster", CountedStarts)
    lax = make(failOnDataLoss="false", **{name: str(number)})
    end = lax.initialOffset()
    before = lax._cluster.asked

    reached = lax.latestOffset(at(end, 4, 0), lax.getDefaultReadLimit())

    assert lax._cluster.asked - before == asked
    assert (reached == end) == (number > 3)


@pytest.mark.parametrize("fails_on_loss", ["true", "false"])
def test_a_topic_that_one_broker_does_not_know_for_a_moment_is_not_gone(
    broker: Tarry, make: Any, monkeypatch: pytest.MonkeyPatch, fails_on_loss: str
) -> None:
    """As of a broker that has just started: forgotten offsets would be read again."""
    monkeypatch.setattr(resolve, "GONE_SECONDS", 0.01)
    reader = make(failOnDataLoss=fails_on_loss)
    end = reader.initialOffset()
    begun = at(end, 3, 1)

    broker.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", times=2, topic=TOPIC)
    assert reader.latestOffset(begun, ReadAllAvailable()) == end
    broker.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", times=2, topic=TOPIC)
    (task,) = reader.partitions(begun, end)

    assert task.value == {TOPIC: [(0, 3, 5), (1, 1, 3)]}


def test_a_query_begins_where_one_broker_does_not_know_its_topic_for_a_moment(
    broker: Tarry, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "GONE_SECONDS", 0.01)
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": TOPIC}
    batch = BatchReader(parse_read_options(given, is_stream=False))

    broker.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", times=2, topic=TOPIC)
    begin = make().initialOffset()
    broker.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", times=2, topic=TOPIC)
    places = [place for task in batch.partitions() for place in task.value[TOPIC]]

    assert offsets(begin) == {"0": 5, "1": 3}
    assert places == [(0, 2, 5), (1, 0, 3)]


class LateAnswers(LiveCluster):
    """Cluster one of whose brokers knows only what it was told before, and answers first."""

    known: dict[str, FoundTopic] | None = None

    def topics(self, choice: TopicChoice) -> dict[str, FoundTopic]:
        known, self.known = self.known, None
        return super().topics(choice) if known is None else known


@pytest.mark.parametrize("fails_on_loss", ["true", "false"])
@pytest.mark.parametrize("is_made_anew", [True, False])
def test_what_one_broker_has_not_heard_of_yet_is_not_gone(
    broker: Tarry,
    make: Any,
    monkeypatch: pytest.MonkeyPatch,
    fails_on_loss: str,
    is_made_anew: bool,
) -> None:
    """As of a partition that was added, and of a topic that was made anew before it was read."""
    monkeypatch.setattr(resolve, "GONE_SECONDS", 0.01)
    monkeypatch.setattr(stream, "LiveCluster", LateAnswers)
    reader = make(failOnDataLoss=fails_on_loss)
    cluster = reader._cluster
    known = cluster.topics(reader.options.choice)
    if is_made_anew:
        broker.admin.delete_topics([TOPIC])
        broker.topic(TOPIC, partitions=2, retention_ms=-1)
        broker.send(TOPIC, *[b"new"] * 5, partition=0)
    else:
        known = {TOPIC: FoundTopic(known[TOPIC].topic_id, (0,))}
    end = reader.initialOffset()
    broker.send(TOPIC, b"more", partition=0)

    cluster.known = known
    reached = reader.latestOffset(end, ReadAllAvailable())
    cluster.known = known
    (task,) = reader.partitions(end, reached)

    assert task.value == {TOPIC: [(0, 5, 6)]}
    assert reached[TOPIC]["1"] == end[TOPIC]["1"]


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ({"subscribe": "orders,paymets"}, "the broker has no topic paymets: make it"),
        ({"assign": '{"orders": [0, 1, 9]}'}, "the topic orders has no partition 9"),
        ({"assign": '{"orders": [0, 1], "paymets": [0]}'}, "the broker has no topic paymets"),
    ],
)
def test_a_query_that_is_started_again_refuses_what_is_not_there_or_tells_it_once(
    make: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    choice: dict[str, str],
    sentence: str,
) -> None:
    monkeypatch.setattr(resolve, "GONE_SECONDS", 0.01)
    begun = make().initialOffset()
    strict, lax = make(**choice), make(**choice, failOnDataLoss="false")

    with pytest.raises(OptionRefused, match=sentence):
        strict.latestOffset(begun, ReadAllAvailable())
    for _ in range(2):
        assert offsets(lax.latestOffset(begun, ReadAllAvailable()))["0"] == 5
    told = [record.getMessage() for record in caplog.records if sentence in record.getMessage()]
    assert len(told) == 1
    assert "reads it as soon as it is there" in told[0]


def test_a_new_topic_that_is_not_known_for_a_moment_does_not_end_a_query(
    broker: Tarry, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "GONE_SECONDS", 0.01)
    begun = make().initialOffset()
    broker.topic("new-payments")
    reader = make(subscribe="orders,new-payments")

    broker.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", times=2, topic="new-payments")
    assert reader.latestOffset(begun, ReadAllAvailable()) == begun
    # It is known by now, and a query that runs is not ended for a topic that it has not begun.
    broker.fail("Metadata", "UNKNOWN_TOPIC_OR_PARTITION", times=9, topic="new-payments")
    assert reader.latestOffset(begun, ReadAllAvailable()) == begun
    broker.heal()
    broker.send("new-payments", b"first")
    reached = reader.latestOffset(begun, ReadAllAvailable())
    broker.admin.delete_topics(["new-payments"])

    assert reached["new-payments"]["0"] == 1


def test_a_topic_made_anew_is_read_from_its_begin_and_never_for_the_old_one(
    broker: Tarry, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "GONE_SECONDS", 0.01)
    strict, lax = make(), make(failOnDataLoss="false")
    old = strict.initialOffset()
    begun = at(old, 2, 0)
    broker.admin.delete_topics([TOPIC])
    broker.topic(TOPIC, partitions=2, retention_ms=-1)
    broker.send(TOPIC, *[b"new"] * 4, partition=0)

    for ask in (
        lambda: strict.latestOffset(old, ReadAllAvailable()),
        lambda: strict.partitions(begun, old),
    ):
        with pytest.raises(DataLost, match="the topic was deleted and made anew"):
            ask()
    # A micro-batch that is repeated after the topic is gone has nothing to read.
    assert lax.partitions(begun, old) == []
    reached = lax.latestOffset(old, ReadAllAvailable())
    (task,) = lax.partitions(old, reached)
    assert task.value == {TOPIC: [(0, 0, 4)]}
    assert task.topic_ids == {TOPIC: reached[TOPIC]["id"]}


def test_a_partition_that_is_asked_for_of_a_topic_that_was_deleted_is_lost_with_it(
    broker: Tarry, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query had read others of it before."""
    monkeypatch.setattr(resolve, "GONE_SECONDS", 0.01)
    begun = make().initialOffset()
    broker.admin.delete_topics([TOPIC])

    with pytest.raises(DataLost, match=r"orders \[0\] from offset 5 on \(the topic was deleted\)"):
        make(assign='{"orders": [0, 1, 9]}').latestOffset(begun, ReadAllAvailable())
    broker.topic(TOPIC)


def test_what_is_missing_once_more_is_told_once_more(
    broker: Tarry, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    begun = make().initialOffset()
    broker.topic("returns")
    reader = make(subscribe="orders,returns")

    for _ in range(2):
        reader.latestOffset(begun, ReadAllAvailable())
        broker.admin.delete_topics(["returns"])
        for _ in range(2):
            reader.latestOffset(begun, ReadAllAvailable())
        broker.topic("returns")
    reader.latestOffset(begun, ReadAllAvailable())
    broker.admin.delete_topics(["returns"])

    told = [text for text in caplog.messages if "the broker has no topic returns" in text]
    assert len(told) == 2


@pytest.mark.parametrize("is_made_anew", [True, False])
def test_what_was_planned_of_a_topic_that_is_gone_is_told_with_its_offsets(
    broker: Tarry, make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_made_anew: bool
) -> None:
    monkeypatch.setattr(resolve, "GONE_SECONDS", 0.01)
    file = tmp_path / "lost.jsonl"
    strict, lax = make(), make(failOnDataLoss="false", lossFile=str(file))
    end = strict.initialOffset()
    broker.admin.delete_topics([TOPIC])
    if is_made_anew:
        broker.topic(TOPIC, partitions=2, retention_ms=-1)

    with pytest.raises(DataLost, match=r"orders \[0\] from offset 0 to 5 \(the topic was deleted"):
        strict.partitions(at(end, 0, 3), end)
    assert lax.partitions(at(end, 0, 3), end) == []
    (line,) = file.read_text().splitlines()
    assert '"partition":0,"first":0,"end":5,"reason":"the topic was deleted' in line

    # Records that would have followed are another loss, reported when the query looks for more.
    lax.latestOffset(end, ReadAllAvailable())
    lines = file.read_text().splitlines()[1:]
    assert ['"first":5,"end":null' in one for one in lines] == [True, False]
    assert ['"first":3,"end":null' in one for one in lines] == [False, True]
    if not is_made_anew:
        broker.topic(TOPIC)


def group_of(broker: Tarry) -> dict[str, int]:
    """Offsets of the group, by partition."""
    told = broker.admin.group_offsets(("job",))["job"]
    return {str(partition): one.offset for (_, partition), one in told.items()}


def test_a_group_shows_how_far_the_query_is(broker: Tarry, make: Any) -> None:
    reader = make(startingOffsets="earliest", groupId="job")
    begin = reader.initialOffset()
    reader.latestOffset(begin, ReadAllAvailable())
    reader.commit(at(begin, 4, 1))

    assert group_of(broker) == {"0": 4, "1": 1}


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxRows(2)])
@pytest.mark.parametrize("is_available_now", [False, True])
def test_a_group_shows_nothing_of_a_micro_batch_that_is_only_planned(
    broker: Tarry, make: Any, limit: ReadLimit, *, is_available_now: bool
) -> None:
    reader = make(startingOffsets="earliest", groupId="job")
    begin = at(reader.initialOffset(), 3, 1)
    if is_available_now:
        reader.prepareForTriggerAvailableNow()

    end = reader.latestOffset(begin, limit)
    parts = reader.partitions(begin, end)
    for part in parts:
        list(reader.read(part))

    assert parts and offsets(end) != offsets(begin)
    assert group_of(broker) == offsets(begin)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {
                "startingOffsets": '{"orders": {"0": 5, "1": 3}}',
                "endingOffsets": '{"orders": {"0": 4, "1": 3}}',
            },
            r"the start lies behind the end: orders \[0\] from 5 to 4",
        ),
        ({"startingOffsets": '{"orders": {"0": 2}}'}, r"leaves out orders \[1\]"),
        (
            {"startingOffsets": '{"orders": {"0": 2, "1": 0, "2": 0}}'},
            r"has orders \[2\]: it takes every partition",
        ),
        ({"startingTimestamp": "4000000000000"}, "no record is as young as the start"),
        ({"subscribe": "nowhere"}, "the broker has no topic nowhere"),
    ],
)
def test_bounds_that_a_batch_cannot_have_are_refused(
    broker: Tarry, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], sentence: str
) -> None:
    monkeypatch.setattr(resolve, "GONE_SECONDS", 0.01)
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": TOPIC, **options}
    reader = BatchReader(parse_read_options(given, is_stream=False))

    with pytest.raises(OptionRefused, match=sentence):
        reader.partitions()


@pytest.mark.parametrize("fails_on_loss", ["true", "false"])
def test_a_batch_reads_nothing_of_a_topic_that_is_made_anew_meanwhile(
    broker: Tarry, fails_on_loss: str
) -> None:
    given = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": TOPIC, "columns": "value"}
    given["failOnDataLoss"] = fails_on_loss
    reader = BatchReader(parse_read_options(given, is_stream=False))
    tasks = reader.partitions()
    broker.admin.delete_topics([TOPIC])
    broker.topic(TOPIC, partitions=2, retention_ms=-1)
    for partition in range(2):
        broker.send(TOPIC, *[b"new"] * 9, partition=partition)

    def read() -> list[object]:
        batches = [batch for task in tasks for batch in reader.read(task)]
        return [row["value"] for batch in batches for row in batch.to_pylist()]

    if fails_on_loss == "true":
        with pytest.raises(TopicRecreated, match=TOPIC):
            read()
    else:
        assert read() == []


def test_a_topic_that_is_compacted_is_told_from_one_that_is_not(shared: Tarry) -> None:
    policies = {"plain": "delete", "upserts": "compact", "both": "compact,delete"}
    for name, policy in policies.items():
        shared.topic(f"policy-{name}", cleanup_policy=policy)
    names = [f"policy-{name}" for name in policies]

    with closing(LiveCluster({"bootstrap.servers": shared.bootstrap})) as cluster:
        found = [cluster.is_compacted(name) for name in [*names, "nowhere"]]
    assert found == [False, True, True, True]


@pytest.mark.slow
def test_a_topic_of_10_000_partitions_is_read(shared: Tarry) -> None:
    patient = {"request.timeout.ms": "300000", "default.api.timeout.ms": "300000"}
    names = {name.replace(".", "_"): int(value) for name, value in patient.items()}
    with Admin(bootstrap_servers=shared.bootstrap, **names) as admin:
        admin.create_topics([NewTopic("wide", 10_000)])
        for partition in (0, 9_999):
            shared.send("wide", b"%d" % partition, partition=partition)
        options = {f"kafka.{name}": value for name, value in patient.items()}
        options |= {"kafka.bootstrap.servers": shared.bootstrap, "subscribe": "wide"}
        options |= {"startingOffsets": "earliest"}
        reader = StreamReader(parse_read_options(options, is_stream=True))
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, reader.getDefaultReadLimit())
        (task,) = reader.partitions(begin, end)
        values = [row for batch in reader.read(task) for row in batch["value"].to_pylist()]
        reader.stop()
        admin.delete_topics(["wide"])

    assert task.value == {"wide": [(0, 0, 1), (9_999, 0, 1)]}
    assert values == [b"0", b"9999"]
