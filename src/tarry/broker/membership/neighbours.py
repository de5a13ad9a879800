"""Neighbours: the other brokers of the cluster, as the parts of this broker see them.

A part that needs to know of other brokers takes this object in its constructor and asks it.  A
broker that is alone never joins: it leads every partition, and it has no peer to inform when it
stops.  Hot.
"""

from __future__ import annotations

from typing import Protocol

from tarry.base.partition_row import PartitionRow
from tarry.broker.membership.membership import ClusterMembership
from tarry.broker.request import RequestContext
from tarry.cluster.state.records import MetadataRecord
from tarry.partition.leadership import Leadership
from tarry.partition.replicated_log import ReplicatedLog
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import FetchRequest

NO_EPOCH = -1


class ReplicationSide(Protocol):
    """Side of replication, the follower's or the leader's."""

    def switch_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        """Begin or end this side's work for a replica whose role has changed."""


class Following(ReplicationSide, Protocol):
    """Follower's side: it copies the partitions that other brokers lead."""

    def forget(self, log: ReplicatedLog) -> None:
        """Stop copying a log that is closed."""

    def react(self, record: MetadataRecord) -> None:
        """React to a change of a broker's life or address."""


class Leading(ReplicationSide, Protocol):
    """Leader's side: it serves the partitions that other brokers copy."""

    def attend(self) -> None:
        """Check the lease at the beginning of a turn, before any request is answered."""


class ReplicaFetches(Protocol):
    """Handler of the fetches that replicas send."""

    def handle(self, context: RequestContext, request: FetchRequest) -> Message | None:
        """Answer a fetch now, or return None and answer later."""


class Views(Protocol):
    """The other brokers' view of this broker: whether they think that it lives."""

    def must_send_away(self) -> bool:
        """Return whether this broker must not serve clients."""


class Neighbours:
    """Neighbours of one broker.  `is_member`: the broker belongs to a cluster and will join it."""

    def __init__(self, *, is_member: bool) -> None:
        self.is_member = is_member
        self.membership: ClusterMembership | None = None
        self.following: Following | None = None
        self.leading: Leading | None = None
        self.replica_fetches: ReplicaFetches | None = None
        self._views: Views | None = None

    # -- joining: once each, in this order, before the first turn

    def follow(self, following: Following) -> None:
        """Begin to copy the partitions that other brokers lead."""
        self.following = following

    def join(self, membership: ClusterMembership, views: Views | None) -> None:
        """Take the membership: from now on this broker has lives that the others see."""
        self.membership, self._views = membership, views

    def lead(self, leading: Leading, fetches: ReplicaFetches) -> None:
        """Begin to serve replicas that copy the partitions led here."""
        self.leading, self.replica_fetches = leading, fetches

    # -- what parts ask

    def own_epoch(self) -> int:
        """Return the broker epoch in which this broker may lead; -1 if it has none."""
        return NO_EPOCH if self.membership is None else self.membership.own_epoch

    def may_lead(self, broker_epoch: int) -> bool:
        """Return whether this broker may lead a partition whose row names this broker epoch.

        The epoch of the previous life is good too while no other broker has taken over a partition.
        """
        if not self.is_member:
            return True
        membership = self.membership
        if membership is None or broker_epoch < 0:
            return False
        return broker_epoch in (membership.own_epoch, membership.ending_epoch)

    def must_send_away(self) -> bool:
        """Return whether clients must be sent to other brokers."""
        return self._views is not None and self._views.must_send_away()

    def is_expected(self, broker_id: int) -> bool:
        """Return whether a broker without a life is expected to begin the next one soon."""
        return self.membership is not None and self.membership.is_expected(broker_id)

    def leave(self) -> bool:
        """End this broker's life in the cluster; return true once the other brokers can know it."""
        return self.membership is None or self.membership.leave()

    def attend(self) -> None:
        """Check the lease at the beginning of a turn."""
        if self.leading is not None:
            self.leading.attend()

    # -- reports of hosting, before any part receives them

    def switch_role(
        self, leadership: Leadership, before: PartitionRow | None, was_leader: bool
    ) -> None:
        """Report a role to the follower's side first: a cut must end before this broker leads."""
        if self.following is not None:
            self.following.switch_role(leadership, before, was_leader)
        if self.leading is not None:
            self.leading.switch_role(leadership, before, was_leader)

    def on_closed(self, log: ReplicatedLog) -> None:
        """Report a closed log to the follower's side."""
        if self.following is not None:
            self.following.forget(log)

    def on_lives(self, record: MetadataRecord) -> None:
        """Report a change of a broker's life or address, which may change where to fetch from."""
        if self.following is not None:
            self.following.react(record)
