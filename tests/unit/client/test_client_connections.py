"""Connections: how they come about, what they owe, how they end."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.scripted_cluster import CUT, SILENCE, ScriptedCluster, Seen, seeded_random

from tarry.client.core.admin.calls import ApiVersions, DescribeCluster, TopicList
from tarry.client.core.admin.core import AdminCore
from tarry.client.errors import ClientClosed
from tarry.client.settings import ClientSettings
from tarry.link.errand import Call
from tarry.link.errors import TimedOut, UnsupportedVersion
from tarry.link.events import Address
from tarry.protocol import api_keys

SERVERS = "10.0.0.1:9092"


def admin(cluster: ScriptedCluster, servers: str = SERVERS, **settings: Any) -> AdminCore:
    given = ClientSettings(bootstrap_servers=servers, **settings)
    core: AdminCore = cluster.attach(AdminCore(given, seeded_random(), cluster.now_ms))
    return core


def ask(cluster: ScriptedCluster, call: Call, timeout_ms: int = 10_000) -> Call:
    cluster.core.begin_call(call, timeout_ms, cluster.now_ms)
    cluster.run_until(lambda: call.is_done, timeout_ms + 1_000)
    return call


def test_a_client_names_itself_and_its_software() -> None:
    cluster = ScriptedCluster()
    admin(cluster, client_id="tester")

    ask(cluster, TopicList(None))

    first = cluster.seen[0]
    assert (first.api_key, first.client_id) == (api_keys.API_VERSIONS, "tester")
    assert first.request.client_software_name == "tarry"


def test_an_api_that_the_broker_lacks_is_refused_by_name() -> None:
    cluster = ScriptedCluster()
    del cluster.ranges[api_keys.DESCRIBE_CLUSTER]
    admin(cluster)

    call = ask(cluster, DescribeCluster())

    assert isinstance(call.error, UnsupportedVersion)
    assert "DescribeCluster" in str(call.error)


def test_an_unreachable_cluster_is_told_with_address_and_reason() -> None:
    cluster = ScriptedCluster()
    cluster.refused[cluster.brokers[1]] = "connection refused"
    admin(cluster)

    call = ask(cluster, TopicList(None), timeout_ms=2_000)

    assert isinstance(call.error, TimedOut)
    assert "10.0.0.1:9092: connection refused" in str(call.error)


def test_a_bootstrap_server_that_is_down_does_not_hide_the_next_one() -> None:
    cluster = ScriptedCluster(brokers=2)
    cluster.refused[cluster.brokers[1]] = "connection refused"
    admin(cluster, "10.0.0.1:9092,10.0.0.2:9092")

    call = ask(cluster, TopicList(None), timeout_ms=2_000)

    assert call.error is None


def test_every_address_of_a_name_is_tried_in_order() -> None:
    cluster = ScriptedCluster()
    cluster.names["kafka"] = [Address("::1", 9092), cluster.brokers[1]]
    cluster.refused[Address("::1", 9092)] = "connection refused"
    admin(cluster, "kafka:9092")

    call = ask(cluster, TopicList(None))

    assert call.error is None
    assert [address for _, address in cluster.connects] == cluster.names["kafka"]


def test_a_name_that_is_not_known_is_told() -> None:
    cluster = ScriptedCluster()
    cluster.names["nowhere"] = []
    admin(cluster, "nowhere:9092")

    call = ask(cluster, TopicList(None), timeout_ms=1_000)

    assert "nowhere:9092: unknown name" in str(call.error)


def test_a_request_without_an_answer_closes_its_connection() -> None:
    cluster = ScriptedCluster()
    cluster.script(api_keys.METADATA, lambda cluster, seen: SILENCE)
    admin(cluster, request_timeout_ms=500)

    call = ask(cluster, TopicList(None), timeout_ms=5_000)

    assert call.error is None
    assert len(cluster.closes) == 1
    assert len(cluster.requests(api_keys.METADATA)) >= 2


def test_a_cut_connection_is_made_again_and_the_call_repeated() -> None:
    cluster = ScriptedCluster()
    cluster.script(api_keys.METADATA, lambda cluster, seen: CUT)
    admin(cluster)

    call = ask(cluster, TopicList(None))

    assert call.error is None
    assert len(cluster.connects) == 2


def test_an_answer_with_another_correlation_id_closes_the_connection() -> None:
    cluster = ScriptedCluster()

    def confused(cluster: ScriptedCluster, seen: Seen) -> None:
        seen.correlation_id += 1
        return cluster.metadata(seen)  # type: ignore[return-value]

    cluster.script(api_keys.METADATA, confused)
    admin(cluster)

    call = ask(cluster, TopicList(None))

    assert call.error is None
    assert len(cluster.closes) == 1


@pytest.mark.parametrize(
    ("garbage", "word"),
    [(b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"), (b"\x15\x03\x03\x00\x02\x02\x46", "TLS")],
)
def test_a_peer_that_speaks_something_else_is_named(garbage: bytes, word: str) -> None:
    cluster = ScriptedCluster()
    cluster.rule(api_keys.API_VERSIONS, lambda cluster, seen: garbage)
    admin(cluster)

    call = ask(cluster, TopicList(None), timeout_ms=1_000)

    assert f"the peer answers in {word}" in str(call.error)


def test_a_bootstrap_server_that_turns_out_to_be_a_broker_keeps_its_connection() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = admin(cluster)
    core.track("t")
    cluster.run_for(100)

    ask(cluster, ApiVersions(1))

    assert len(cluster.connects) == 1


def test_closing_the_client_fails_what_is_under_way() -> None:
    cluster = ScriptedCluster()
    cluster.rule(api_keys.METADATA, lambda cluster, seen: SILENCE)
    core = admin(cluster)
    call = TopicList(None)
    core.begin_call(call, 10_000, cluster.now_ms)
    cluster.run_for(100)

    core.close(cluster.now_ms)

    assert isinstance(call.error, ClientClosed)


def test_two_runs_with_the_same_chance_are_the_same() -> None:
    traces: list[list[tuple[int, int]]] = []
    for _ in range(2):
        cluster = ScriptedCluster(brokers=2)
        cluster.refused[cluster.brokers[1]] = "connection refused"
        admin(cluster, "10.0.0.1:9092,10.0.0.2:9092")
        ask(cluster, TopicList(None))
        traces.append([(one.now_ms, one.api_key) for one in cluster.seen])

    assert traces[0] == traces[1]


def test_an_idle_connection_is_closed_in_quiet_and_made_anew_when_it_is_needed() -> None:
    cluster = ScriptedCluster()
    core = admin(cluster, connections_max_idle_ms=20_000, metadata_max_age_ms=1_000_000)
    ask(cluster, TopicList(None))
    cluster.run_for(20_100)
    seen = len(cluster.seen)
    assert len(cluster.closes) == 1

    cluster.run_for(100_000)
    assert len(cluster.seen) == seen
    ask(cluster, TopicList(None))

    metrics = core.connections.metrics(cluster.now_ms)
    assert (metrics.made, metrics.lost, metrics.failed) == (2, 0, 0)
    assert [one[1] for one in cluster.connects] == [cluster.brokers[1]] * 2


def test_the_connection_of_a_broker_that_answers_late_is_not_idle() -> None:
    cluster = ScriptedCluster()
    admin(cluster, connections_max_idle_ms=500)
    cluster.latency_ms = 1_500

    call = ask(cluster, TopicList(None))

    assert call.error is None
    assert cluster.closes == []
