"""A network that damages or cuts what a consumer fetches, once: no record is missing."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.damaging_proxy import DamagingProxy
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, Consumer, NewTopic, Producer

COUNT = 4_000

Values = list[bytes | None]


def value(number: int) -> bytes:
    return b"value-%06d-%s" % (number, b"x" * 80)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DamagingProxy]:
    """In front of a broker whose topic t holds the records; fetches bring a small part of them."""
    proxy = DamagingProxy(b"value-002000")
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"))
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
        producer.flush(PATIENCE_S)
    yield proxy
    broker.close()
    proxy.close()


def committed_by(consumer: Consumer) -> int:
    committed = consumer.committed([("t", 0)])["t", 0]
    return -1 if committed is None else committed.offset


def read_records(settings: dict[str, Any]) -> tuple[Values, int]:
    found: Values = []
    with Consumer("t", settings) as consumer:
        while len(found) < COUNT:
            groups = consumer.poll(PATIENCE_S)
            assert groups
            found += [record.value for group in groups for record in group.records]
        consumer.commit()
        return found, committed_by(consumer)


def read_tables(settings: dict[str, Any]) -> tuple[Values, int]:
    arrow = pytest.importorskip("tarry.client.arrow")
    pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'tarry[arrow]'")
    found: Values = []
    with arrow.ArrowConsumer("t", settings) as consumer:
        batches = consumer.batches(columns=["topic", "partition", "offset", "value"])
        while len(found) < COUNT:
            batch = next(batches)
            found += batch["value"].to_pylist()
            consumer.commit(batch)
        return found, committed_by(consumer)


@pytest.mark.parametrize("read", [read_records, read_tables], ids=lambda read: read.__name__)
@pytest.mark.parametrize("damage", ["another byte", "cut"])
def test_every_record_comes_once_although_an_answer_was_damaged(
    proxy: DamagingProxy, damage: str, read: Callable[[dict[str, Any]], tuple[Values, int]]
) -> None:
    proxy.arm(cuts=damage == "cut")

    found, committed = read(
        {
            "bootstrap.servers": proxy.address,
            "group.id": f"{damage}, {read.__name__}",
            "auto.offset.reset": "earliest",
            "max.partition.fetch.bytes": 20_000,
        }
    )

    assert proxy.damaged == 1
    assert found == [value(number) for number in range(COUNT)]
    assert committed == COUNT
