"""World of nodes in one simulated time.

A node is a process with a clock of its own: a broker with its disk and network (`broker_node`).
One loop moves the time from one thing that happens to the next and gives each node its turns.  All
chance comes from one seed.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from tarry.simulation.clock import Agenda, SimulatedClock
from tarry.simulation.network import SimulatedNetwork
from tarry.simulation.trace import Trace

# Host and port.
Address = tuple[str, int]

# Due time of a node that does not run: it has no turn before the end of time.
NEVER_MS: Final = 1 << 62


class Node(Protocol):
    """Process of the world."""

    clock: SimulatedClock

    def due_ms(self) -> int:
        """Return when the next turn is due, in ms; `NEVER_MS` if the process does not run."""

    def turn(self) -> None:
        """Take the turn that is due."""


class World:
    """Nodes that share time and chance, and nothing else."""

    def __init__(self, seed: int, trace: Trace | None = None) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.agenda = Agenda()
        self.trace = Trace() if trace is None else trace
        # Network at which a connection to an address arrives.
        self.networks: dict[Address, SimulatedNetwork] = {}
        self._nodes: list[Node] = []

    def add(self, node: Node) -> None:
        """Give a node its turns from now on."""
        self._nodes.append(node)

    def run_until(self, end_ms: int, is_done: Callable[[], bool]) -> None:
        """Run all nodes and planned actions up to `end_ms`, or until `is_done`."""
        agenda = self.agenda
        nodes = self._nodes
        while agenda.now_ms < end_ms and not is_done():
            due_ms = end_ms
            next_due_ms = agenda.next_due_ms()
            if next_due_ms is not None and next_due_ms < due_ms:
                due_ms = next_due_ms
            for node in nodes:
                due_ms = min(due_ms, node.due_ms())
            agenda.advance_to(max(agenda.now_ms, due_ms))
            agenda.run_due()
            for node in nodes:
                if node.due_ms() <= agenda.now_ms:
                    node.turn()

    def run_for(self, duration_ms: int) -> None:
        """Run all nodes and planned actions for so long."""
        self.run_until(self.agenda.now_ms + duration_ms, _never)


def _never() -> bool:
    return False
