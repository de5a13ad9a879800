"""Client node: a client core of the product with its clock, its connections and its user.

The node is a face without threads.  While the user waits for an operation every event turns the
core; while the user works only the core's own duties do, such as heartbeats.  The user is a
generator that yields the operations that it waits for, perhaps not to their end, and the delays of
its work.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from tarry.base.doors import connected_to, disconnected, received
from tarry.client.core.core import ClientCore
from tarry.client.core.group.events import GroupEvent
from tarry.client.core.operation import Callback, Done, Notice, Operation, Wait
from tarry.link.errors import ClientError
from tarry.link.events import Address, Close, Connect, LinkEvent, Resolve, Resolved, Send
from tarry.protocol import api_keys
from tarry.simulation.clients.simulated_client import Delay
from tarry.simulation.connection import ClientSocket
from tarry.simulation.exchange import ObservedExchange
from tarry.simulation.world import NEVER_MS, World

# Delay until a client learns of a resolved name, or of a refused connection.
_LOCAL_MS: Final = 1
_LENGTH_BYTES: Final = 4


class Cancelled:
    """Answer of an operation that its user gave up, as if its task was cancelled in an await."""


CANCELLED: Final = Cancelled()


class GivenUp:
    """Operation that its user waits for no longer than `after_ms`."""

    def __init__(self, operation: Operation[Any], after_ms: int) -> None:
        self.operation = operation
        self.after_ms = after_ms


# A user is resumed with the answer of its operation, its error, `CANCELLED`, or None after a delay.
User = Generator[Operation[Any] | GivenUp | Delay, Any, None]


class ClientNode:
    """Process with one client.  Subclasses have a `user`."""

    def __init__(self, world: World, name: str, core: ClientCore) -> None:
        self.world = world
        self.name = name
        self.core: ClientCore = core
        self.clock = world.agenda.new_clock()
        # True once the process has ended, by itself or killed.
        self.is_gone = False
        # Time until which the process is stopped.
        self._stalled_until_ms = 0
        self._due_ms = self.clock.now_ms
        self._links: dict[int, _Link] = {}
        self._events: list[LinkEvent] = []
        self._user = self.user()
        self._operation: Operation[Any] | None = None
        # Time at which the user gives the operation up.
        self._gives_up_ms = NEVER_MS
        # Time until which the user works, if it does not wait for an operation.
        self._works_until_ms = self.clock.now_ms
        self._is_driven_in_background = False
        # True while code outside the world waits for an operation of the core.
        self._is_attended = False
        world.add(self)

    def user(self) -> User:
        """Use the client.  Subclasses override it."""
        raise NotImplementedError

    def on_callback(self, event: GroupEvent, operation: Operation[Any]) -> None:
        """Note an event of the group, in a callback of this operation.  For subclasses."""

    def on_request(self, api_key: int, frame: bytes) -> None:
        """Look at a request that is about to leave.  Subclasses override it."""

    def on_frame(self, connection_id: int, frame: bytes) -> None:
        """Look at a request that leaves by a connection.  Subclasses override it."""

    def on_data(self, connection_id: int, data: bytes) -> None:
        """Look at bytes that have come by a connection.  Subclasses override it."""

    def sockets(self) -> list[ClientSocket]:
        """Return the connections, oldest first."""
        return [link.socket for link in self._links.values()]

    @property
    def is_stalled(self) -> bool:
        """True while the process is stopped."""
        return self._stalled_until_ms > self.clock.now_ms

    def stall(self, duration_ms: int) -> None:
        """Stop the process for so long."""
        self._stalled_until_ms = self.clock.now_ms + duration_ms
        self._look_at_time()

    def kill(self) -> None:
        """End the process: its sockets close without a last request."""
        self.is_gone = True
        self._look_at_time()
        for link in self._links.values():
            link.socket.close()
        self._links.clear()

    def attend(self) -> None:
        """Turn the core now, and for every event until `leave`: code outside the world waits for
        an operation."""
        self._is_attended = True
        self._due_ms = max(self.clock.now_ms, self._stalled_until_ms)

    def leave(self) -> None:
        """Turn the core only for its own duties from now on, and once more for begun requests."""
        self._is_attended = False
        self._is_driven_in_background = True
        self._due_ms = NEVER_MS if self.is_gone else max(self.clock.now_ms, self._stalled_until_ms)

    # --- Turns.

    def due_ms(self) -> int:
        """Return when the next turn is due, in ms; `NEVER_MS` once the process has ended."""
        return self._due_ms

    def _look_at_time(self) -> None:
        """Find out when the next turn is due: after a turn, an event or a fault."""
        operation = self._operation
        if self.is_gone:
            due_ms = NEVER_MS
        elif operation is not None:
            due_ms = self._attended_due_ms(is_ready=operation.is_ready)
            due_ms = min(due_ms, self._gives_up_ms)
        else:
            due_ms = self._works_until_ms
            if self._is_driven_in_background or self._is_attended:
                due_ms = min(due_ms, self._attended_due_ms(is_ready=False))
            elif (unattended_ms := self.core.unattended_due_ms) is not None:
                due_ms = min(due_ms, unattended_ms)
        self._due_ms = max(due_ms, self._stalled_until_ms)

    def _attended_due_ms(self, *, is_ready: bool) -> int:
        """Return when a driver that waits for events and core time has its next turn, in ms."""
        if self._events or is_ready:
            return self.clock.now_ms
        due_ms = self.core.next_due_ms()
        return NEVER_MS if due_ms is None else due_ms

    def turn(self) -> None:
        """Turn the core, and let the user go on if it can."""
        self._turn_core()
        if self._operation is None and self._works_until_ms > self.clock.now_ms:
            self._is_driven_in_background = self.core.needs_turns(self.clock.now_ms)
        else:
            self._is_driven_in_background = False
            if self._go_on():
                # Requests that the user has begun leave at once.
                self._turn_core()
        self._look_at_time()

    def _turn_core(self) -> None:
        events = self._events
        self._events = []
        for output in self.core.turn(events, self.clock.now_ms, self.clock.now_wall_ms):
            if isinstance(output, Send):
                self._send(output)
            elif isinstance(output, Resolve):
                self._resolve(output.connection_id, output.address)
            elif isinstance(output, Connect):
                self._connect(output.connection_id, output.address)
            elif isinstance(output, Close):
                link = self._links.pop(output.connection_id, None)
                if link is not None:
                    link.socket.close()
            else:
                assert isinstance(output, Notice)

    # --- The user.

    def _go_on(self) -> bool:
        """Step the operation and the user as far as they go; return true if the user acted."""
        has_acted = False
        is_new = False
        while not self.is_gone:
            operation = self._operation
            outcome: object = None
            if operation is not None:
                # A cancelled task of an event loop takes no step but its first one; neither does
                # this operation.
                outcome = self._step(operation) if is_new or not self._gives_up() else CANCELLED
                is_new = False
                if outcome is None:
                    has_acted = True
                    continue
                if isinstance(outcome, Wait):
                    break
                if isinstance(outcome, Done):
                    outcome = outcome.answer
                self._operation = None
                operation.end(self.clock.now_ms)
            elif self._works_until_ms > self.clock.now_ms:
                break
            has_acted = True
            self._resume(outcome)
            is_new = True
        return has_acted and not self.is_gone

    def _gives_up(self) -> bool:
        return self._gives_up_ms <= self.clock.now_ms

    def _step(self, operation: Operation[Any]) -> object:
        """Take one step; return Done, an error, WAIT, CANCELLED, or None behind a callback."""
        try:
            step = operation.step(self.clock.now_ms)
        except ClientError as error:
            return error
        if isinstance(step, Wait):
            return CANCELLED if self._gives_up() else step
        if isinstance(step, Callback):
            if isinstance(step.event, GroupEvent):
                self.on_callback(step.event, operation)
            else:
                step.call(None, self)
            if self._gives_up():
                return CANCELLED
            operation.end_callback(self.clock.now_ms)
            return None
        return step

    def _resume(self, outcome: object) -> None:
        self._gives_up_ms = NEVER_MS
        try:
            step = self._user.send(outcome)
        except StopIteration:
            self.kill()
            return
        if isinstance(step, Delay):
            # A delay takes time, so that no user goes on for ever in one turn.
            self._works_until_ms = self.clock.now_ms + max(step.duration_ms, 1)
        elif isinstance(step, GivenUp):
            self._operation = step.operation
            self._gives_up_ms = self.clock.now_ms + step.after_ms
        else:
            self._operation = step

    # --- The network.

    def hear(self, event: LinkEvent) -> None:
        """Take an event of a connection for the next turn."""
        if not self.is_gone:
            self._events.append(event)
            self._look_at_time()

    def _resolve(self, connection_id: int, address: Address) -> None:
        event = Resolved(connection_id, [address])
        self.clock.after(_LOCAL_MS, lambda: self.hear(event))

    def _connect(self, connection_id: int, address: Address) -> None:
        network = self.world.networks.get(address)
        if network is None:
            event = disconnected(connection_id, f"nobody listens at {address}")
            self.clock.after(_LOCAL_MS, lambda: self.hear(event))
            return
        link = _Link(self, connection_id)
        self._links[connection_id] = link
        link.socket = network.connect(link)

    def forget(self, connection_id: int) -> None:
        """Forget a connection that ended from the other side."""
        self._links.pop(connection_id, None)

    def _send(self, output: Send) -> None:
        link = self._links.get(output.connection_id)
        if link is None:
            return
        position = 0
        while position < len(output.data):
            start = position + _LENGTH_BYTES
            position = start + int.from_bytes(output.data[start - _LENGTH_BYTES : start], "big")
            frame = output.data[start - _LENGTH_BYTES : position]
            self.on_frame(output.connection_id, frame)
            link.socket.send(frame, self._exchange(frame))

    def _exchange(self, frame: bytes) -> ObservedExchange:
        """Describe a request to the network, which counts its answers."""
        api_key = int.from_bytes(frame[4:6], "big")
        self.on_request(api_key, frame)
        exchange = ObservedExchange(
            api_key, int.from_bytes(frame[6:8], "big"), int.from_bytes(frame[8:12], "big")
        )
        if api_key == api_keys.PRODUCE:
            exchange.is_answer_expected = self.is_answered
        exchange.wait_ms = self.patience_ms
        exchange.is_stall_forgiven = True
        return exchange

    # Time that this client grants a broker for an answer, and whether a produce has an answer.
    patience_ms = 60_000
    is_answered = True


class _Link:
    """Owner of one socket."""

    socket: ClientSocket

    def __init__(self, node: ClientNode, connection_id: int) -> None:
        self._node = node
        self._connection_id = connection_id

    def on_connected(self) -> None:
        self._node.hear(connected_to(self._connection_id, ""))

    def on_received(self, data: bytes) -> None:
        self._node.on_data(self._connection_id, data)
        self._node.hear(received(self._connection_id, data))

    def on_closed(self) -> None:
        self._node.forget(self._connection_id)
        self._node.hear(disconnected(self._connection_id, "connection reset by peer"))
