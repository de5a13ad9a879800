"""Three real brokers: records that wait outlive the leader, which is killed before they are due."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import pytest
from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.replicated import (
    EVERY_BROKER,
    is_led_by_another,
    leader_of,
    wait_until_in_sync,
)
from tests.support.cluster.writer import take

from tarry.client import Admin, Consumer, NewTopic, Producer

TOPIC = "later"
SHOWN = f"__scheduled.{TOPIC}"
DELAY_MS = 6_000
HOUR_MS = 3_600_000
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "10000",
}


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    """Three brokers with a topic whose records are due by their timestamps."""
    with BrokerCluster(tmp_path_factory.mktemp("cluster"), SETTINGS) as made:
        made.wait_until_serving(1, EVERY_BROKER)
        configs = {"delay.enable": "true", "delay.source": "timestamp"}
        with Admin(bootstrap_servers=made.addresses) as admin:
            outcomes = admin.create_topics([NewTopic(TOPIC, 1, configs=configs)])
            assert [each.error for each in outcomes] == [None]
        wait_until_in_sync(made, TOPIC)
        yield made


def park(cluster: BrokerCluster, due_ms: int, values: Iterable[bytes]) -> None:
    """Let records wait, each a millisecond longer than the one before."""
    with Producer(bootstrap_servers=cluster.addresses, acks="all") as producer:
        receipts = [
            producer.send(TOPIC, value, timestamp=due_ms + number)
            for number, value in enumerate(values)
        ]
        producer.flush()
        assert [each.error for each in receipts] == [None] * len(receipts)
        assert receipts


def kill_leader(cluster: BrokerCluster) -> None:
    """Kill the leader, and wait until another broker leads."""
    leader_id = leader_of(cluster, 1, TOPIC)
    cluster.brokers[leader_id].kill()
    other = next(each for each in EVERY_BROKER if each != leader_id)
    wait_until(lambda: is_led_by_another(cluster, other, TOPIC, leader_id), "another leader")


def test_what_waits_outlives_its_leader_and_comes_once_and_in_time(cluster: BrokerCluster) -> None:
    due_ms = int(time.time() * 1_000) + DELAY_MS
    values = [b"%d" % number for number in range(50)]
    park(cluster, due_ms, values)

    kill_leader(cluster)

    with Consumer(bootstrap_servers=cluster.addresses, auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, 0)])
        found = [value for _, value in take(consumer, 1)]
        first_ms = time.time() * 1_000
        found += [value for _, value in take(consumer, len(values) - len(found))]
        more = consumer.poll(1.0)

    assert first_ms >= due_ms
    assert sorted(found) == sorted(values)
    assert more == []


def test_a_consumer_of_what_waits_goes_on_at_the_next_leader(cluster: BrokerCluster) -> None:
    due_ms = int(time.time() * 1_000) + HOUR_MS
    park(cluster, due_ms, [b"a", b"b"])
    with Consumer(bootstrap_servers=cluster.addresses, auto_offset_reset="earliest") as consumer:
        consumer.assign([(SHOWN, 0)])
        found = take(consumer, 2)
        kill_leader(cluster)
        park(cluster, due_ms, [b"c"])
        found += take(consumer, 1)
        consumer.seek_to_beginning()
        again = take(consumer, 3)

    assert [value for _, value in found] == [b"a", b"b", b"c"]
    assert again == found
