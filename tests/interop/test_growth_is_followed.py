"""A topic that grows: members of a group are given the new partitions without being asked again."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest
from tests.support.interop.confluent_face import confluent_kafka, missing
from tests.support.interop.group_broker import GroupBroker
from tests.support.patience import PATIENCE_S

from tarry.client.core.admin.calls import NewTopic
from tarry.client.sync.admin import Admin
from tarry.client.sync.consumer import Consumer

pytestmark = [
    pytest.mark.skipif(confluent_kafka is None, reason=f"confluent-kafka: {missing}"),
    # Calls of kafka-python to old importlib, and sockets that it leaves to the collector.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# A poll waits this long at most.
POLL_MS = 100
# A poll of kafka-python whose time is over while it joins drops the assignment that comes with the
# answer, and the member never joins again (kafka-python 3.0.12): its poll outlives every join.
KAFKA_PYTHON_POLL_MS = 5_000
REFRESH_MS = 300


class Member(Protocol):
    """One consumer of a group in this process."""

    def poll(self) -> list[bytes]:
        """The values that came in one poll."""

    def owned(self) -> list[int]:
        """The partitions that it has."""

    def close(self) -> None: ...


class ConfluentMember:
    def __init__(self, address: str, topic: str, group: str) -> None:
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": address,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": REFRESH_MS,
            }
        )
        self.consumer.subscribe([topic])

    def poll(self) -> list[bytes]:
        message = self.consumer.poll(POLL_MS / 1000)
        return [] if message is None or message.error() else [message.value()]

    def owned(self) -> list[int]:
        return sorted(place.partition for place in self.consumer.assignment())

    def close(self) -> None:
        self.consumer.close()


class KafkaPythonMember:
    def __init__(self, address: str, topic: str, group: str) -> None:
        kafka = pytest.importorskip("kafka")
        self.consumer = kafka.KafkaConsumer(
            topic,
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
            metadata_max_age_ms=REFRESH_MS,
        )

    def poll(self) -> list[bytes]:
        found = self.consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_MS)
        return [record.value for records in found.values() for record in records]

    def owned(self) -> list[int]:
        return sorted(place.partition for place in self.consumer.assignment())

    def close(self) -> None:
        self.consumer.close()


class TarryMember:
    def __init__(self, address: str, topic: str, group: str) -> None:
        self.consumer = Consumer(
            topic,
            {"metadata.max.age.ms": REFRESH_MS},
            bootstrap_servers=address,
            group_id=group,
            auto_offset_reset="earliest",
        )

    def poll(self) -> list[bytes]:
        groups = self.consumer.poll(timeout=POLL_MS / 1000)
        return [record.value or b"" for group in groups for record in group.records]

    def owned(self) -> list[int]:
        return sorted(partition for _, partition in self.consumer.assignment())

    def close(self) -> None:
        self.consumer.close()


MEMBERS: dict[str, Callable[[str, str, str], Member]] = {
    "confluent-kafka": ConfluentMember,
    "kafka-python": KafkaPythonMember,
    "tarry": TarryMember,
}


@pytest.fixture
def admin(group_broker: GroupBroker) -> Iterator[Admin]:
    with Admin(bootstrap_servers=group_broker.address) as admin:
        yield admin


def read_until(member: Member, is_so: Callable[[list[bytes]], bool]) -> list[bytes]:
    values: list[bytes] = []
    end = time.monotonic() + PATIENCE_S
    while not is_so(values) and time.monotonic() < end:
        values += member.poll()
    return values


@pytest.mark.parametrize("client", MEMBERS)
def test_a_member_reads_partitions_that_its_topic_has_grown_by(
    client: str, admin: Admin, group_broker: GroupBroker
) -> None:
    warnings.simplefilter("ignore", ResourceWarning)
    topic = f"grows-under-{client}"
    (made,) = admin.create_topics([NewTopic(topic, 2)])
    member = MEMBERS[client](group_broker.address, topic, f"group-{client}")
    read_until(member, lambda _: member.owned() == [0, 1])
    before = member.owned()

    grown = admin.create_partitions(topic, 4)
    producer = confluent_kafka.Producer({"bootstrap.servers": group_broker.address})
    producer.produce(topic, b"in the new one", partition=3)
    producer.flush(PATIENCE_S)
    values = read_until(member, lambda values: bool(values) and member.owned() == [0, 1, 2, 3])
    after = member.owned()
    member.close()

    assert (made.error, grown.error) == (None, None)
    assert (before, after) == ([0, 1], [0, 1, 2, 3])
    assert values == [b"in the new one"]
