"""Fetch sessions: what a fetch names inside one, and how every doubt ends one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.consumer_scene import T0, consumer, poll, poll_all, reading
from tests.support.client.fetch_cluster import FetchCluster
from tests.support.client.scripted_cluster import CUT, Log, ScriptedCluster, Seen

from tarry.base import errors
from tarry.client.core.consumer.core import ConsumerCore
from tarry.client.core.consumer.session import FAILURES_MAX
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import FetchResponse


def named(seen: Seen) -> list[tuple[int, int]]:
    """Partition and offset of all that a fetch names."""
    return [
        (one.partition, one.fetch_offset)
        for topic in seen.request.topics
        for one in topic.partitions
    ]


def forgotten(seen: Seen) -> list[int]:
    return [index for topic in seen.request.forgotten_topics_data for index in topic.partitions]


def fetches(cluster: FetchCluster) -> list[Seen]:
    return cluster.requests(api_keys.FETCH)


def three_partitions(cluster: FetchCluster, **settings: Any) -> ConsumerCore:
    """Read three partitions of topic t from their beginning."""
    if "t" not in cluster.topics:
        cluster.topic("t", partitions=3)
    core = consumer(cluster, **settings)
    places = [("t", index) for index in range(3)]
    core.assign(places)
    for place in places:
        core.seek(place, 0)
    return core


def test_inside_a_session_a_fetch_names_only_what_has_changed() -> None:
    cluster = FetchCluster(gives_sessions=True)
    core = three_partitions(cluster)
    cluster.run_for(1_200)
    cluster.topics["t"].logs[1].add(b"new")

    assert poll(cluster) == [b"new"]
    cluster.run_for(600)

    first, second, *others = fetches(cluster)
    assert (first.request.session_id, first.request.session_epoch) == (0, 0)
    assert named(first) == [(0, 0), (1, 0), (2, 0)]
    assert (second.request.session_id, second.request.session_epoch) == (1, 1)
    assert named(second) == []
    assert [named(one) for one in others if named(one)] == [[(1, 1)]]
    assert core.position(("t", 2)).lag == 0
    assert cluster.sessions_made == 1


def test_everything_is_read_once_and_in_order_in_a_session() -> None:
    cluster = FetchCluster(gives_sessions=True)
    core = three_partitions(cluster, max_partition_fetch_bytes=250, fetch_max_bytes=400)
    for log in cluster.topics["t"].logs:
        for number in range(40):
            log.add(b"%d" % number)

    values: dict[int, list[bytes | None]] = {0: [], 1: [], 2: []}
    while sum(map(len, values.values())) < 120:
        cluster.run_until(lambda: core.has_records(cluster.now_ms))
        for group in core.take(7, cluster.now_ms):
            values[group.partition] += [record.value for record in group.records]

    for found in values.values():
        assert found == [b"%d" % number for number in range(40)]
    assert cluster.sessions_made == 1


def test_a_partition_that_is_paused_is_forgotten_and_comes_back() -> None:
    cluster = FetchCluster(gives_sessions=True)
    core = three_partitions(cluster)
    cluster.run_for(700)

    core.pause([("t", 1)])
    cluster.topics["t"].logs[1].add(b"not yet")
    cluster.run_for(1_000)
    paused = fetches(cluster)[-1]
    assert not core.has_records(cluster.now_ms)
    core.resume([("t", 1)])

    assert poll(cluster) == [b"not yet"]
    assert [1] in [forgotten(one) for one in fetches(cluster)]
    assert (1, 0) not in named(paused)
    assert cluster.sessions_made == 1


def test_a_seek_inside_a_session_reads_from_there() -> None:
    cluster = FetchCluster(gives_sessions=True)
    core = three_partitions(cluster)
    cluster.topics["t"].logs[0].add(b"0", b"1")
    assert poll(cluster) == [b"0", b"1"]
    cluster.run_for(700)

    core.seek(T0, 1)
    assert poll(cluster) == [b"1"]
    core.seek(T0, 2)
    cluster.run_for(1_100)
    assert core.position(T0).lag == 0


def test_a_partition_that_is_given_up_and_taken_again_knows_its_end() -> None:
    cluster = FetchCluster(gives_sessions=True)
    core = three_partitions(cluster)
    cluster.topics["t"].logs[0].add(b"0")
    assert poll(cluster) == [b"0"]
    cluster.run_for(700)

    core.assign([("t", 1), ("t", 2)])
    core.assign([T0, ("t", 1), ("t", 2)])
    core.seek(T0, 1)
    cluster.run_for(1_100)

    assert core.position(T0).lag == 0


def test_a_session_that_was_evicted_between_two_fetches_costs_one_fetch() -> None:
    cluster = FetchCluster(gives_sessions=True)
    core = three_partitions(cluster)
    cluster.run_for(700)
    cluster.sessions.clear()
    cluster.topics["t"].logs[2].add(b"new")
    began_ms = cluster.now_ms

    assert poll(cluster) == [b"new"]

    assert cluster.now_ms - began_ms < 1_000
    assert cluster.sessions_made == 2
    assert core.position(("t", 2)).failures == 0


@pytest.mark.parametrize(
    "code",
    [
        errors.FETCH_SESSION_ID_NOT_FOUND,
        errors.INVALID_FETCH_SESSION_EPOCH,
        errors.FETCH_SESSION_TOPIC_ID_ERROR,
        errors.UNKNOWN_SERVER_ERROR,
        errors.UNKNOWN_TOPIC_ID,
    ],
)
def test_after_an_error_of_a_session_the_next_fetch_is_a_whole_one(code: int) -> None:
    cluster = FetchCluster(gives_sessions=True)
    three_partitions(cluster)
    cluster.run_for(700)
    refused: list[Seen] = []

    def refuse(cluster: Any, seen: Seen) -> Any:
        refused.append(seen)
        return FetchResponse(error_code=code)

    cluster.script(api_keys.FETCH, refuse)
    cluster.topics["t"].logs[0].add(b"0")

    assert poll(cluster) == [b"0"]

    seen = fetches(cluster)
    following = seen[seen.index(refused[0]) + 1]
    assert refused[0].request.session_epoch > 0
    assert following.request.session_epoch == 0
    assert named(following)


def test_a_cut_connection_ends_the_session_and_the_next_fetch_closes_it() -> None:
    cluster = FetchCluster(gives_sessions=True)
    three_partitions(cluster)
    cluster.run_for(700)
    cluster.script(api_keys.FETCH, lambda cluster, seen: CUT)
    cluster.topics["t"].logs[0].add(b"0")

    assert poll(cluster) == [b"0"]

    assert list(cluster.sessions) == [2]
    again = [one.request for one in fetches(cluster) if one.request.session_epoch == 0][-1]
    assert again.session_id == 1


def test_a_broker_that_breaks_every_session_is_read_without_one() -> None:
    cluster = FetchCluster(gives_sessions=True)

    def forgetful(cluster: Any, seen: Seen) -> Any:
        cluster.sessions.clear()
        return cluster.fetch(seen)

    cluster.rule(api_keys.FETCH, forgetful)
    three_partitions(cluster)
    for number in range(10):
        cluster.topics["t"].logs[0].add(b"%d" % number)
        assert poll(cluster) == [b"%d" % number]

    refused = [one for one in fetches(cluster) if one.request.session_epoch > 0]
    assert len(refused) == FAILURES_MAX
    assert fetches(cluster)[-1].request.session_epoch == -1


def test_a_broker_without_sessions_gets_whole_fetches() -> None:
    cluster = ScriptedCluster()
    log = cluster.topic("t").logs[0]
    reading(cluster)
    for number in range(3):
        log.add(b"%d" % number)
        assert poll(cluster) == [b"%d" % number]

    seen = cluster.requests(api_keys.FETCH)
    assert {(one.request.session_id, one.request.session_epoch) for one in seen} == {(0, 0)}
    assert all(named(one) for one in seen)
    assert not any(forgotten(one) for one in seen)


def test_a_batch_larger_than_the_limit_of_its_partition_comes_in_a_session() -> None:
    cluster = FetchCluster(gives_sessions=True)
    core = three_partitions(cluster, max_partition_fetch_bytes=100)
    cluster.topics["t"].logs[1].add(b"x" * 50_000)
    for log in (cluster.topics["t"].logs[0], cluster.topics["t"].logs[2]):
        for _ in range(10):
            log.add(b"small")

    values = poll_all(cluster, 21)

    assert sorted(len(value or b"") for value in values)[-1] == 50_000
    assert core.fetcher.buffered_bytes == 0


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_topic_that_was_made_anew_ends_the_session(*, is_kept: bool) -> None:
    cluster = FetchCluster(gives_sessions=True)
    topic = cluster.topic("t")
    topic.logs[0].add(b"old")
    core = reading(cluster, metadata_max_age_ms=1_000)
    assert poll(cluster) == [b"old"]
    topic.topic_id = b"\xff" * 16
    topic.logs[0] = Log(1)
    topic.logs[0].add(b"new")
    if not is_kept:
        cluster.sessions.clear()

    cluster.run_until(lambda: core.position(T0).error is not None)
    core.seek(T0, 0)

    assert poll(cluster) == [b"new"]


def test_every_version_with_sessions_reads_in_one() -> None:
    for version in range(7, 19):
        cluster = FetchCluster(gives_sessions=True)
        cluster.ranges[api_keys.FETCH] = (4, version)
        three_partitions(cluster)
        cluster.run_for(700)
        cluster.topics["t"].logs[1].add(b"new")

        assert poll(cluster) == [b"new"], version
        assert cluster.sessions_made == 1
