"""Runs of a simulated cluster in which operators give partitions other replicas and leaders, while
brokers die, are cut off and lose their disks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.broker.broker import Broker
from tarry.cluster.state import TopicState, is_reassigned
from tarry.cluster.topic_names import OFFSETS_TOPIC
from tarry.partition.state import Partition
from tarry.protocol import api_keys
from tarry.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
    decode_alter_partition_reassignments_response,
)
from tarry.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    TopicPartitions,
    decode_elect_leaders_response,
)
from tarry.simulation.broker_node import BrokerNode
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import Delay, Query, RunClient, Script
from tarry.simulation.cluster.cluster_node import ClusterNode
from tarry.simulation.cluster.cluster_run import ClusterRun
from tarry.simulation.cluster.faulty_cluster import BROKERS, TOPIC, FaultyCluster
from tarry.simulation.cluster.groups.run import ClusterGroupsRun
from tarry.simulation.cluster.replica_checker import Place, ReplicaChecker
from tarry.simulation.trace import Trace

_TIMEOUT_MS: Final = 2_000
_PREFERRED: Final = 0


class OperatedChecker(ReplicaChecker):
    """Checker that knows that replicas go and come: what a new one has is held against nothing."""

    _replicas: dict[tuple[int, Place], tuple[int, Partition]]

    def after_turn(self, node: BrokerNode) -> None:
        assert isinstance(node, ClusterNode)
        if node.broker is not None:
            self._forget_gone(node, node.broker)
        super().after_turn(node)

    def _forget_gone(self, node: ClusterNode, broker: Broker) -> None:
        if not hasattr(self, "_replicas"):
            self._replicas = {}
        for key in [key for key in self._logs if key[0] == node.broker_id]:
            hosted = broker.topics.with_id(key[1][0])
            replica = None if hosted is None else hosted.replica(key[1][1])
            before = self._replicas.pop(key, None)
            if replica is not None:
                self._replicas[key] = node.life, replica
            is_new = before is not None and before[0] == node.life and before[1] is not replica
            if replica is None or is_new:
                del self._logs[key]

    def unhealed(self, brokers: list[Broker]) -> list[str]:
        found = super().unhealed(brokers)
        for place in sorted(self._names):
            row = self.row(place)
            if row is not None and is_reassigned(row):
                found.append(f"{self._names[place]} is reassigned still: {row}")
        return found


class Operator(RunClient):
    """Operator that asks one broker for reassignments, for their ends and for preferred leaders."""

    def __init__(
        self, context: RunContext, name: str, cluster: FaultyCluster, pause_ms_max: int
    ) -> None:
        super().__init__(context, name, cluster.context)
        self._checker = cluster.checker
        # Each has to survive the loss of a disk where there may be one.
        self._least = 2 if cluster.scenario.floor == 2 else 1
        self._pause_ms_max = pause_ms_max

    def script(self) -> Script:
        random = self.context.random
        while not self.run.is_quiet:
            yield Delay(1 + random.randrange(self._pause_ms_max))
            names = (TOPIC, OFFSETS_TOPIC)
            topics = [self._checker.state.topic(name) for name in names]
            known = [each for each in topics if each is not None]
            if known:
                yield self._wish(known[random.randrange(len(known))])

    def _wish(self, topic: TopicState) -> Query:
        random = self.context.random
        count = len(topic.partitions)
        indexes = list(range(count)) if random.randrange(4) == 0 else [random.randrange(count)]
        kind = random.randrange(6)
        if kind == 0:
            places = None if random.randrange(2) else [TopicPartitions(topic.name, indexes)]
            elections = ElectLeadersRequest(_PREFERRED, places, _TIMEOUT_MS)
            return Query(
                api_keys.ELECT_LEADERS, 2, elections, decode_elect_leaders_response, _TIMEOUT_MS
            )
        target: list[int] | None = None
        if kind > 1:
            brokers = random.sample(range(1, BROKERS + 1), BROKERS)
            target = brokers[: self._least + random.randrange(BROKERS + 1 - self._least)]
        partitions = [ReassignablePartition(index, target) for index in indexes]
        return Query(
            api_keys.ALTER_PARTITION_REASSIGNMENTS,
            1,
            AlterPartitionReassignmentsRequest(
                _TIMEOUT_MS, True, [ReassignableTopic(topic.name, partitions)]
            ),
            decode_alter_partition_reassignments_response,
            _TIMEOUT_MS,
        )


def _operate(cluster: FaultyCluster) -> None:
    """Start an operator at each broker; in some runs leaders go back by themselves as well."""
    random = cluster.world.random
    pause_ms_max = (300, 1_500)[random.randrange(2)]
    for node in cluster.nodes:
        name = f"operator{node.broker_id}"
        Operator(cluster.visitor_context(node), name, cluster, pause_ms_max).start()


def _prepare(cluster: FaultyCluster) -> None:
    """Make the checker one that knows of reassignments, before any node has had a turn."""
    before = cluster.checker
    checker = OperatedChecker(cluster.etcd_node)
    checker.looks_at_compacted = before.looks_at_compacted
    checker.on_cut = before.on_cut
    cluster.checker = checker
    cluster.observers.all[cluster.observers.all.index(before)] = checker
    cluster.faults = type(cluster.faults)(
        cluster.world, cluster.etcd_node, cluster.nodes, checker, cluster.scenario
    )
    if cluster.world.random.randrange(3) == 0:
        for node in cluster.nodes:
            node.settings["leader.imbalance.check.interval.seconds"] = "1"
            node.settings["leader.imbalance.per.broker.percentage"] = "0"


class OperatedRecords(ClusterRun):
    """Run of producers, a consumer and operators."""

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        super().__init__(seed, trace)
        _prepare(self)
        self.told = type(self.told)(self.checker)

    def begin_clients(self) -> None:
        super().begin_clients()
        _operate(self)


class OperatedGroups(ClusterGroupsRun):
    """Run of the members of a group, visitors that commit, and operators."""

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        super().__init__(seed, trace)
        _prepare(self)

    def begin_clients(self) -> None:
        super().begin_clients()
        _operate(self)


OPERATED: Final[dict[str, Callable[[int, Trace | None], FaultyCluster]]] = {
    "records": OperatedRecords,
    "groups": OperatedGroups,
}
