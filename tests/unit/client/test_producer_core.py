"""The producer's core: batches, order, repeats that make no duplicates, reactions to errors."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from tests.support.client.scripted_cluster import CUT, SILENCE, ScriptedCluster, Seen, seeded_random

from tarry.base import errors
from tarry.client.core.metadata import LeaderHint
from tarry.client.core.producer.batch import RecordReceipt
from tarry.client.core.producer.core import ProducerCore
from tarry.client.errors import (
    BrokerError,
    DeliveryTimedOut,
    ProducerFailed,
    RecordTooLarge,
    UnknownTopic,
)
from tarry.client.settings import ProducerSettings
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.messages.init_producer_id import InitProducerIdResponse
from tarry.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from tarry.records.batch import decode_batch_header


def producer(cluster: ScriptedCluster, **settings: Any) -> ProducerCore:
    given = ProducerSettings(bootstrap_servers="10.0.0.1:9092", **settings)
    core: ProducerCore = cluster.attach(ProducerCore(given, seeded_random(), cluster.now_ms))
    return core


def send(
    cluster: ScriptedCluster,
    value: bytes | None,
    *,
    topic: str = "t",
    partition: int = 0,
    key: bytes | None = None,
) -> RecordReceipt:
    """Append a record, waiting for metadata and room as a face does."""
    core = cluster.core
    taken: list[RecordReceipt] = []

    def try_it() -> bool:
        receipt = core.append(topic, partition, 1_700, key, value, None, now_ms=cluster.now_ms)
        if receipt is not None:
            taken.append(receipt)
        return receipt is not None

    if not try_it():
        cluster.run_until(try_it)
    return taken[0]


def flush(cluster: ScriptedCluster) -> None:
    flush = cluster.core.begin_flush(300_000, cluster.now_ms)
    cluster.run_until(lambda: flush.is_ready)
    flush.end(cluster.now_ms)


def refusing(code: int, **fields: Any) -> Callable[[ScriptedCluster, Seen], Any]:
    """An answer that refuses every batch and appends nothing."""

    def answer(cluster: ScriptedCluster, seen: Seen) -> Any:
        saved = {
            name: [list(log.batches) for log in one.logs] for name, one in cluster.topics.items()
        }
        ends = {name: [log.end_offset for log in one.logs] for name, one in cluster.topics.items()}
        known = {
            name: [
                {pid: (epoch, list(kept)) for pid, (epoch, kept) in log.producers.items()}
                for log in one.logs
            ]
            for name, one in cluster.topics.items()
        }
        response = cluster.produce(seen)
        for name, one in cluster.topics.items():
            for index, log in enumerate(one.logs):
                log.batches = saved[name][index]
                log.end_offset = ends[name][index]
                log.producers = known[name][index]
        assert response is not None
        for topic in response.responses:
            for partition in topic.partition_responses:
                partition.error_code = code
                partition.base_offset = -1
                for name, value in fields.items():
                    setattr(partition, name, value)
        return response

    return answer


def appended_but_cut(cluster: ScriptedCluster, seen: Seen) -> str:
    """The broker appends, and the connection breaks before its answer."""
    cluster.produce(seen)
    return CUT


def appended_but_late(cluster: ScriptedCluster, seen: Seen) -> str:
    cluster.produce(seen)
    return SILENCE


def sent_batches(cluster: ScriptedCluster) -> list[tuple[int, int, int]]:
    """(base sequence, record count, producer epoch) of each batch that was sent."""
    found = []
    for seen in cluster.requests(api_keys.PRODUCE):
        for topic in seen.request.topic_data:
            for data in topic.partition_data:
                header = decode_batch_header(data.records.to_bytes(), 0)
                found.append((header.base_sequence, header.record_count, header.producer_epoch))
    return found


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
def test_a_topic_that_brokers_refuse_is_raised_at_once_and_asked_for_again_later(
    code: int,
) -> None:
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


# --- Repeats


def test_a_batch_whose_answer_was_lost_is_not_written_twice() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster)
    cluster.script(api_keys.PRODUCE, appended_but_cut)

    receipt = send(cluster, b"once")
    cluster.run_until(lambda: receipt.is_done)

    assert (receipt.offset, receipt.error) == (0, None)
    assert log.values() == [b"once"]
    assert len(cluster.requests(api_keys.PRODUCE)) == 2


def test_a_batch_without_an_answer_is_repeated_after_the_request_timed_out() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, request_timeout_ms=1_000)
    cluster.script(api_keys.PRODUCE, appended_but_late)

    receipt = send(cluster, b"once")
    cluster.run_until(lambda: receipt.is_done)

    assert receipt.error is None
    assert log.values() == [b"once"]


def test_batches_that_fail_in_the_middle_keep_their_order() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, batch_size=150)
    cluster.script(
        api_keys.PRODUCE,
        by_default,
        refusing(errors.NOT_ENOUGH_REPLICAS),
    )

    receipts = [send(cluster, b"%03d" % number + b"x" * 100) for number in range(30)]
    flush(cluster)

    assert [(value or b"")[:3] for value in log.values()] == [b"%03d" % n for n in range(30)]
    assert [receipt.offset for receipt in receipts] == list(range(30))


def test_a_batch_that_is_refused_twice_is_not_overtaken_without_idempotence() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster, batch_size=150, enable_idempotence=False)
    refusal = refusing(errors.NOT_ENOUGH_REPLICAS)
    cluster.script(api_keys.PRODUCE, refusal, refusal, refusal)
    send(cluster, b"0" + b"x" * 100)
    cluster.run_until(lambda: core.sender.last_error is not None)

    for number in range(1, 4):
        send(cluster, b"%d" % number + b"x" * 100)
    flush(cluster)

    assert [(value or b"")[:1] for value in log.values()] == [b"0", b"1", b"2", b"3"]


def test_an_epoch_for_another_partition_renumbers_no_batch_that_may_be_in_the_log() -> None:
    cluster = ScriptedCluster(brokers=2)
    topic = cluster.topic("t", partitions=2)
    topic.logs[1].leader_id = 2
    core = producer(cluster)
    for partition in (0, 1):
        send(cluster, b"before", partition=partition)
    flush(cluster)
    lost_count = topic.logs[1]
    lost_count.producers = {
        producer_id: (epoch, [(500, 1, 0)])
        for producer_id, (epoch, _) in lost_count.producers.items()
    }
    answers_lost: list[Seen] = []

    def losing_an_answer(cluster: ScriptedCluster, seen: Seen) -> Any:
        if seen.broker_id == 1 and not answers_lost:
            answers_lost.append(seen)
            return appended_but_cut(cluster, seen)
        return cluster.default(seen)

    cluster.rule(api_keys.PRODUCE, losing_an_answer)
    receipts = [send(cluster, b"once", partition=partition) for partition in (0, 1)]
    flush(cluster)
    send(cluster, b"after", partition=0)
    flush(cluster)

    assert core.identity.producer_id > 1_001
    assert topic.logs[0].values() == [b"before", b"once", b"after"]
    assert topic.logs[1].values() == [b"before", b"once"]
    assert [receipt.error for receipt in receipts] == [None, None]


@pytest.mark.parametrize("seed", range(20))
def test_lost_answers_and_lost_counts_together_lose_double_and_reorder_nothing(seed: int) -> None:
    random = Random(seed)
    cluster = ScriptedCluster(brokers=2)
    topic = cluster.topic("t", partitions=3)
    topic.logs[1].leader_id = 2
    producer(cluster, batch_size=150)
    sent: list[list[bytes]] = [[], [], []]

    def unruly(cluster: ScriptedCluster, seen: Seen) -> Any:
        chance = random.random()
        if chance < 0.15:
            return appended_but_cut(cluster, seen)
        if chance < 0.25:
            return refusing(errors.NOT_ENOUGH_REPLICAS)(cluster, seen)
        return cluster.default(seen)

    cluster.rule(api_keys.PRODUCE, unruly)
    for number in range(90):
        partition = random.randrange(3)
        value = b"%03d" % number + b"x" * 100
        sent[partition].append(value)
        send(cluster, value, partition=partition)
        if random.random() < 0.1:
            cluster.run_for(random.randrange(300))
        log = topic.logs[random.randrange(3)]
        if random.random() < 0.05 and not log_is_asked(cluster, log):
            log.producers = {
                one: (epoch, [(500, 1, 0)]) for one, (epoch, _) in log.producers.items()
            }
    flush(cluster)

    assert [log.values() for log in topic.logs] == sent


def log_is_asked(cluster: ScriptedCluster, log: Any) -> bool:
    """A batch that may be in the log is on its way: a broker that forgot it now would double it."""
    index = cluster.topics["t"].logs.index(log)
    queue = cluster.core.accumulator.queue("t", index)
    return any(batch.attempts for batch in (*queue.in_flight, *queue.waiting))


def by_default(cluster: ScriptedCluster, seen: Seen) -> Any:
    return cluster.default(seen)


def test_a_repeated_batch_carries_the_same_bytes() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster)
    cluster.script(api_keys.PRODUCE, refusing(errors.REQUEST_TIMED_OUT))

    send(cluster, b"x")
    flush(cluster)

    first, second = (
        seen.request.topic_data[0].partition_data[0].records.to_bytes()
        for seen in cluster.requests(api_keys.PRODUCE)
    )
    assert first == second


@pytest.mark.parametrize("seed", range(8))
def test_cuts_and_errors_at_any_place_lose_double_and_reorder_nothing(seed: int) -> None:
    """The producer's promise, over many connections that break at any moment."""
    cluster = ScriptedCluster(brokers=2)
    topic = cluster.topic("t", partitions=2)
    producer(cluster, batch_size=300, request_timeout_ms=800)
    random = seeded_random()
    random.seed(seed)
    faults = [
        by_default,
        by_default,
        appended_but_cut,
        appended_but_late,
        lambda cluster, seen: CUT,
        refusing(errors.NOT_ENOUGH_REPLICAS),
        refusing(errors.CORRUPT_MESSAGE),
        refusing(errors.UNKNOWN_TOPIC_OR_PARTITION),
        refusing(errors.KAFKA_STORAGE_ERROR),
    ]

    receipts = []
    for number in range(200):
        if number % 3 == 0:
            cluster.script(api_keys.PRODUCE, faults[random.randrange(len(faults))])
        if number % 40 == 39:
            # The leader moves while batches are under way.
            log = topic.logs[0]
            log.leader_id = 3 - log.leader_id
            log.leader_epoch += 1
        receipts.append(send(cluster, b"%04d" % number + b"x" * 50, partition=number % 2))
    flush(cluster)

    for index, log in enumerate(topic.logs):
        wanted = [b"%04d" % number for number in range(200) if number % 2 == index]
        assert [(value or b"")[:4] for value in log.values()] == wanted
        mine = [one for one in receipts if one.partition == index]
        assert [one.offset for one in mine] == list(range(100))


