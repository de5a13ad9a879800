"""Preferred replicas: a consumer with a rack reads from a replica nearby, and comes back."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.consumer_scene import T0, fetched, poll, poll_all, reading
from tests.support.client.fetch_cluster import FetchCluster
from tests.support.client.group_member import GroupScene
from tests.support.client.scripted_cluster import SILENCE, Log, ScriptedCluster, Seen

from tarry.base import errors
from tarry.client.core.consumer.core import ConsumerCore
from tarry.client.core.group.assignment.consumer_protocol import decode_subscription
from tarry.protocol import api_keys
from tarry.protocol.messages.fetch import FetchResponse
from tarry.wire.reader import window_of

LEADER, NEARBY = 1, 2


def two_racks(**settings: Any) -> tuple[FetchCluster, Log, ConsumerCore]:
    """A leader in rack a and a follower in rack b, where the consumer is."""
    cluster = FetchCluster(brokers=2)
    cluster.racks = {LEADER: "a", NEARBY: "b"}
    cluster.followers = {NEARBY: 1_000_000}
    log = cluster.topic("t").logs[0]
    log.add(b"0")
    core = reading(cluster, client_rack="b", **settings)
    return cluster, log, core


def asked(cluster: ScriptedCluster) -> list[int]:
    return [one.broker_id for one in cluster.requests(api_keys.FETCH)]


def test_the_replica_that_the_leader_names_is_read_from() -> None:
    cluster, log, core = two_racks()

    assert poll(cluster) == [b"0"]
    log.add(b"1")
    assert poll(cluster) == [b"1"]

    first, *others = cluster.requests(api_keys.FETCH)
    assert (first.broker_id, first.request.rack_id) == (LEADER, "b")
    assert {one.broker_id for one in others} == {NEARBY}
    assert core.position(T0).replica_id == NEARBY


def test_without_a_rack_the_leader_is_read_from() -> None:
    cluster = FetchCluster(brokers=2)
    cluster.racks = {LEADER: "a", NEARBY: "b"}
    cluster.followers = {NEARBY: 1_000_000}
    cluster.topic("t").logs[0].add(b"0")
    reading(cluster)

    assert poll(cluster) == [b"0"]
    assert set(asked(cluster)) == {LEADER}


def test_the_leader_is_asked_again_when_metadata_is_too_old() -> None:
    cluster, log, _ = two_racks(metadata_max_age_ms=5_000)
    assert poll(cluster) == [b"0"]
    before = len(asked(cluster))

    cluster.run_for(6_000)
    log.add(b"1")

    assert poll(cluster) == [b"1"]
    assert asked(cluster)[before:].count(LEADER) == 1


def test_a_replica_that_lags_sends_the_reader_back_to_the_leader_and_resets_nothing() -> None:
    cluster, log, core = two_racks(auto_offset_reset="latest")
    assert poll(cluster) == [b"0"]
    log.add(b"1")
    assert poll(cluster) == [b"1"]
    # It comes back with an older log than it had.
    cluster.followers[NEARBY] = 1
    log.add(b"2")

    assert poll(cluster) == [b"2"]
    assert core.position(T0).position == 3
    assert asked(cluster)[-1] == LEADER


@pytest.mark.parametrize(
    "code", sorted(code for code in errors.ERRORS if code not in (errors.NONE,))
)
def test_every_error_of_a_replica_sends_the_reader_back_to_the_leader(code: int) -> None:
    cluster, log, core = two_racks()
    assert poll(cluster) == [b"0"]
    log.add(b"1")

    def refused(cluster: ScriptedCluster, seen: Seen) -> Any:
        if seen.broker_id == LEADER:
            return cluster.default(seen)
        response = fetched(cluster, seen)
        response.responses[0].partitions[0].error_code = code
        response.responses[0].partitions[0].records = window_of(b"")
        return response

    before = len(asked(cluster))
    cluster.rule(api_keys.FETCH, refused)

    assert poll(cluster) == [b"1"]
    assert core.position(T0).error is None
    # Named again, it fails again; then the leader has to give the records itself.
    assert asked(cluster)[before:].count(NEARBY) <= 3


def test_a_replica_that_is_gone_is_left_at_once_and_named_in_vain() -> None:
    cluster, log, core = two_racks()
    assert poll(cluster) == [b"0"]
    cluster.refused[cluster.brokers[NEARBY]] = "connection refused"
    cluster.cut(NEARBY)
    log.add(b"1")
    began_ms = cluster.now_ms

    assert poll(cluster) == [b"1"]

    assert cluster.now_ms - began_ms < 1_000
    last = cluster.requests(api_keys.FETCH)[-1]
    assert (last.broker_id, last.request.rack_id) == (LEADER, "")
    assert core.position(T0).leader_only_until_ms > cluster.now_ms


def test_a_replica_that_the_cluster_does_not_have_any_more_is_left() -> None:
    cluster, log, core = two_racks(metadata_max_age_ms=3_600_000)
    assert poll(cluster) == [b"0"]
    address = cluster.brokers.pop(NEARBY)
    cluster.racks = {}
    core.want_refresh()
    cluster.run_for(1_000)
    log.add(b"1")

    assert poll(cluster) == [b"1"]
    assert asked(cluster)[-1] == LEADER
    assert address


def test_a_replica_that_says_nothing_is_left_after_the_time_of_a_request() -> None:
    cluster, log, _ = two_racks(request_timeout_ms=2_000)
    assert poll(cluster) == [b"0"]
    cluster.rule(
        api_keys.FETCH,
        lambda cluster, seen: SILENCE if seen.broker_id == NEARBY else cluster.default(seen),
    )
    log.add(b"1")

    assert poll(cluster, 10_000) == [b"1"]


def name(replica_id: int) -> Any:
    """Every broker names this one, again and again, and never gives a record."""

    def answer(cluster: ScriptedCluster, seen: Seen) -> Any:
        response = fetched(cluster, seen)
        for topic in response.responses:
            for one in topic.partitions:
                if seen.request.rack_id:
                    one.preferred_read_replica = replica_id
                    one.error_code = errors.NONE
                    one.records = window_of(b"")
        return response

    return answer


@pytest.mark.parametrize("replica_id", [LEADER, NEARBY, 99])
def test_brokers_that_name_a_replica_again_and_again_are_read_from_all_the_same(
    replica_id: int,
) -> None:
    cluster, _, _ = two_racks()
    cluster.rule(api_keys.FETCH, name(replica_id))

    assert poll(cluster) == [b"0"]
    assert len(asked(cluster)) < 10


def test_a_leader_that_names_a_replica_without_being_told_the_rack_does_not_make_it_spin() -> None:
    cluster, _, _ = two_racks()

    def stubborn(cluster: ScriptedCluster, seen: Seen) -> Any:
        seen.request.rack_id = "b"
        return name(99)(cluster, seen)

    cluster.rule(api_keys.FETCH, stubborn)
    assert poll(cluster, 10_000) == []
    assert len(asked(cluster)) < 40
    cluster.rule(api_keys.FETCH, None)
    assert poll_all(cluster, 1) == [b"0"]


def test_records_that_a_replica_has_damaged_are_fetched_from_the_leader() -> None:
    cluster, log, _ = two_racks()
    assert poll(cluster) == [b"0"]
    log.add(b"1")

    def damaged(cluster: ScriptedCluster, seen: Seen) -> Any:
        if seen.broker_id == LEADER:
            return cluster.default(seen)
        response = fetched(cluster, seen)
        data = bytearray(response.responses[0].partitions[0].records.to_bytes())
        if data:
            data[-1] ^= 1
        response.responses[0].partitions[0].records = window_of(bytes(data))
        return response

    cluster.rule(api_keys.FETCH, damaged)
    assert poll_all(cluster, 1) == [b"1"]


def test_two_partitions_may_be_read_from_different_brokers_in_sessions() -> None:
    cluster = FetchCluster(brokers=2, gives_sessions=True)
    cluster.racks = {LEADER: "a", NEARBY: "b"}
    cluster.followers = {NEARBY: 1_000_000}
    topic = cluster.topic("t", partitions=2)
    topic.logs[1].leader_id = NEARBY
    core = reading(cluster, client_rack="b")
    core.assign([T0, ("t", 1)])
    core.seek(("t", 1), 0)
    for number in range(5):
        for log in topic.logs:
            log.add(b"%d" % number)
        assert sorted(poll_all(cluster, 2)) == [b"%d" % number] * 2
        cluster.run_for(700)

    fetches = cluster.requests(api_keys.FETCH)
    assert [one.broker_id for one in fetches].count(LEADER) == 1
    assert any(one.request.session_epoch > 1 for one in fetches)


def test_an_error_of_a_whole_answer_pauses_and_follows_on() -> None:
    cluster, log, _ = two_racks()
    assert poll(cluster) == [b"0"]
    code = errors.UNKNOWN_SERVER_ERROR
    cluster.script(api_keys.FETCH, lambda cluster, seen: FetchResponse(error_code=code))
    log.add(b"1")

    assert poll(cluster) == [b"1"]


@pytest.mark.parametrize(("rack", "wanted"), [("b", "b"), ("", None)])
def test_a_member_tells_its_rack_to_the_leader_of_its_group(rack: str, wanted: str | None) -> None:
    scene = GroupScene(client_rack=rack)

    scene.join()

    protocols = scene.requests(api_keys.JOIN_GROUP)[0].request.protocols
    racks = [decode_subscription(one.metadata).rack_id for one in protocols]
    assert racks == [wanted, wanted]
