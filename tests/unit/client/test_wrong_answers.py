"""Answers that can be read and are wrong: nothing is taken for done, and nothing spins or stands
still in silence."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.consumer_scene import T0, by_default, consumer, poll, poll_all, reading
from tests.support.client.fetch_cluster import FetchCluster
from tests.support.client.group_member import PLACE, GroupScene
from tests.support.client.hand_face import perform
from tests.support.client.scripted_cluster import ScriptedCluster, Seen, seeded_random

from tarry.base import errors
from tarry.client.core.consumer.column_taker import ColumnTaker
from tarry.client.core.consumer.lookup import LATEST
from tarry.client.core.consumer.scan import ScanCore, scan_settings
from tarry.client.core.producer.core import ProducerCore
from tarry.client.errors import CommitFailed, DeliveryFailed
from tarry.client.settings import ConsumerSettings, ProducerSettings
from tarry.link.errors import ClientError
from tarry.protocol import api_keys
from tarry.protocol.messages import fetch
from tarry.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tarry.protocol.messages.offset_commit import OffsetCommitResponse
from tarry.protocol.messages.produce import LeaderIdAndEpoch, NodeEndpoint
from tarry.records.columns import OFFSETS

SERVERS = "10.0.0.1:9092"


def requests_in(cluster: ScriptedCluster, api_key: int, duration_ms: int) -> int:
    """Count the requests of an API that leave while so much time passes."""
    before = len(cluster.requests(api_key))
    cluster.run_for(duration_ms)
    return len(cluster.requests(api_key)) - before


# --- Reading


def scan_of(cluster: ScriptedCluster, end: int) -> ScanCore:
    settings = scan_settings(
        ConsumerSettings(bootstrap_servers=SERVERS, max_partition_fetch_bytes=200)
    )
    ranges = {T0: (0, end)}
    core: ScanCore = cluster.attach(ScanCore(settings, seeded_random(), cluster.now_ms, ranges))
    return core


def rows_of(cluster: ScriptedCluster, core: ScanCore) -> int:
    """Scan to the end; return how many rows came."""
    count = 0
    while True:
        taker = ColumnTaker(OFFSETS, 1_000)
        runs = perform(cluster, core.begin_rows(taker, 10_000, cluster.now_ms))
        if not runs:
            return count
        count += sum(run.row_count for run in runs)


@pytest.mark.parametrize("gives_sessions", [False, True])
def test_a_scan_that_is_throttled_reads_all_of_its_range(*, gives_sessions: bool) -> None:
    cluster = FetchCluster(gives_sessions=gives_sessions)
    log = cluster.log()
    for number in range(20):
        log.add(b"%d" % number)
    core = scan_of(cluster, 20)
    held: list[int] = []

    def throttled(scripted: ScriptedCluster, seen: Seen) -> Any:
        # Kafka's answer to a consumer above its quota: a pause, and no partition.
        held.append(seen.now_ms)
        answer = cluster.fetch(seen)
        session_id = (answer[1] if isinstance(answer, tuple) else answer).session_id
        return FetchResponse(300, session_id=session_id)

    cluster.script(api_keys.FETCH, by_default, *[throttled] * 4)

    assert rows_of(cluster, core) == 20
    assert len(held) == 4


def test_a_check_of_the_epoch_that_is_not_answered_is_made_again() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    reading(cluster, metadata_max_age_ms=500)
    assert poll(cluster) == [b"0"]

    def leaves_out(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = cluster.default(seen)
        response.topics = []
        return response

    cluster.script(api_keys.OFFSET_FOR_LEADER_EPOCH, leaves_out)
    log.leader_epoch += 1
    cluster.run_for(3_000)
    log.add(b"1")

    assert poll_all(cluster, 1) == [b"1"]


@pytest.mark.parametrize("offset", [-1, -7])
def test_an_offset_that_no_log_has_is_an_error_and_not_asked_for_without_end(offset: int) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0")

    def negative(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = cluster.default(seen)
        response.topics[0].partitions[0].offset = offset
        return response

    cluster.rule(api_keys.LIST_OFFSETS, negative)
    core = consumer(cluster, auto_offset_reset="latest")
    core.assign([T0])

    assert requests_in(cluster, api_keys.LIST_OFFSETS, 5_000) < 20
    with pytest.raises(ClientError, match=rf"t \[0\].*offset {offset}"):
        core.take(500, cluster.now_ms)
    with pytest.raises(ClientError, match=rf"t \[0\].*offset {offset}"):
        perform(cluster, core.begin_offsets({T0: LATEST}, 2_000, cluster.now_ms))


def test_a_leader_that_no_broker_is_costs_no_storm_of_questions() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    log.leader_id = 77
    reading(cluster)

    assert requests_in(cluster, api_keys.METADATA, 10_000) < 40
    log.leader_id = 1
    assert poll(cluster) == [b"0"]


# --- Groups


def test_a_commit_that_the_answer_leaves_out_is_not_taken_for_done() -> None:
    scene = GroupScene()
    scene.join()

    def leaves_out(cluster: ScriptedCluster, seen: Seen) -> Any:
        return OffsetCommitResponse()

    scene.cluster.script(api_keys.OFFSET_COMMIT, leaves_out, leaves_out)

    perform(scene.cluster, scene.core.begin_commit({PLACE: 5}, 10_000, scene.cluster.now_ms))

    assert scene.committed == 5
    assert len(scene.requests(api_keys.OFFSET_COMMIT)) == 3


def test_an_offset_that_was_given_up_is_not_sent_when_its_commit_is_repeated() -> None:
    scene = GroupScene()
    scene.join()
    other = ("t", 1)
    scene.core.membership.ownership.owned.append(other)
    scene.codes[api_keys.OFFSET_COMMIT] = [errors.COORDINATOR_LOAD_IN_PROGRESS]
    pending = scene.core.begin_commit({PLACE: 5, other: 7}, 10_000, scene.cluster.now_ms)
    scene.cluster.run_until(lambda: bool(scene.requests(api_keys.OFFSET_COMMIT)))

    # It goes to another member and comes back: who had it in between has read on.
    scene.core.committer.give_up([PLACE])
    with pytest.raises(CommitFailed, match=r"t \[0\] was given up"):
        perform(scene.cluster, pending)
    scene.cluster.run_for(1_000)

    first, *again = scene.requests(api_keys.OFFSET_COMMIT)
    assert [one.partition_index for one in first.request.topics[0].partitions] == [0, 1]
    assert again
    for seen in again:
        assert [one.partition_index for one in seen.request.topics[0].partitions] == [1]


def test_a_negative_committed_offset_is_none() -> None:
    scene = GroupScene(auto_offset_reset="earliest")
    scene.cluster.topics["t"].logs[0].add(b"0")
    scene.committed = -7
    scene.join()

    assert requests_in(scene.cluster, api_keys.OFFSET_FETCH, 2_000) < 10
    cluster, core = scene.cluster, scene.core
    groups = perform(cluster, core.begin_poll(10, 2_000, cluster.now_ms))
    assert [record.value for group in groups for record in group.records] == [b"0"]
    query = core.begin_committed([PLACE], 2_000, cluster.now_ms)
    assert perform(cluster, query) == {PLACE: None}


def test_a_coordinator_that_always_wants_another_member_id_is_asked_with_pauses() -> None:
    scene = GroupScene()
    scene.codes[api_keys.JOIN_GROUP] = [79] * 10_000
    scene.core.subscribe(["t"])

    scene.poll(5_000)

    assert len(scene.requests(api_keys.JOIN_GROUP)) < 40


# --- Leaders


def leader_elsewhere(cluster: ScriptedCluster, seen: Seen, answer: Any, epoch: int) -> None:
    """Have an answer name the other broker as the leader, of a newer epoch."""
    other = 3 - seen.broker_id
    answer.responses[0].partition_responses[0].error_code = errors.NOT_LEADER_OR_FOLLOWER
    answer.responses[0].partition_responses[0].current_leader = LeaderIdAndEpoch(other, epoch)
    address = cluster.brokers[other]
    answer.node_endpoints = [NodeEndpoint(other, address.host, address.port, None)]


def test_a_leader_that_is_always_the_other_broker_is_followed_with_pauses() -> None:
    cluster = ScriptedCluster(brokers=2)
    cluster.topic("t")
    settings = ProducerSettings(bootstrap_servers=SERVERS, delivery_timeout_ms=60_000)
    core: ProducerCore = cluster.attach(ProducerCore(settings, seeded_random(), cluster.now_ms))
    perform(cluster, core.begin_topic_query("t", 5_000, cluster.now_ms))
    epochs = iter(range(1, 100_000))

    def elsewhere(cluster: ScriptedCluster, seen: Seen) -> Any:
        answer = cluster.produce(seen)
        leader_elsewhere(cluster, seen, answer, next(epochs))
        return answer

    cluster.rule(api_keys.PRODUCE, elsewhere)
    core.append("t", 0, 0, None, b"x", None, now_ms=cluster.now_ms)

    assert requests_in(cluster, api_keys.PRODUCE, 5_000) < 60


def test_a_leader_that_is_always_the_other_broker_is_read_from_with_pauses() -> None:
    cluster = ScriptedCluster(brokers=2)
    cluster.topic("t").logs[0].add(b"0")
    reading(cluster)
    epochs = iter(range(1, 100_000))

    def elsewhere(cluster: ScriptedCluster, seen: Seen) -> Any:
        other = 3 - seen.broker_id
        told = PartitionData(0, errors.NOT_LEADER_OR_FOLLOWER)
        told.current_leader = fetch.LeaderIdAndEpoch(other, next(epochs))
        topic = seen.request.topics[0]
        answer = FetchableTopicResponse(topic.topic, topic.topic_id, [told])
        address = cluster.brokers[other]
        node = fetch.NodeEndpoint(other, address.host, address.port, None)
        return FetchResponse(responses=[answer], node_endpoints=[node])

    cluster.rule(api_keys.FETCH, elsewhere)

    assert requests_in(cluster, api_keys.FETCH, 5_000) < 60


# --- Writing


def test_a_pause_that_is_longer_than_a_delivery_is_named_in_the_error() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    cluster.throttle_ms = 2**31 - 1
    settings = ProducerSettings(
        bootstrap_servers=SERVERS, delivery_timeout_ms=5_000, request_timeout_ms=1_000
    )
    core: ProducerCore = cluster.attach(ProducerCore(settings, seeded_random(), cluster.now_ms))
    perform(cluster, core.begin_topic_query("t", 5_000, cluster.now_ms))
    assert core.append("t", 0, 0, None, b"x", None, now_ms=cluster.now_ms)

    with pytest.raises(DeliveryFailed, match="asked for a pause of 2147483647 ms"):
        perform(cluster, core.begin_flush(20_000, cluster.now_ms))
