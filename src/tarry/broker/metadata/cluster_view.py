"""The cluster as clients see it: brokers, controller, endpoints, allowed operations."""

from __future__ import annotations

from typing import Final, NamedTuple

from tarry.base.partition_row import PartitionRow
from tarry.base.settings import Settings
from tarry.broker.membership.neighbours import Neighbours
from tarry.broker.topics import Topics
from tarry.cluster.state.state import LEAVING, SERVING, ClusterState

# Phases in which a broker's port is open.
_REACHABLE: Final = (SERVING, LEAVING)

# Sets of operations, with one bit for each of Kafka's numbers (KIP-430).  Without access control
# every operation that a resource knows is allowed.
# On a topic: READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
TOPIC_OPERATIONS: Final = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))
# On the cluster: CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS,
# IDEMPOTENT_WRITE.
CLUSTER_OPERATIONS: Final = sum(1 << operation for operation in (5, 7, 8, 9, 10, 11, 12))
# On a group: READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
GROUP_OPERATIONS: Final = sum(1 << operation for operation in (3, 6, 8, 10, 11))
# Value that stands for operations for which the client did not ask.
OPERATIONS_NOT_ASKED: Final = -(2**31)


class BrokerEndpoint(NamedTuple):
    """Address of a broker for clients, and its rack."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class ClusterView:
    """The members of the cluster: the living brokers, or this broker alone if it has its own store.

    This broker is always among them: librdkafka drops every broker that an answer lacks, with the
    requests that wait for it, and stops for ever when none is left.

    A broker's address is the one for the listener through which the client has connected.
    """

    def __init__(
        self,
        state: ClusterState,
        settings: Settings,
        topics: Topics,
        neighbours: Neighbours,
    ) -> None:
        self.state = state
        self._settings = settings
        self._endpoints = settings.advertised_addresses()
        self._topics = topics
        self._neighbours = neighbours

    @property
    def own_id(self) -> int:
        """The id of this broker."""
        return self._settings.node_id

    @property
    def broker_ids(self) -> list[int]:
        """The ids of the brokers that live and have their port open, sorted."""
        known = {*self.state.brokers, self.own_id}
        return [broker_id for broker_id in sorted(known) if self.is_reachable(broker_id)]

    @property
    def controller_id(self) -> int:
        """The id of the broker that clients take for the controller: the lowest that can be
        reached.

        Any broker does the work of Kafka's controller.
        """
        return self.broker_ids[0]

    def brokers(self, listener: str) -> list[BrokerEndpoint]:
        """Return the reachable brokers, with their addresses for clients of this listener."""
        return [self.endpoint(broker_id, listener) for broker_id in self.broker_ids]

    def fenced_brokers(self, listener: str) -> list[BrokerEndpoint]:
        """Return the registered brokers that cannot be reached now, in the same form as
        `brokers`.
        """
        return [
            self.endpoint(broker_id, listener)
            for broker_id in sorted(self.state.brokers)
            if not self.is_reachable(broker_id)
        ]

    def endpoint(self, broker_id: int, listener: str) -> BrokerEndpoint:
        """Return a broker with its address for clients of this listener."""
        if broker_id == self.own_id:
            host, port = self._endpoints[listener]
            return BrokerEndpoint(broker_id, host, port, self._settings.broker_rack)
        broker = self.state.brokers[broker_id]
        # If a broker lacks this listener, the answer has the address of another listener.  Kafka
        # leaves such a broker out, and clients cannot tell why.
        found = broker.endpoints.get(listener) or next(iter(broker.endpoints.values()), ("", -1))
        return BrokerEndpoint(broker_id, found[0], found[1], broker.rack or None)

    def is_reachable(self, broker_id: int) -> bool:
        """Return whether clients can ask this broker now."""
        if broker_id == self.own_id:
            return True
        broker = self.state.brokers.get(broker_id)
        if broker is None:
            return False
        if broker.phase not in _REACHABLE and not self._neighbours.is_expected(broker_id):
            return False
        # A broker with a damaged registration has no known address, and clients fail at an empty
        # one.
        return len(broker.endpoints) > 0

    # -- a partition

    def leader(self, topic: str, index: int, row: PartitionRow) -> int:
        """Return the leader; -1 if it cannot be reached, or if the life in which it led is over.

        A broker whose own lease may be over does not name itself: another broker may lead already,
        and clients that are told of this one would not look for the other.  A broker that has not
        yet made the log of a new partition does not name itself either.
        """
        if not self.is_reachable(row.leader_id):
            return -1
        if row.leader_id == self.own_id:
            hosted = self._topics.get(topic)
            if hosted is None or hosted.is_unmade(index):
                return -1
            partition = self._topics.replica(topic, index)
            if partition is not None and not partition.leadership.may_act():
                return -1
        broker = self.state.brokers.get(row.leader_id)
        if broker is None or broker.broker_epoch == row.broker_epoch:
            return row.leader_id
        return row.leader_id if self._neighbours.is_expected(row.leader_id) else -1

    def in_sync(self, row: PartitionRow) -> list[int]:
        """Return the in-sync replicas that live."""
        return [broker_id for broker_id in row.isr if self.is_reachable(broker_id)]

    def eligible(self, row: PartitionRow) -> list[int]:
        """Return the replicas that stay in the isr although they are dead: they have all
        acknowledged records, and can lead once they live.
        """
        return [broker_id for broker_id in row.isr if not self.is_reachable(broker_id)]

    def offline_replicas(self, topic: str, index: int, row: PartitionRow) -> list[int]:
        """Return the replicas that do not live, and this broker's if one of its logs is damaged and
        readable only up to the flaw: that of the records, or of the scheduled ones.

        Clients show this field of Kafka's, and do not choose brokers by it.
        """
        partition = self._topics.replica(topic, index)
        is_damaged = partition is not None and any(
            each.log.flaw_offset >= 0 for each in partition.leadership.logs
        )
        return [
            broker_id
            for broker_id in row.replicas
            if not self.is_reachable(broker_id) or (is_damaged and broker_id == self.own_id)
        ]
