"""Run of three brokers that replicate one topic: clients, faults, peace, and every check.

Producers with acks=all and acks=1 write while brokers die, stand still, are cut off from etcd or
from each other, and lose what their disks have not flushed.  Then everything heals, and all
replicas must come in sync and be alike, with every record that was acknowledged with acks=all.
"""

from __future__ import annotations

from tarry.broker.broker import Broker
from tarry.client.settings import SettingValue
from tarry.simulation.cluster.faulty_cluster import TOPIC, FaultyCluster
from tarry.simulation.cluster.reader import ClusterReader
from tarry.simulation.cluster.results import check_handed_out, check_promises, records_of
from tarry.simulation.cluster.scenario import ClusterScenario
from tarry.simulation.cluster.visitor import ToldEnds, Visitor
from tarry.simulation.trace import Trace


class ClusterRun(FaultyCluster):
    """Run of one seed with producers, a consumer, and a visitor of each broker."""

    make_scenario: type[ClusterScenario] = ClusterScenario

    def __init__(self, seed: int, trace: Trace | None = None, *, setting: str = "") -> None:
        super().__init__(seed, trace, self.make_scenario, setting)
        self.told = ToldEnds(self.checker)

    def begin_clients(self) -> None:
        world = self.world
        settings: dict[str, SettingValue] = {
            **self.client_settings,
            "auto.offset.reset": "earliest",
        }
        self.consumer = ClusterReader(world, self.context, settings, self.history, self.checker)
        for node in self.nodes if not self.scenario.is_of_an_hour else ():
            context = self.visitor_context(node)
            name = f"visitor{node.broker_id}"
            Visitor(context, name, self.context, self.scenario, self.told, self.checker).start()

    def unfinished(self, brokers: list[Broker]) -> list[str]:
        found: list[str] = []
        for index in range(self.scenario.partitions):
            replicas = [broker.topics.replica(TOPIC, index) for broker in brokers]
            ends = {int(one.log.flushed_offset) for one in replicas if one is not None}
            position = self.consumer.position((TOPIC, index))
            if ends != {position}:
                found.append(
                    f"{TOPIC}-{index} ends at {sorted(ends)}, the consumer stands at {position}"
                )
        return found

    def wrong_at_the_end(self) -> list[str]:
        records = records_of(self.checker, self.context.topics[0])
        return [
            *check_promises(self.context, self.producers, self.checker, records),
            *check_handed_out(self.history, self.context, self.checker, records),
        ]
