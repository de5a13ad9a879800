"""The world of one seed: one broker, its disk, its network, a workload, and all that goes wrong.

One loop moves the simulated time from one thing that happens to the next and gives the broker its
turns.  The faults end some time before the run does: then everything heals, what is under way is
brought to its end, the broker is lost or stopped once more, and everything is read for the last
time.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from tarry.base.doors import Disk, Transport, stop_requested
from tarry.base.doors import Random as RandomDoor
from tarry.base.errors import TarryError
from tarry.base.limits import POLL_MS_MAX, STALL_MS
from tarry.base.settings import Settings
from tarry.broker.broker import Broker
from tarry.broker.lifecycle import start_broker
from tarry.simulation import faults
from tarry.simulation.checkers.leaks import LeakChecker
from tarry.simulation.checkers.liveness import LivenessChecker
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import ScriptedClient
from tarry.simulation.clock import SimulatedClock
from tarry.simulation.disk import PowerLoss, SimulatedDisk
from tarry.simulation.faults import Fault
from tarry.simulation.network import SimulatedNetwork
from tarry.simulation.records.workload import RecordsWorkload
from tarry.simulation.trace import Trace
from tarry.simulation.workload import MakeWorkload

StartBroker = Callable[[Disk, Transport, RandomDoor, Settings, int, int], Broker]

# A stop is done within 5 s (README); the simulated disk is slow at times.
_STOP_MS_MAX: Final = 5_500
# When all is healed, everything can be read within this time.
_COLLECTION_MS_MAX: Final = 60_000
_LAST_WORDS_MS: Final = 200


class World:
    """One run.  `run` returns what is wrong, a sentence each."""

    def __init__(
        self,
        seed: int,
        trace: Trace | None = None,
        start: StartBroker = start_broker,
        make_workload: MakeWorkload = RecordsWorkload,
    ) -> None:
        self.random = Random(seed)
        self.clock = SimulatedClock()
        self.trace = Trace() if trace is None else trace
        self.workload = make_workload(self.random)
        self.faults = self.workload.faults
        self.disk = SimulatedDisk(self.random)
        self.disk.defers_removals = self.faults.defers_removals
        self.network = SimulatedNetwork(self.clock, self.random)
        self.network.conditions.delay_ms_max = self.faults.delay_ms_max
        self.network.conditions.pieces_per_mille = self.faults.pieces_per_mille
        self.context = RunContext(self.clock, self.network, self.random, self.trace)
        self.workload.prepare(self.context, self.disk)
        self.broker: Broker | None = None
        self._start_broker = start
        self._broker_random = Random(seed ^ 0x5EED)
        self._liveness = LivenessChecker(self.context.history)
        self._leaks = LeakChecker()
        self._planned_flush_id = 0
        self._turn_due_ms = self.clock.now_ms
        self._busy_until_ms = 0
        self._end_after_stop = ""
        self._end_in_turn = faults.POWER if self.faults.may_lose_power else faults.KILL
        self._end_in_flush = ""
        self._stop_deadline_ms = 0
        self._had_turn = False
        self._is_clean_start = False
        self._damaged: list[str] = []
        self._index_faults_due = 0
        self._may_disk_fail = any(fault.kind in faults.OF_THE_DISK for fault in self.faults.faults)

    def run(self) -> list[str]:
        """Let it happen."""
        history = self.context.history
        self._begin()
        end_ms = self.clock.now_ms + self.workload.duration_ms
        self._run_until(end_ms, self._never)
        self._heal()
        self._rest()
        if not history.violations:
            # Whoever hung up last is heard of.
            self._run_until(self.clock.now_ms + _LAST_WORDS_MS, self._never)
            self._check_nothing_waits()
            self._end_life_for_the_last_time()
            self._collect()
        return self.workload.check()

    # --- The phases.

    def _begin(self) -> None:
        self._start()
        self.workload.begin()
        for fault in self.faults.faults:
            self.clock.after(fault.at_ms, _Injection(self, fault).happen)

    def _heal(self) -> None:
        """Nothing goes wrong from here on, and nothing new is begun."""
        self._note("all heals")
        self.context.is_quiet = True
        self._busy_until_ms = self.clock.now_ms
        self._end_in_flush = ""
        self.disk.heal()
        self.faults.flush_ms_max = 3
        self.faults.crash_in_start_per_mille = 0
        self.network.damages_due = 0
        conditions = self.network.conditions
        conditions.delay_ms_max = 2
        conditions.window_bytes = 65_536
        for client in self.workload.clients():
            if client.socket is not None:
                client.socket.resume_reading()
        if any(fault.kind == faults.READ_FAULT for fault in self.faults.faults):
            # What could not be read counts as damaged until the next start.
            self.lose_broker(faults.KILL)

    def _rest(self) -> None:
        """Until everybody is done; whoever is not is complained of."""
        history = self.context.history
        quiet_ms_max = self.workload.quiet_ms_max
        self._run_until(self.clock.now_ms + quiet_ms_max, self._is_at_rest)
        if not history.violations and not self._is_at_rest():
            history.violations += self.workload.unfinished_sentences()
            history.violate(f"the clients have not come to rest in {quiet_ms_max} ms of quiet")

    def _is_at_rest(self) -> bool:
        broker = self.broker
        return broker is not None and self._end_after_stop == "" and self.workload.is_done(broker)

    def _end_life_for_the_last_time(self) -> None:
        kind = self.faults.last_end
        if kind in (faults.POWER, faults.KILL):
            self.lose_broker(kind)
        elif kind:
            self._request_stop(kind)
        self._rest()

    def _collect(self) -> None:
        self.context.is_still = True
        for number, collector in enumerate(self.workload.collectors()):
            if number > 0:
                self.lose_broker(faults.POWER if self.faults.may_lose_power else faults.KILL)
            self._run_collector(collector)

    def _run_collector(self, collector: ScriptedClient) -> None:
        collector.start()
        self._run_until(self.clock.now_ms + _COLLECTION_MS_MAX, lambda: collector.is_done)
        if not collector.is_done:
            self.context.history.violate(f"not everything could be read in {_COLLECTION_MS_MAX} ms")
        elif self.broker is not None:
            self.workload.on_collected(self.broker)

    # --- The loop.

    def _run_until(self, end_ms: int, is_done: Callable[[], bool]) -> None:
        clock = self.clock
        while clock.now_ms < end_ms and not self.context.history.violations and not is_done():
            due_ms = end_ms
            next_due_ms = clock.next_due_ms()
            if next_due_ms is not None:
                due_ms = min(due_ms, next_due_ms)
            if self.broker is not None:
                due_ms = min(due_ms, max(self._broker_due_ms(), self._busy_until_ms))
            clock.advance_to(max(clock.now_ms, due_ms))
            clock.run_due()
            if self.broker is not None and self._is_turn_due():
                self._turn(self.broker)

    def _is_turn_due(self) -> bool:
        now_ms = self.clock.now_ms
        return now_ms >= self._busy_until_ms and now_ms >= self._broker_due_ms()

    def _broker_due_ms(self) -> int:
        """When the broker's next turn is due, events or not."""
        if self.network.has_events():
            return self.clock.now_ms
        return self._turn_due_ms

    def _turn(self, broker: Broker) -> None:
        clock = self.clock
        late_ms = clock.now_ms - self._turn_due_ms
        if late_ms > STALL_MS:
            clock.stalled_ms += late_ms
            clock.stalls += 1
            self.workload.on_stall(self.network.turn + 1)
        events = self.network.take_events()
        self._had_turn = True
        try:
            broker.turn(events, clock.now_ms, clock.now_wall_ms)
        except PowerLoss:
            self.lose_broker(self._end_in_turn)
            return
        self._trace_turn(len(events))
        self._plan_flushes()
        if broker.is_stopped:
            self._on_stopped(broker)
            return
        self.workload.after_turn(broker)
        self.context.history.violations += self._leaks.after_turn(broker)
        if not self._end_after_stop:
            self._liveness.after_turn(self.network.sockets(), clock.alive_ms, clock.stalls)
        elif clock.alive_ms > self._stop_deadline_ms:
            self.context.history.violate(f"a clean stop took more than {_STOP_MS_MAX} ms")
        # A turn takes time; sometimes enough for more events to gather.
        took_ms = self.random.randrange(15) if self.random.randrange(10) == 0 else 0
        self._busy_until_ms = clock.now_ms + took_ms
        self._turn_due_ms = max(
            clock.now_ms + 1, min(broker.next_due_ms(), clock.now_ms + POLL_MS_MAX)
        )

    def _plan_flushes(self) -> None:
        """Each flush that the turn has begun ends some time later."""
        for flush_id in self.disk.pending_flushes():
            if flush_id > self._planned_flush_id:
                self._planned_flush_id = flush_id
                delay_ms = self.random.randrange(self.faults.flush_ms_max + 1)
                if self._end_in_flush:
                    when_ms = self.random.randrange(delay_ms + 1)
                    self.clock.after(when_ms, _EndOfLife(self, self._end_in_flush).happen)
                    self._end_in_flush = ""
                self.clock.after(delay_ms, _FlushEnd(self, flush_id).happen)
        if self.disk.defers_removals and self.random.randrange(4) == 0:
            self.disk.complete_removals()

    # --- Lives of the broker.

    def _start(self) -> None:
        if self._try_start():
            return
        if self.context.is_quiet:
            self.context.history.violate("the broker does not start when all is healed")
        self._plan_start()

    def _try_start(self) -> bool:
        clock = self.clock
        if self.random.randrange(1000) < self.faults.crash_in_start_per_mille:
            self.disk.crash_after(self.random.randrange(30))
        while self._index_faults_due > 0:
            self._index_faults_due -= 1
            self._note(faults.spoil_an_index(self.disk, self.random))
        self.context.life += 1
        self._had_turn = False
        self.workload.on_start()
        is_clean_start = self._is_clean_start
        self._is_clean_start = False
        try:
            broker = self._start_broker(
                self.disk,
                self.network.new_transport(),
                self._broker_random,
                Settings(self.workload.settings_of(self.context.life)),
                clock.now_ms,
                clock.now_wall_ms,
            )
        except PowerLoss:
            self._forget_broker(self._end_in_turn)
            return False
        except TarryError as error:
            self._note(f"the start is refused: {error}")
            self._forget_broker(faults.KILL)
            return False
        self._note(f"life {self.context.life} begins")
        if is_clean_start:
            self._check_clean_start(broker)
        broker.endpoints["PLAINTEXT"] = ("localhost", 9092)
        self.broker = broker
        self._leaks.on_life_begins(broker)
        self.workload.on_life_begins(broker)
        self._turn_due_ms = clock.now_ms
        self._busy_until_ms = clock.now_ms
        self.network.is_accepting = True
        self._plan_flushes()
        return True

    def _check_clean_start(self, broker: Broker) -> None:
        """After a clean stop nothing is scanned, but for what could not be read before."""
        for hosted in broker.topics.values():
            for partition in hosted.partitions:
                report = partition.log.recovery_report
                if partition.name in self._damaged:
                    continue
                if report.scanned_bytes or report.torn_bytes:
                    self.context.history.violate(
                        f"{report.scanned_bytes} bytes of {partition.name} were scanned after a "
                        "clean stop"
                    )

    def _check_nothing_waits(self) -> None:
        """When all clients have their answers, no operation is left in a purgatory."""
        broker = self.broker
        assert broker is not None
        for purgatory in broker.purgatories:
            if purgatory.delayed and purgatory.name not in self.workload.waits_at_rest:
                self.context.history.violate(
                    f"{purgatory.delayed} operations wait in purgatory {purgatory.name} when "
                    "every client has its answers"
                )

    def _request_stop(self, end: str) -> None:
        if self.broker is None or self._end_after_stop:
            return
        self._note(f"stop requested, {end}")
        self._end_after_stop = end
        self._stop_deadline_ms = self.clock.alive_ms + _STOP_MS_MAX
        self.network.is_stopping = True
        self.network.tell_broker(stop_requested())

    def _on_stopped(self, broker: Broker) -> None:
        if broker.stop_reason:
            self._note(f"the broker stopped: {broker.stop_reason}")
            if not self._may_disk_fail:
                self.context.history.violate(f"the broker stopped by itself: {broker.stop_reason}")
            is_power = self.faults.may_lose_power and self.random.randrange(2) == 0
            self.lose_broker(faults.POWER if is_power else faults.KILL)
            return
        self._note("the broker stopped cleanly")
        self._is_clean_start = True
        self._damaged = [
            partition.name
            for hosted in broker.topics.values()
            for partition in hosted.partitions
            if partition.log.flaw_offset >= 0
        ]
        is_power = self._end_after_stop == faults.POWER_AFTER_CLEAN
        self._forget_broker(faults.POWER if is_power else faults.KILL)
        self._plan_start()

    def lose_broker(self, kind: str) -> None:
        """This life ends uncleanly."""
        if self.broker is None:
            return
        # A stop under way may have come to its clean end already.
        if self._had_turn and not self._end_after_stop:
            self.context.history.unclean_lives.append(self.context.life)
        self._forget_broker(kind)
        self._plan_start()

    def _forget_broker(self, kind: str) -> None:
        self._note(f"life {self.context.life} ends: {kind}")
        self.broker = None
        self.workload.on_life_ends()
        self._end_after_stop = ""
        self.network.lose_broker()
        if kind in faults.KILLS:
            self.disk.kill()
            self._maybe_follow_with_power()
        else:
            self.disk.crash()

    def _plan_start(self) -> None:
        self.clock.after(1 + self.random.randrange(200), self._start)

    # --- What goes wrong.

    def inject(self, fault: Fault) -> None:
        """One fault of the plan comes to pass."""
        if self.context.is_quiet:
            return
        kind = fault.kind
        self._note(f"fault: {kind} {fault.number} {fault.path_part}")
        if kind in (faults.POWER, faults.KILL):
            self.lose_broker(kind)
        elif kind in (faults.POWER_IN_TURN, faults.KILL_IN_TURN):
            self._end_in_turn = kind
            self.disk.crash_after(fault.number, fault.path_part)
        elif kind in (faults.POWER_IN_FLUSH, faults.KILL_IN_FLUSH):
            self._end_in_flush = kind
        elif kind in (faults.CLEAN, faults.POWER_AFTER_CLEAN):
            self._request_stop(kind)
        elif kind == faults.CUT:
            self._cut()
        elif kind == faults.STALL:
            self._busy_until_ms = self.clock.now_ms + fault.number
        elif kind == faults.CLOCK_JUMP:
            self.clock.wall_offset_ms += fault.number
        elif kind == faults.WRITE_FAULT:
            self.disk.fail_writes(fault.number)
            self._maybe_follow_with_power()
        elif kind == faults.READ_FAULT:
            self.disk.fail_reads(fault.number)
        elif kind == faults.FLUSH_FAULT:
            self.disk.fail_flushes()
        elif kind == faults.SPACE_FAULT:
            self.disk.capacity_bytes = self.disk.used_bytes() + self.random.randrange(2_000)
            self.clock.after(fault.number, self._free_space)
        elif kind == faults.SLOW_READERS:
            self._slow_down(fault.number)
        elif kind == faults.DAMAGE:
            self.network.damages_due += fault.number
        elif kind == faults.INDEX_FAULT:
            self._index_faults_due += fault.number

    def _maybe_follow_with_power(self) -> None:
        """What a failed write or a killed process leaves behind is at the mercy of the power."""
        if self.faults.may_lose_power and self.random.randrange(2) == 0:
            delay_ms = 50 + self.random.randrange(600)
            self.clock.after(delay_ms, _Injection(self, Fault(0, faults.POWER)).happen)

    def _cut(self) -> None:
        sockets = self.network.sockets()
        busy = [socket for socket in sockets if socket.has_unanswered_produce()]
        if busy and self.random.randrange(2) == 0:
            # Whoever produced comes again, perhaps before the first try is durable.
            sockets = busy
        if sockets:
            sockets[self.random.randrange(len(sockets))].cut(self.random)

    def _free_space(self) -> None:
        self.disk.capacity_bytes = None

    def _slow_down(self, duration_ms: int) -> None:
        self.network.conditions.window_bytes = 64
        for client in self.workload.clients():
            if client.socket is not None and self.random.randrange(2) == 0:
                client.socket.stop_reading()
                self.clock.after(duration_ms, client.socket.resume_reading)

    def end_flush(self, flush_id: int) -> None:
        """A flush that was under way ends, unless its machine or process is gone."""
        if flush_id in self.disk.pending_flushes():
            event = self.disk.complete_flush(flush_id)
            if event.error:
                self._note(f"flush {flush_id} fails")
            self.network.tell_broker(event)

    # --- Small things.

    def _never(self) -> bool:
        return False

    def _note(self, text: str) -> None:
        self.trace.add(self.clock.now_ms, text)

    def _trace_turn(self, events: int) -> None:
        self.trace.add(self.clock.now_ms, f"turn {self.network.turn} with {events} events")


class _Injection:
    """A fault in the agenda."""

    def __init__(self, world: World, fault: Fault) -> None:
        self._world = world
        self._fault = fault

    def happen(self) -> None:
        self._world.inject(self._fault)


class _EndOfLife:
    """The end of the life that runs now in the agenda."""

    def __init__(self, world: World, kind: str) -> None:
        self._world = world
        self._kind = kind
        self._life = world.context.life

    def happen(self) -> None:
        if self._world.context.life == self._life:
            self._world.lose_broker(self._kind)


class _FlushEnd:
    """The end of a flush in the agenda."""

    def __init__(self, world: World, flush_id: int) -> None:
        self._world = world
        self._flush_id = flush_id

    def happen(self) -> None:
        self._world.end_flush(self._flush_id)
