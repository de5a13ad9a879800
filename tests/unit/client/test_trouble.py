"""What a client says when nothing comes: to whoever asks, in the log, and in its errors."""

from __future__ import annotations

import logging

import pytest
from tests.support.client.consumer_scene import T0, consumer, poll, reading
from tests.support.client.group_member import GroupScene
from tests.support.client.scripted_cluster import SILENCE, ScriptedCluster, seeded_random

from tarry.client.core.admin.calls import TopicList
from tarry.client.core.admin.core import AdminCore
from tarry.client.core.producer.core import ProducerCore
from tarry.client.settings import ClientSettings, ProducerSettings
from tarry.link.events import Address


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "tarry.client.waiting")
    return caplog


def refusing(cluster: ScriptedCluster) -> Address:
    cluster.refused[cluster.brokers[1]] = "connection refused"
    return cluster.brokers[1]


def test_a_poll_without_a_broker_is_told_after_two_seconds(
    heard: pytest.LogCaptureFixture,
) -> None:
    cluster = ScriptedCluster()
    refusing(cluster)
    reading(cluster)

    cluster.run_for(1_900)
    assert heard.messages == []
    cluster.run_for(600)

    assert heard.messages == [
        "polls bring nothing, for 2 s now: cannot connect to 10.0.0.1:9092: connection refused"
    ]


def test_what_lasts_is_told_now_and_then(heard: pytest.LogCaptureFixture) -> None:
    cluster = ScriptedCluster()
    refusing(cluster)
    reading(cluster)

    cluster.run_for(120_000)

    assert 3 <= len(heard.messages) <= 6


def test_what_passes_in_time_is_not_told(heard: pytest.LogCaptureFixture) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t").logs[0].add(b"0")
    refusing(cluster)
    reading(cluster)
    cluster.run_for(700)
    cluster.refused.clear()

    assert poll(cluster) == [b"0"]
    cluster.run_for(20_000)

    assert heard.messages == []


def test_a_topic_that_a_group_reads_and_that_is_not_there_is_told(
    heard: pytest.LogCaptureFixture,
) -> None:
    scene = GroupScene()
    scene.core.subscribe(["t", "ordesr"])

    scene.poll(5_000)

    assert heard.messages == ["polls bring nothing, for 2 s now: topic 'ordesr' does not exist"]


def test_a_send_to_a_dead_broker_is_told(heard: pytest.LogCaptureFixture) -> None:
    cluster = ScriptedCluster()
    refusing(cluster)
    settings = ProducerSettings(bootstrap_servers="10.0.0.1:9092")
    core = cluster.attach(ProducerCore(settings, seeded_random(), cluster.now_ms))
    assert core.append("t", -1, 0, None, b"x", None, now_ms=cluster.now_ms) is None

    cluster.run_for(3_000)

    (message,) = heard.messages
    assert message.startswith("records wait to be sent, for 2 s now: cannot connect to 10.0.0.1")


def test_a_quiet_topic_is_no_trouble(heard: pytest.LogCaptureFixture) -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = reading(cluster)

    cluster.run_for(60_000)

    assert heard.messages == []
    assert core.trouble(cluster.now_ms) == ""


# --- Asked for


def test_trouble_is_there_within_half_a_second_although_nobody_answers() -> None:
    cluster = ScriptedCluster()
    cluster.refused[cluster.brokers[1]] = SILENCE
    core = reading(cluster)

    cluster.run_for(500)

    assert (
        core.trouble(cluster.now_ms)
        == "cannot connect to 10.0.0.1:9092: it took no connection for 500 ms"
    )


def test_a_wrong_advertised_address_is_named_with_the_server_that_told_it() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    cluster.brokers[2] = Address("10.9.9.9", 9092)
    cluster.topics["t"].logs[0].leader_id = 2
    cluster.refused[cluster.brokers[2]] = "connection refused"
    core = consumer(cluster)
    core.assign([T0])

    cluster.run_for(500)

    assert core.trouble(cluster.now_ms) == (
        "cannot connect to 10.9.9.9:9092, which broker 1 at 10.0.0.1:9092 named as broker 2 "
        "(advertised.listeners): connection refused"
    )


def test_a_call_to_nobody_says_where_why_and_how_long() -> None:
    cluster = ScriptedCluster()
    refusing(cluster)
    settings = ClientSettings(bootstrap_servers="10.0.0.1:9092")
    core = cluster.attach(AdminCore(settings, seeded_random(), cluster.now_ms))
    call = TopicList(None)

    core.begin_call(call, 10_000, cluster.now_ms)
    cluster.run_until(lambda: call.is_done)

    assert str(call.error) == (
        "cannot connect to 10.0.0.1:9092: connection refused (tried for 10 s); "
        "is a broker running there?"
    )


def test_a_call_whose_time_is_up_before_anything_happened_names_the_servers() -> None:
    cluster = ScriptedCluster()
    settings = ClientSettings(bootstrap_servers="10.0.0.1:9092")
    core = cluster.attach(AdminCore(settings, seeded_random(), cluster.now_ms))
    call = TopicList(None)

    core.begin_call(call, 200, cluster.now_ms)
    # A busy machine: the first turn comes after the deadline.
    core.turn([], cluster.now_ms + 350, cluster.now_ms + 350)

    assert str(call.error) == "Metadata was not answered by 10.0.0.1:9092 within 0.35 s"
