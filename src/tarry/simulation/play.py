"""A play: what one world puts on.  Who acts, under which settings, what goes wrong, who judges.

The world gives it time, a disk, a network and a broker; two plays are `records_play` (producers and
readers) and `groups_play` (members of groups and their offsets).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tarry.broker.broker import Broker
from tarry.simulation.disk import SimulatedDisk
from tarry.simulation.faults import FaultPlan
from tarry.simulation.workload.actor import Actor, ScriptedActor
from tarry.simulation.workload.stage import Stage


class Play:
    """Drawn from the seed before anything happens; `enter` gives it the stage."""

    def __init__(self) -> None:
        self.duration_ms = 0
        self.settings: dict[str, str] = {}
        self.faults = FaultPlan()
        # With the faults over, all is at rest within this time.
        self.quiet_ms_max = 60_000
        # The purgatories that need not be empty then.
        self.waits_at_rest: tuple[str, ...] = ()

    def enter(self, stage: Stage, disk: SimulatedDisk) -> None:
        """There is a stage now, and a disk for the broker."""
        raise NotImplementedError

    def begin(self) -> None:
        """The broker has begun its first life: the actors begin to act."""
        raise NotImplementedError

    def actors(self) -> list[Actor]:
        """Everybody who has a connection, in a fixed order."""
        raise NotImplementedError

    def is_done(self, broker: Broker) -> bool:
        """True once everybody has brought to an end what was under way when all healed."""
        raise NotImplementedError

    def complaints(self) -> list[str]:
        """Who is not done, a sentence each."""
        return []

    def collectors(self) -> list[ScriptedActor]:
        """Who reads everything for the last time; between two of them the broker is lost."""
        raise NotImplementedError

    def check(self) -> list[str]:
        """Everything that is wrong with the run, a sentence each."""
        raise NotImplementedError

    # --- What the world tells.

    def on_start(self) -> None:
        """A broker is about to be started."""

    def on_life_begins(self, broker: Broker) -> None:
        """A broker has started and has had no turn yet."""

    def settings_of(self, life: int) -> dict[str, str]:
        """With which settings this life of the broker starts."""
        return self.settings

    def on_stall(self, turn: int) -> None:
        """The broker's process was stopped, and goes on with this turn."""

    def after_turn(self, broker: Broker) -> None:
        """The broker has had a turn and still runs."""

    def on_life_ends(self) -> None:
        """The broker that ran is no more."""

    def on_collected(self, broker: Broker) -> None:
        """A collector has done its work."""


MakePlay = Callable[[Random], Play]
