"""A network that damages one byte of what a consumer fetches, once: no record is missing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.damaging_proxy import DamagingProxy

from tarry.client import Admin, CommittedOffset, Consumer, NewTopic, Producer

COUNT = 4_000


def value(number: int) -> bytes:
    return b"value-%06d-%s" % (number, b"x" * 80)


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[DamagingProxy]:
    """In front of a broker whose topic t holds the records; fetches bring a small part of them."""
    proxy = DamagingProxy(b"value-002000")
    broker = BrokerProcess(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        listener = f"127.0.0.1:{free.getsockname()[1]}"
    broker.start(
        {
            # Its first line names what is advertised, so the port is chosen here.
            "listeners": f"PLAINTEXT://{listener}",
            "advertised.listeners": f"PLAINTEXT://{proxy.address}",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
        }
    )
    proxy.forward_to(listener)
    with Admin(bootstrap_servers=proxy.address) as admin:
        admin.create_topics([NewTopic("t", 1)])
    with Producer(bootstrap_servers=proxy.address, batch_size=2_000) as producer:
        for number in range(COUNT):
            producer.send("t", value(number))
    yield proxy
    broker.close()
    proxy.close()


def test_every_record_comes_once_although_an_answer_was_damaged(proxy: DamagingProxy) -> None:
    found: list[bytes | None] = []

    with Consumer(
        "t",
        bootstrap_servers=proxy.address,
        group_id="g",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=20_000,
    ) as consumer:
        while len(found) < COUNT:
            groups = consumer.poll(10)
            assert groups
            found += [record.value for group in groups for record in group.records]
        consumer.commit()
        committed = consumer.committed([("t", 0)])

    assert proxy.damaged == 1
    assert found == [value(number) for number in range(COUNT)]
    assert committed == {("t", 0): CommittedOffset(COUNT, leader_epoch=0)}
