"""metrics() of a consumer: counts that only grow, and where it stands."""

from __future__ import annotations

from typing import Any

from tests.support.client.consumer_scene import T0
from tests.support.client.group_member import GroupScene
from tests.support.client.scripted_cluster import ScriptedCluster
from tests.support.client.scripted_consumer import consumer_of

from tarry.base import errors
from tarry.client.metrics import ConnectionMetrics, ConsumerMetrics, PlaceMetrics
from tarry.protocol import api_keys


def test_a_consumer_that_has_done_nothing_says_so() -> None:
    scene = GroupScene()

    found = scene.core.metrics(scene.cluster.now_ms)

    nothing = ConnectionMetrics(0, 0, 0, 0)
    assert found == ConsumerMetrics(0, 0, 0, {}, 0, 0, 0, -1, -1, nothing)


def test_records_bytes_and_lag_are_counted() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"0", b"1")
    log.add(b"2")
    consumer = consumer_of(cluster)
    consumer.assign([T0])
    consumer.seek("t", 0, 0)

    consumer.poll(max_records=1)
    found = consumer.metrics()

    assert found.records == 2, "the rest of the batch is decoded and not handed out yet"
    assert found.bytes == sum(len(one) for one in log.batches)
    assert found.fetches == 1
    assert found.places == {T0: PlaceMetrics(position=1, lag=2)}
    assert found.connections.made >= 1
    assert (found.connections.lost, found.connections.in_backoff) == (0, 0)


def test_records_that_an_iteration_gives_back_are_counted_once() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(*[b"x"] * 10)
    consumer = consumer_of(cluster)
    consumer.assign([T0])
    consumer.seek("t", 0, 0)
    read = 0
    while read < 10:
        for _ in consumer:
            read += 1
            if read % 3 == 0:
                break
        if read == 9:
            read += len(consumer.poll()[0].records)

    assert consumer.metrics().records == 10


def test_a_commit_that_is_given_up_before_it_is_sent_counts_as_failed() -> None:
    scene = GroupScene(auto_offset_reset="earliest")
    scene.join()
    core = scene.core
    core.commit_async({T0: 1}, None, scene.cluster.now_ms)

    core.committer.give_up([T0])

    found = core.metrics(scene.cluster.now_ms)
    assert (found.commits, found.commits_failed) == (0, 1)


def test_rebalances_commits_and_ages_are_counted() -> None:
    scene = GroupScene(auto_offset_reset="earliest", heartbeat_ramp=False)
    scene.cluster.topics["t"].logs[0].add(b"0")
    scene.join()
    core, cluster = scene.core, scene.cluster

    core.commit_async({T0: 1}, None, cluster.now_ms)
    cluster.run_for(50)
    scene.codes[api_keys.OFFSET_COMMIT] = [errors.OFFSET_METADATA_TOO_LARGE]
    core.commit_async({T0: 0}, None, cluster.now_ms)
    cluster.run_for(50)
    found = core.metrics(cluster.now_ms)

    assert (found.rebalances, found.commits, found.commits_failed) == (1, 1, 1)
    assert found.poll_age_ms == 1_100
    assert 0 < found.heartbeat_age_ms <= 3_000


def test_connections_that_are_lost_or_refused_are_counted() -> None:
    scene = GroupScene()
    scene.join()
    made = scene.core.metrics(scene.cluster.now_ms).connections.made
    address = scene.cluster.brokers[1]
    scene.cluster.refused[address] = "connection refused"
    scene.cluster.cut(1)
    scene.cluster.run_for(300)

    found = scene.core.metrics(scene.cluster.now_ms).connections

    assert found.made == found.lost == made
    assert found.failed >= 1
    assert found.in_backoff >= 1


def test_a_snapshot_is_a_value() -> None:
    consumer: Any = consumer_of(ScriptedCluster())

    before = consumer.metrics()
    consumer.assign([T0])

    assert before.places == {}
    assert list(consumer.metrics().places) == [T0]
