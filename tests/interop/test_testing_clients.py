"""Clients of others at the plugin's broker in a thread: they connect, and meet its faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.support.interop.client_face import ClientFace
from tests.support.interop.records_sent import numbered

from tarry.testing import Tarry

MakeClient = Callable[[str, str], ClientFace]

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[Tarry]:
    with Tarry() as broker:
        yield broker


@pytest.mark.parametrize("name", ["confluent-kafka", "aiokafka", "java"])
def test_a_client_of_others_writes_through_faults_and_reads(
    name: str, broker: Tarry, make_client: MakeClient
) -> None:
    client = make_client(name, broker.bootstrap)
    topic = broker.topic(f"of-{name}")
    faults = [
        broker.fail("Produce", code="NOT_LEADER_OR_FOLLOWER", topic=topic),
        broker.cut("Produce", is_carried_out=True),
    ]

    producer = client.producer()
    for record in numbered(0, 3):
        producer.send(topic, 0, record)
        producer.flush()
    producer.close()

    read = [one.record.value for one in client.read(topic, 0, 0, 3)]
    assert read == [record.value for record in broker.records(topic)]
    assert [fault.count for fault in faults if fault is not None] == [1, 1]
    assert len(read) == 3
