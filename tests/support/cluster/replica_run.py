"""One run of three replicas under producers and faults, with every check of replicas."""

from __future__ import annotations

from typing import Final

from tests.support.cluster.simulated_cluster import ENDS, LINK_FAULTS, SimulatedCluster

from tarry.partition.state import Partition
from tarry.simulation.product.consumer import ConsumerNode
from tarry.simulation.trace import Trace

# All links healed, everything has to be in sync after the lease, the lag and ten seconds.
HEALED_MS_MAX: Final = 60_000


class ReplicaRun:
    """A cluster whose topics have three replicas, two of which must be in sync, or one."""

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        self.cluster = SimulatedCluster(
            seed,
            trace,
            replication_factor=3,
            producers=("all", "all", "1"),
            configs={"min.insync.replicas": str(1 + seed % 2)},
        )
        self.cluster.ends = (*ENDS, *LINK_FAULTS, *LINK_FAULTS)
        for node in self.cluster.nodes:
            # A follower that lags leaves soon, so that there is time for it to come back.
            node.settings["replica.lag.time.max.ms"] = "3000"

    @property
    def compared(self) -> int:
        return self.cluster.replicas.compared

    def play(self) -> None:
        """Faults, then peace until all is in sync."""
        cluster = self.cluster
        cluster.start()
        self.consumer = ConsumerNode(
            cluster.world,
            cluster.context,
            "consumer",
            {
                "bootstrap.servers": "b1:9092,b2:9092,b3:9092",
                "request.timeout.ms": 2_000,
                "metadata.max.age.ms": 3_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "auto.offset.reset": "earliest",
            },
            cluster.history,
            50,
        )
        cluster.play()
        cluster.world.run_until(
            cluster.world.agenda.now_ms + HEALED_MS_MAX, lambda: not self.unhealed()
        )
        cluster.world.run_for(1_000)

    def unhealed(self) -> list[str]:
        """Return what is not as it was before the faults."""
        cluster = self.cluster
        if len(cluster.brokers()) < len(cluster.nodes):
            return ["a broker does not run"]
        found = cluster.replicas.unhealed(cluster.brokers())
        for topic in cluster.context.topics:
            for index in range(topic.partitions):
                ends = {int(one.log.flushed_offset) for one in self.copies(topic.name, index)}
                position = self.consumer.position((topic.name, index))
                if ends != {position}:
                    found.append(f"the consumer stands at {position} of {topic.name}-{index}")
                if len(ends) != 1:
                    found.append(f"{topic.name}-{index} ends at {sorted(ends)}")
        return found

    def copies(self, topic: str, index: int) -> list[Partition]:
        found = [broker.topics.replica(topic, index) for broker in self.cluster.brokers()]
        return [one for one in found if one is not None]

    def violations(self) -> list[str]:
        """Everything that is wrong at the end."""
        unhealed = self.unhealed()
        if unhealed:
            return [*self.cluster.replicas.violations, *unhealed]
        return [*self.cluster.violations(), *self.taken_back()]

    def taken_back(self) -> list[str]:
        """Return what the consumer was handed out and is not in the logs as it was then."""
        logs: dict[tuple[str, int], dict[int, bytes]] = {}
        found: list[str] = []
        for topic in self.cluster.context.topics:
            for index in range(topic.partitions):
                logs[topic.name, index] = self.cluster.records(topic, index)
        for one in self.cluster.history.handed_out:
            log = logs[one.place]
            found += [
                f"{one}: not {value[:20]!r} is at {offset} but {log.get(offset, b'none')[:20]!r}"
                for offset, value in enumerate(one.values, one.first)
                if log.get(offset) != value
            ]
        for place, log in logs.items():
            if self.consumer.position(place) != max(log, default=-1) + 1:
                found.append(f"the consumer has come to {self.consumer.position(place)} of {place}")
        return found
