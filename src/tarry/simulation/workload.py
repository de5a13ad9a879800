"""Workload of a world: its clients, the broker's settings, the faults and the checkers.

The world gives a workload time, a disk, a network and a broker.  `records` has producers and
readers, `groups` members of groups and their offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tarry.broker.broker import Broker
from tarry.simulation.broker_node import BrokerNode
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import ScriptedClient, SimulatedClient
from tarry.simulation.connection import ClientSocket
from tarry.simulation.faults import FaultPlan


class Workload:
    """Base of all workloads: drawn from the seed before the run begins."""

    def __init__(self) -> None:
        self.duration_ms = 0
        self.settings: dict[str, str] = {}
        self.faults = FaultPlan()
        # Longest time until all clients are at rest, once the faults are over.
        self.quiet_ms_max = 60_000
        # Names of the purgatories in which operations may still wait when all clients are at rest.
        self.waits_at_rest: tuple[str, ...] = ()

    def prepare(self, context: RunContext, node: BrokerNode) -> None:
        """Take the context of the run and the broker's node."""
        raise NotImplementedError

    def begin(self) -> None:
        """Start the clients: the broker has begun its first life."""
        raise NotImplementedError

    def clients(self) -> list[SimulatedClient]:
        """Return all simulated clients, in a fixed order."""
        raise NotImplementedError

    def sockets(self) -> list[ClientSocket]:
        """Return the connections of all clients, in a fixed order."""
        return [client.socket for client in self.clients() if client.socket is not None]

    def is_done(self, broker: Broker) -> bool:
        """Return true once each client has finished what was under way when the faults ended."""
        raise NotImplementedError

    def unfinished_sentences(self) -> list[str]:
        """Return a sentence for each client that is not done."""
        return []

    def collectors(self) -> list[ScriptedClient]:
        """Return the clients that read everything at the end; the broker is lost between two."""
        raise NotImplementedError

    def check(self) -> list[str]:
        """Return a sentence for each violation of the run."""
        raise NotImplementedError

    # --- Moments of the run, reported by the world.

    def on_start(self) -> None:
        """Note that a broker is about to start."""

    def on_life_begins(self, broker: Broker) -> None:
        """Note that a broker has started and has had no turn yet."""

    def settings_of(self, life: int) -> dict[str, str]:
        """Return the settings with which this life of the broker starts."""
        return self.settings

    def on_heal(self) -> None:
        """Note that all faults are over."""

    def on_stall(self, turn: int) -> None:
        """Note that the broker's process was stopped, and goes on with this turn."""

    def after_turn(self, broker: Broker) -> None:
        """Note that the broker has had a turn and still runs."""

    def on_life_ends(self) -> None:
        """Note that the broker's process has ended."""

    def on_collected(self, broker: Broker) -> None:
        """Note that a collector has read everything."""


MakeWorkload = Callable[[Random], Workload]
