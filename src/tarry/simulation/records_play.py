"""The play of records: producers, readers, an administrator of topics, at times an operator."""

from __future__ import annotations

from random import Random
from typing import Final

from tarry.broker.broker import Broker
from tarry.simulation.checkers import check_history
from tarry.simulation.disk import SimulatedDisk
from tarry.simulation.faults import add_damages, draw_faults, without_loss_of_power
from tarry.simulation.play import Play
from tarry.simulation.scene import draw_scene
from tarry.simulation.workload.actor import Actor, ScriptedActor
from tarry.simulation.workload.admin import Admin
from tarry.simulation.workload.changes import Operator
from tarry.simulation.workload.collector import Collector
from tarry.simulation.workload.pipeliner import Pipeliner
from tarry.simulation.workload.producer import Producer
from tarry.simulation.workload.reader import Reader
from tarry.simulation.workload.stage import Stage

_SNAPSHOT_BYTES: Final = 500


class RecordsPlay(Play):
    """See the module's text."""

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._random = random
        self._scene = draw_scene(random)
        self.duration_ms = self._scene.duration_ms
        self.settings = self._scene.settings
        self.faults = draw_faults(random, self.duration_ms)
        add_damages(self.faults, self.duration_ms)
        if self.settings.get("flush.policy") == "os":
            without_loss_of_power(self.faults)
        self._producers: list[Producer] = []
        self._readers: list[Reader] = []
        self._operators: list[Operator] = []
        self._pipeliners: list[Pipeliner] = []

    def enter(self, stage: Stage, disk: SimulatedDisk) -> None:
        self._stage = stage
        stage.codecs = self._scene.codecs
        self._admin = Admin(
            stage, "admin", self._scene.topics, pause_ms_max=self._scene.admin_pause_ms_max
        )

    def begin(self) -> None:
        stage = self._stage
        self._admin.start()
        for number, producer_plan in enumerate(self._scene.producers):
            producer = Producer(stage, f"p{number}", producer_plan)
            self._producers.append(producer)
            stage.clock.after(self._random.randrange(100), producer.start)
        if self._scene.has_operator:
            operator = Operator(stage, "operator", pause_ms_max=self._scene.admin_pause_ms_max)
            self._operators.append(operator)
            stage.clock.after(self._random.randrange(100), operator.start)
        if self._scene.has_pipeliner:
            pipeliner = Pipeliner(stage, "pipeliner", pause_ms_max=self._scene.admin_pause_ms_max)
            self._pipeliners.append(pipeliner)
            stage.clock.after(self._random.randrange(100), pipeliner.start)
        for number, reader_plan in enumerate(self._scene.readers):
            reader = Reader(stage, f"r{number}", reader_plan)
            self._readers.append(reader)
            stage.clock.after(self._random.randrange(100), reader.start)

    def on_life_begins(self, broker: Broker) -> None:
        if self.duration_ms % 2 == 0:
            # Metadata of a few topics is small: a snapshot after every few changes.
            broker.store.snapshot_bytes_min = _SNAPSHOT_BYTES

    def actors(self) -> list[Actor]:
        return [self._admin, *self._operators, *self._producers, *self._readers, *self._pipeliners]

    def is_done(self, broker: Broker) -> bool:
        return (
            self._admin.is_done
            and all(operator.is_done for operator in self._operators)
            and all(producer.is_done for producer in self._producers)
            and all(reader.is_done for reader in self._readers)
            and all(pipeliner.is_done for pipeliner in self._pipeliners)
        )

    def complaints(self) -> list[str]:
        return [
            f"{producer.name} could not get batch {batch.number} through in "
            f"{self.quiet_ms_max} ms of quiet"
            for producer in self._producers
            for batch in producer.unfinished()[:1]
        ]

    def collectors(self) -> list[ScriptedActor]:
        return [Collector(self._stage, "collector")]

    def check(self) -> list[str]:
        return check_history(self._stage.history)
