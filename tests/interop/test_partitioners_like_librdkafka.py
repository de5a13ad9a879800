"""Partitions by key, where librdkafka puts the same keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, NewTopic
from tarry.client.core.producer.partitioner import partition_by_crc32, partition_for_key

confluent_kafka = pytest.importorskip("confluent_kafka")

COUNT = 7
KEYS = [b"%x" % (number**7) for number in range(300)]


@pytest.mark.parametrize(
    ("partitioner", "ours"),
    [("consistent_random", partition_by_crc32), ("murmur2_random", partition_for_key)],
)
def test_a_key_goes_where_librdkafka_puts_it(
    shared_broker: BrokerProcess, partitioner: str, ours: Callable[[bytes, int], int]
) -> None:
    topic = f"by-{partitioner}"
    with Admin(bootstrap_servers=shared_broker.address) as admin:
        (outcome,) = admin.create_topics([NewTopic(topic, COUNT)])
    assert outcome.error is None
    theirs: dict[bytes, int] = {}

    def delivered(error: Any, message: Any) -> None:
        assert error is None
        theirs[message.key()] = message.partition()

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": shared_broker.address, "partitioner": partitioner}
    )
    for key in KEYS:
        producer.produce(topic, b"v", key=key, on_delivery=delivered)
    producer.flush(PATIENCE_S)

    assert theirs == {key: ours(key, COUNT) for key in KEYS}
