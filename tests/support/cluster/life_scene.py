"""Brokers' lives over one simulated etcd, driven by hand: no broker around them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tarry.base.etcd import EtcdEvent
from tarry.base.turn import Turn
from tarry.cluster.etcd.etcd_store import EtcdStore
from tarry.cluster.lives.life import Life
from tarry.cluster.rows.rows import ROW_FORMAT, BrokerRow, Keys
from tarry.simulation.etcd import SimulatedEtcd, SimulatedEtcdDoor
from tarry.timer.wheel import TimingWheel

TTL_MS = 6_000
RENEW_MS = 1_500


class LivingBroker:
    """One process: a store that watches, and a life."""

    def __init__(
        self, etcd: SimulatedEtcd, random: Random, broker_id: int, directory_id: str
    ) -> None:
        self.etcd = etcd
        self.events: list[EtcdEvent] = []
        self.turn = Turn(etcd.now_ms, 0)
        self.timer = TimingWheel(etcd.now_ms)
        self.door = SimulatedEtcdDoor(etcd, random, self.events.append)
        self.door.delay_ms_max = 20
        self.failures: list[str] = []
        keys = Keys("/test/")
        self.store = EtcdStore(self.door, keys, self.turn, self.timer, self.failures.append)
        self.epochs: list[int] = []
        # A process that sleeps takes no step.
        self.is_asleep = False
        self.life = Life(
            self.door,
            self.store.known,
            broker_id,
            BrokerRow(ROW_FORMAT, directory_id, "", {}, "0.1.0"),
            self.turn,
            self.timer,
            ttl_ms=TTL_MS,
            renew_ms=RENEW_MS,
        )
        self.store.begin()
        self._has_begun = False

    def step(self) -> None:
        self.door.step()
        if self.is_asleep:
            return
        self.turn.now_ms = self.etcd.now_ms
        events, self.events[:] = list(self.events), []
        for event in events:
            if not self.store.on_answer(event.answer):
                self.life.on_answer(event.answer)
        if self.store.is_ready and not self._has_begun:
            self._has_begun = True
            self.life.begin(lambda: self.epochs.append(self.life.broker_epoch))
        for entry in self.timer.advance(self.turn.now_ms):
            entry.expire()

    def fall_asleep(self) -> None:
        """Let the process stand still; what comes in waits."""
        self.is_asleep = True

    def kill(self) -> None:
        """End the process: nothing of it reaches etcd any more."""
        self.is_asleep = True
        self.door.go_away()


class LifeScene:
    """All processes on one clock."""

    def __init__(self, seed: int = 4) -> None:
        self.random = Random(seed)
        self.etcd = SimulatedEtcd(self.random)
        self.etcd.late_expiry_ms_max = 1_000
        self.brokers: list[LivingBroker] = []

    def start(self, broker_id: int, directory_id: str = "disk-1") -> LivingBroker:
        broker = LivingBroker(self.etcd, self.random, broker_id, directory_id)
        self.brokers.append(broker)
        return broker

    def run(self, is_so: Callable[[], bool], ms_max: int = 60_000) -> None:
        """Let time pass until this is so."""
        end_ms = self.etcd.now_ms + ms_max
        while not is_so():
            assert self.etcd.now_ms < end_ms, "it did not come"
            self.step()

    def pass_ms(self, ms: int) -> None:
        end_ms = self.etcd.now_ms + ms
        self.run(lambda: self.etcd.now_ms >= end_ms, ms + 1)

    def step(self) -> None:
        self.etcd.advance(self.etcd.now_ms + 5)
        for broker in self.brokers:
            broker.step()

    def stored_lives(self) -> list[bytes]:
        return [row.key for row in self.etcd.rows(b"/test/lives/")]
