"""The producer's core: batches, order, repeats that make no duplicates, reactions to errors."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.producer_scene import flush, producer, refusing, send
from tests.support.client.scripted_cluster import SILENCE, ScriptedCluster, Seen

from tarry.base import errors
from tarry.client.errors import BrokerError, DeliveryTimedOut, RecordTooLarge, UnknownTopic
from tarry.protocol import api_keys

# --- The way there


def test_a_record_arrives_and_its_receipt_knows_the_offset() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"before")
    producer(cluster)

    receipt = send(cluster, b"hello", key=b"k")
    cluster.run_until(lambda: receipt.is_done)

    assert (receipt.topic, receipt.partition, receipt.offset, receipt.error) == ("t", 0, 1, None)
    assert log.values() == [b"before", b"hello"]


def test_a_receipt_says_where_its_record_is() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster)
    receipt = send(cluster, b"x")
    assert repr(receipt) == "<Receipt t [0] waits>"

    flush(cluster)

    assert repr(receipt) == "<Receipt t [0] at offset 0>"


def test_records_linger_for_company() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, linger_ms=20)

    receipts = [send(cluster, b"%d" % number) for number in range(10)]
    cluster.run_until(lambda: receipts[-1].is_done)

    assert len(log.batches) == 1
    assert [receipt.offset for receipt in receipts] == list(range(10))


def test_a_full_batch_does_not_linger() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster, linger_ms=60_000, delivery_timeout_ms=120_000, batch_size=1_000)

    receipts = [send(cluster, b"x" * 400) for _ in range(4)]
    cluster.run_for(1_000)

    assert receipts[0].is_done


def test_whoever_waits_for_a_record_ends_its_linger() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster, linger_ms=60_000, delivery_timeout_ms=120_000)
    receipt = send(cluster, b"x")

    core.begin_wait(receipt, 300_000, cluster.now_ms)
    cluster.run_until(lambda: receipt.is_done, 100)

    assert receipt.offset == 0


def test_keyless_records_stay_together_until_their_batch_is_closed() -> None:
    cluster = ScriptedCluster()
    topic = cluster.topic("t", partitions=8)
    producer(cluster, batch_size=500)

    for _ in range(64):
        send(cluster, b"x" * 100, partition=-1)
    flush(cluster)

    batches = [len(log.batches) for log in topic.logs]
    assert sum(batches) <= 24
    assert sum(1 for count in batches if count) >= 3


def test_keyed_records_go_where_java_sends_them() -> None:
    cluster = ScriptedCluster()
    topic = cluster.topic("t", partitions=10)
    producer(cluster)

    receipt = send(cluster, b"x", key=b"foobar", partition=-1)
    flush(cluster)

    # murmur2("foobar") is -790332482 in Kafka's own test; (that & 0x7fffffff) % 10 is 6.
    assert receipt.partition == 6
    assert topic.logs[6].values() == [b"x"]


def test_a_partition_that_does_not_exist_is_refused_at_once() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t", partitions=2)
    core = producer(cluster)
    send(cluster, b"x")

    with pytest.raises(UnknownTopic, match="partitions 0 to 1, not 5"):
        core.append("t", 5, 0, None, b"x", None, now_ms=cluster.now_ms)


@pytest.mark.parametrize(
    "code", [errors.INVALID_TOPIC_EXCEPTION, errors.TOPIC_AUTHORIZATION_FAILED]
)
def test_a_topic_that_brokers_refuse_is_raised_at_once_and_asked_for_again_later(code: int) -> None:
    cluster = ScriptedCluster()
    core = producer(cluster)

    def refused(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = cluster.metadata(seen)
        response.topics[0].error_code = code
        return response

    cluster.script(api_keys.METADATA, refused)
    with pytest.raises(BrokerError, match=errors.error_name(code)):
        send(cluster, b"x")
    cluster.topic("t")

    assert send(cluster, b"x") is not None
    assert core.metadata.tracked == ["t"]


def test_partitions_of_one_leader_share_a_request() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t", partitions=4)
    producer(cluster)

    for partition in range(4):
        send(cluster, b"x", partition=partition)
    flush(cluster)

    assert len(cluster.requests(api_keys.PRODUCE)) == 1


def test_a_request_stays_below_max_request_size() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t", partitions=4)
    producer(cluster, max_request_size=10_000, batch_size=8_000)

    for partition in range(4):
        send(cluster, b"x" * 6_000, partition=partition)
    flush(cluster)

    assert len(cluster.requests(api_keys.PRODUCE)) == 4


def test_no_more_requests_are_under_way_than_the_setting_says() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    cluster.latency_ms = 50
    producer(cluster, batch_size=200, max_in_flight_requests_per_connection=3)

    for _ in range(20):
        send(cluster, b"x" * 150)
    flush(cluster)

    times = [seen.now_ms for seen in cluster.requests(api_keys.PRODUCE)]
    assert all(times[place + 3] - times[place] >= 50 for place in range(len(times) - 3))


def test_acks_0_counts_as_done_when_it_is_sent() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, acks="0")

    receipt = send(cluster, b"x")
    flush(cluster)

    assert (receipt.is_done, receipt.offset) == (True, -1)
    assert log.values() == [b"x"]
    assert not cluster.requests(api_keys.INIT_PRODUCER_ID)


def test_every_codec_is_read_back() -> None:
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        cluster = ScriptedCluster()
        log = cluster.topic("t").logs[0]
        producer(cluster, compression_type=codec)

        for number in range(50):
            send(cluster, b"value %d" % number, key=b"k")
        flush(cluster)

        assert log.values() == [b"value %d" % number for number in range(50)]


def test_a_topic_id_that_is_not_known_keeps_to_names() -> None:
    cluster = ScriptedCluster()
    cluster.ranges[api_keys.METADATA] = (0, 9)
    cluster.topic("t")
    producer(cluster)

    send(cluster, b"x")
    flush(cluster)

    assert cluster.requests(api_keys.PRODUCE)[0].version == 12


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_of_produce_carries_records(version: int) -> None:
    cluster = ScriptedCluster()
    cluster.ranges[api_keys.PRODUCE] = (3, version)
    log = cluster.topic("t").logs[0]
    producer(cluster)

    receipt = send(cluster, b"x")
    flush(cluster)

    assert (receipt.offset, log.values()) == (0, [b"x"])


# --- Room and time


def test_a_record_waits_for_room() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster, buffer_memory=2_000, batch_size=500)

    for number in range(50):
        send(cluster, b"%03d" % number + b"x" * 300)
        assert core.accumulator.buffered_bytes <= 2_000
    flush(cluster)

    assert [(value or b"")[:3] for value in log.values()] == [b"%03d" % n for n in range(50)]
    assert core.accumulator.buffered_bytes == 0


def test_a_record_that_no_request_can_carry_is_refused() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster, max_request_size=1_000)

    with pytest.raises(RecordTooLarge, match="size is 1000"):
        send(cluster, b"x" * 1_000)


def test_a_record_that_never_finds_its_leader_fails_with_the_reason() -> None:
    cluster = ScriptedCluster()
    topic = cluster.topic("t")
    producer(cluster, delivery_timeout_ms=40_000)
    send(cluster, b"first")
    flush(cluster)
    topic.logs[0].leader_id = -1
    topic.logs[0].leader_epoch += 1

    cluster.script(api_keys.PRODUCE, refusing(errors.NOT_LEADER_OR_FOLLOWER))
    receipt = send(cluster, b"lost")
    started_ms = cluster.now_ms
    cluster.run_until(lambda: receipt.is_done)

    assert isinstance(receipt.error, DeliveryTimedOut)
    assert "NOT_LEADER_OR_FOLLOWER" in str(receipt.error)
    assert 39_000 <= cluster.now_ms - started_ms <= 41_000


def test_a_record_whose_answer_never_comes_fails_in_time_and_says_it_may_be_there() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster, delivery_timeout_ms=2_000, request_timeout_ms=1_000)
    cluster.rule(api_keys.PRODUCE, lambda cluster, seen: SILENCE)

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert isinstance(receipt.error, DeliveryTimedOut)
    assert "may be in the log or not" in str(receipt.error)


def test_a_record_whose_leader_was_never_reached_was_never_sent() -> None:
    cluster = ScriptedCluster(brokers=2)
    cluster.topic("t", leader_id=2)
    producer(cluster, delivery_timeout_ms=2_000, request_timeout_ms=1_000)
    cluster.refused[cluster.brokers[2]] = "connection refused"

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert isinstance(receipt.error, DeliveryTimedOut)
    assert "(it was never sent)" in str(receipt.error)
    assert "connection refused" in str(receipt.error)


def test_a_close_says_of_each_record_whether_it_was_sent() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster)
    cluster.rule(api_keys.PRODUCE, lambda cluster, seen: SILENCE)
    sent = send(cluster, b"sent")
    cluster.run_until(lambda: bool(cluster.requests(api_keys.PRODUCE)))
    unsent = send(cluster, b"unsent")

    core.close(cluster.now_ms)

    assert "may be in the log or not" in str(sent.error)
    assert "before the record was sent" in str(unsent.error)


def test_a_record_that_expires_while_its_connection_is_made_does_not_hurt_later_ones() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, delivery_timeout_ms=2_000, request_timeout_ms=1_500)
    send(cluster, b"first")
    flush(cluster)
    # The versions of the new connection come only when the time of the record is over.
    cluster.latency_ms = 1_200
    cluster.cut(1)
    late = send(cluster, b"late")
    cluster.run_until(lambda: late.is_done)
    cluster.latency_ms = 1

    later = send(cluster, b"later")
    cluster.run_until(lambda: later.is_done)

    assert isinstance(late.error, DeliveryTimedOut)
    assert later.error is None
    assert log.values() == [b"first", b"later"]


def test_failures_that_nobody_looked_at_are_counted_for_flush() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster)
    cluster.script(api_keys.PRODUCE, refusing(errors.TOPIC_AUTHORIZATION_FAILED))

    receipts = [send(cluster, b"x") for _ in range(3)]
    flush(cluster)
    seen_error = receipts[0].error
    failure = core.take_failure()

    assert isinstance(seen_error, BrokerError)
    assert failure is not None
    assert failure.count == 2
    assert core.take_failure() is None
