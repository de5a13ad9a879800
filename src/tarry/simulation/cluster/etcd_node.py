"""Process of the simulated etcd in a world: it ends leases and delivers answers in time."""

from __future__ import annotations

from typing import Final

from tarry.simulation.etcd import SimulatedEtcd
from tarry.simulation.world import World

_STEP_MS: Final = 5


class EtcdNode:
    """Process of the one etcd that all brokers of a world share."""

    def __init__(self, world: World) -> None:
        self.clock = world.agenda.new_clock()
        self.etcd = SimulatedEtcd(world.random, self.clock.now_ms)
        self._due_ms = self.clock.now_ms
        self._frozen_until_ms = 0
        # Time between two looks of etcd at its clock.
        self.step_ms = _STEP_MS
        world.add(self)

    def due_ms(self) -> int:
        """Return when the next turn is due, in ms."""
        return self._due_ms

    @property
    def is_frozen(self) -> bool:
        """True while etcd reads and answers nothing."""
        return self.clock.now_ms < self._frozen_until_ms

    def freeze(self, duration_ms: int) -> None:
        """Stop the process for a while.  When it wakes it ends the leases that are over before it
        reads what has come meanwhile.
        """
        self._frozen_until_ms = max(self._frozen_until_ms, self.clock.now_ms + duration_ms)

    def turn(self) -> None:
        """Move etcd's clock, and carry what is under way between it and the brokers."""
        if self.is_frozen:
            self._due_ms = self._frozen_until_ms
            return
        self.etcd.advance(self.clock.now_ms)
        for door in list(self.etcd.doors):
            door.step()
        self._due_ms = self.clock.now_ms + self.step_ms
