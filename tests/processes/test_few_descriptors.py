"""A broker that may open few files serves many more logs than that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.patience import PATIENCE_S

from tarry.client import Admin, Consumer, NewTopic, Producer

DESCRIPTORS_MAX: Final = 1_024
# A log that is new holds up to three descriptors until its first flush has ended.
PARTITIONS: Final = 700

SETTINGS: Final[dict[str, Any]] = {
    "delivery.timeout.ms": int(PATIENCE_S) * 1_000,
    "max.block.ms": int(PATIENCE_S) * 1_000,
    # All of them leave in one request.
    "linger.ms": 1_000,
    "max.request.size": 10_000_000,
}


class SmallBroker(BrokerProcess):
    """A broker in a process with a low limit of open files."""

    def command(self, texts: Mapping[str, str] | None = None) -> list[str]:
        limit = f'ulimit -n {DESCRIPTORS_MAX}; exec "$@"'
        return ["sh", "-c", limit, "sh", *super().command(texts)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[SmallBroker]:
    process = SmallBroker(tmp_path)
    yield process
    process.close()


@pytest.mark.parametrize("policy", ["commit", "os"])
def test_many_new_logs_are_written_at_once_and_found_after_a_kill(
    broker: SmallBroker, policy: str
) -> None:
    broker.start({"flush.policy": policy})
    with Admin(bootstrap_servers=broker.address) as admin:
        (made,) = admin.create_topics([NewTopic("many", PARTITIONS)], timeout=PATIENCE_S)
        assert made.error is None
    with Producer({"bootstrap.servers": broker.address, **SETTINGS}) as producer:
        receipts = [
            producer.send("many", b"%d" % partition, partition=partition)
            for partition in range(PARTITIONS)
        ]
        producer.flush()
        offsets = [receipt.result().offset for receipt in receipts]

    broker.kill()
    broker.start()

    assert offsets == [0] * PARTITIONS
    with Consumer(bootstrap_servers=broker.address) as consumer:
        places = [("many", partition) for partition in range(PARTITIONS)]
        ends = consumer.end_offsets(places)
    assert ends == dict.fromkeys(places, 1)