# --- Leaders


def test_a_moved_leader_is_found_by_a_refresh() -> None:
    cluster = ScriptedCluster(brokers=2)
    topic = cluster.topic("t")
    producer(cluster)
    send(cluster, b"1")
    flush(cluster)
    topic.logs[0].leader_id = 2
    topic.logs[0].leader_epoch = 1

    receipt = send(cluster, b"2")
    cluster.run_until(lambda: receipt.is_done, 5_000)

    assert receipt.offset == 1
    assert [seen.broker_id for seen in cluster.requests(api_keys.PRODUCE)] == [1, 1, 2]


def test_nothing_goes_to_a_new_leader_while_the_old_one_may_still_take_a_batch() -> None:
    cluster = ScriptedCluster(brokers=2)
    topic = cluster.topic("t")
    core = producer(cluster, enable_idempotence=False)
    send(cluster, b"0")
    flush(cluster)

    def slow(cluster: ScriptedCluster, seen: Seen) -> Any:
        return 2_000, cluster.default(seen)

    cluster.script(api_keys.PRODUCE, slow)
    first = send(cluster, b"1")
    cluster.run_until(lambda: len(cluster.requests(api_keys.PRODUCE)) == 2)
    topic.logs[0].leader_id = 2
    topic.logs[0].leader_epoch = 1
    assert core.metadata.set_leader(LeaderHint("t", 0, 2, 1, None))
    send(cluster, b"2")
    cluster.run_for(500)

    assert not first.is_done
    assert len(cluster.requests(api_keys.PRODUCE)) == 2
    flush(cluster)
    assert topic.logs[0].values() == [b"0", b"1", b"2"]


