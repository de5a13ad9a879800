"""Answers on their way out, and the connections that they leave by.  Hot.

An answer is encoded into its slot when it is made, and sent at two places of a turn, when the
connection's slots before it are answered.  What a connection has not been asked to handle yet goes
on when its peer has taken enough.
"""

from __future__ import annotations

import logging

from mypy_extensions import i64

from tarry.base.doors import Transport
from tarry.base.probe import Probe
from tarry.base.repeated import RepeatedFaults
from tarry.base.turn import Turn
from tarry.broker.connection import Connection, Slot
from tarry.protocol.frames import encode_response
from tarry.protocol.message import Message
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.broker")


class Answers:
    """The connections, and those of them that have answers to send or frames to go on with."""

    def __init__(self, turn: Turn, transport: Transport, timer: TimingWheel, probe: Probe) -> None:
        self.turn = turn
        self.transport = transport
        self.timer = timer
        self.probe = probe
        self.faults = RepeatedFaults(logger)
        self.connections: dict[int, Connection] = {}
        self._to_send: list[Connection] = []
        self._to_process: list[Connection] = []

    def has_work_left(self) -> bool:
        """Return whether a turn without an event would send or handle something."""
        return len(self._to_send) > 0 or len(self._to_process) > 0

    def is_any_waiting(self) -> bool:
        """Return whether a request has no answer yet, or an answer has not left."""
        return any(connection.has_waiting() for connection in self.connections.values())

    # -- out

    def put(self, connection: Connection, slot: Slot, response: Message) -> None:
        """Encode the answer into its slot; it leaves when those before it have."""
        chunks = encode_response(slot.api_key, slot.api_version, slot.correlation_id, response)
        size: i64 = 0
        for chunk in chunks:
            size += len(chunk)
        slot.chunks = chunks
        slot.size = size
        connection.held += size
        self.put_nothing(connection, slot)

    def put_nothing(self, connection: Connection, slot: Slot) -> None:
        """Free the slot: all of its answer is in it, which is nothing for what wants none."""
        slot.is_answered = True
        connection.waiting -= 1
        if not connection.is_queued_to_send:
            connection.is_queued_to_send = True
            self._to_send.append(connection)

    def send(self) -> None:
        """Send what was answered since the last time."""
        queue = self._to_send
        if not queue:
            return
        self._to_send = []
        for connection in queue:
            connection.is_queued_to_send = False
            if connection.is_closed:
                continue
            self._take(connection)
            if connection.has_unhandled() and not connection.is_queued_to_process:
                if not connection.is_blocked():
                    self.process_later(connection)
            elif connection.is_reading_paused:
                self.regulate_reading(connection)

    def _take(self, connection: Connection) -> None:
        connection.release_slots()
        chunks = connection.out
        if chunks:
            connection.out = []
            connection.unsent = self.transport.send(connection.id, chunks)

    # -- in

    def process_later(self, connection: Connection) -> None:
        """Have the frames that the connection holds handled in the next turn."""
        if connection.has_unhandled() and not connection.is_queued_to_process:
            connection.is_queued_to_process = True
            self._to_process.append(connection)

    def take_to_process(self) -> list[Connection]:
        """Return the connections whose frames wait for this turn."""
        waiting = self._to_process
        if waiting:
            self._to_process = []
            for connection in waiting:
                connection.is_queued_to_process = False
        return waiting

    def regulate_reading(self, connection: Connection) -> None:
        """Read nothing behind frames that wait, so that they do not become ever more."""
        is_blocked = connection.is_blocked() or connection.has_unhandled()
        if is_blocked != connection.is_reading_paused:
            connection.is_reading_paused = is_blocked
            if is_blocked:
                self.transport.pause_reading(connection.id)
            else:
                connection.resume_frame(self.turn.now_ms)
                self.transport.resume_reading(connection.id)

    # -- ends of connections

    def report(self, connection: Connection, reason: str, kind: str = "") -> None:
        """Log that a peer did something bad; the same of many is summed up by kind."""
        self.faults.report(connection.peer, reason, self.turn.now_ms, kind)

    def close(self, connection: Connection, reason: str) -> None:
        """Close because of what the peer did; one line in the log, summed up when repeated."""
        if connection.is_closed:
            return
        self.report(connection, reason)
        self.let_go(connection, reason)

    def let_go(self, connection: Connection, reason: str) -> None:
        """Close a connection whose peer did nothing wrong, as when it is silent."""
        self.probe.on_connection_closed(connection.peer, reason)
        self._take(connection)
        self.transport.close(connection.id)
        self.forget(connection)

    def forget(self, connection: Connection) -> None:
        """Give up what waits for a peer that is gone."""
        self.connections.pop(connection.id, None)
        waiting = connection.waiting_slots()
        connection.drop()
        for slot in waiting:
            operation = slot.operation
            if operation is not None:
                operation.force_complete()
        watch = connection.watch
        if watch is not None:
            self.timer.cancel(watch)
            connection.watch = None
