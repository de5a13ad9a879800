"""A group of the product's members in a simulated cluster: its coordinator moves with a leader."""

from __future__ import annotations

from typing import Final

from tests.support.cluster.simulated_cluster import PARTITIONS, QUIET_MS_MAX, SimulatedCluster

from tarry.base.ids import TopicPartition
from tarry.broker.broker import Broker
from tarry.group.round import STABLE
from tarry.simulation.product.checkers import check_members
from tarry.simulation.product.member import MemberNode

GROUP: Final = "readers"
OFFSETS_TOPIC: Final = "__consumer_offsets"
GROUP_PURGATORIES: Final = ("Join", "Sync", "Heartbeat", "Commit")
_MEMBERS: Final = 3

BROKER_SETTINGS: Final = {
    "group.min.session.timeout.ms": "500",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
}


class GroupRun:
    """The cluster with its producers, and members that read all of what these write."""

    def __init__(self, seed: int, replication_factor: int = 3) -> None:
        cluster = SimulatedCluster(seed, replication_factor=replication_factor)
        self.cluster = cluster
        factor = {"offsets.topic.replication.factor": str(replication_factor)}
        for node in cluster.nodes:
            node.settings.update({**BROKER_SETTINGS, **factor})
        cluster.start()
        self.members = [self._member(f"member{number}") for number in range(_MEMBERS)]

    def _member(self, name: str) -> MemberNode:
        cluster = self.cluster
        return MemberNode(
            cluster.world,
            cluster.context,
            name,
            {
                "bootstrap.servers": "b1:9092,b2:9092,b3:9092",
                "request.timeout.ms": 2_000,
                "metadata.max.age.ms": 3_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "default.api.timeout.ms": 60_000,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 400,
                "auto.commit.interval.ms": 300,
                "max.poll.interval.ms": 20_000,
                "fetch.max.wait.ms": 300,
            },
            cluster.history,
            100,
        )

    # --- What is so.

    def ends(self) -> dict[TopicPartition, int]:
        """The ends of all partitions, at their leaders."""
        found: dict[TopicPartition, int] = {}
        for broker in self.cluster.brokers():
            for topic in self.cluster.context.topics:
                for index in range(PARTITIONS):
                    partition = broker.topics.partition(topic.name, index)
                    if partition is not None:
                        found[topic.name, index] = int(partition.high_watermark)
        return found

    def coordinators(self) -> list[Broker]:
        """Brokers that decide about the group now."""
        return [
            broker for broker in self.cluster.brokers() if broker.groups.find(GROUP)[0] is not None
        ]

    def unsettled(self) -> str:
        """What is still to be done; "" if all is read and the group is stable."""
        coordinators = self.coordinators()
        if len(coordinators) != 1:
            return f"{len(coordinators)} coordinators"
        shard = coordinators[0].groups.shard_of(GROUP)
        assert shard is not None
        now = shard.group(GROUP).round
        ids = sorted(each.consumer_core.membership.member_id for each in self.members)
        if now.phase != STABLE or sorted(now.members) != ids:
            return f"the group is {now.phase} with {sorted(now.members)}, not {ids}"
        ends = self.ends()
        owned = sorted(place for member in self.members for place in member.owned)
        if owned != sorted(ends) or len(ends) != 2 * PARTITIONS:
            return f"{owned} are read"
        for member in self.members:
            for place in member.owned:
                if member.position(place) != ends[place]:
                    return f"{place} is read up to {member.position(place)}, not {ends[place]}"
        return ""

    def settle_first(self) -> None:
        """Wait until the group reads everything that there is."""
        self.cluster.run_until(
            lambda: all(member.owned for member in self.members), "a group that reads"
        )

    def calm_down(self) -> None:
        """End the work of the producers, heal all, and wait until everything is read."""
        cluster = self.cluster
        cluster.context.is_quiet = True
        for node in cluster.nodes:
            node.heal()
            node.reconnect()
        cluster.run_until(cluster.is_settled, f"an end; {cluster.unsettled()}")
        self.settle()

    def settle(self) -> None:
        cluster = self.cluster
        world = cluster.world
        world.run_until(world.agenda.now_ms + QUIET_MS_MAX, lambda: not self.unsettled())
        assert self.unsettled() == ""
        # What the watches have still to bring.
        world.run_for(2_000)

    def violations(self) -> list[str]:
        found = [*self.cluster.violations(), *check_members(self.cluster.history, self.ends())]
        for broker in self.cluster.brokers():
            if broker in self.coordinators():
                continue
            for purgatory in broker.parts.purgatories():
                if purgatory.name in GROUP_PURGATORIES and purgatory.delayed:
                    found.append(f"{purgatory.delayed} wait in {purgatory.name} of no coordinator")
            if broker.groups.waiting:
                found.append(f"{broker.groups.waiting} requests wait at no coordinator")
        return found