def test_a_leader_named_in_the_answer_is_followed_at_once() -> None:
    cluster = ScriptedCluster(brokers=2)
    topic = cluster.topic("t")
    producer(cluster)
    send(cluster, b"1")
    flush(cluster)
    topic.logs[0].leader_id = 2
    topic.logs[0].leader_epoch = 1

    def pointing(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = refusing(errors.NOT_LEADER_OR_FOLLOWER, current_leader=LeaderIdAndEpoch(2, 1))(
            cluster, seen
        )
        response.node_endpoints = [NodeEndpoint(2, "10.0.0.2", 9092, None)]
        return response

    cluster.script(api_keys.PRODUCE, pointing)
    metadata_before = len(cluster.requests(api_keys.METADATA))
    receipt = send(cluster, b"2")
    started_ms = cluster.now_ms
    cluster.run_until(lambda: receipt.is_done, 5_000)

    assert receipt.offset == 1
    assert cluster.now_ms - started_ms < 50
    assert len(cluster.requests(api_keys.METADATA)) == metadata_before


# --- Reactions to codes


def test_a_batch_that_is_too_large_is_sent_in_halves() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)
    cluster.script(
        api_keys.PRODUCE,
        refusing(errors.MESSAGE_TOO_LARGE),
        refusing(errors.MESSAGE_TOO_LARGE),
    )

    receipts = [send(cluster, b"%d" % number) for number in range(8)]
    flush(cluster)

    assert log.values() == [b"%d" % number for number in range(8)]
    assert [receipt.offset for receipt in receipts] == list(range(8))
    assert sent_batches(cluster) == [(0, 8, 0), (0, 4, 0), (0, 2, 0), (2, 2, 0), (4, 4, 0)]
    assert core.accumulator.buffered_bytes == 0


