"""Run of one workload: one broker in a world, the workload's clients, and all faults of the seed.

The faults end some time before the run does: then everything heals, what is under way is brought to
its end, the broker is lost or stopped once more, and everything is read for the last time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tarry.simulation import faults
from tarry.simulation.broker_node import BrokerNode, NodeObserver
from tarry.simulation.checkers.liveness import LivenessChecker
from tarry.simulation.checkers.recovery_points import due_recovery_points
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import ScriptedClient
from tarry.simulation.injection import FaultInjector
from tarry.simulation.trace import Trace
from tarry.simulation.workload import MakeWorkload
from tarry.simulation.world import World

# Longest time until everything is read, once all is healed.
_COLLECTION_MS_MAX: Final = 60_000
# Longest time until all logs that are due have a recovery point, once all is healed: a round of
# recovery points begins every five seconds.
_POINTS_MS_MAX: Final = 20_000
# Time in which the broker notices the connections that were closed last.
_LAST_CLOSES_MS: Final = 200


class WorkloadRun(NodeObserver):
    """Run of one workload.  `run` returns a sentence for each violation."""

    def __init__(self, make_workload: MakeWorkload, seed: int, trace: Trace | None = None) -> None:
        self.world = World(seed, trace)
        self.workload = make_workload(self.world.random)
        self.node = BrokerNode(self.world, self.workload.faults, self)
        self.context = RunContext(
            self.node.clock, self.node.network, self.world.random, self.world.trace
        )
        self.workload.prepare(self.context, self.node)
        self._history = self.context.history
        self._history.unclean_lives = self.node.unclean_lives
        self.node.violations = self._history.violations
        self._liveness = LivenessChecker(self._history)
        self._injector = FaultInjector(self.node, self.workload.sockets)

    @property
    def fault_counts(self) -> dict[str, int]:
        """Return how many faults of each kind were planned."""
        counts: dict[str, int] = {}
        for fault in self.workload.faults.faults:
            counts[fault.kind] = counts.get(fault.kind, 0) + 1
        return counts

    def run(self) -> list[str]:
        """Run the workload; return a sentence for each violation."""
        self.node.start()
        self.workload.begin()
        self._injector.plan()
        self._run_for(self.workload.duration_ms)
        self._heal()
        self._rest()
        if not self._history.violations:
            self._run_for(_LAST_CLOSES_MS)
            self._check_nothing_waits()
            self._wait_for_recovery_points()
            self._end_life_for_the_last_time()
            self._collect()
        return self.workload.check()

    # --- The phases.

    def _run_for(self, duration_ms: int, is_done: Callable[[], bool] | None = None) -> None:
        """Run the world for so long, until `is_done`, or until there is a violation."""
        violations = self._history.violations
        end_ms = self.world.agenda.now_ms + duration_ms
        if is_done is None:
            self.world.run_until(end_ms, lambda: bool(violations))
        else:
            self.world.run_until(end_ms, lambda: bool(violations) or is_done())

    def _heal(self) -> None:
        """End all faults; clients begin no new work from here on."""
        self.node.note("all heals")
        self.context.is_quiet = True
        self.node.heal()
        self.workload.on_heal()
        for socket in self.workload.sockets():
            socket.resume_reading()
        if self.workload.faults.has(faults.READ_FAULT):
            # Data that a read fault hit counts as damaged until the next start: begin a new life.
            self.node.lose(faults.KILL)

    def _rest(self) -> None:
        """Wait until every client is done; a client that is not done is a violation."""
        history = self._history
        quiet_ms_max = self.workload.quiet_ms_max
        self._run_for(quiet_ms_max, self._is_at_rest)
        if not history.violations and not self._is_at_rest():
            history.violations += self.workload.unfinished_sentences()
            history.violate(f"the clients have not come to rest in {quiet_ms_max} ms of quiet")

    def _is_at_rest(self) -> bool:
        broker = self.node.broker
        return broker is not None and self.node.is_serving and self.workload.is_done(broker)

    def _check_nothing_waits(self) -> None:
        """Check that no operation is left in a purgatory when all clients have their answers."""
        broker = self.node.broker
        assert broker is not None
        for purgatory in broker.parts.purgatories():
            if purgatory.delayed and purgatory.name not in self.workload.waits_at_rest:
                self._history.violate(
                    f"{purgatory.delayed} operations wait in purgatory {purgatory.name} when "
                    "every client has its answers"
                )

    def _wait_for_recovery_points(self) -> None:
        """Wait until no log waits for a round of recovery points; report logs that still do."""
        self._run_for(_POINTS_MS_MAX, lambda: not self._due_points())
        due = self._due_points()
        if due:
            self._history.violate(
                f"{due} wait for a round of recovery points {_POINTS_MS_MAX} ms after all healed"
            )

    def _due_points(self) -> list[str]:
        broker = self.node.broker
        return [] if broker is None else due_recovery_points(broker)

    def _end_life_for_the_last_time(self) -> None:
        kind = self.workload.faults.last_end
        if kind in (faults.POWER, faults.KILL):
            self.node.lose(kind)
        elif kind:
            self.node.request_stop(kind)
        self._rest()

    def _collect(self) -> None:
        self.context.is_still = True
        for number, collector in enumerate(self.workload.collectors()):
            if number > 0:
                may_lose_power = self.workload.faults.may_lose_power
                self.node.lose(faults.POWER if may_lose_power else faults.KILL)
            self._run_collector(collector)

    def _run_collector(self, collector: ScriptedClient) -> None:
        collector.start()
        self._run_for(_COLLECTION_MS_MAX, lambda: collector.is_done)
        if not collector.is_done:
            self._history.violate(f"not everything could be read in {_COLLECTION_MS_MAX} ms")
        elif self.node.broker is not None:
            self.workload.on_collected(self.node.broker)

    # --- Moments of the broker's lives.

    def on_start(self, node: BrokerNode) -> None:
        self.context.life = node.life
        self.workload.on_start()
        node.settings = self.workload.settings_of(node.life)

    def on_life_begins(self, node: BrokerNode) -> None:
        assert node.broker is not None
        self.workload.on_life_begins(node.broker)

    def on_stall(self, node: BrokerNode) -> None:
        self.workload.on_stall(node.network.turn + 1)

    def after_turn(self, node: BrokerNode) -> None:
        assert node.broker is not None
        self.workload.after_turn(node.broker)
        if node.is_serving:
            self._liveness.after_turn(
                node.network.sockets(), node.clock.alive_ms, node.clock.stalls
            )

    def on_life_ends(self, node: BrokerNode) -> None:
        self.workload.on_life_ends()
