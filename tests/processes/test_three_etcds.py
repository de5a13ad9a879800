"""Three brokers with their metadata in an etcd of three members, of which some are killed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import wait_until
from tests.support.cluster.broker_cluster import BrokerCluster
from tests.support.cluster.readers import Reader
from tests.support.cluster.replicated import (
    EVERY_BROKER,
    assert_replicas_are_alike,
    create,
    wait_until_in_sync,
)
from tests.support.cluster.three_etcds import ThreeEtcds
from tests.support.cluster.writer import Writer
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, NewTopic

SETTINGS = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "min.insync.replicas": "2",
    "replica.lag.time.max.ms": "10000",
    # Members that elect a leader on a busy machine must not cost a life.
    "broker.session.timeout.ms": "20000",
}


@pytest.fixture
def etcds(tmp_path: Path) -> ThreeEtcds:
    return ThreeEtcds(tmp_path)


@pytest.fixture
def cluster(tmp_path: Path, etcds: ThreeEtcds) -> Iterator[BrokerCluster]:
    with BrokerCluster(tmp_path, SETTINGS, etcds=etcds) as made:
        yield made


def lives(cluster: BrokerCluster) -> list[int]:
    """How many lives each broker has begun, as its log tells."""
    return [broker.log().count(" lives in epoch ") for broker in cluster.brokers.values()]


def creation_error(cluster: BrokerCluster, name: str) -> str:
    with Admin(bootstrap_servers=cluster.addresses) as admin:
        wanted = [NewTopic(name, 1)]
        error = admin.create_topics(wanted, outcomes=True, timeout=PATIENCE_S)[0].error
    return "" if error is None else str(error)


def make(cluster: BrokerCluster, name: str) -> None:
    """Ask for a topic until it is there; a request that got no answer may have made it."""

    def is_made() -> str:
        return (
            "yes" if not creation_error(cluster, name) or cluster.topic(1, name).partitions else ""
        )

    wait_until(is_made, f"topic {name}")


def test_the_leader_of_etcd_is_killed_and_then_its_majority(
    cluster: BrokerCluster, etcds: ThreeEtcds
) -> None:
    create(cluster, "served")
    writer = Writer(cluster.addresses, "served")
    reader = Reader(cluster.addresses, "served")
    member = Reader(cluster.addresses, "served", "readers")
    everybody = (writer, reader, member)
    for each in everybody:
        each.start()
    for each in everybody:
        each.wait_for_more()
    wait_until_in_sync(cluster, "__consumer_offsets")

    first = etcds.wait_for_leader()
    with etcds.without(first):
        for each in everybody:
            each.wait_for_more()
        make(cluster, "made-without")
        second = etcds.wait_for_leader()
        before = lives(cluster)
        with etcds.without(second):
            for each in everybody:
                each.wait_for_more()
            refused = creation_error(cluster, "not-made")
            for each in everybody:
                each.wait_for_more()
    cluster.wait_until_known("made-without")
    cluster.wait_until_serving(1, EVERY_BROKER)
    writer.wait_for_more()
    writer.end()
    for each in (reader, member):
        each.end(writer.written)

    assert before == [1, 1, 1]
    assert second != first
    # A request to a member that has lost the others may still be carried out.
    assert re.match("etcd (does not answer|did not answer in time)", refused)
    assert_replicas_are_alike(cluster, "served")
