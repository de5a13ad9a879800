"""Workload of records: producers, readers, an administrator of topics, at times an operator."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.broker.broker import Broker
from tarry.cluster.store.embedded import EmbeddedStore
from tarry.simulation.broker_node import BrokerNode
from tarry.simulation.checkers import check_history
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import ScriptedClient, SimulatedClient
from tarry.simulation.clients.topic_admin import TopicAdmin
from tarry.simulation.faults import (
    FEW_FILES,
    PLACES,
    add_damages,
    draw_faults,
    without_loss_of_power,
)
from tarry.simulation.records.collector import RecordCollector
from tarry.simulation.records.operator import Operator
from tarry.simulation.records.pipeliner import Pipeliner
from tarry.simulation.records.producer import SimulatedProducer
from tarry.simulation.records.reader import SimulatedReader
from tarry.simulation.records.scenario import RecordsScenario, draw_records_scenario
from tarry.simulation.workload import Workload

_SNAPSHOT_BYTES: Final = 500
_FILES_PER_ROUND: Final = 6


class RecordsWorkload(Workload):
    """Producers, readers, administrators and their checkers."""

    # Parts of paths: a life that ends in a turn ends at an operation on such a file.
    places = PLACES

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._scenario = self.draw_scenario(random)
        self.duration_ms = self._scenario.duration_ms
        self.settings = self._scenario.settings
        self.faults = draw_faults(random, self.duration_ms, self.places)
        add_damages(self.faults, self.duration_ms)
        if self.settings.get("flush.policy") == "os":
            without_loss_of_power(self.faults)
        self._producers: list[SimulatedProducer] = []
        self._readers: list[SimulatedReader] = []
        self._operators: list[Operator] = []
        self._pipeliners: list[Pipeliner] = []

    def draw_scenario(self, random: Random) -> RecordsScenario:
        """Draw topics and kinds of clients."""
        return draw_records_scenario(random)

    def prepare(self, context: RunContext, node: BrokerNode) -> None:
        self._context = context
        context.codecs = self._scenario.codecs
        self._admin = TopicAdmin(
            context, "admin", self._scenario.topics, pause_ms_max=self._scenario.admin_pause_ms_max
        )

    def begin(self) -> None:
        context = self._context
        self._admin.start()
        for number, producer_plan in enumerate(self._scenario.producers):
            producer = SimulatedProducer(context, f"p{number}", producer_plan)
            self._producers.append(producer)
            context.clock.after(self._random.randrange(100), producer.start)
        if self._scenario.has_operator:
            operator = Operator(context, "operator", pause_ms_max=self._scenario.admin_pause_ms_max)
            self._operators.append(operator)
            context.clock.after(self._random.randrange(100), operator.start)
        if self._scenario.has_pipeliner:
            pipeliner = Pipeliner(
                context, "pipeliner", pause_ms_max=self._scenario.admin_pause_ms_max
            )
            self._pipeliners.append(pipeliner)
            context.clock.after(self._random.randrange(100), pipeliner.start)
        for number, reader_plan in enumerate(self._scenario.readers):
            reader = SimulatedReader(context, f"r{number}", reader_plan)
            self._readers.append(reader)
            context.clock.after(self._random.randrange(100), reader.start)

    def on_life_begins(self, broker: Broker) -> None:
        if self.faults.has(FEW_FILES):
            # A run has few logs: with a broker's own limit no round of points would be full.
            broker.logs.recovery_points.limit_files(_FILES_PER_ROUND)
        if self.duration_ms % 2 == 0:
            # The metadata of a few topics is small: write a snapshot after every few changes.
            assert isinstance(broker.store, EmbeddedStore)
            broker.store.snapshot_bytes_min = _SNAPSHOT_BYTES

    def clients(self) -> list[SimulatedClient]:
        return [self._admin, *self._operators, *self._producers, *self._readers, *self._pipeliners]

    def is_done(self, broker: Broker) -> bool:
        return (
            self._admin.is_done
            and all(operator.is_done for operator in self._operators)
            and all(producer.is_done for producer in self._producers)
            and all(reader.is_done for reader in self._readers)
            and all(pipeliner.is_done for pipeliner in self._pipeliners)
        )

    def unfinished_sentences(self) -> list[str]:
        return [
            f"{producer.name} could not get batch {batch.number} through in "
            f"{self.quiet_ms_max} ms of quiet"
            for producer in self._producers
            for batch in producer.unfinished()[:1]
        ]

    def collectors(self) -> list[ScriptedClient]:
        return [RecordCollector(self._context, "collector")]

    def check(self) -> list[str]:
        return check_history(self._context.history)
