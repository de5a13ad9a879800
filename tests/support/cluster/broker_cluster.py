"""Three `tarry serve` and a real etcd: one cluster, for tests that need real processes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, Self

from tests.support.broker_process import BrokerProcess, wait_until
from tests.support.cluster.cutting_proxy import CuttingProxy
from tests.support.cluster.etcd_server import EtcdServer, free_ports
from tests.support.cluster.three_etcds import ThreeEtcds

from tarry.client import Admin
from tarry.client.core.topic import Topic

SIZE: Final = 3


class BrokerCluster:
    """Brokers 1 to 3; `start` waits until each serves.  It has an etcd of one member, or the
    three of `etcds`.

    With `has_proxies` each broker follows the others and asks etcd through proxies: the one of
    `peers[X]` stands before broker X, the one of `stores[X]` between X and etcd.  Clients come
    without one.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        has_proxies: bool = False,
        etcds: ThreeEtcds | None = None,
    ) -> None:
        self.settings = dict(settings or {})
        self.peers: dict[int, CuttingProxy] = {}
        self.stores: dict[int, CuttingProxy] = {}
        self.etcd = EtcdServer(directory)
        self.etcds = etcds
        self.brokers: dict[int, BrokerProcess] = {}
        for broker_id in range(1, SIZE + 1):
            own = directory / f"broker-{broker_id}"
            own.mkdir()
            self.brokers[broker_id] = BrokerProcess(own)
            if has_proxies:
                self._put_between(broker_id)

    def _put_between(self, broker_id: int) -> None:
        """Have a broker listen for others on a port that only its proxy knows."""
        peer, store = CuttingProxy(), CuttingProxy()
        self.peers[broker_id], self.stores[broker_id] = peer, store
        client_port = free_ports(2)
        peer.forward_to(f"127.0.0.1:{client_port + 1}")
        store.forward_to(self.etcd.address)
        clients = f"PLAINTEXT://127.0.0.1:{client_port}"
        self.brokers[broker_id].texts |= {
            "listeners": f"{clients},PEERS://127.0.0.1:{client_port + 1}",
            "advertised.listeners": f"{clients},PEERS://{peer.address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PEERS:PLAINTEXT",
            "inter.broker.listener.name": "PEERS",
        }
        self.brokers[broker_id].port = client_port

    def __enter__(self) -> Self:
        """Have all brokers serve."""
        try:
            self.start()
            self.wait_until_serving(1, sorted(self.brokers))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        (self.etcds or self.etcd).start()
        for broker_id in self.brokers:
            self.start_broker(broker_id)

    def start_broker(self, broker_id: int) -> None:
        """Start a broker and wait until it serves; the first time on a free port."""
        proxy = self.stores.get(broker_id)
        store = (self.etcds or self.etcd).address if proxy is None else proxy.address
        self.brokers[broker_id].start(
            {
                "node.id": str(broker_id),
                "metadata.store": f"etcd://{store}/test",
                "broker.session.timeout.ms": "3000",
                "broker.heartbeat.interval.ms": "500",
                "group.initial.rebalance.delay.ms": "0",
                "offsets.topic.num.partitions": "6",
                **self.settings,
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

    def topic(self, asked: int, name: str) -> Topic:
        """The topic as this broker tells of it; without partitions if it does not know it."""
        with Admin(bootstrap_servers=self.brokers[asked].address) as admin:
            return admin.find_topics([name]).get(name) or Topic(name)

    def wait_until_known(self, name: str) -> None:
        """Wait until each broker that runs tells of the topic and of a leader of each partition."""

        def is_known(asked: int) -> str:
            partitions = self.topic(asked, name).partitions.values()
            return "yes" if partitions and all(p.leader_id >= 0 for p in partitions) else ""

        for asked, broker in self.brokers.items():
            if broker.process is not None:
                wait_until(partial(is_known, asked), f"topic {name} at broker {asked}")

    def wait_until_serving(self, asked: int, wanted: list[int]) -> None:
        """Wait until this broker tells of these brokers and no other."""
        wait_until(
            lambda: "yes" if self.serving(asked) == wanted else "", f"brokers {wanted} at {asked}"
        )

    def close(self) -> None:
        for broker in self.brokers.values():
            broker.close()
        for proxy in [*self.peers.values(), *self.stores.values()]:
            proxy.close()
        (self.etcds or self.etcd).close()
