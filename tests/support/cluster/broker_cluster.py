"""Three `tarry serve` and a real etcd: one cluster, for tests that need real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.cluster.etcd_server import EtcdServer

from tarry.client import Admin

SIZE: Final = 3


class BrokerCluster:
    """Brokers 1 to 3; `start` waits until each serves."""

    def __init__(self, directory: Path) -> None:
        self.etcd = EtcdServer(directory)
        self.brokers: dict[int, BrokerProcess] = {}
        for broker_id in range(1, SIZE + 1):
            own = directory / f"broker-{broker_id}"
            own.mkdir()
            self.brokers[broker_id] = BrokerProcess(own)

    def start(self) -> None:
        self.etcd.start()
        for broker_id in self.brokers:
            self.start_broker(broker_id)

    def start_broker(self, broker_id: int) -> None:
        """Start a broker and wait until it serves; the first time on a free port."""
        self.brokers[broker_id].start(
            {
                "node.id": str(broker_id),
                "metadata.store": f"etcd://{self.etcd.address}/test",
                "broker.session.timeout.ms": "3000",
                "broker.heartbeat.interval.ms": "500",
                "group.initial.rebalance.delay.ms": "0",
                "offsets.topic.num.partitions": "6",
            }
        )

    @property
    def addresses(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def serving(self, asked: int) -> list[int]:
        """The ids of the brokers that serve, as this one tells."""
        with Admin(bootstrap_servers=self.brokers[asked].address) as admin:
            told = admin.describe_cluster()
            living = {broker.broker_id for broker in told.brokers} - set(told.fenced_ids)
            return sorted(living)

    def wait_until_serving(self, asked: int, wanted: list[int]) -> None:
        """Wait until this broker tells of these brokers and no other."""
        wait_until(
            lambda: "yes" if self.serving(asked) == wanted else "", f"brokers {wanted} at {asked}"
        )

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.close()
        self.etcd.close()
