"""Simulated connection: two streams of bytes between a client and the broker.

Inside one direction bytes never change their order.  What the broker has answered and not sent yet
is taken from its chunks only when the peer has room, so a `FileRegion` is read late, as by
sendfile; a region that cannot be read breaks the connection.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from tarry.base.doors import (
    Chunk,
    FileRegion,
    Random,
    disconnected,
    drained,
    received,
)
from tarry.base.errors import StorageError
from tarry.protocol.api_keys import PRODUCE
from tarry.simulation.clock import Action
from tarry.simulation.exchange import AnswerCounter, ObservedExchange

if TYPE_CHECKING:
    from tarry.simulation.network import SimulatedNetwork

_REGION_READ_BYTES: Final = 65_536
# Longest time that sent bytes have to reach the client after `Transport.close`.
_CLOSE_MS_MAX: Final = 1_000
# Delay after which bytes that a cut link holds up are tried again.
_HELD_MS: Final = 20


class SocketOwner(Protocol):
    """Owner of a client socket."""

    def on_connected(self) -> None: ...

    def on_received(self, data: bytes) -> None: ...

    def on_closed(self) -> None: ...


class ClientSocket:
    """Client's end of a connection, with the bytes in flight in both directions."""

    def __init__(
        self,
        network: SimulatedNetwork,
        peer: SocketOwner,
        listener: str,
        origin: SimulatedNetwork | None = None,
    ) -> None:
        self.listener = listener
        # Network of the broker that began the connection; None if a client began it.  Only the
        # requests of clients are observed.
        self.origin = origin
        self.connection_id = 0
        # True if the broker sent more answers than there were requests.
        self.has_surplus_answer = False
        self.is_connected = False
        self.is_gone_for_client = False
        self.is_gone_for_broker = False
        self._network = network
        self._peer = peer
        self._is_reading = True
        self._bytes_sent = 0
        self._bytes_delivered = 0
        self._undelivered: deque[ObservedExchange] = deque()
        self._unanswered: deque[ObservedExchange] = deque()
        self._answers = AnswerCounter()
        self._to_broker: deque[bytes] = deque()
        self._to_broker_due_ms = 0
        self._held_at_broker: list[bytes] = []
        self._is_paused_by_broker = False
        self._outgoing: deque[Chunk] = deque()
        self._outgoing_position = 0
        self._unsent = 0
        self._was_backed_up = False
        self._to_client: deque[bytes] = deque()
        self._to_client_due_ms = 0
        self._in_transit = 0
        self._held_at_client: list[bytes] = []
        self._closes_after_sending = False
        self._is_cut = False

    # --- The client's side.

    def send(self, frame: bytes, exchange: ObservedExchange | None = None) -> None:
        """Send bytes; if `exchange` is given, they are one whole request."""
        self.send_together([(frame, exchange)])

    def send_together(self, frames: list[tuple[bytes, ObservedExchange | None]]) -> None:
        """Send several frames in one write, each with its exchange or None."""
        if self.is_gone_for_client or self._is_cut:
            return
        for frame, exchange in frames:
            self._bytes_sent += len(frame)
            if exchange is not None:
                exchange.end_position = self._bytes_sent
                self._undelivered.append(exchange)
                if exchange.is_answer_expected:
                    self._unanswered.append(exchange)
        for piece in self._network.pieces(b"".join(frame for frame, _exchange in frames)):
            self._to_broker.append(piece)
            self._to_broker_due_ms = self._network.plan(
                self._to_broker_due_ms, self._deliver_to_broker
            )

    def close(self) -> None:
        """Close from the client's side: what was sent still arrives."""
        if self.is_gone_for_client:
            return
        self.is_gone_for_client = True
        self._network.plan(self._to_broker_due_ms, self._lose_broker_side)

    def stop_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        if self.is_gone_for_client:
            return
        held = self._held_at_client
        self._held_at_client = []
        for data in held:
            self._hand_to_client(data)
        self._pump()

    # --- The wire.

    def cut(self, random: Random) -> None:
        """Cut the connection: a prefix of the bytes in flight arrives, each side learns it later.

        Bytes that a side sends before it learns of the cut are lost.
        """
        self._is_cut = True
        _keep_prefix(self._to_broker, random)
        self._in_transit = _keep_prefix(self._to_client, random)
        self._outgoing.clear()
        self._network.plan(self._to_broker_due_ms, self._lose_broker_side)
        self._network.plan(self._to_client_due_ms, self._lose_client_side)

    def is_open(self) -> bool:
        return self.is_connected and not self.is_gone_for_broker and not self.is_gone_for_client

    def head(self) -> ObservedExchange | None:
        """Return the oldest request that the broker still has to answer, or None."""
        return self._unanswered[0] if self._unanswered else None

    def has_unanswered_produce(self) -> bool:
        """Return true if the broker has an unanswered produce request of this connection."""
        return any(
            exchange.api_key == PRODUCE and exchange.delivered_ms >= 0
            for exchange in self._unanswered
        )

    def _is_held(self, source: SimulatedNetwork | None, action: Action) -> bool:
        """Put the action off, and return true, if the link from `source` is cut."""
        origin = self.origin
        if origin is None:
            return False
        target = self._network if source is origin else origin
        if source not in target.deaf_to:
            return False
        self._network.clock.after(_HELD_MS, action)
        return True

    def _deliver_to_broker(self) -> None:
        if self._is_held(self.origin, self._deliver_to_broker):
            return
        if not self._to_broker or self.is_gone_for_broker:
            return
        data = self._to_broker.popleft()
        if self._is_paused_by_broker:
            self._held_at_broker.append(data)
        else:
            self._hand_to_broker(data)

    def _hand_to_broker(self, data: bytes) -> None:
        self._bytes_delivered += len(data)
        undelivered = self._undelivered
        while undelivered and undelivered[0].end_position <= self._bytes_delivered:
            exchange = undelivered.popleft()
            exchange.delivered_ms = self._network.clock.now_ms
            exchange.delivered_turn = self._network.turn + 1
        self._network.tell_broker(received(self.connection_id, data))

    def _deliver_to_client(self) -> None:
        if self._is_held(self._network, self._deliver_to_client):
            return
        if not self._to_client:
            return
        data = self._to_client.popleft()
        if self.is_gone_for_client:
            return
        if self._is_reading:
            self._hand_to_client(data)
            self._pump()
        else:
            self._held_at_client.append(data)

    def _hand_to_client(self, data: bytes) -> None:
        self._in_transit -= len(data)
        self._peer.on_received(data)

    def _lose_broker_side(self) -> None:
        if self._is_held(self.origin, self._lose_broker_side):
            return
        if self.is_gone_for_broker:
            return
        self.is_gone_for_broker = True
        self._network.forget(self)
        self._network.tell_broker(disconnected(self.connection_id, "the peer closed"))

    def _lose_client_side(self) -> None:
        if self._is_held(self._network, self._lose_client_side):
            return
        if not self.is_gone_for_client:
            self.is_gone_for_client = True
            self._peer.on_closed()

    # --- The broker's side, called by `SimulatedTransport`.

    def arrive(self) -> None:
        """Open the connection on both sides."""
        if self._is_held(self.origin, self.arrive) or self._is_held(self._network, self.arrive):
            return
        if self.is_gone_for_client:
            return
        connection_id = self._network.accept(self)
        if connection_id == 0:
            self._lose_client_side()
            return
        self.connection_id = connection_id
        self.is_connected = True
        self._peer.on_connected()

    def broker_sends(self, chunks: list[Chunk]) -> int:
        for _ in range(self._answers.take(chunks)):
            if self._unanswered:
                exchange = self._unanswered.popleft()
                exchange.answered_ms = self._network.clock.now_ms
                exchange.answered_turn = self._network.turn
                exchange.is_answered_in_stop = self._network.is_stopping
            elif self.origin is None:
                self.has_surplus_answer = True
        if self._is_cut:
            return 0
        for chunk in chunks:
            if len(chunk):
                self._outgoing.append(chunk)
                self._unsent += len(chunk)
        self._pump()
        self._was_backed_up = self._unsent > 0
        return self._unsent

    def broker_pauses(self) -> None:
        self._is_paused_by_broker = True

    def broker_resumes(self) -> None:
        if not self._is_paused_by_broker:
            return
        self._is_paused_by_broker = False
        held = self._held_at_broker
        self._held_at_broker = []
        for data in held:
            self._hand_to_broker(data)

    def broker_closes(self) -> None:
        self.is_gone_for_broker = True
        self._closes_after_sending = True
        self._network.clock.after(_CLOSE_MS_MAX, self._lose_client_side)
        self._maybe_close()

    def broker_dies(self, random: Random) -> None:
        """Lose the broker's process; the client learns it some time later."""
        self.is_gone_for_broker = True
        self._in_transit = _keep_prefix(self._to_client, random)
        self._outgoing.clear()
        self._unsent = 0
        self._network.plan(self._to_client_due_ms, self._lose_client_side)

    def _pump(self) -> None:
        """Take from the broker's chunks what the peer has room for."""
        if self.is_gone_for_broker and not self._closes_after_sending:
            return
        window = self._network.conditions.window_bytes
        while self._outgoing and self._in_transit < window:
            data = self._take(window - self._in_transit)
            if data is None:
                self._break()
                return
            self._in_transit += len(data)
            self._unsent -= len(data)
            for piece in self._network.pieces(data):
                self._to_client.append(piece)
                self._to_client_due_ms = self._network.plan(
                    self._to_client_due_ms, self._deliver_to_client
                )
        if not self._outgoing and self._was_backed_up:
            self._was_backed_up = False
            if not self.is_gone_for_broker:
                self._network.tell_broker(drained(self.connection_id))
        self._maybe_close()

    def _take(self, size_max: int) -> bytes | None:
        """Return the bytes of the first chunk; None when its file cannot give them."""
        chunk = self._outgoing[0]
        start = self._outgoing_position
        size = min(size_max, len(chunk) - start)
        if isinstance(chunk, FileRegion):
            size = min(size, _REGION_READ_BYTES)
            try:
                data = chunk.file.read(chunk.position + start, size)
            except StorageError:
                return None
            if len(data) < size:
                return None
            if start == 0:
                data = self._network.maybe_damage(data)
        else:
            data = bytes(chunk[start : start + size])
        self._outgoing_position += size
        if self._outgoing_position == len(chunk):
            self._outgoing.popleft()
            self._outgoing_position = 0
        return data

    def _break(self) -> None:
        """Lose the connection on both sides: an answer cannot be sent whole."""
        self._outgoing.clear()
        self._network.plan(self._to_client_due_ms, self._lose_client_side)
        self._lose_broker_side()

    def _maybe_close(self) -> None:
        if self._closes_after_sending and not self._outgoing:
            self._network.plan(self._to_client_due_ms, self._lose_client_side)


def _keep_prefix(pieces: deque[bytes], random: Random) -> int:
    """Cut the bytes in flight at a random place; return how many are left."""
    total = sum(len(piece) for piece in pieces)
    left = random.randrange(total + 1)
    kept: list[bytes] = []
    for piece in pieces:
        part = piece[:left]
        if part:
            kept.append(part)
        left -= len(part)
    pieces.clear()
    pieces.extend(kept)
    return sum(len(piece) for piece in kept)
