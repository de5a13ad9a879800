"""Checker of service while single disks fail: an able replica in sync serves its partition.

It looks in runs in which nothing else goes wrong.  A broker is able to serve a partition if the
others know that it serves, and if its disk refuses neither files nor the directory of the
partition.  A partition with an able broker in sync has a leader that may act within some seconds.
The settings of a replica are those of its topic in every turn.
"""

from __future__ import annotations

from typing import Final

from tarry.base.partition_row import PartitionRow
from tarry.broker.broker import Broker
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.committed import Place
from tarry.simulation.cluster.replica_checker import ReplicaChecker

# Longest time without service.  A log counts as refused after a second, and is handed over at the
# next look.  If several brokers refuse it, one after the other gets it.
SERVED_MS_MAX: Final = 4_000
_LOOK_MS: Final = 100

SETTING: Final = "max.message.bytes"


class ServedChecker(NodeObserver):
    """Observer of all brokers of one world.  `violations` has a sentence for each broken rule."""

    def __init__(self, checker: ReplicaChecker, nodes: list[ClusterNode]) -> None:
        self.violations: list[str] = []
        self._checker = checker
        self._nodes = nodes
        self._looked_ms = 0
        # Time since which partitions are not served although a broker is able to.
        self._unserved: dict[Place, int] = {}

    def after_turn(self, node: BrokerNode) -> None:
        assert isinstance(node, ClusterNode)
        if node.broker is not None:
            self._check_settings(node.broker)
        now_ms = node.clock.now_ms
        if now_ms - self._looked_ms < _LOOK_MS:
            return
        self._looked_ms = now_ms
        unserved: dict[Place, int] = {}
        for topic in self._checker.state.topics.values():
            for index, row in enumerate(topic.partitions):
                place = (topic.topic_id, index)
                if self._is_served(place, row) or not self._able(f"{topic.name}-{index}", row):
                    continue
                unserved[place] = self._unserved.get(place, now_ms)
        for place, since_ms in list(unserved.items()):
            if now_ms - since_ms > SERVED_MS_MAX:
                self._tell(place, now_ms - since_ms)
                unserved[place] = now_ms
        self._unserved = unserved

    def _tell(self, place: Place, ms: int) -> None:
        topic = self._checker.state.topic_by_id(place[0])
        row = self._checker.row(place)
        if topic is None or row is None:
            return
        name = f"{topic.name}-{place[1]}"
        self.violations.append(
            f"{name} is not served for {ms} ms, b{row.leader_id} is to lead it, and "
            f"{self._able(name, row)} could"
        )

    def _able(self, name: str, row: PartitionRow) -> list[int]:
        """Return the brokers in sync that are able to serve a partition."""
        return [
            node.broker_id
            for node in self._nodes
            if node.broker_id in row.isr
            and node.is_ready
            and node.files_per_turn is None
            and not node.disk.is_refused(name)
        ]

    def _is_served(self, place: Place, row: PartitionRow) -> bool:
        for node in self._nodes:
            if node.broker_id == row.leader_id and node.broker is not None:
                hosted = node.broker.topics.with_id(place[0])
                partition = None if hosted is None else hosted.partition(place[1])
                return (
                    partition is not None
                    and partition.leadership.may_act()
                    and partition not in node.broker.flushes.refused
                )
        return False

    def _check_settings(self, broker: Broker) -> None:
        for partition in broker.topics.replicas():
            topic = broker.cluster.topic_by_id(partition.leadership.topic_id)
            text = None if topic is None else topic.configs.get(SETTING)
            if text is not None and partition.config.max_message_bytes != int(text):
                self.violations.append(
                    f"{partition.name} at b{broker.broker_id} takes batches of "
                    f"{partition.config.max_message_bytes} bytes, and its topic says {text}"
                )
