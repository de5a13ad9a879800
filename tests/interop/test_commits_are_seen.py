"""An asynchronous commit is seen by the same client's next question, as with Apache Kafka.

Clients write both to one connection without waiting in between, so that it is the broker that
keeps their order; ours asks behind the answer.
"""

from __future__ import annotations

from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata
from tests.support.interop.confluent_face import confluent_kafka, missing
from tests.support.interop.group_broker import GroupBroker
from tests.support.interop.group_scene_of_clients import Scene
from tests.support.interop.java_groups import JavaGroups
from tests.support.patience import PATIENCE_S

from tarry.client import CommittedOffset, Consumer

pytestmark = [
    pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}"),
    # Old importlib calls of kafka-python.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

# Before requests waited for each other every one of librdkafka's was stale, five of six of Java's.
COUNT = 50


@pytest.fixture
def topic(request: pytest.FixtureRequest, group_broker: GroupBroker) -> str:
    name = f"seen-{request.function.__name__[5:20]}"
    Scene(group_broker.address, name, f"group-{name}", 1).close()
    return name


def settings_of(broker: GroupBroker, topic: str) -> dict[str, Any]:
    return {"bootstrap.servers": broker.address, "group.id": f"group-{topic}"}


def test_librdkafka_sees_its_asynchronous_commit(group_broker: GroupBroker, topic: str) -> None:
    settings = {**settings_of(group_broker, topic), "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0)])
    consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 0)], asynchronous=False)
    seen = []

    for offset in range(1, COUNT + 1):
        wanted = confluent_kafka.TopicPartition(topic, 0, offset)
        consumer.commit(offsets=[wanted], asynchronous=True)
        seen += [each.offset for each in consumer.committed([wanted], timeout=PATIENCE_S)]
    consumer.close()

    assert seen == list(range(1, COUNT + 1))


def test_java_sees_its_asynchronous_commit(
    group_broker: GroupBroker, topic: str, java_groups: JavaGroups
) -> None:
    settings = {**settings_of(group_broker, topic), "enable.auto.commit": "false"}

    seen = java_groups.ask("commit and look", topic=topic, settings=settings, count=COUNT)

    assert seen == list(range(1, COUNT + 1))


def test_kafka_python_sees_its_asynchronous_commit(group_broker: GroupBroker, topic: str) -> None:
    consumer = KafkaConsumer(
        bootstrap_servers=group_broker.address,
        group_id=f"group-{topic}",
        enable_auto_commit=False,
    )
    place = TopicPartition(topic, 0)
    consumer.assign([place])
    consumer.commit({place: OffsetAndMetadata(0, "", -1)})
    seen = []

    for offset in range(1, COUNT + 1):
        consumer.commit_async({place: OffsetAndMetadata(offset, "", -1)})
        seen.append(consumer.committed(place))
    consumer.close()

    assert seen == list(range(1, COUNT + 1))


def test_ours_sees_its_asynchronous_commit_and_others_see_it_with_its_metadata(
    group_broker: GroupBroker, topic: str
) -> None:
    settings = settings_of(group_broker, topic)
    place = (topic, 0)
    seen = []

    with Consumer(settings, enable_auto_commit=False) as consumer:
        consumer.assign([place])
        for offset in range(1, COUNT + 1):
            consumer.commit_async({place: CommittedOffset(offset, metadata=f"up to {offset}")})
            seen.append(consumer.committed([place])[place])
    other = KafkaConsumer(
        bootstrap_servers=group_broker.address, group_id=f"group-{topic}", enable_auto_commit=False
    )
    found = other.committed(TopicPartition(topic, 0), metadata=True)
    other.close()

    assert seen == [CommittedOffset(n, -1, f"up to {n}") for n in range(1, COUNT + 1)]
    assert (found.offset, found.metadata) == (COUNT, f"up to {COUNT}")
