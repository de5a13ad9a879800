"""Codecs of a consumer: what decodes is handed out, a poison record holds its partition."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from tests.support.client.consumer_scene import T0
from tests.support.client.group_member import GroupScene
from tests.support.client.scripted_cluster import ScriptedCluster
from tests.support.client.scripted_consumer import consumer_of

from tarry.client.codecs import Json, Text
from tarry.client.core.consumer.decoding import DecodedRecord, decoding_of
from tarry.client.errors import CorruptRecords, DecodeError
from tarry.client.sync.consumer import Consumer
from tarry.protocol import api_keys
from tarry.records.builder import BatchBuilder
from tarry.records.record import Record
from tarry.wire.crc32c import crc32c


def numbers(*values: bytes, **settings: Any) -> Consumer[Any, Any]:
    """A consumer of JSON that reads partition 0 of topic t from its beginning."""
    cluster = ScriptedCluster()
    cluster.topic("t", partitions=2).logs[0].add(*values)
    consumer = consumer_of(cluster, value=Json(), **settings)
    consumer.assign([T0])
    consumer.seek("t", 0, 0)
    return consumer


def values(consumer: Consumer[Any, Any]) -> list[Any]:
    return [record.value for group in consumer.poll() for record in group.records]


def test_keys_and_values_come_as_objects_and_null_stays_null() -> None:
    cluster = ScriptedCluster()
    builder = BatchBuilder()
    builder.append(5, b"k", b'{"a": 1}', [("h", b"x")])
    builder.append(6, None, None, None)
    cluster.topic("t").logs[0].append(builder.build())
    consumer = consumer_of(cluster, key=Text(), value=Json())
    consumer.assign([T0])
    consumer.seek("t", 0, 0)

    first, second = consumer.poll()[0].records

    assert (first.key, first.value, first.timestamp) == ("k", {"a": 1}, 5)
    assert first.headers == [("h", b"x")]
    assert (second.key, second.value, second.offset) == (None, None, 1)


def test_a_poison_record_is_raised_behind_what_came_before_it() -> None:
    consumer = numbers(b"0", b"1", b"poison", b"3")

    assert values(consumer) == [0, 1]
    for _ in range(3):
        with pytest.raises(DecodeError, match=r"the value of t \[0\] at offset 2 does not decode"):
            consumer.poll()
    assert consumer.position("t", 0) == 2


def test_the_error_has_the_record_and_skip_goes_on_behind_it() -> None:
    consumer = numbers(b"poison", b"1", b"poison too")

    with pytest.raises(DecodeError) as caught:
        consumer.poll()
    error = caught.value
    assert (error.topic, error.partition, error.offset) == ("t", 0, 0)
    assert (error.part, error.data, error.record.value) == ("value", b"poison", b"poison")
    assert error.__cause__ is not None
    error.skip()
    assert consumer.position("t", 0) == 1
    assert values(consumer) == [1]
    with pytest.raises(DecodeError, match="offset 2") as caught:
        consumer.poll()
    caught.value.skip()
    assert values(consumer) == []
    assert consumer.position("t", 0) == 3


@pytest.mark.parametrize("behind", [0, 3])
def test_a_skip_of_the_last_record_goes_on_behind_its_batch(behind: int) -> None:
    consumer = numbers(b"0", b"poison")
    log = consumer._driver.cluster.topics["t"].logs[0]  # type: ignore[attr-defined]
    # Compaction has taken the last records of the batch, and left its offsets.
    (batch,) = log.batches
    rest = batch[21:23] + (1 + behind).to_bytes(4, "big") + batch[27:]
    log.batches[0] = batch[:17] + int(crc32c(rest)).to_bytes(4, "big") + rest
    log.end_offset = 2 + behind
    assert values(consumer) == [0]
    with pytest.raises(DecodeError) as caught:
        consumer.poll()
    # Nothing is skipped before the user says so.
    assert consumer.position(T0) == 1

    caught.value.skip()

    assert consumer.position(T0) == 2 + behind
    assert (consumer.lag(T0), consumer.is_at_end(T0)) == (0, True)
    assert values(consumer) == []
    (finished,) = consumer.positions()
    assert finished.finished == 2 + behind


def test_a_seek_leaves_a_poison_record_too() -> None:
    consumer = numbers(b"poison", b"1")
    with pytest.raises(DecodeError):
        consumer.poll()

    consumer.seek("t", 0, 1)

    assert values(consumer) == [1]


def test_a_pause_drops_what_was_read_and_skip_still_goes_on() -> None:
    consumer = numbers(b"poison", b"1")
    with pytest.raises(DecodeError) as caught:
        consumer.poll()
    consumer.pause([T0])
    consumer.resume([T0])

    with pytest.raises(DecodeError):
        consumer.poll(2.0)
    caught.value.skip()

    assert values(consumer) == [1]


def test_other_partitions_go_on_while_one_is_held() -> None:
    consumer = numbers(b"poison")
    logs = consumer._driver.cluster.topics["t"].logs  # type: ignore[attr-defined]
    consumer.assign([T0, ("t", 1)])
    consumer.seek("t", 1, 0)
    with pytest.raises(DecodeError):
        consumer.poll()
    for number in range(3):
        logs[1].add(b"%d" % number)

    found: list[Any] = []
    while len(found) < 3:
        found += values(consumer)

    assert found == [0, 1, 2]


def test_an_iteration_that_stops_before_a_poison_record_keeps_the_order() -> None:
    consumer = numbers(b"0", b"1", b"2", b"poison", b"4")
    for record in consumer:
        if record.value == 1:
            break

    assert consumer.position("t", 0) == 2
    assert values(consumer) == [2]
    with pytest.raises(DecodeError, match="offset 3") as caught:
        consumer.poll()
    caught.value.skip()
    assert values(consumer) == [4]


def test_few_records_at_a_time_are_decoded_once_and_in_order() -> None:
    consumer = numbers(*[b"%d" % number for number in range(20)])

    found: list[Any] = []
    while len(found) < 20:
        found += [
            record.value for group in consumer.poll(max_records=3) for record in group.records
        ]

    assert found == list(range(20))


def test_what_is_wrong_behind_a_poison_record_is_told_after_it() -> None:
    consumer = numbers(b"poison")
    with pytest.raises(DecodeError) as caught:
        consumer.poll()
    position = consumer._core.position(T0)
    position._error_behind = CorruptRecords("behind it")
    caught.value.skip()

    with pytest.raises(CorruptRecords, match="behind it"):
        consumer.poll()


def test_automatic_commits_stop_before_a_poison_record_until_it_is_skipped() -> None:
    scene = GroupScene(auto_offset_reset="earliest", auto_commit_interval_ms=100)
    scene.core.decoding = decoding_of(None, Json())
    scene.cluster.topics["t"].logs[0].add(b"0", b"poison", b"2")
    scene.join()
    cluster = scene.cluster

    def poll() -> list[Any]:
        operation = scene.core.begin_poll(500, 400, cluster.now_ms)
        try:
            while True:
                step = operation.step(cluster.now_ms)
                if hasattr(step, "answer"):
                    return [one.value for group in step.answer for one in group.records]
                cluster.run_until(lambda: operation.is_ready, 10_000)
        finally:
            operation.end(cluster.now_ms)

    assert poll() == [0]
    errors: list[DecodeError] = []
    for _ in range(5):
        try:
            poll()
        except DecodeError as error:
            errors.append(error)
        cluster.run_for(200)
    assert errors
    assert scene.committed == 1
    errors[-1].skip()
    assert poll() == [2]
    poll()
    cluster.run_for(500)
    poll()
    cluster.run_for(500)
    assert scene.committed == 3
    assert scene.requests(api_keys.OFFSET_COMMIT)


def test_decoded_records_and_their_errors_are_copied_and_compared() -> None:
    raw = Record(7, 5, b"k", b"{", [("h", b"x")])
    error = DecodeError("the value does not decode", "t", 0, raw, "value")
    for value in (DecodedRecord(raw, "k", {"a": 1}), error):
        for made in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert made == value
    assert pickle.loads(pickle.dumps(error)).data == b"{"
    whole = DecodedRecord(raw, "k", 1)
    assert pickle.loads(pickle.dumps(whole)).value == 1


@pytest.mark.parametrize("codec", [1, "utf-8", Text])
def test_a_consumer_refuses_what_is_no_codec(codec: Any) -> None:
    with pytest.raises(TypeError, match="is "):
        Consumer(value=codec)


@pytest.mark.parametrize("call", ["metrics", "group", "seek", "committed", "poll", "close"])
def test_a_codec_that_calls_its_own_consumer_is_an_error_and_no_deadlock(call: str) -> None:
    arguments: dict[str, tuple[Any, ...]] = {"seek": ("t", 0, 0), "committed": ([T0],)}

    class Curious:
        def encode(self, value: bytes) -> bytes:
            return value

        def decode(self, data: bytes) -> bytes:
            asked = getattr(consumer, call)
            if call != "group":
                asked(*arguments.get(call, ()))
            return data

    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0")
    consumer = consumer_of(cluster, value=Curious())
    consumer.assign([T0])
    consumer.seek("t", 0, 0)

    with pytest.raises(DecodeError, match="ConcurrentUse: a codec has called the consumer"):
        consumer.poll(5)

    assert consumer.position("t", 0) == 0
    assert consumer.metrics().connections.made > 0