def test_a_single_record_that_is_too_large_says_so() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster)
    sentence = "the limit is 10 bytes"
    cluster.script(api_keys.PRODUCE, refusing(errors.MESSAGE_TOO_LARGE, error_message=sentence))

    receipt = send(cluster, b"x" * 100)
    cluster.run_until(lambda: receipt.is_done)

    error = receipt.error
    assert isinstance(error, RecordTooLarge)
    assert sentence in str(error)


def test_after_a_refused_batch_the_sequence_goes_on_without_a_gap() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster)
    cluster.script(api_keys.PRODUCE, by_default, refusing(errors.MESSAGE_TOO_LARGE), by_default)

    for value in (b"1", b"too large", b"2"):
        send(cluster, value)
        flush(cluster)

    assert log.values() == [b"1", b"2"]
    assert sent_batches(cluster) == [(0, 1, 0), (1, 1, 0), (1, 1, 0)]
    assert len(cluster.requests(api_keys.INIT_PRODUCER_ID)) == 1


def test_a_broker_that_lost_count_gets_a_new_producer_id_and_every_record_once() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, batch_size=150)
    send(cluster, b"before")
    flush(cluster)
    log.producers = {pid: (epoch, [(500, 1, 0)]) for pid, (epoch, _) in log.producers.items()}

    receipts = [send(cluster, b"%d" % number + b"x" * 100) for number in range(6)]
    flush(cluster)

    assert [(value or b"")[:1] for value in log.values()[1:]] == [b"%d" % n for n in range(6)]
    assert all(receipt.error is None for receipt in receipts)
    assert len(cluster.requests(api_keys.INIT_PRODUCER_ID)) == 2


