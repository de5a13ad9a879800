"""The producer's repeats: no record is lost, doubled or reordered, whatever is lost on the way."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.support.client.consumer_scene import by_default
from tests.support.client.producer_scene import (
    appended_but_cut,
    appended_but_late,
    flush,
    producer,
    refusing,
    send,
)
from tests.support.client.scripted_cluster import CUT, ScriptedCluster, Seen, seeded_random

from tarry.base import errors
from tarry.protocol import api_keys

# --- The way there


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
    cluster.script(api_keys.PRODUCE, by_default, refusing(errors.NOT_ENOUGH_REPLICAS))

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
