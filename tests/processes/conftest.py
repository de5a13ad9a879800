"""Real broker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.broker_process import BrokerProcess


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[[], BrokerProcess]]:
    """Makes brokers that are not started yet, each with a directory of its own."""
    brokers: list[BrokerProcess] = []

    def make() -> BrokerProcess:
        directory = tmp_path / f"broker-{len(brokers)}"
        directory.mkdir()
        brokers.append(BrokerProcess(directory))
        return brokers[-1]

    yield make
    for broker in brokers:
        broker.close()


@pytest.fixture(scope="session")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker for clients of many tests: topics by their names, groups without a delay."""
    broker = BrokerProcess(tmp_path_factory.mktemp("shared-broker"))
    broker.start(
        {
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "500",
            "offsets.topic.num.partitions": "1",
        }
    )
    yield broker
    broker.close()


@pytest.fixture
def broker(make_broker: Callable[[], BrokerProcess]) -> BrokerProcess:
    """A broker that is ready."""
    broker = make_broker()
    broker.start()
    return broker