def test_an_unknown_producer_id_is_answered_with_a_new_one() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster)
    cluster.script(api_keys.PRODUCE, refusing(errors.UNKNOWN_PRODUCER_ID))

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert receipt.error is None
    assert log.values() == [b"x"]


def test_a_failed_record_in_the_middle_does_not_hold_up_those_behind_it() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, batch_size=150)
    cluster.script(api_keys.PRODUCE, by_default, refusing(errors.TOPIC_AUTHORIZATION_FAILED))

    receipts = [send(cluster, b"%d" % number + b"x" * 100) for number in range(6)]
    flush(cluster)

    failed = [receipt.error is not None for receipt in receipts]
    assert failed == [False, True, False, False, False, False]
    assert [(value or b"")[:1] for value in log.values()] == [b"0", b"2", b"3", b"4", b"5"]


def test_a_duplicate_counts_as_written_without_an_offset() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    producer(cluster)
    cluster.script(api_keys.PRODUCE, refusing(errors.DUPLICATE_SEQUENCE_NUMBER))

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert (receipt.error, receipt.offset) == (None, -1)


@pytest.mark.parametrize("code", [errors.INVALID_PRODUCER_EPOCH, errors.PRODUCER_FENCED])
def test_a_fenced_producer_fails_everything_and_takes_nothing_more(code: int) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t", partitions=2)
    core = producer(cluster, linger_ms=1_000)
    send(cluster, b"0")
    flush(cluster)
    cluster.script(api_keys.PRODUCE, refusing(code))
    first = send(cluster, b"1")
    core.begin_wait(first, 300_000, cluster.now_ms)
    second = send(cluster, b"2", partition=1)

    cluster.run_until(lambda: first.is_done)

    assert isinstance(first.error, ProducerFailed)
    assert isinstance(second.error, ProducerFailed)
    with pytest.raises(ProducerFailed):
        send(cluster, b"3")


def test_single_records_that_are_refused_do_not_take_their_neighbours_along() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)
    flaws = [BatchIndexAndErrorMessage(1, "no key"), BatchIndexAndErrorMessage(3, None)]
    cluster.script(
        api_keys.PRODUCE,
        refusing(errors.INVALID_RECORD, record_errors=flaws, error_message="compacted topic"),
    )

    receipts = [send(cluster, b"%d" % number) for number in range(5)]
    flush(cluster)

    assert log.values() == [b"0", b"2", b"4"]
    assert [receipt.offset for receipt in receipts] == [0, -1, 1, -1, 2]
    assert "no key" in str(receipts[1].error)
    assert "compacted topic" in str(receipts[3].error)
    assert core.take_failure() is None


def test_records_behind_refused_ones_are_counted_on_correctly() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster)
    flaws = [BatchIndexAndErrorMessage(0, "bad")]
    cluster.script(api_keys.PRODUCE, refusing(errors.INVALID_TIMESTAMP, record_errors=flaws))

    send(cluster, b"0")
    send(cluster, b"1")
    flush(cluster)
    send(cluster, b"2")
    flush(cluster)

    assert log.values() == [b"1", b"2"]
    assert len(cluster.requests(api_keys.INIT_PRODUCER_ID)) == 1


def test_a_producer_id_that_is_refused_ends_the_producer() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    cluster.script(
        api_keys.INIT_PRODUCER_ID,
        lambda cluster, seen: InitProducerIdResponse(0, errors.CLUSTER_AUTHORIZATION_FAILED),
    )
    producer(cluster)

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert "CLUSTER_AUTHORIZATION_FAILED" in str(receipt.error)
    assert "enable.idempotence=false" in str(receipt.error)


