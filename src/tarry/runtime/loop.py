"""The loop: poll, then a turn, until the broker has stopped.

The loop opens all that a broker needs of the machine, first what is refused most cheaply:
descriptors, directory, ports, recovery.  After that one thread does all the work; it waits only for
a ready descriptor or the broker's next due time.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from tarry.base.doors import Disk, Event, Random, Transport
from tarry.base.errors import TarryError
from tarry.base.limits import POLL_MS_MAX
from tarry.base.settings import Settings
from tarry.runtime import clock
from tarry.runtime.clock import Clock
from tarry.runtime.descriptors import connections_max, raise_descriptor_limit
from tarry.runtime.directory import HeldDirectory
from tarry.runtime.files import OsDisk, TemporaryDisk
from tarry.runtime.flusher import Flusher, UnneededFlusher
from tarry.runtime.look_ups import LookUps
from tarry.runtime.memory import KeptLogs, calm_collector, keep_freed_memory
from tarry.runtime.poller import READABLE, make_poller
from tarry.runtime.reactor import Reactor
from tarry.runtime.refusal import StartRefused
from tarry.runtime.service_manager import READY, STOPPING, notify
from tarry.runtime.signals import Signals
from tarry.runtime.sockets import SWEEP_MS, OsTransport
from tarry.runtime.wake import Wake

logger = logging.getLogger("tarry.runtime")

# Longest time from a stop request to the end; then the broker is left as it is.  The broker's own
# limits are shorter: handing over what it leads, waiting for peers, waiting for the disk.
STOP_MS_MAX: Final = 30_000

# Time that peers have to take the bytes that were sent to them.
DRAIN_MS_MAX: Final = 5_000

# Time that file workers have to end; the process's end stops one that still waits for the device.
WORKERS_END_S_MAX: Final = 1.0


class Turning(Protocol):
    """Broker as the loop sees it."""

    @property
    def is_stopped(self) -> bool: ...

    @property
    def is_ready(self) -> bool:
        """True once clients may connect."""

    @property
    def logs_opened(self) -> int:
        """Number of logs that were opened or made so far."""

    @property
    def stop_reason(self) -> str:
        """Reason of a stop that the broker chose itself; "" after a requested stop."""

    def turn(self, events: list[Event], now_ms: int, now_wall_ms: int) -> None: ...

    def next_due_ms(self) -> int: ...


Started = TypeVar("Started", bound=Turning)

StartBroker = Callable[[Disk, Transport, Random, Settings, int, int], Started]

# Preparation of a broker that joins a cluster; None if a stop was requested meanwhile.
Prepare = Callable[["Machine", Settings, Signals], StartBroker[Turning] | None]


class Machine:
    """Implementations of the doors for one broker, opened and closed together.

    `is_temporary`: the files are not needed after the process, which may outlive the broker.
    """

    def __init__(
        self,
        settings: Settings,
        connections_max: int,
        broker_clock: Clock | None = None,
        *,
        is_temporary: bool = False,
    ) -> None:
        self.clock = Clock() if broker_clock is None else broker_clock
        self.directory = HeldDirectory(settings.log_directory, is_temporary=is_temporary)
        # Remote clients get the path too (DescribeLogDirs), so it must not be relative.
        settings.log_directory = os.path.abspath(self.directory.path)
        self.reactor = Reactor(make_poller())
        self.wake = Wake()
        self.reactor.add(self.wake.read_descriptor, READABLE, self.wake)
        make_flusher = UnneededFlusher if is_temporary else Flusher
        make_disk = TemporaryDisk if is_temporary else OsDisk
        self.flusher = make_flusher(self.wake.wake)
        self.wake.add_collector(self.flusher.collect)
        self.disk = make_disk(self.directory.path, self.flusher)
        self.look_ups = LookUps(self.wake)
        self.transport = OsTransport(self.reactor, settings, connections_max, self.look_ups)
        # Closers of links that were made beside the doors.
        self.closers: list[Callable[[], None]] = []

    def close(self) -> None:
        """Close everything: sockets first, so that peers do not wait for the files."""
        self.transport.abandon_all()
        for close in self.closers:
            close()
        self.look_ups.close()
        self.flusher.close(WORKERS_END_S_MAX)
        self.reactor.close()
        self.wake.close()
        if isinstance(self.disk, TemporaryDisk):
            self.disk.close_files()
        self.directory.close()

    def disown(self) -> None:
        """Close the copies of all descriptors in the child of a fork.

        Parent and child share the poller's registrations, so close the poller without removing any.
        """
        self.transport.disown()
        self.reactor.close()
        self.wake.close()
        if isinstance(self.disk, TemporaryDisk):
            self.disk.close_files()
        self.directory.close()


def run(
    settings: Settings,
    start_broker: StartBroker[Turning],
    announce: Callable[[Settings], None],
    on_hang_up: Callable[[Turning], None] | None = None,
    prepare: Prepare | None = None,
    *,
    stop_ms_max: int = STOP_MS_MAX,
) -> str:
    """Serve until a stop is requested; return "" after a clean stop, else the reason of the end.

    A broker that takes longer than `stop_ms_max` to stop is left as it is.

    `announce` is called when connections are accepted, `on_hang_up` between two turns after a
    SIGHUP.  `prepare` returns the function that starts the broker, in place of `start_broker`.
    `StartRefused` says why the broker cannot start.
    """
    keep_freed_memory()
    machine = Machine(settings, connections_max(raise_descriptor_limit()))
    try:
        machine.transport.bind()
        if prepare is None:
            with calm_collector():
                broker = start_on(machine, settings, start_broker)
            machine.transport.listen()
            signals = Signals(machine.wake)
        else:
            signals = Signals(machine.wake)
        try:
            if prepare is not None:
                prepared = prepare(machine, settings, signals)
                if prepared is None:
                    return ""
                with calm_collector():
                    broker = start_on(machine, settings, prepared)
                _wait_until_ready(machine, broker, signals)
                machine.transport.listen()
            announce(settings)
            notify(READY)
            return _serve(machine, broker, signals, on_hang_up, stop_ms_max)
        finally:
            signals.restore()
    finally:
        machine.close()


def _wait_until_ready(machine: Machine, broker: Turning, signals: Signals) -> None:
    """Give the broker turns, with its port closed, until clients may connect or it must stop."""
    while not broker.is_ready and not broker.is_stopped and not signals.is_stop_requested:
        take_turn(machine, broker)


def start_on(machine: Machine, settings: Settings, start_broker: StartBroker[Started]) -> Started:
    """Start a broker on the doors of this machine; `StartRefused` says why it cannot."""
    try:
        return start_broker(
            machine.disk,
            machine.transport,
            random.SystemRandom(),
            settings,
            machine.clock.now_ms(),
            machine.clock.now_wall_ms(),
        )
    except TarryError as error:
        raise StartRefused(str(error)) from None


def take_turn(machine: Machine, broker: Turning, wait_ms_max: int = POLL_MS_MAX) -> None:
    """Wait for an event or the next due time, at most `wait_ms_max`, and give the broker a turn."""
    reactor = machine.reactor
    transport = machine.transport
    broker_clock = machine.clock
    timeout_ms = min(max(broker.next_due_ms() - broker_clock.now_ms(), 0), wait_ms_max)
    if transport.is_restless:
        timeout_ms = min(timeout_ms, SWEEP_MS)
    events = reactor.wait(timeout_ms)
    broker.turn(events, broker_clock.now_ms(), broker_clock.now_wall_ms())
    if transport.is_restless:
        transport.sweep(clock.now_ms())


def _serve(
    machine: Machine,
    broker: Turning,
    signals: Signals,
    on_hang_up: Callable[[Turning], None] | None,
    stop_ms_max: int,
) -> str:
    deadline_ms = -1
    kept = KeptLogs(broker.logs_opened)
    while not broker.is_stopped:
        take_turn(machine, broker)
        kept.count(broker.logs_opened)
        if signals.take_reread() and on_hang_up is not None:
            on_hang_up(broker)
        if signals.is_stop_requested:
            if deadline_ms < 0:
                deadline_ms = clock.now_ms() + stop_ms_max
                machine.transport.stop_listening()
                notify(STOPPING)
                logger.info("stopping: finishing pending requests and flushing")
            elif clock.now_ms() >= deadline_ms:
                return (
                    f"the broker did not finish within {stop_ms_max // 1000} s; "
                    "the next start reads its logs again"
                )
    _drain(machine)
    return broker.stop_reason


def _drain(machine: Machine) -> None:
    """Let peers take the bytes that were sent to them; ignore all events."""
    transport = machine.transport
    transport.close_all()
    deadline_ms = clock.now_ms() + DRAIN_MS_MAX
    while transport.count and clock.now_ms() < deadline_ms:
        machine.reactor.wait(SWEEP_MS)
        transport.sweep(clock.now_ms())
