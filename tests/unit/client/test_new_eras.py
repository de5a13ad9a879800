"""What is on its way when a position changes counts for nothing; what was wrong stays wrong."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.consumer_scene import (
    T0,
    answer_with,
    answer_with_bytes,
    by_default,
    fetched,
    poll,
    poll_all,
    reading,
)
from tests.support.client.group_member import PLACE, GroupScene
from tests.support.client.scripted_cluster import Log, ScriptedCluster, Seen

from tarry.base import errors
from tarry.client.core.group.offsets.what import handed_out_offsets
from tarry.client.errors import LogTruncated, TopicRecreated
from tarry.protocol import api_keys
from tarry.records.batch import LAST_OFFSET_DELTA


def filled(cluster: ScriptedCluster, count: int = 10) -> Log:
    log = cluster.topic("t").logs[0]
    for number in range(count):
        log.add(b"%d" % number)
    return log


def values(first: int, end: int) -> list[bytes | None]:
    return [b"%d" % number for number in range(first, end)]


def test_a_pause_drops_the_fetch_that_is_under_way() -> None:
    cluster = ScriptedCluster()
    log = filled(cluster, 4)
    core = reading(cluster)
    assert poll(cluster) == values(0, 4)
    cluster.run_for(20)
    log.add(b"4")
    core.pause([T0])
    cluster.run_for(2_000)
    assert core.fetcher.buffered_bytes == 0

    core.resume([T0])

    assert poll(cluster) == [b"4"]


def test_a_pause_leaves_what_was_handed_out_unfinished() -> None:
    cluster = ScriptedCluster()
    filled(cluster, 4)
    core = reading(cluster)
    assert poll(cluster) == values(0, 4)

    core.pause([T0])

    assert core.position(T0).finished == 0


def test_a_topic_made_anew_stays_told_through_a_pause() -> None:
    cluster = ScriptedCluster()
    filled(cluster, 2)
    topic = cluster.topics["t"]
    core = reading(cluster, metadata_max_age_ms=1_000)
    assert poll(cluster) == values(0, 2)
    topic.topic_id, topic.logs[0] = b"\xff" * 16, Log(1)
    for _ in range(5):
        topic.logs[0].add(b"of another topic")
    cluster.run_for(2_000)

    core.pause([T0])
    core.resume([T0])

    with pytest.raises(TopicRecreated):
        poll(cluster)


def test_what_a_new_leader_may_not_have_is_not_taken_from_the_old_one() -> None:
    cluster = ScriptedCluster(brokers=2)
    log = filled(cluster, 2)
    # Metadata comes by another connection than the late answer.
    core = reading(cluster, metadata_max_age_ms=100, bootstrap_servers="10.0.0.2:9092")
    assert poll(cluster) == values(0, 2)

    def late(cluster: ScriptedCluster, seen: Seen) -> Any:
        log.add(b"lost with its leader")
        response = fetched(cluster, seen)
        del log.batches[2:]
        log.end_offset = 2
        log.leader_id, log.leader_epoch = 2, 1
        return (400, response)

    cluster.script(api_keys.FETCH, late)
    cluster.run_for(3_000)
    log.add(b"of the new leader")

    assert poll_all(cluster, 1) == [b"of the new leader"]
    assert core.position(T0).position == 3


def test_how_far_a_damaged_answer_claims_to_go_is_no_truncation() -> None:
    cluster = ScriptedCluster()
    log = filled(cluster, 2)
    core = reading(cluster, metadata_max_age_ms=500)
    assert poll(cluster) == values(0, 2)
    log.add(b"2")
    damaged = bytearray(log.batches[-1])
    damaged[LAST_OFFSET_DELTA + 3] ^= 16
    cluster.script(api_keys.FETCH, answer_with_bytes(bytes(damaged)), by_default)
    cluster.run_until(lambda: core.has_records(cluster.now_ms))
    assert core.position(T0).fetch_offset == 19

    # Before a poll has found out, somebody else leads.
    log.leader_epoch = 1
    cluster.run_for(3_000)

    assert poll_all(cluster, 1) == [b"2"]


def test_a_reset_waits_until_what_was_fetched_before_is_finished() -> None:
    cluster = ScriptedCluster()
    log = filled(cluster, 6)
    core = reading(cluster, auto_offset_reset="latest")
    cluster.run_until(lambda: core.has_records(cluster.now_ms))
    first = [record.value for group in core.take(2, cluster.now_ms) for record in group.records]
    log.start_offset = 20
    log.batches, log.end_offset = [], 20

    cluster.run_for(3_000)
    rest = [record.value for group in core.take(500, cluster.now_ms) for record in group.records]
    assert first + rest == values(0, 6)
    core.finish_handed_out()
    cluster.run_for(3_000)

    log.add(b"20")
    assert poll_all(cluster, 1) == [b"20"]


def test_a_range_that_holds_the_offset_is_no_reason_to_leave_it() -> None:
    cluster = ScriptedCluster()
    filled(cluster, 3)
    cluster.script(api_keys.FETCH, answer_with(errors.OFFSET_OUT_OF_RANGE), by_default)
    reading(cluster, auto_offset_reset="latest")

    assert poll_all(cluster, 3) == values(0, 3)


# --- What a group commits


def hand_out(scene: GroupScene, count: int) -> None:
    core = scene.core
    scene.cluster.run_until(lambda: core.has_records(scene.cluster.now_ms), 5_000)
    assert sum(len(group.records) for group in core.take(count, scene.cluster.now_ms)) == count


def test_offsets_of_a_topic_that_is_gone_are_not_committed_for_the_new_one() -> None:
    scene = GroupScene(auto_offset_reset="earliest", metadata_max_age_ms=1_000)
    topic = scene.cluster.topics["t"]
    for number in range(5):
        topic.logs[0].add(b"%d" % number)
    scene.join()
    hand_out(scene, 5)
    topic.topic_id, topic.logs[0] = b"\xff" * 16, Log(1)
    scene.cluster.run_for(1_500)

    scene.core.finish_handed_out()

    assert scene.core.finished_offsets() == {}
    assert handed_out_offsets(scene.core.fetcher.positions) == {}


def test_offsets_beyond_a_truncation_are_not_committed() -> None:
    scene = GroupScene(auto_offset_reset="earliest", metadata_max_age_ms=500)
    log = scene.cluster.topics["t"].logs[0]
    for number in range(5):
        log.add(b"%d" % number)
    scene.join()
    hand_out(scene, 5)
    del log.batches[3:]
    log.end_offset, log.leader_epoch = 3, 1
    scene.cluster.run_for(3_000)

    scene.core.finish_handed_out()

    assert isinstance(scene.core.standing_error(scene.cluster.now_ms), LogTruncated)
    assert scene.core.finished_offsets() == {}


def test_a_commit_stops_before_a_damaged_batch() -> None:
    scene = GroupScene(
        auto_offset_reset="earliest", max_partition_fetch_bytes=200, enable_auto_commit=False
    )
    log = scene.cluster.topics["t"].logs[0]
    for number in range(20):
        log.add(b"%d" % number)
    flawed = bytearray(log.batches[7])
    flawed[-1] ^= 1
    log.batches[7] = bytes(flawed)
    scene.join()
    for _ in range(20):
        scene.poll(500)
        now_ms = scene.cluster.now_ms
        if scene.core.has_records(now_ms) and scene.core.standing_error(now_ms) is None:
            scene.core.take(500, now_ms)

    scene.core.finish_handed_out()

    assert scene.core.finished_offsets()[PLACE].offset == 7
