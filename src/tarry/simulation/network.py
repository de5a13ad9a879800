"""Simulated network: the door `Transport` on one side, client sockets on the other.

It simulates delays, streams cut into pieces, connections that overtake each other, connections
that end at any byte, peers that read slowly or not at all, and record batches with a flipped bit.
Order holds only inside one direction of one connection (`connection.py`).
"""

from __future__ import annotations

import itertools

from tarry.base.doors import (
    Chunk,
    Event,
    FileRegion,
    Random,
    connected,
    connected_to,
    disconnected,
    received,
)
from tarry.records.batch import CRC, HEADER_SIZE, decode_batch_header
from tarry.simulation.clock import Action, SimulatedClock
from tarry.simulation.connection import ClientSocket, SocketOwner
from tarry.simulation.exchange import ObservedExchange


class Conditions:
    """Conditions of the network: drawn from the world's seed, and variable at any time."""

    def __init__(self) -> None:
        self.delay_ms_max = 2
        # Share of sends that are cut into pieces, per 1,000.
        self.pieces_per_mille = 100
        # Bytes that the socket buffer of a peer takes; the broker has to keep more than these.
        self.window_bytes = 65_536


class SimulatedTransport:
    """Door of one life of the broker."""

    def __init__(self, network: SimulatedNetwork) -> None:
        self._network = network
        self.sockets: dict[int, ClientSocket] = {}
        # Connections that the broker began.
        self.outgoing: dict[int, PeerSocket] = {}

    def connect(self, host: str, port: int) -> int:
        """Begin a connection to another broker of the world."""
        network = self._network
        connection_id = network.next_connection_id()
        other = network.others.get((host, port))
        if other is None:
            network.tell_broker(disconnected(connection_id, f"{host}:{port} refused"))
        else:
            peer = f"{host}:{port}"
            self.outgoing[connection_id] = PeerSocket(network, self, connection_id, other, peer)
        return connection_id

    def send(self, connection_id: int, chunks: list[Chunk]) -> int:
        socket = self.sockets.get(connection_id)
        if socket is not None:
            return socket.broker_sends(chunks)
        peer = self.outgoing.get(connection_id)
        if peer is not None:
            peer.send(chunks)
        return 0

    def stop_listening(self) -> None:
        self._network.is_accepting = False

    def pause_reading(self, connection_id: int) -> None:
        socket = self.sockets.get(connection_id)
        if socket is not None:
            socket.broker_pauses()
        elif connection_id in self.outgoing:
            self.outgoing[connection_id].socket.stop_reading()

    def resume_reading(self, connection_id: int) -> None:
        socket = self.sockets.get(connection_id)
        if socket is not None:
            socket.broker_resumes()
        elif connection_id in self.outgoing:
            self.outgoing[connection_id].socket.resume_reading()

    def close(self, connection_id: int) -> None:
        socket = self.sockets.pop(connection_id, None)
        if socket is not None:
            socket.broker_closes()
        peer = self.outgoing.pop(connection_id, None)
        if peer is not None:
            peer.socket.close()


class PeerSocket:
    """Connection that a broker began; the other broker sees it as it sees a client's."""

    def __init__(
        self,
        network: SimulatedNetwork,
        transport: SimulatedTransport,
        connection_id: int,
        other: SimulatedNetwork,
        peer: str,
    ) -> None:
        self._network = network
        self._transport = transport
        self._id = connection_id
        self._peer = peer
        self.socket = other.connect(self, origin=network)

    def on_connected(self) -> None:
        self._tell(connected_to(self._id, self._peer))

    def on_received(self, data: bytes) -> None:
        self._tell(received(self._id, data))

    def on_closed(self) -> None:
        self._tell(disconnected(self._id, "the other broker closed the connection"))
        self._transport.outgoing.pop(self._id, None)

    def send(self, chunks: list[Chunk]) -> None:
        """Send requests to another broker; no chunk is a region of a file."""
        parts: list[bytes] = []
        for chunk in chunks:
            assert not isinstance(chunk, FileRegion)
            parts.append(bytes(chunk))
        self.socket.send(b"".join(parts))

    def _tell(self, event: Event) -> None:
        # The life that began the connection may be over, or may have closed the connection.
        if self._id in self._transport.outgoing:
            self._network.tell_life(self._transport, event)


