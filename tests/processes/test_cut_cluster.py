"""Three real brokers whose connections to each other and to etcd are cut, both ways or one way, or
slow.

What acks=all acknowledged is there afterwards, once and in order, on every replica.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

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
    wait_until_in_sync,
)
from tests.support.cluster.writer import Writer

SETTINGS = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "2000",
    "replica.socket.timeout.ms": "3000",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    """A cluster whose brokers all serve; whoever cuts something heals it."""
    with BrokerCluster(tmp_path_factory.mktemp("cluster"), SETTINGS, has_proxies=True) as made:
        yield made


@pytest.fixture(autouse=True)
def healed(cluster: BrokerCluster) -> Iterator[None]:
    """Whatever a test has cut is whole for the next one."""
    yield
    for proxy in [*cluster.peers.values(), *cluster.stores.values()]:
        proxy.heal()


def writer_of(cluster: BrokerCluster, name: str) -> Writer:
    create(cluster, name)
    writer = Writer(cluster.addresses, name)
    writer.start()
    writer.wait_for_more()
    return writer


def end(cluster: BrokerCluster, writer: Writer) -> None:
    """After everything is healed: all partitions go on, nothing is lost, replicas are alike."""
    writer.wait_for_more()
    wait_until_in_sync(cluster, writer.topic)
    writer.end()
    assert_all_is_there(cluster, writer)
    assert_replicas_are_alike(cluster, writer.topic)


def isr(cluster: BrokerCluster, asked: int, name: str, leader: int) -> list[list[int]]:
    """The in-sync replicas of the partitions that this broker leads."""
    topic = cluster.topic(asked, name)
    return [sorted(row.isr) for row in topic.partitions.values() if row.leader_id == leader]


def test_a_broker_that_is_cut_off_from_etcd_alone_leads_no_more(cluster: BrokerCluster) -> None:
    writer = writer_of(cluster, "no-etcd")
    old = leader_of(cluster, 1, "no-etcd")
    other = old % 3 + 1
    cluster.stores[old].cut()
    wait_until(lambda: is_led_by_another(cluster, other, "no-etcd", old), "another leader")
    writer.wait_for_more()
    cluster.stores[old].heal()
    cluster.wait_until_serving(other, EVERY_BROKER)

    end(cluster, writer)


@pytest.mark.parametrize(
    ("requests", "answers"),
    [(True, True), (True, False), (False, True)],
    ids=["both", "to", "from"],
)
def test_what_a_broker_leads_rests_while_nobody_can_follow_it(
    cluster: BrokerCluster, requests: bool, answers: bool
) -> None:
    """Too few replicas take part: nothing is acknowledged, and nothing is lost by it."""
    name = f"unfollowed-{requests}-{answers}".lower()
    writer = writer_of(cluster, name)
    cluster.peers[1].cut(requests=requests, answers=answers)
    # Down to the floor of two, and not below it.  A partition without news may look as if all
    # were in sync: a follower whose requests arrive asks from its end.
    wait_until(
        lambda: "yes" if any(len(each) == 2 for each in isr(cluster, 1, name, 1)) else "",
        "in-sync replicas down to the floor",
    )
    cluster.peers[1].heal()

    end(cluster, writer)


def test_a_broker_that_dies_while_etcd_is_away_is_replaced_afterwards(
    cluster: BrokerCluster,
) -> None:
    writer = writer_of(cluster, "dies-meanwhile")
    old = leader_of(cluster, 1, "dies-meanwhile")
    other = old % 3 + 1
    for proxy in cluster.stores.values():
        proxy.cut()
    cluster.brokers[old].send_signal(signal.SIGKILL)
    cluster.brokers[old].wait()
    for proxy in cluster.stores.values():
        proxy.heal()
    wait_until(lambda: is_led_by_another(cluster, other, "dies-meanwhile", old), "another leader")
    writer.wait_for_more()
    cluster.start_broker(old)

    end(cluster, writer)


def test_a_follower_that_gets_a_byte_at_a_time_holds_up_nobody(cluster: BrokerCluster) -> None:
    writer = writer_of(cluster, "dripping")
    for leader in (1, 2):
        cluster.peers[leader].slow(1, of=b"broker-3-replica")
    wait_until(
        lambda: (
            "yes"
            if all(
                3 not in each for leader in (1, 2) for each in isr(cluster, 1, "dripping", leader)
            )
            else ""
        ),
        "replicas in sync without the slow one",
    )
    writer.wait_for_more()
    for leader in (1, 2):
        cluster.peers[leader].heal()

    end(cluster, writer)


def test_a_slow_link_to_etcd_is_enough_and_one_of_a_byte_at_a_time_costs_the_leaders(
    cluster: BrokerCluster,
) -> None:
    writer = writer_of(cluster, "slow-store")
    old = leader_of(cluster, 1, "slow-store")
    other = old % 3 + 1
    cluster.stores[old].slow(4_000)
    create(cluster, "made-slowly")
    cluster.stores[old].slow(1)
    wait_until(lambda: is_led_by_another(cluster, other, "slow-store", old), "another leader")
    writer.wait_for_more()
    cluster.stores[old].heal()
    cluster.wait_until_serving(other, EVERY_BROKER)

    end(cluster, writer)