def test_a_producer_id_that_is_not_there_yet_is_asked_again() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    cluster.script(
        api_keys.INIT_PRODUCER_ID,
        lambda cluster, seen: InitProducerIdResponse(0, errors.COORDINATOR_LOAD_IN_PROGRESS),
        lambda cluster, seen: CUT,
    )
    producer(cluster)

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert receipt.error is None


@pytest.mark.parametrize("code", sorted(errors.ERRORS))
def test_every_error_code_ends_in_a_delivery_or_in_an_error(code: int) -> None:
    """No code hangs, and none is taken for success that is not."""
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster)
    if code != errors.NONE:
        cluster.script(api_keys.PRODUCE, refusing(code))

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done, 10_000)

    if receipt.error is None and code != errors.DUPLICATE_SEQUENCE_NUMBER:
        assert log.values() == [b"x"]
        assert receipt.offset == 0
    elif receipt.error is not None:
        assert isinstance(receipt.error, ClientError)
        assert errors.error_name(code) in str(receipt.error)
        assert not errors.ERRORS[code].refreshes


def test_a_lost_connection_without_idempotence_is_repeated_as_well() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    producer(cluster, enable_idempotence=False)
    cluster.script(api_keys.PRODUCE, lambda cluster, seen: CUT)

    receipt = send(cluster, b"x")
    cluster.run_until(lambda: receipt.is_done)

    assert receipt.offset == 0
    assert log.values() == [b"x"]


def test_sequences_begin_again_at_zero_after_the_largest_number() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    core = producer(cluster)
    send(cluster, b"0")
    flush(cluster)
    queue = core.accumulator.queue("t", 0)
    queue.next_sequence = 0x7FFF_FFFF
    epoch = log.producers[queue.producer_id][0]
    log.producers[queue.producer_id] = (epoch, [(0x7FFF_FFFE, 1, 0)])

    for value in (b"1", b"2"):
        send(cluster, value)
    flush(cluster)
    send(cluster, b"3")
    flush(cluster)

    assert log.values() == [b"0", b"1", b"2", b"3"]
    assert sent_batches(cluster)[-2:] == [(0x7FFF_FFFF, 2, 0), (1, 1, 0)]


def test_a_refusal_that_may_pass_is_told_as_trouble_until_a_batch_is_taken() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = producer(cluster)
    cluster.rule(api_keys.PRODUCE, refusing(errors.NOT_ENOUGH_REPLICAS))
    receipt = send(cluster, b"a")

    cluster.run_for(5_000)

    assert not receipt.is_done
    assert "NOT_ENOUGH_REPLICAS" in core.trouble(cluster.now_ms)
    assert core.sender.settled == 0

    cluster.rule(api_keys.PRODUCE, None)
    flush(cluster)

    assert core.trouble(cluster.now_ms) == ""
    assert core.sender.settled == 1


@pytest.mark.parametrize(
    ("code", "leader_id"), [(errors.NONE, 1), (errors.LEADER_NOT_AVAILABLE, -1)]
)
def test_a_broker_that_knows_no_newer_leader_is_not_the_only_one_that_is_asked(
    code: int, leader_id: int
) -> None:
    """One that is cut off from the others names itself, and refuses what it leads, or nobody."""
    cluster = ScriptedCluster(brokers=3)
    log = cluster.topic("t", leader_id=2).logs[0]
    log.leader_epoch = 1

    def metadata(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.metadata(seen)
        if seen.broker_id == 1:
            partition = answer.topics[0].partitions[0]
            partition.leader_id, partition.leader_epoch = leader_id, 0
            partition.error_code = code
        return answer

    cluster.rule(api_keys.METADATA, metadata)
    producer(cluster)

    receipt = send(cluster, b"a")
    cluster.run_until(lambda: receipt.is_done, 10_000)

    assert receipt.error is None
    assert log.values() == [b"a"]