class SimulatedNetwork:
    """Connections between the clients and the lives of the broker."""

    def __init__(self, clock: SimulatedClock, random: Random) -> None:
        self.clock = clock
        self.conditions = Conditions()
        self.is_accepting = False
        self.is_stopping = False
        # The turn of the broker that runs, or ran last.
        self.turn = 0
        # For each turn, the time for which the broker's process had run when the turn began, in ms.
        self.turn_times_ms = [clock.alive_ms]
        # Count of fetch answers that are still to be damaged, and count of those that were.
        self.damages_due = 0
        self.damages = 0
        # All networks of the world by address, this one included.
        self.others: dict[tuple[str, int], SimulatedNetwork] = {}
        # Brokers from which nothing arrives here: the link is cut in this direction.
        self.deaf_to: set[SimulatedNetwork] = set()
        self._random = random
        self._transport: SimulatedTransport | None = None
        self._inbox: list[Event] = []
        self._connection_id = 0

    # --- The clients.

    def connect(
        self,
        peer: SocketOwner,
        listener: str = "PLAINTEXT",
        origin: SimulatedNetwork | None = None,
    ) -> ClientSocket:
        """Begin a connection; `peer.on_connected` or `peer.on_closed` reports its outcome."""
        socket = ClientSocket(self, peer, listener, origin)
        self.plan(0, socket.arrive)
        return socket

    # --- The world.

    def new_transport(self) -> SimulatedTransport:
        """Return the door for a broker that starts."""
        assert self._transport is None
        self._transport = SimulatedTransport(self)
        return self._transport

    def take_events(self) -> list[Event]:
        """Begin the next turn of the broker and return its events."""
        self.turn += 1
        self.turn_times_ms.append(self.clock.alive_ms)
        events = self._inbox
        self._inbox = []
        return events

    def waited_ms(self, exchange: ObservedExchange) -> int:
        """Return the running broker's time from reading a request to answering it, in ms."""
        times = self.turn_times_ms
        return times[exchange.answered_turn] - times[exchange.delivered_turn]

    def has_events(self) -> bool:
        return bool(self._inbox)

    def sockets(self) -> list[ClientSocket]:
        """Return the connections that the broker has, oldest first."""
        return [] if self._transport is None else list(self._transport.sockets.values())

    def lose_broker(self) -> None:
        """Lose the broker's process with all its connections."""
        self.is_accepting = False
        self.is_stopping = False
        self._inbox.clear()
        for socket in self.sockets():
            socket.broker_dies(self._random)
        transport, self._transport = self._transport, None
        if transport is not None:
            for peer in transport.outgoing.values():
                peer.socket.close()
            transport.outgoing.clear()

    # --- For `ClientSocket` and `SimulatedTransport`.

    def tell_broker(self, event: Event) -> None:
        if self._transport is not None:
            self._inbox.append(event)

    def tell_life(self, transport: SimulatedTransport, event: Event) -> None:
        """Give an event to the broker, if the life that has this door still runs."""
        if self._transport is transport:
            self._inbox.append(event)

    def next_connection_id(self) -> int:
        self._connection_id += 1
        return self._connection_id

    def accept(self, socket: ClientSocket) -> int:
        """Accept a connection and return its id, or 0 if no broker listens."""
        if self._transport is None or not self.is_accepting:
            return 0
        connection_id = self.next_connection_id()
        self._transport.sockets[connection_id] = socket
        self._inbox.append(connected(connection_id, socket.listener, f"10.0.0.1:{connection_id}"))
        return connection_id

    def forget(self, socket: ClientSocket) -> None:
        if self._transport is not None:
            self._transport.sockets.pop(socket.connection_id, None)

    def maybe_damage(self, data: bytes) -> bytes:
        """Return `data`, with a bit flipped under the CRC of its first batch if damage is due."""
        if self.damages_due == 0 or len(data) <= HEADER_SIZE:
            return data
        self.damages_due -= 1
        self.damages += 1
        header = decode_batch_header(data, 0)
        end = min(header.size, len(data))
        position = CRC + self._random.randrange(end - CRC)
        damaged = bytearray(data)
        damaged[position] ^= 1 << self._random.randrange(8)
        return bytes(damaged)

    def plan(self, not_before_ms: int, action: Action) -> int:
        """Plan an action of one direction of a connection, after the actions planned before."""
        delay_ms_max = self.conditions.delay_ms_max
        due_ms = self.clock.now_ms + self._random.randrange(delay_ms_max + 1)
        due_ms = max(due_ms, not_before_ms)
        self.clock.after(due_ms - self.clock.now_ms, action)
        return due_ms

    def pieces(self, data: bytes) -> list[bytes]:
        """Cut a stream at random places, sometimes."""
        if len(data) < 2 or self._random.randrange(1000) >= self.conditions.pieces_per_mille:
            return [data]
        cuts = sorted(1 + self._random.randrange(len(data) - 1) for _ in range(3))
        edges = [0, *cuts, len(data)]
        return [data[start:end] for start, end in itertools.pairwise(edges) if end > start]
