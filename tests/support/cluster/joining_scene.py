"""Brokers that join a cluster over one simulated etcd, each with a disk of its own."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tarry.base.etcd import EtcdEvent
from tarry.base.settings import Settings
from tarry.cluster.etcd.joining import Joining
from tarry.cluster.state.levels import Release
from tarry.simulation.disk import SimulatedDisk
from tarry.simulation.etcd import SimulatedEtcd, SimulatedEtcdDoor

WALL_MS = 1_700_000_000_000


class JoiningBroker:
    """One process on its way into the cluster."""

    def __init__(self, scene: JoiningScene, disk: SimulatedDisk, texts: dict[str, str]) -> None:
        self.scene = scene
        self.disk = disk
        self.events: list[EtcdEvent] = []
        self.door = SimulatedEtcdDoor(scene.etcd, scene.random, self.events.append)
        self.door.delay_ms_max = 20
        self.texts = texts
        self._joining: Joining | None = None

    @property
    def joining(self) -> Joining:
        """Begun by the first step, as a process would."""
        if self._joining is None:
            self._joining = Joining(
                self.door,
                self.disk,
                self.scene.random,
                Settings(self.texts),
                self.scene.etcd.now_ms,
                WALL_MS,
                release=self.scene.release,
            )
        return self._joining

    def step(self) -> None:
        joining = self.joining
        self.door.step()
        events, self.events[:] = list(self.events), []
        joining.turn(list(events), self.scene.etcd.now_ms, WALL_MS)

    def register(self) -> None:
        """Begin the life, whose first key registers the directory, and wait for it."""
        life = self.joining.life
        assert life is not None
        life.begin(lambda: None)

        def is_alive() -> bool:
            self.live()
            return life.is_alive

        self.scene.run(is_alive)

    def live(self) -> None:
        """Go on with the life that was begun, for one step."""
        joining = self.joining
        life = joining.life
        assert life is not None
        self.door.step()
        joining.turn_state.now_ms = self.scene.etcd.now_ms
        events, self.events[:] = list(self.events), []
        for event in events:
            if not joining.store.on_answer(event.answer):
                life.on_answer(event.answer)
        for entry in joining.timer.advance(self.scene.etcd.now_ms):
            entry.expire()


class JoiningScene:
    """All of them on one clock."""

    def __init__(self, seed: int = 6) -> None:
        self.random = Random(seed)
        self.etcd = SimulatedEtcd(self.random)
        # Release of the brokers that join next.
        self.release = Release("0.1.0")

    def disk(self) -> SimulatedDisk:
        return SimulatedDisk(self.random)

    def broker(
        self, broker_id: int, disk: SimulatedDisk | None = None, prefix: str = "demo"
    ) -> JoiningBroker:
        texts = {
            "node.id": str(broker_id),
            "metadata.store": f"etcd://etcd:2379/{prefix}",
            "listeners": f"PLAINTEXT://127.0.0.1:{9090 + broker_id}",
        }
        return JoiningBroker(self, self.disk() if disk is None else disk, texts)

    def run(self, is_so: Callable[[], bool], ms_max: int = 60_000) -> None:
        """Let time pass until this is so."""
        end_ms = self.etcd.now_ms + ms_max
        while not is_so():
            assert self.etcd.now_ms < end_ms, "it did not come"
            self.etcd.advance(self.etcd.now_ms + 5)

    def join(self, *brokers: JoiningBroker) -> None:
        """Give all of them turns until each is done."""

        def are_done() -> bool:
            for broker in brokers:
                if not broker.joining.is_done:
                    broker.step()
            return all(broker.joining.is_done for broker in brokers)

        self.run(are_done)
