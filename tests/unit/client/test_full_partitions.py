"""Partitions of which enough is kept: others at the same broker are asked about only if that does
not keep the broker waiting."""

from __future__ import annotations

from tests.support.client.consumer_scene import T0, consumer, poll, poll_all
from tests.support.client.scripted_cluster import ScriptedCluster

from tarry.protocol import api_keys

T1 = ("t", 1)
# Less than a batch of the logs below: one batch is enough.
SMALL = {"max_partition_fetch_bytes": 50, "fetch_max_wait_ms": 500}


def test_a_partition_without_records_does_not_hold_up_a_full_one() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t", partitions=2).logs[0]
    wanted = [b"%d" % number for number in range(30)]
    for value in wanted:
        log.add(value)
    core = consumer(cluster, auto_offset_reset="earliest", **SMALL)
    core.assign([T0, T1])
    found = poll_all(cluster, 1)
    began_ms = cluster.now_ms

    found += poll_all(cluster, 29)

    assert found == wanted
    assert cluster.now_ms - began_ms < 500


def test_a_partition_that_is_known_to_have_records_is_asked_about_beside_a_full_one() -> None:
    cluster = ScriptedCluster()
    topic = cluster.topic("t", partitions=2)
    for number in range(4):
        topic.logs[0].add(b"%d" % number)
        topic.logs[1].add(b"%d" % number)
    core = consumer(cluster, auto_offset_reset="earliest", **SMALL)
    core.assign([T0, T1])
    cluster.run_until(lambda: core.has_records(cluster.now_ms))
    core.take(1, cluster.now_ms)
    before = len(cluster.requests(api_keys.FETCH))

    cluster.run_for(50)

    (fetch,) = cluster.requests(api_keys.FETCH)[before:]
    assert [one.partition for one in fetch.request.topics[0].partitions] == [0]
    assert core.position(T1).buffered_bytes > 0


def test_a_partition_that_the_user_has_paused_holds_up_nobody() -> None:
    cluster = ScriptedCluster()
    topic = cluster.topic("t", partitions=2)
    topic.logs[0].add(b"0")
    topic.logs[0].add(b"1")
    core = consumer(cluster, auto_offset_reset="earliest", **SMALL)
    core.assign([T0, T1])
    cluster.run_until(lambda: core.has_records(cluster.now_ms))
    core.pause([T0])
    topic.logs[1].add(b"beside")

    assert poll(cluster) == [b"beside"]
