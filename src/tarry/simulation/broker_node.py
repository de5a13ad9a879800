"""Broker node: a broker with its disk, clock and network, one life after the other.

A life begins with a start on what the disk holds and ends with a kill, a loss of power or a clean
stop; the next one begins some time later.  A `FaultPlan` says how slow the disk is and what may
happen in a start; other faults are injected from outside (`injection`).
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Final

from tarry.base.doors import stop_requested
from tarry.base.errors import TarryError
from tarry.base.limits import POLL_MS_MAX, STALL_MS
from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import StartBroker, start_broker
from tarry.simulation import faults
from tarry.simulation.checkers.leaks import LeakChecker
from tarry.simulation.checkers.turns import TurnChecker
from tarry.simulation.checkers.waits import WaitChecker
from tarry.simulation.disk import PowerLoss, SimulatedDisk
from tarry.simulation.faults import Fault, FaultPlan
from tarry.simulation.network import SimulatedNetwork
from tarry.simulation.world import NEVER_MS, World

# Longest clean stop: up to 3.5 s of waiting for peers, and the rest for slow flushes.
STOP_MS_MAX: Final = 5_500
# Mixed into the world's seed, so that a broker draws other numbers than its world.
_BROKER_SEED: Final = 0x5EED
# Offsets between two snapshots of pending entries: few, since a run parks some dozens of batches.
_SNAPSHOT_OFFSETS: Final = 10
# Time between two looks of a follower at what it could write a snapshot of.
_SNAPSHOT_LOOK_MS: Final = 500


class NodeObserver:
    """Observer of a broker node; each method is called at one moment of a life."""

    def on_start(self, node: BrokerNode) -> None:
        """Prepare the start of a life; `node.settings` are those of the start."""

    def on_life_begins(self, node: BrokerNode) -> None:
        """Look at a broker that has started and has had no turn yet."""

    def on_stall(self, node: BrokerNode) -> None:
        """Note that the process was stopped and goes on with the next turn."""

    def after_turn(self, node: BrokerNode) -> None:
        """Look at a broker that has had a turn and still runs."""

    def on_life_ends(self, node: BrokerNode) -> None:
        """Note that the broker is gone."""


class BrokerNode:
    """Broker process of a world.  `violations` holds a sentence for each rule that it broke."""

    # True once all faults are over: a start that fails is then a violation.
    is_healed = False
    # Earliest time of the next start.
    absent_until_ms = 0

    def __init__(
        self,
        world: World,
        plan: FaultPlan,
        observer: NodeObserver,
        *,
        name: str = "",
        start: StartBroker = start_broker,
    ) -> None:
        self.world = world
        self.plan = plan
        self.name = name
        self.random: Random = world.random
        self.clock = world.agenda.new_clock()
        self.disk = SimulatedDisk(self.random)
        self.disk.defers_removals = plan.defers_removals
        self.network = SimulatedNetwork(self.clock, self.random)
        self.network.conditions.delay_ms_max = plan.delay_ms_max
        self.network.conditions.pieces_per_mille = plan.pieces_per_mille
        self.address = (name or "localhost", 9092)
        world.networks[self.address] = self.network
        self.network.others = world.networks
        self.settings: dict[str, str] = {}
        self.broker: Broker | None = None
        self.violations: list[str] = []
        # True if the last start had to wait for other brokers, as the next one may have to.
        self.must_wait = False
        # Lives are counted from 1; some of them did not end cleanly.
        self.life = 0
        self.unclean_lives: list[int] = []
        # Time until which the process stands still, in ms of the clock.
        self.busy_until_ms = 0
        # Count of files that the process may open in each turn; None if there is no limit.  Other
        # files are closed meanwhile.
        self.files_per_turn: int | None = None
        # Count of index files that the next start finds damaged or removed.
        self.index_faults_due = 0
        # Kind of the life's end if the disk raises `PowerLoss`; and during the next flush, or "".
        self.end_in_turn = faults.POWER if plan.may_lose_power else faults.KILL
        self.end_in_flush = ""
        self._observer = observer
        self._start_broker = start
        # Each broker of a world draws from a seed of its own.
        own_seed = int.from_bytes(name.encode())
        self._broker_random = Random(world.seed ^ _BROKER_SEED ^ own_seed)
        self._leaks = LeakChecker()
        self._turns = TurnChecker()
        self._waits = WaitChecker()
        self._planned_flush_id = 0
        self._turn_due_ms = self.clock.now_ms
        # Kind of the end that follows the clean stop under way, or "" if no stop is under way.
        self._end_after_stop = ""
        self._stop_deadline_ms = 0
        # A clean stop that takes longer is a violation.
        self.stop_ms_max = STOP_MS_MAX
        self._had_turn = False
        self._is_clean_start = False
        self._damaged: list[str] = []
        world.add(self)

    @property
    def is_serving(self) -> bool:
        """True while a life is under way and its end was not asked for."""
        return self.broker is not None and self._end_after_stop == ""

    # --- Turns.

    def due_ms(self) -> int:
        """Return when the next turn is due, in ms, with events or without."""
        if self.broker is None:
            return NEVER_MS
        due_ms = self.clock.now_ms if self.network.has_events() else self._turn_due_ms
        return max(due_ms, self.busy_until_ms)

    def turn(self) -> None:
        """Give the broker the turn that is due."""
        clock = self.clock
        broker = self.broker
        assert broker is not None
        late_ms = clock.now_ms - self._turn_due_ms
        if late_ms > STALL_MS:
            clock.stalled_ms += late_ms
            clock.stalls += 1
            self._observer.on_stall(self)
        events = self.network.take_events()
        self._had_turn = True
        self.disk.files_left = self.files_per_turn
        try:
            broker.turn(events, clock.own_ms, clock.own_wall_ms)
        except PowerLoss:
            self.lose(self.end_in_turn)
            return
        self.note(f"turn {self.network.turn} with {len(events)} events")
        self._plan_flushes()
        if broker.is_stopped:
            self._on_stopped(broker)
            return
        if broker.shutdown.is_over:
            # The broker has closed its logs, and only waits for other brokers to know of its end.
            self._turn_due_ms = max(clock.now_ms + 1, clock.world_ms(broker.next_due_ms()))
            return
        self._observer.after_turn(self)
        self.violations += self._leaks.after_turn(broker)
        self.violations += self._turns.after_turn(broker)
        if self.files_per_turn is None and not self.disk.fails_reads:
            # The checker tries fetches, whose reads would use up a read fault meant for the broker.
            self.violations += self._waits.after_turn(broker, clock.now_ms)
        if broker.flushes.lacks_files and self.files_per_turn is not None:
            # A broker that may open no file begins no flush: the stop's time begins when it may.
            self._stop_deadline_ms = clock.alive_ms + self.stop_ms_max
        if self._end_after_stop and clock.alive_ms > self._stop_deadline_ms:
            self.violations.append(f"a clean stop took more than {self.stop_ms_max} ms")
        # A turn takes time; sometimes enough for more events to gather.
        took_ms = self.random.randrange(15) if self.random.randrange(10) == 0 else 0
        self.busy_until_ms = clock.now_ms + took_ms
        self._turn_due_ms = max(
            clock.now_ms + 1, min(clock.world_ms(broker.next_due_ms()), clock.now_ms + POLL_MS_MAX)
        )

    def _plan_flushes(self) -> None:
        """Plan the end of each flush that the turn has begun."""
        for flush_id in self.disk.pending_flushes():
            if flush_id > self._planned_flush_id:
                self._planned_flush_id = flush_id
                delay_ms = self.random.randrange(self.plan.flush_ms_max + 1)
                delay_ms += self.plan.flush_ms_min
                if self.end_in_flush:
                    when_ms = self.random.randrange(delay_ms + 1)
                    self.clock.after(when_ms, partial(self._lose_in, self.life, self.end_in_flush))
                    self.end_in_flush = ""
                self.clock.after(delay_ms, partial(self._end_flush, flush_id))
        if self.disk.defers_removals and self.random.randrange(4) == 0:
            self.disk.complete_removals()

    def _end_flush(self, flush_id: int) -> None:
        """End a flush, unless the machine or the process has gone since it began."""
        if flush_id in self.disk.pending_flushes():
            event = self.disk.complete_flush(flush_id)
            if event.error:
                self.note(f"flush {flush_id} fails")
            self.network.tell_broker(event)

    # --- Starts.

    def start(self) -> None:
        """Begin a life, or plan another try if the start fails."""
        if self._try_start():
            return
        if self.is_healed and not self.must_wait:
            self.violations.append("the broker does not start when all is healed")
        self._plan_start()

    def _plan_start(self) -> None:
        delay_ms = 1 + self.random.randrange(200)
        self.clock.after(max(delay_ms, self.absent_until_ms - self.clock.now_ms), self.start)

    def _try_start(self) -> bool:
        clock = self.clock
        if self.random.randrange(1000) < self.plan.crash_in_start_per_mille:
            self.disk.crash_after(self.random.randrange(30))
        while self.index_faults_due > 0:
            self.index_faults_due -= 1
            self.note(faults.spoil_an_index(self.disk, self.random))
        self.life += 1
        self._had_turn = False
        # A process that starts has all of its descriptors.
        self.disk.files_left = None
        self._observer.on_start(self)
        is_clean_start = self._is_clean_start
        self._is_clean_start = False
        try:
            broker = self._start_broker(
                self.disk,
                self.network.new_transport(),
                self._broker_random,
                Settings({"listeners": "PLAINTEXT://{}:{}".format(*self.address), **self.settings}),
                clock.own_ms,
                clock.own_wall_ms,
            )
        except PowerLoss:
            self._forget_broker(self.end_in_turn)
            return False
        except TarryError as error:
            self.note(f"the start is refused: {error}")
            self._forget_broker(faults.KILL)
            return False
        self.note(f"life {self.life} begins")
        snapshots = broker.scheduling.snapshots.settings
        snapshots.offsets_min = _SNAPSHOT_OFFSETS
        snapshots.look_ms = _SNAPSHOT_LOOK_MS
        if is_clean_start:
            self._check_clean_start(broker)
        self.broker = broker
        self._leaks.on_life_begins(broker)
        self._turns.on_life_begins()
        self._waits.on_life_begins()
        self._observer.on_life_begins(self)
        self._turn_due_ms = clock.now_ms
        self.busy_until_ms = clock.now_ms
        self.network.is_accepting = True
        self._plan_flushes()
        return True

    def _check_clean_start(self, broker: Broker) -> None:
        """Check that a start after a clean stop scanned no log.

        Logs that were damaged, or about to be cut, when the broker stopped may be scanned.
        """
        for hosted in broker.topics.all():
            for partition in hosted.replicas():
                report = partition.log.recovery_report
                if partition.name in self._damaged:
                    continue
                if report.scanned_bytes or report.torn_bytes:
                    self.violations.append(
                        f"{report.scanned_bytes} bytes of {partition.name} were scanned after a "
                        "clean stop"
                    )

    # --- Ends.

    def request_stop(self, end: str) -> None:
        """Ask the broker for a clean stop; `end` says what follows it."""
        if not self.is_serving:
            return
        self.note(f"stop requested, {end}")
        self._end_after_stop = end
        self._stop_deadline_ms = self.clock.alive_ms + self.stop_ms_max
        self.network.is_stopping = True
        self.network.tell_broker(stop_requested())

    def lose(self, kind: str) -> None:
        """End this life uncleanly; the next one begins soon."""
        if self.broker is None:
            return
        # A stop that was under way may already have closed the logs cleanly.
        if self._had_turn and not self._end_after_stop:
            self.unclean_lives.append(self.life)
        self._forget_broker(kind)
        self._plan_start()

    def _lose_in(self, life: int, kind: str) -> None:
        if self.life == life:
            self.lose(kind)

    def maybe_lose_power_soon(self) -> None:
        """Plan a loss of power in half of the cases: a failed write or a kill left things open."""
        if self.plan.may_lose_power and self.random.randrange(2) == 0:
            self.clock.after(50 + self.random.randrange(600), self._lose_power)

    def _lose_power(self) -> None:
        if not self.is_healed:
            self.note(str(Fault(0, faults.POWER)))
            self.lose(faults.POWER)

    def heal(self) -> None:
        """End all faults of the disk, the network and the process."""
        self.is_healed = True
        self.busy_until_ms = self.clock.now_ms
        self.end_in_flush = ""
        self.files_per_turn = None
        self.disk.heal()
        self.plan.flush_ms_min = 0
        self.plan.flush_ms_max = 3
        self.plan.crash_in_start_per_mille = 0
        self.network.damages_due = 0
        conditions = self.network.conditions
        conditions.delay_ms_max = 2
        conditions.window_bytes = 65_536

    def replace_disk(self) -> None:
        """Give a process that does not run an empty disk."""
        assert self.broker is None
        self.disk = SimulatedDisk(self.random)
        self.disk.defers_removals = self.plan.defers_removals
        self._planned_flush_id = 0

    def _on_stopped(self, broker: Broker) -> None:
        if broker.stop_reason:
            self.note(f"the broker stopped: {broker.stop_reason}")
            if not self.plan.may_disk_fail():
                self.violations.append(f"the broker stopped by itself: {broker.stop_reason}")
            is_power = self.plan.may_lose_power and self.random.randrange(2) == 0
            self.lose(faults.POWER if is_power else faults.KILL)
            return
        self.note("the broker stopped cleanly")
        self._is_clean_start = True
        self._damaged = [
            partition.name
            for partition in broker.topics.replicas()
            if partition.log.flaw_offset >= 0 or partition.log.is_being_cut
        ]
        is_power = self._end_after_stop == faults.POWER_AFTER_CLEAN
        self._forget_broker(faults.POWER if is_power else faults.KILL)
        self._plan_start()

    def _forget_broker(self, kind: str) -> None:
        self.note(f"life {self.life} ends: {kind}")
        self.broker = None
        self._observer.on_life_ends(self)
        self._end_after_stop = ""
        self.network.lose_broker()
        if kind in faults.KILLS:
            self.disk.kill()
            self.maybe_lose_power_soon()
        else:
            self.disk.crash()

    def note(self, text: str) -> None:
        """Add a line to the trace, with the node's name if it has one."""
        self.world.trace.add(self.clock.now_ms, f"{self.name}: {text}" if self.name else text)
