"""The broker under the tests of groups: Tarry, or Apache Kafka as the judge of the tests.

`TARRY_TEST_GROUPS_ON=kafka` lets the same tests run against Apache Kafka; what they expect is right
where they pass there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Protocol

from tests.support.broker_process import BrokerProcess
from tests.support.interop.kafka_server import STOP_SECONDS_MAX, KafkaServer, free_port

IS_KAFKA: Final = os.environ.get("TARRY_TEST_GROUPS_ON") == "kafka"

# Short sessions are allowed, and the first member need not wait for others.
GROUP_TEXTS: Final = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "auto.create.topics.enable": "false",
}


class GroupBroker(Protocol):
    """A broker that can be killed and comes back at the same address."""

    @property
    def address(self) -> str: ...

    @property
    def data(self) -> Path:
        """The directory with one directory for each partition."""

    def kill(self) -> None: ...

    def start(self) -> None: ...

    def close(self) -> None: ...


class TarryBroker:
    def __init__(self, directory: Path) -> None:
        self.process = BrokerProcess(directory)
        self.process.start(GROUP_TEXTS)

    @property
    def address(self) -> str:
        return self.process.address

    @property
    def data(self) -> Path:
        return self.process.directory / "data"

    def kill(self) -> None:
        self.process.kill()

    def start(self) -> None:
        self.process.start()

    def close(self) -> None:
        self.process.close()


class KafkaBroker:
    def __init__(self, directory: Path) -> None:
        # A node that was killed may not come back before its session is over.
        properties = {**GROUP_TEXTS, "broker.session.timeout.ms": "9000"}
        self.server = KafkaServer(directory, free_port(), properties=properties)
        self.server.start()

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def data(self) -> Path:
        return self.server.directory / "data"

    def kill(self) -> None:
        assert self.server.process is not None
        self.server.process.kill()
        self.server.process.wait(STOP_SECONDS_MAX)
        self.server.process = None

    def start(self) -> None:
        self.server.start()

    def close(self) -> None:
        if self.server.process is not None:
            self.kill()


def start_group_broker(directory: Path) -> GroupBroker:
    return KafkaBroker(directory) if IS_KAFKA else TarryBroker(directory)
