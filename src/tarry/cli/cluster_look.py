"""Look at a cluster: its brokers with their replicas, and the partitions that lack something."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tarry.base.ids import TopicPartition
from tarry.cli.tables import count_of

if TYPE_CHECKING:
    from tarry.client import Admin, BrokerMetadata

# Time between two looks at the cluster while a command waits for it.
PAUSE_S: Final = 0.5


class ClusterLook:
    """State of a cluster, as its brokers describe it at one moment."""

    def __init__(self, admin: Admin, timeout: float) -> None:
        from tarry.cli.topic_sizes import state_of

        description = admin.describe_cluster(timeout)
        self.cluster_id = description.cluster_id
        self.controller_id = description.controller_id
        self.brokers: list[BrokerMetadata] = description.brokers
        self.dead_ids: list[int] = description.fenced_ids
        self.replicas: dict[TopicPartition, list[int]] = {}
        self.leaders: dict[TopicPartition, int] = {}
        self.in_sync: dict[TopicPartition, list[int]] = {}
        # States of the partitions that are not ok.
        self.states: dict[TopicPartition, str] = {}
        topics = admin.list_topics(timeout)
        self.topic_count = len(topics)
        for topic in topics:
            for index, partition in topic.partitions.items():
                place = (topic.name, index)
                self.replicas[place] = partition.replicas
                self.leaders[place] = partition.leader_id
                self.in_sync[place] = partition.isr
                state = state_of(partition)
                if state != "ok":
                    self.states[place] = state
        self.reassigned = admin.list_partition_reassignments(timeout=timeout)

    @property
    def targets(self) -> dict[TopicPartition, list[int]]:
        """The replicas that partitions will have after the reassignments under way, without those
        that are being removed.
        """
        going = {place: one.removing for place, one in self.reassigned.items()}
        return {
            place: [each for each in replicas if each not in going.get(place, ())]
            for place, replicas in self.replicas.items()
        }

    @property
    def living_ids(self) -> list[int]:
        """The ids of the living brokers."""
        return [each.broker_id for each in self.brokers if each.broker_id not in self.dead_ids]

    @property
    def racks(self) -> dict[int, str]:
        """Racks of the living brokers, by id."""
        return {
            each.broker_id: each.rack or ""
            for each in self.brokers
            if each.broker_id not in self.dead_ids
        }

    @property
    def unpreferred(self) -> list[TopicPartition]:
        """The partitions whose leader is not their first replica."""
        return [
            place
            for place, leader_id in self.leaders.items()
            if leader_id >= 0 and self.replicas[place][:1] != [leader_id]
        ]

    def count(self, broker_id: int, of: dict[TopicPartition, list[int]]) -> int:
        """Return how many partitions of `of` have this broker in their list."""
        return sum(broker_id in broker_ids for broker_ids in of.values())

    def broker_json(self, broker: BrokerMetadata) -> dict[str, object]:
        """Return a broker and counts of its partitions as an object for JSON."""
        broker_id = broker.broker_id
        return {
            "broker_id": broker_id,
            "host": broker.address.host,
            "port": broker.address.port,
            "rack": broker.rack,
            "is_alive": broker_id not in self.dead_ids,
            "leads": sum(leader_id == broker_id for leader_id in self.leaders.values()),
            "replicas": self.count(broker_id, self.replicas),
            "in_sync": self.count(broker_id, self.in_sync),
        }

    def obstacles(self, brokers: int | None) -> list[str]:
        """Return sentences why the cluster is not whole; it needs `brokers` living brokers."""
        found = [f"broker {broker_id} does not live" for broker_id in self.dead_ids]
        living = len(self.living_ids)
        if brokers is not None and living < brokers:
            found.append(f"{count_of(living, 'broker')} of {brokers} live")
        by_state: dict[str, list[TopicPartition]] = {}
        for place, state in self.states.items():
            by_state.setdefault(state, []).append(place)
        if self.reassigned:
            by_state["being reassigned"] = list(self.reassigned)
        for state, places in by_state.items():
            topic, index = places[0]
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            found.append(f"{topic} [{index}]{more}: {state}")
        return found


def wait_until(look: Callable[[], list[str]], limit_s: float) -> list[str]:
    """Call `look` until it returns no sentences or the time is over; return its last sentences."""
    end_s = time.monotonic() + limit_s
    while True:
        missing = look()
        if not missing or time.monotonic() >= end_s:
            return missing
        time.sleep(min(PAUSE_S, max(end_s - time.monotonic(), 0)))
