"""Answers on their way out, and the connections by which they leave.  Hot.

An answer is encoded into its slot when it is made.  Answers are sent at two points of a turn, each
when the slots before it on its connection are answered.  Frames that a connection still holds are
handled once its peer has taken enough answers.
"""

from __future__ import annotations

import logging
from collections import deque

from mypy_extensions import i64

from tarry.base.doors import Chunk, Transport
from tarry.base.errors import ProtocolViolation
from tarry.base.probe import Probe
from tarry.base.repeated import RepeatedFaults
from tarry.base.settings import Settings
from tarry.base.turn import Turn
from tarry.broker.connection import Connection
from tarry.broker.kafka_connection import KafkaConnection, Slot
from tarry.broker.queued_requests import Closer, QueuedRequests
from tarry.protocol.frames import encode_response
from tarry.protocol.message import Message
from tarry.protocol.pieced import PiecedResponse
from tarry.timer.wheel import TimingWheel

logger = logging.getLogger("tarry.broker")


class Answers(Closer):
    """The connections; some have answers to send, or frames to handle in a later turn."""

    def __init__(
        self,
        turn: Turn,
        transport: Transport,
        timer: TimingWheel,
        probe: Probe,
        settings: Settings,
    ) -> None:
        self.turn = turn
        self.transport = transport
        self.timer = timer
        self.probe = probe
        self.queued = QueuedRequests(turn, transport, timer, self, settings.queued_bytes_max)
        self.faults = RepeatedFaults(logger)
        self.connections: dict[int, Connection] = {}
        self._to_send: list[Connection] = []
        self._to_process: deque[Connection] = deque()
        # Connections whose next request is large and waits for a later turn.
        self._put_off: deque[Connection] = deque()

    def has_work_left(self) -> bool:
        """Return whether a turn without an event would send or handle something."""
        return len(self._to_send) > 0 or len(self._to_process) > 0 or len(self._put_off) > 0

    def is_any_waiting(self) -> bool:
        """Return whether a request has no answer yet, or an answer has not left."""
        return any(connection.has_waiting() for connection in self.connections.values())

    # -- out

    def put(self, connection: KafkaConnection, slot: Slot, response: Message) -> None:
        """Encode the answer into its slot; it leaves when the answers before it have left."""
        chunks = encode_response(slot.api_key, slot.api_version, slot.correlation_id, response)
        self._put_chunks(connection, slot, chunks)

    def put_pieces(self, connection: KafkaConnection, slot: Slot, response: PiecedResponse) -> None:
        """Put an answer that was encoded in pieces into its slot."""
        self._put_chunks(connection, slot, response.finish())

    def _put_chunks(self, connection: KafkaConnection, slot: Slot, chunks: list[Chunk]) -> None:
        size: i64 = 0
        for chunk in chunks:
            size += len(chunk)
        slot.chunks = chunks
        slot.size = size
        connection.held += size
        self.put_nothing(connection, slot)

    def put_nothing(self, connection: KafkaConnection, slot: Slot) -> None:
        """Mark the slot as answered: its chunks are its answer, or there are none for acks=0."""
        slot.is_answered = True
        connection.waiting -= 1
        self.send_later(connection)

    def send_later(self, connection: Connection) -> None:
        """Queue the connection, so that this turn sends the answers that it releases."""
        if not connection.is_queued_to_send:
            connection.is_queued_to_send = True
            self._to_send.append(connection)

    def send(self) -> None:
        """Send the answers that were made since the last call."""
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
        connection.release()
        chunks = connection.out
        if chunks:
            connection.out = []
            connection.unsent = self.transport.send(connection.id, chunks)

    # -- in

    def process(self, connection: Connection) -> None:
        """Handle the bytes that a connection has received, then pause or resume its reading."""
        try:
            connection.process()
        except ProtocolViolation as violation:
            self.close(connection, str(violation))
        if not connection.is_closed:
            self.regulate_reading(connection)

    def process_later(self, connection: Connection) -> None:
        """Queue the connection, so that the next turn handles the frames that it holds."""
        if connection.has_unhandled() and not connection.is_queued_to_process:
            connection.is_queued_to_process = True
            self._to_process.append(connection)

    def put_off(self, connection: Connection) -> None:
        """Queue the connection, so that a later turn handles the large request that comes next."""
        if not connection.is_queued_to_process:
            connection.is_queued_to_process = True
            self._put_off.append(connection)

    def count_to_process(self) -> int:
        """Return how many connections have frames that this turn is to handle."""
        return len(self._to_process)

    def count_put_off(self) -> int:
        """Return how many connections have a large request that waits for a later turn."""
        return len(self._put_off)

    def next_to_process(self) -> Connection:
        """Return the connection whose frames have waited longest."""
        return self._taken(self._to_process.popleft())

    def next_put_off(self) -> Connection:
        """Return the connection whose large request was looked at longest ago."""
        return self._taken(self._put_off.popleft())

    def _taken(self, connection: Connection) -> Connection:
        connection.is_queued_to_process = False
        return connection

    def regulate_reading(self, connection: Connection) -> None:
        """Pause reading while requests wait, so that their bytes do not grow without end."""
        self.queued.regulate(connection)

    # -- ends of connections

    def send_all_away(self, reason: str) -> None:
        """Close all client connections; the clients are served by other brokers."""
        for connection in list(self.connections.values()):
            self.let_go(connection, reason)

    def report(self, connection: Connection, reason: str, kind: str = "") -> None:
        """Log that a peer did something wrong; repeated lines are summed up by kind."""
        self.faults.report(connection.peer, reason, self.turn.now_ms, kind)

    def close(self, connection: Connection, reason: str) -> None:
        """Close a connection because of what its peer did; the log line is summed up when
        repeated.
        """
        if connection.is_closed:
            return
        self.report(connection, reason)
        self.let_go(connection, reason)

    def let_go(self, connection: Connection, reason: str) -> None:
        """Close a connection whose peer did nothing wrong, such as an idle one."""
        self.probe.on_connection_closed(connection.peer, reason)
        self._take(connection)
        self.transport.close(connection.id)
        self.forget(connection)

    def forget(self, connection: Connection) -> None:
        """Drop a connection whose peer is gone, with the requests that wait for it."""
        self.connections.pop(connection.id, None)
        self.queued.forget(connection)
        connection.drop()
        watch = connection.watch
        if watch is not None:
            self.timer.cancel(watch)
            connection.watch = None
