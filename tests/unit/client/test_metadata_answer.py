"""MetadataAnswer: the fields are the schema's, and no step of a large answer is long."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from tests.support.client.metadata_answers import VERSION, encoded
from tests.support.client.scripted_cluster import ScriptedCluster, seeded_random

from tarry.client.core import metadata_answer
from tarry.client.core.core import ClientCore
from tarry.client.core.metadata_answer import (
    BROKERS_MAX,
    ELEMENTS_PER_STEP,
    PARTITIONS_MAX,
    Keep,
    MetadataAnswer,
    read_in_steps,
    read_metadata,
)
from tarry.client.settings import ClientSettings
from tarry.protocol import api_keys
from tarry.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
    decode_metadata_response,
)
from tarry.wire.reader import MalformedData, Reader

METADATA = api_keys.APIS[api_keys.METADATA]
VERSIONS = range(METADATA.version_min, METADATA.version_max + 1)


def partition(chance: Random, index: int, version: int) -> MetadataResponsePartition:
    made = MetadataResponsePartition(chance.randrange(3), index, chance.randrange(5))
    made.replica_nodes = [chance.randrange(9) for _ in range(chance.randrange(4))]
    made.isr_nodes = made.replica_nodes[:1]
    if version >= 5:
        made.offline_replicas = made.replica_nodes[1:]
    if version >= 7:
        made.leader_epoch = chance.randrange(100)
    return made


def response(chance: Random, version: int) -> MetadataResponse:
    """An answer with everything that this version can say."""
    topics = []
    for number in range(chance.randrange(5)):
        topic = MetadataResponseTopic(chance.randrange(4), f"topic-{number}")
        topic.partitions = [
            partition(chance, index, version) for index in range(chance.randrange(6))
        ]
        chance.shuffle(topic.partitions)
        if version >= 1:
            topic.is_internal = chance.random() < 0.5
        if version >= 8:
            topic.topic_authorized_operations = 7
        if version >= 10:
            topic.topic_id = chance.randbytes(16)
        topics.append(topic)
    made = MetadataResponse(topics=topics)
    made.brokers = [MetadataResponseBroker(number, "host", number) for number in range(3)]
    if version >= 1:
        made.brokers[0].rack = "a"
        made.controller_id = 2
    if version >= 2:
        made.cluster_id = "of the test"
    if version >= 3:
        made.throttle_time_ms = 5
    return made


def told(answer: MetadataAnswer) -> Any:
    return (
        answer.throttle_time_ms,
        answer.cluster_id,
        answer.controller_id,
        [(one.broker_id, *one.address, one.rack) for one in answer.brokers.values()],
        [
            (
                topic.name,
                topic.error_code,
                topic.topic_id,
                topic.is_internal,
                [
                    (
                        one.index,
                        one.error_code,
                        one.leader_id,
                        one.leader_epoch,
                        one.replicas,
                        one.isr,
                        one.offline_replicas,
                    )
                    for one in topic.partitions.values()
                ],
            )
            for topic in answer.topics
        ],
    )


def told_by_the_schema(answer: MetadataResponse) -> Any:
    return (
        answer.throttle_time_ms,
        answer.cluster_id or "",
        answer.controller_id,
        [(one.node_id, one.host, one.port, one.rack) for one in answer.brokers],
        [
            (
                topic.name,
                topic.error_code,
                topic.topic_id,
                topic.is_internal,
                [
                    (
                        one.partition_index,
                        one.error_code,
                        one.leader_id,
                        one.leader_epoch,
                        one.replica_nodes,
                        one.isr_nodes,
                        one.offline_replicas,
                    )
                    for one in sorted(topic.partitions, key=lambda one: one.partition_index)
                ],
            )
            for topic in answer.topics
        ],
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_is_read_as_its_schema_says(version: int) -> None:
    chance = Random(version)

    for _ in range(50):
        data = encoded(response(chance, version), version)
        reader = Reader(data)
        answer = read_metadata(reader, version)

        assert told(answer) == told_by_the_schema(decode_metadata_response(Reader(data), version))
        assert reader.position == len(data)


def large(topics: int, partitions: int, replicas: int = 3) -> MetadataResponse:
    nodes = list(range(replicas))
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(
                name=f"topic-{number}",
                partitions=[
                    MetadataResponsePartition(0, index, 0, 0, nodes, nodes)
                    for index in range(partitions)
                ],
            )
            for number in range(topics)
        ]
    )


def in_steps(data: bytes, keep: Keep | None = None) -> tuple[list[int], MetadataAnswer]:
    """How many bytes each step reads, and the answer."""
    reader = Reader(data)
    steps = read_in_steps(reader, VERSION, keep)
    sizes: list[int] = []
    before = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return sizes, end.value
        finally:
            sizes.append(int(reader.position) - before)
            before = int(reader.position)


@pytest.mark.parametrize(("topics", "partitions"), [(20_000, 1), (1, 20_000)])
def test_no_step_reads_more_than_its_share(topics: int, partitions: int) -> None:
    data = encoded(large(topics, partitions))

    sizes, answer = in_steps(data)

    # Each partition is an element and has six replicas.
    steps = topics * partitions * 7 // ELEMENTS_PER_STEP
    assert len(sizes) >= steps
    assert max(sizes) <= 2 * len(data) // steps
    assert len(answer.topics) == topics


def test_only_what_is_kept_is_built() -> None:
    data = encoded(large(2_000, 3))

    _, answer = in_steps(data, lambda name: name == "topic-7")

    assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("topic-7", 3)]
    assert len(answer.names) == 2_000


TOO_MUCH = {
    f"more than {BROKERS_MAX} brokers": MetadataResponse(
        brokers=[MetadataResponseBroker()] * (BROKERS_MAX + 1)
    ),
    f"more than {BROKERS_MAX} replicas of one partition": large(1, 1, BROKERS_MAX + 1),
}


@pytest.mark.parametrize("sentence", TOO_MUCH)
def test_an_answer_that_no_cluster_gives_is_refused_before_it_is_built(sentence: str) -> None:
    with pytest.raises(MalformedData, match=sentence):
        read_metadata(Reader(encoded(TOO_MUCH[sentence])), VERSION)


def test_the_partitions_of_all_topics_together_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata_answer, "PARTITIONS_MAX", 100)
    read_metadata(Reader(encoded(large(20, 5))), VERSION)

    with pytest.raises(MalformedData, match="partitions in one answer"):
        read_metadata(Reader(encoded(large(21, 5))), VERSION)

    assert PARTITIONS_MAX > 200_000, "what Kafka's largest clusters have"


def test_a_client_takes_a_large_answer_in_many_turns_and_goes_on_between() -> None:
    cluster = ScriptedCluster()
    cluster.topic("large", partitions=30_000)
    settings = ClientSettings(bootstrap_servers="10.0.0.1:9092")
    core: ClientCore = cluster.attach(ClientCore(settings, seeded_random(), cluster.now_ms))
    core.track("large")
    turns = 0

    def is_known() -> bool:
        nonlocal turns
        turns += 1
        return core.metadata.topic("large") is not None

    cluster.run_until(is_known)

    assert turns >= 30_000 // ELEMENTS_PER_STEP
    known = core.metadata.topic("large")
    assert known is not None
    assert list(known.partitions) == list(range(30_000))
