"""Three brokers in a simulated world, of which leaders are taken away; no client produces.

Rows are made as they are given, with any number of replicas.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.support.cluster.simulated_cluster import SimulatedCluster
from tests.support.metadata_stores import GivenChange

from tarry.base.etcd import Row
from tarry.base.partition_row import PartitionRow
from tarry.broker.broker import Broker
from tarry.cluster.etcd.etcd_store import EtcdStore
from tarry.cluster.rows.rows import Keys, decode_row
from tarry.cluster.state.records import TopicCreated
from tarry.simulation import faults
from tarry.simulation.cluster.cluster_node import ClusterNode

TOPIC = "t"


class LeaderScene:
    """The cluster, and short words for what happens to it."""

    def __init__(self, seed: int = 3, settings: dict[str, str] | None = None) -> None:
        self.cluster = SimulatedCluster(seed)
        self.world = self.cluster.world
        self.nodes = {node.broker_id: node for node in self.cluster.nodes}
        for node in self.nodes.values():
            node.settings.update(settings or {})
            node.plan.may_lose_power = False
            node.start()
        self.until(
            lambda: (
                all(node.is_ready for node in self.nodes.values())
                and all(each.cluster.placeable_ids == [1, 2, 3] for each in self.cluster.brokers())
            ),
            "ready brokers",
        )

    def until(self, is_so: Callable[[], bool], what: str, ms_max: int = 30_000) -> int:
        """Let time pass until this is so; how long it took."""
        began_ms = self.world.agenda.now_ms
        self.world.run_until(began_ms + ms_max, is_so)
        assert is_so(), f"did not come: {what}"
        return self.world.agenda.now_ms - began_ms

    def pass_ms(self, ms: int) -> None:
        self.world.run_for(ms)

    def create(
        self, replicas: list[list[int]], configs: dict[str, str] | None = None, name: str = TOPIC
    ) -> None:
        rows = [PartitionRow(each[0], 0, -1, 0, each, list(each)) for each in replicas]
        topic_id = name.encode().ljust(16, b".")[:16]
        record = TopicCreated(topic_id=topic_id, name=name, partitions=rows, configs=configs or {})
        self.broker().store.change(GivenChange(record))
        self.until(lambda: all(name in each.topics for each in self.cluster.brokers()), "the topic")

    def broker(self, without: int = 0) -> Broker:
        """Any broker that runs."""
        return next(
            node.broker
            for node in self.nodes.values()
            if node.broker is not None and node.broker_id != without and not node.is_cut_off
        )

    def row(self, index: int = 0, name: str = TOPIC, without: int = 0) -> PartitionRow:
        """The row as a broker that runs knows it."""
        return self.broker(without).cluster.topics[name].partitions[index]

    def isrs(self, index: int = 0) -> list[list[int]]:
        """Every isr that was written for the partition, in order, sorted."""
        keys = Keys("/simulated/")
        key = keys.part(self.broker().cluster.topics[TOPIC].topic_id, index)
        found: list[list[int]] = []
        for _, changes in self.cluster.etcd_node.etcd.changes_from(1):
            for change in changes:
                if isinstance(change, Row) and change.key == key:
                    row = decode_row("parts", key, change.value)
                    assert isinstance(row, PartitionRow)
                    if not found or found[-1] != sorted(row.isr):
                        found.append(sorted(row.isr))
        return found

    def leads(self, broker_id: int, index: int = 0, name: str = TOPIC) -> bool:
        """Return whether this broker believes to lead the partition."""
        broker = self.nodes[broker_id].broker
        return broker is not None and broker.topics.partition(name, index) is not None

    def leaders(self, name: str = TOPIC, index: int = 0) -> list[int]:
        return [each for each in self.nodes if self.leads(each, index, name)]

    def registered_directory(self, broker_id: int) -> str:
        return self.broker().cluster.brokers[broker_id].directory_id

    # --- What happens.

    def kill(self, broker_id: int, kind: str = faults.KILL) -> None:
        """End the process; it does not come back before `restart`."""
        node = self.nodes[broker_id]
        node.lose(kind)
        node.is_cut_off = True

    def restart(self, broker_id: int) -> None:
        self.nodes[broker_id].reconnect()
        self.wait_until_ready(broker_id)

    def end_life(self, broker_id: int) -> None:
        """Let the lease of a broker end now."""
        etcd = self.cluster.etcd_node.etcd
        (found,) = etcd.rows(Keys("/simulated/").life(broker_id))
        etcd.revoke(found.lease_id)

    def is_changing(self, broker_id: int) -> bool:
        """Return whether a change of this broker is under way."""
        broker = self.nodes[broker_id].broker
        assert broker is not None
        assert isinstance(broker.store, EtcdStore)
        return broker.store.is_changing

    def stop(self, broker_id: int) -> int:
        """Ask for a clean stop and wait for it; how long it took.  It does not come back."""
        node = self.nodes[broker_id]
        node.request_stop(faults.CLEAN)
        took_ms = self.until(lambda: node.broker is None, "a stop")
        node.is_cut_off = True
        return took_ms

    def wait_until_ready(self, broker_id: int) -> None:
        self.until(lambda: self.nodes[broker_id].is_ready, f"broker {broker_id}")

    def replace_disk(self, broker_id: int) -> None:
        """Give a process that does not run an empty disk."""
        self.nodes[broker_id].replace_disk()

    def node(self, broker_id: int) -> ClusterNode:
        return self.nodes[broker_id]

    def violations(self) -> list[str]:
        found = list(self.cluster.watch.violations)
        for node in self.nodes.values():
            found += node.violations
        return found
