"""Three real brokers with three replicas of each partition: what acks=all acknowledged outlives
kills, stops, pauses, a lost disk and the absence of etcd; afterwards all replicas are alike.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from functools import partial

import pytest
from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.replicated import (
    EVERY_BROKER,
    assert_all_is_there,
    assert_replicas_are_alike,
    create,
    is_led_by_another,
    leader_of,
    start_all,
    wait_until_in_sync,
)
from tests.support.cluster.writer import Writer, take
from tests.support.patience import PATIENCE_S
from tests.support.raw_client import RawClient, one_batch

from tarry.base import errors
from tarry.client import Admin, Consumer, Producer

SETTINGS = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    # A machine that is busy lets a follower wait; a broker that is gone leaves with its life.
    "replica.lag.time.max.ms": "10000",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    """A cluster whose brokers all serve; whoever ends one starts it again."""
    with BrokerCluster(tmp_path_factory.mktemp("cluster"), SETTINGS) as made:
        yield made


def test_brokers_killed_in_turn_lose_double_and_reorder_nothing(cluster: BrokerCluster) -> None:
    create(cluster, "killed")
    writer = Writer(cluster.addresses, "killed")
    writer.start()
    for broker_id in cluster.brokers:
        writer.wait_for_more()
        cluster.brokers[broker_id].kill()
        # The others go on without it.
        writer.wait_for_more()
        cluster.start_broker(broker_id)
        wait_until_in_sync(cluster, "killed")
    writer.end()

    assert_all_is_there(cluster, writer)
    assert_replicas_are_alike(cluster, "killed")


def test_two_of_three_and_then_all_at_once_are_killed(cluster: BrokerCluster) -> None:
    create(cluster, "all-killed")
    writer = Writer(cluster.addresses, "all-killed")
    writer.start()
    writer.wait_for_more()
    for broker_id in (2, 3):
        cluster.brokers[broker_id].kill()
    start_all(cluster)
    writer.wait_for_more()
    for broker in cluster.brokers.values():
        broker.kill()
    start_all(cluster)
    writer.wait_for_more()
    writer.end()

    assert_all_is_there(cluster, writer)
    assert_replicas_are_alike(cluster, "all-killed")


def test_a_rolling_restart_moves_the_leaders_first(cluster: BrokerCluster) -> None:
    create(cluster, "rolled")
    writer = Writer(cluster.addresses, "rolled")
    writer.start()
    for broker_id in cluster.brokers:
        writer.wait_for_more()
        wait_until_in_sync(cluster, "rolled")
        cluster.brokers[broker_id].stop_cleanly()
        other = broker_id % 3 + 1
        led = [leader_of(cluster, other, "rolled", index) for index in range(6)]
        cluster.start_broker(broker_id)
        assert broker_id not in led
        assert -1 not in led
    writer.wait_for_more()
    writer.end()

    assert_all_is_there(cluster, writer)
    assert_replicas_are_alike(cluster, "rolled")


def test_a_leader_that_sleeps_is_followed_by_another_and_writes_nothing_more(
    cluster: BrokerCluster,
) -> None:
    create(cluster, "slept")
    writer = Writer(cluster.addresses, "slept")
    writer.start()
    writer.wait_for_more()
    old = leader_of(cluster, 1, "slept")
    other = old % 3 + 1
    cluster.brokers[old].send_signal(signal.SIGSTOP)
    wait_until(partial(is_led_by_another, cluster, other, "slept", old), "another leader")
    writer.wait_for_more()
    cluster.brokers[old].send_signal(signal.SIGCONT)
    writer.wait_for_more()
    writer.end()

    assert_all_is_there(cluster, writer)
    assert_replicas_are_alike(cluster, "slept")


def test_a_lost_disk_is_filled_again_and_its_broker_leads_again(cluster: BrokerCluster) -> None:
    create(cluster, "refilled")
    writer = Writer(cluster.addresses, "refilled")
    writer.start()
    writer.wait_for_more()
    lost = cluster.brokers[3]
    lost.kill()
    shutil.rmtree(lost.directory / "data")
    cluster.start_broker(3)
    wait_until_in_sync(cluster, "refilled")
    for broker_id in (1, 2):
        cluster.brokers[broker_id].stop()
    wait_until(partial(is_led_by_another, cluster, 3, "refilled", 0), "a leader")
    assert leader_of(cluster, 3, "refilled") == 3
    start_all(cluster)
    writer.wait_for_more()
    writer.end()

    assert_all_is_there(cluster, writer)
    assert_replicas_are_alike(cluster, "refilled")


def test_with_too_few_replicas_acks_all_is_refused_and_nothing_else(
    cluster: BrokerCluster,
) -> None:
    create(cluster, "few")
    for broker_id in (1, 2):
        cluster.brokers[broker_id].kill()
    wait_until(
        lambda: "yes" if cluster.serving(3) == [3] else "", "a cluster of the third broker alone"
    )
    wait_until(lambda: "yes" if leader_of(cluster, 3, "few") == 3 else "", "leader 3")
    with RawClient(cluster.brokers[3].port) as client:
        refused = client.produce(one_batch(b"x"), "few")
    start_all(cluster)
    wait_until_in_sync(cluster, "few")
    with Producer(bootstrap_servers=cluster.addresses) as producer:
        offset = producer.send("few", b"y", partition=0).result(PATIENCE_S).offset

    assert refused.error_code == errors.NOT_ENOUGH_REPLICAS
    assert offset == 0


def test_a_group_goes_on_where_it_was_when_its_coordinator_is_killed(
    cluster: BrokerCluster,
) -> None:
    create(cluster, "grouped")
    with Producer(bootstrap_servers=cluster.addresses) as producer:
        for number in range(60):
            producer.send("grouped", b"%d" % number, partition=number % 6)
        producer.flush()
        with Consumer(
            bootstrap_servers=cluster.addresses, group_id="moved", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe(["grouped"])
            first = take(consumer, 60)
            consumer.commit()
            wait_until_in_sync(cluster, "__consumer_offsets")
            for broker_id in cluster.brokers:
                cluster.brokers[broker_id].kill()
                for number in range(6):
                    producer.send("grouped", b"%d-%d" % (broker_id, number), partition=number)
                producer.flush()
                first += take(consumer, 6)
                consumer.commit()
                cluster.start_broker(broker_id)
                wait_until_in_sync(cluster, "__consumer_offsets")
    with Admin(bootstrap_servers=cluster.addresses) as admin:
        offsets = admin.group_offsets(["moved"])["moved"]

    assert sorted(first) == sorted(set(first))
    assert len(first) == 60 + 3 * 6
    assert isinstance(offsets, dict)
    assert [each.offset for each in offsets.values()] == [13] * 6


def test_while_etcd_is_away_three_replicas_go_on(cluster: BrokerCluster) -> None:
    create(cluster, "goes-on")
    # A leader that has not read of the topic yet can not while etcd is away.
    cluster.wait_until_known("goes-on")
    with cluster.etcd.away(), Producer(bootstrap_servers=cluster.addresses) as producer:
        offsets = [
            producer.send("goes-on", b"x", partition=index % 6).result(PATIENCE_S).offset
            for index in range(60)
        ]
    cluster.wait_until_serving(1, EVERY_BROKER)

    assert offsets == [index // 6 for index in range(60)]
