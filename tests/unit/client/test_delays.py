"""What a producer knows of how topics delay records: when it asks, what it remembers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.client.hand_face import perform
from tests.support.client.producer_scene import flush, producer, refusing, send
from tests.support.client.scripted_cluster import Seen
from tests.support.client.scripted_groups import GroupCluster

from tarry.base import errors
from tarry.client.core.delays import BY_HEADER, BY_TIMESTAMP, UNKNOWN_SOURCE
from tarry.client.errors import BrokerError, SchedulingUnsupported, UnknownTopic
from tarry.link.errors import TimedOut
from tarry.protocol import api_keys
from tarry.protocol.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult

TOPIC = 2
AGE_MS = 300_000


def cluster_with(source: str, *topics: str) -> GroupCluster:
    """Return a cluster with topics that delay by this source, and a producer."""
    cluster = GroupCluster()
    for name in topics:
        cluster.topic(name)
        cluster.settings[TOPIC, name] = {"delay.enable": "true", "delay.source": source}
    producer(cluster)
    return cluster


def ask(cluster: GroupCluster, topic: str = "t", timeout_ms: int = 60_000) -> int:
    begun = cluster.core.begin_delay_query(topic, timeout_ms, cluster.now_ms)
    source: int = perform(cluster, begun)
    return source


def questions(cluster: GroupCluster) -> list[Seen]:
    return cluster.requests(api_keys.DESCRIBE_CONFIGS)


@pytest.mark.parametrize(("text", "source"), [("header", BY_HEADER), ("timestamp", BY_TIMESTAMP)])
def test_a_topic_is_asked_about_once_and_for_two_settings(text: str, source: int) -> None:
    cluster = cluster_with(text, "t", "u")

    told = [ask(cluster), ask(cluster), ask(cluster, "u")]

    assert told == [source] * 3
    assert cluster.core.delays.source_of("t", cluster.now_ms) == source
    asked = [one.request.resources[0] for one in questions(cluster)]
    assert [one.resource_name for one in asked] == ["t", "u"]
    assert asked[0].configuration_keys == ["delay.enable", "delay.source"]


def test_those_who_wait_together_ask_once() -> None:
    cluster = cluster_with("header", "t")
    core = cluster.core

    begun = [core.begin_delay_query("t", 60_000, cluster.now_ms) for _ in range(3)]
    cluster.run_until(lambda: all(one.is_ready for one in begun))

    assert [perform(cluster, one) for one in begun] == [BY_HEADER] * 3
    assert len(questions(cluster)) == 1


def test_what_is_known_is_asked_again_in_time() -> None:
    cluster = cluster_with("header", "t")
    ask(cluster)

    cluster.run_for(AGE_MS - 1_000)
    early = ask(cluster)
    cluster.settings[TOPIC, "t"]["delay.source"] = "timestamp"
    cluster.run_for(1_000)

    assert cluster.core.delays.source_of("t", cluster.now_ms) == UNKNOWN_SOURCE
    assert (early, ask(cluster)) == (BY_HEADER, BY_TIMESTAMP)
    assert len(questions(cluster)) == 2


def test_a_topic_that_was_made_anew_is_asked_about_again() -> None:
    cluster = cluster_with("header", "t")
    ask(cluster)

    cluster.topic("t")
    cluster.core.want_refresh()
    cluster.run_for(1_000)

    assert cluster.core.delays.source_of("t", cluster.now_ms) == UNKNOWN_SOURCE


@pytest.mark.parametrize("code", [errors.INVALID_TIMESTAMP, errors.INVALID_RECORD])
def test_a_refused_record_has_its_topic_asked_about_again(code: int) -> None:
    cluster = cluster_with("header", "t", "u")
    ask(cluster)
    ask(cluster, "u")

    cluster.script(api_keys.PRODUCE, refusing(code))
    refused = send(cluster, b"x")
    cluster.run_until(lambda: refused.is_done)

    assert refused.error is not None
    assert cluster.core.delays.source_of("t", cluster.now_ms) == UNKNOWN_SOURCE
    assert cluster.core.delays.source_of("u", cluster.now_ms) == BY_HEADER


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "the broker knows no scheduled records (Apache Kafka has none): send records that"),
        (
            {"delay.enable": "false", "delay.source": "none"},
            "topic 't' does not delay records: set delay.enable=true and delay.source=header",
        ),
        ({"delay.enable": "true", "delay.source": "none"}, "delays all its records alike"),
    ],
)
def test_only_what_a_topic_can_do_is_remembered(settings: dict[str, str], sentence: str) -> None:
    cluster = cluster_with("header", "t")
    cluster.settings[TOPIC, "t"] = dict(settings)

    for _ in range(2):
        with pytest.raises(SchedulingUnsupported) as caught:
            ask(cluster)
        assert sentence in str(caught.value)
    cluster.settings[TOPIC, "t"] = {"delay.enable": "true", "delay.source": "header"}

    assert ask(cluster) == BY_HEADER
    assert len(questions(cluster)) == 3


def test_a_topic_that_is_not_there_is_not_asked_about() -> None:
    cluster = cluster_with("header", "t")

    with pytest.raises(UnknownTopic):
        ask(cluster, "nothing")

    assert questions(cluster) == []


def refused_with(code: int) -> Any:
    def answer(cluster: GroupCluster, seen: Seen) -> DescribeConfigsResponse:
        result = DescribeConfigsResult(error_code=code, error_message="no")
        return DescribeConfigsResponse(results=[result])

    return answer


def test_who_may_not_see_the_settings_hears_what_they_were_asked_for() -> None:
    cluster = cluster_with("header", "t")
    cluster.script(api_keys.DESCRIBE_CONFIGS, refused_with(errors.TOPIC_AUTHORIZATION_FAILED))

    with pytest.raises(BrokerError, match="whether topic 't' delays records is not known: no"):
        ask(cluster)

    assert ask(cluster) == BY_HEADER


def test_a_broker_that_has_not_heard_of_a_new_topic_is_asked_again() -> None:
    cluster = cluster_with("header", "t")
    cluster.script(api_keys.DESCRIBE_CONFIGS, refused_with(errors.UNKNOWN_TOPIC_OR_PARTITION))

    assert ask(cluster) == BY_HEADER


def test_an_answer_that_comes_behind_the_time_is_not_taken_for_a_new_one() -> None:
    cluster = cluster_with("header", "t")
    send(cluster, b"")
    flush(cluster)
    cluster.latency_ms = 500

    with pytest.raises(TimedOut, match="DescribeConfigs"):
        ask(cluster, timeout_ms=100)
    cluster.run_for(10_000)
    cluster.settings[TOPIC, "t"]["delay.source"] = "timestamp"

    assert ask(cluster) == BY_TIMESTAMP
