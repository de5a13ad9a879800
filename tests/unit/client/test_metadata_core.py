"""Metadata: what is asked for, how often, and what an answer may not do."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.support.client.metadata_answers import as_read
from tests.support.client.scripted_cluster import CUT, SILENCE, ScriptedCluster, Seen, seeded_random

from tarry.base import errors
from tarry.client.core.core import ClientCore
from tarry.client.core.metadata import LeaderHint, Metadata, refusal_text
from tarry.client.errors import BrokerError
from tarry.client.settings import ClientSettings
from tarry.protocol import api_keys
from tarry.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def client(cluster: ScriptedCluster, **settings: Any) -> ClientCore:
    given = ClientSettings(bootstrap_servers="10.0.0.1:9092", **settings)
    core: ClientCore = cluster.attach(ClientCore(given, seeded_random(), cluster.now_ms))
    return core


def answer(leader_id: int, epoch: int, topic_id: bytes = b"1" * 16) -> MetadataResponse:
    partition = MetadataResponsePartition(errors.NONE, 0, leader_id, epoch)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(number, "b", number) for number in (1, 2)],
        topics=[MetadataResponseTopic(errors.NONE, "t", topic_id, False, [partition])],
    )


def test_only_topics_in_use_are_asked_for() -> None:
    cluster = ScriptedCluster()
    cluster.topic("used")
    cluster.topic("other")
    core = client(cluster)

    core.track("used")
    cluster.run_for(1_000)

    asked = [one.name for one in cluster.requests(api_keys.METADATA)[0].request.topics]
    assert asked == ["used"]
    assert list(core.metadata.topics) == ["used"]


def test_a_known_topic_is_asked_for_again_after_its_age() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    core = client(cluster, metadata_max_age_ms=10_000)

    core.track("t")
    cluster.run_for(35_000)

    assert len(cluster.requests(api_keys.METADATA)) == 4


def test_a_hundred_unknown_topics_and_many_askers_make_no_storm() -> None:
    cluster = ScriptedCluster()
    core = client(cluster)
    for number in range(100):
        core.track(f"missing-{number}")

    for _ in range(100):
        for _ in range(20):
            core.refresh.want(cluster.now_ms)
        cluster.run_for(100)

    # Pauses grow to one second: about ten requests in ten seconds after the first few.
    assert len(cluster.requests(api_keys.METADATA)) <= 16


def test_one_request_is_under_way_at_a_time() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    cluster.latency_ms = 100
    core = client(cluster)
    core.track("t")

    for _ in range(30):
        core.refresh.want(cluster.now_ms)
        cluster.run_for(10)

    times = [seen.now_ms for seen in cluster.requests(api_keys.METADATA)]
    assert all(later - earlier >= 100 for earlier, later in pairwise(times))


def test_a_lost_answer_is_asked_for_again() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t")
    cluster.script(api_keys.METADATA, lambda cluster, seen: CUT, lambda cluster, seen: SILENCE)
    core = client(cluster, request_timeout_ms=500)

    core.track("t")
    cluster.run_until(lambda: core.metadata.topic("t") is not None, 10_000)

    assert len(cluster.requests(api_keys.METADATA)) == 3


def test_a_broker_that_lags_behind_does_not_bring_back_an_old_leader() -> None:
    metadata = Metadata()
    metadata.track("t")

    metadata.apply(as_read(answer(2, 5)), 0)
    metadata.apply(as_read(answer(1, 4)), 1)

    leader = metadata.leader_of("t", 0)
    assert leader is not None
    assert (leader.leader_id, leader.leader_epoch) == (2, 5)


def test_a_new_topic_of_the_same_name_begins_with_its_own_epochs() -> None:
    metadata = Metadata()
    metadata.track("t")
    recreated: list[str] = []
    metadata.when_recreated = recreated.append

    metadata.apply(as_read(answer(2, 5)), 0)
    metadata.apply(as_read(answer(1, 0, b"2" * 16)), 1)

    leader = metadata.leader_of("t", 0)
    assert leader is not None
    assert (leader.leader_id, leader.leader_epoch) == (1, 0)
    assert recreated == ["t"]


def test_a_leader_hint_counts_only_if_it_is_newer() -> None:
    metadata = Metadata()
    metadata.track("t")
    metadata.apply(as_read(answer(2, 5)), 0)

    is_old_taken = metadata.set_leader(LeaderHint("t", 0, 1, 5, None))
    is_new_taken = metadata.set_leader(LeaderHint("t", 0, 1, 6, None))

    leader = metadata.leader_of("t", 0)
    assert leader is not None
    assert (is_old_taken, is_new_taken, leader.leader_id) == (False, True, 1)


def test_a_passing_error_does_not_forget_what_is_known() -> None:
    metadata = Metadata()
    metadata.track("t")
    metadata.apply(as_read(answer(2, 5)), 0)
    refused = answer(2, 5)
    refused.topics = [MetadataResponseTopic(errors.LEADER_NOT_AVAILABLE, "t")]

    metadata.apply(as_read(refused), 1)

    assert metadata.leader_of("t", 0) is not None
    assert metadata.needs_refresh


def test_a_broker_that_moved_is_connected_to_at_its_new_address() -> None:
    cluster = ScriptedCluster(brokers=2)
    cluster.topic("t", leader_id=2)
    core = client(cluster, metadata_max_age_ms=1_000)
    core.track("t")
    cluster.run_for(100)
    old = core.connections.for_broker(2)
    cluster.brokers[2] = cluster.brokers[2]._replace(port=9999)

    cluster.run_for(2_000)

    new = core.connections.for_broker(2)
    assert old is not None
    assert new is not None
    assert new is not old
    assert new.address.port == 9999


def test_a_name_that_no_topic_can_have_is_refused_at_once_and_quoted() -> None:
    cluster = ScriptedCluster()
    core = client(cluster)
    refused = MetadataResponseTopic(errors.INVALID_TOPIC_EXCEPTION, "a b")
    core.metadata.track("a b")
    core.metadata.apply(as_read(MetadataResponse(topics=[refused])), cluster.now_ms)

    assert core.metadata.is_missing("a b", cluster.now_ms)
    error = core.metadata.error_of("a b", cluster.now_ms)
    assert isinstance(error, BrokerError)
    assert str(error).startswith("'a b' is no name for a topic; take up to 249 letters")
    assert not error.is_retriable


def test_a_topic_that_is_refused_for_another_reason_is_not_blamed_on_its_name() -> None:
    assert refusal_text("t", errors.TOPIC_AUTHORIZATION_FAILED) == "topic t cannot be used"


def test_an_answer_with_a_negative_partition_is_refused_and_asked_for_again() -> None:
    cluster = ScriptedCluster()
    cluster.topic("t", partitions=2)
    core = client(cluster)

    def negative(cluster: ScriptedCluster, seen: Seen) -> Any:
        made = cluster.metadata(seen)
        made.topics[0].partitions[1].partition_index = -3
        return made

    cluster.script(api_keys.METADATA, negative)
    core.track("t")
    cluster.run_until(lambda: core.refresh.last_error is not None)
    told = core.trouble(cluster.now_ms)
    cluster.run_for(2_000)

    assert "its answer to Metadata cannot be read: topic 't' has partition -3" in told
    topic = core.metadata.topic("t")
    assert topic is not None
    assert list(topic.partitions) == [0, 1]
