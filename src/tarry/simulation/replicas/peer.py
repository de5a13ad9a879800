"""Peer node: a broker of the cluster, as far as a consumer sees it."""

from __future__ import annotations

from collections import deque

from tarry.base.doors import CONNECTED, DISCONNECTED, RECEIVED
from tarry.link.frames import FrameSplitter
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_response
from tarry.protocol.headers import RequestHeader, decode_request_header
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import FetchRequest
from tarry.protocol.registry import MESSAGES
from tarry.simulation.network import SimulatedNetwork, SimulatedTransport
from tarry.simulation.replicas.answers import PeerAnswers
from tarry.simulation.replicas.cluster import PeerCluster
from tarry.simulation.world import NEVER_MS, World
from tarry.wire.reader import Reader


class PeerRequest:
    """Request that a peer has not answered yet."""

    def __init__(self, header: RequestHeader, message: Message, deadline_ms: int) -> None:
        self.header = header
        self.message = message
        # Time until which a fetch without records waits.
        self.deadline_ms = deadline_ms


class PeerConnection:
    """Connection of a client; its requests are answered in their order."""

    def __init__(self) -> None:
        self.splitter = FrameSplitter()
        self.requests: deque[PeerRequest] = deque()


class PeerNode:
    """Process of one peer, which may be down for a while."""

    def __init__(self, world: World, cluster: PeerCluster, peer_id: int) -> None:
        self.clock = world.agenda.new_clock()
        self.network = SimulatedNetwork(self.clock, world.random)
        self._answers = PeerAnswers(cluster, peer_id)
        self._transport: SimulatedTransport | None = None
        self._connections: dict[int, PeerConnection] = {}
        self._due_ms = NEVER_MS
        world.networks[cluster.addresses[peer_id]] = self.network
        world.add(self)
        self.start()

    def start(self) -> None:
        """Begin to listen, if the process is down."""
        if self._transport is None:
            self._transport = self.network.new_transport()
            self.network.is_accepting = True

    def stop(self) -> None:
        """Lose the process with its connections."""
        self._transport = None
        self._connections.clear()
        self._due_ms = NEVER_MS
        self.network.lose_broker()

    def wake(self) -> None:
        """Look at the fetches that wait."""
        self._due_ms = self.clock.now_ms

    def due_ms(self) -> int:
        """Return when the next turn is due, in ms."""
        if self._transport is None:
            return NEVER_MS
        return self.clock.now_ms if self.network.has_events() else self._due_ms

    def turn(self) -> None:
        """Take what came, and answer what can be answered."""
        for event in self.network.take_events():
            if event.kind == CONNECTED:
                self._connections[event.connection_id] = PeerConnection()
            elif event.kind == DISCONNECTED:
                self._connections.pop(event.connection_id, None)
            elif event.kind == RECEIVED and event.connection_id in self._connections:
                self._take(self._connections[event.connection_id], event.data)
        self._due_ms = NEVER_MS
        for connection_id, connection in self._connections.items():
            self._answer(connection_id, connection)

    def _take(self, connection: PeerConnection, data: bytes) -> None:
        """Take the requests that are whole now."""
        for frame in connection.splitter.feed(data):
            reader = Reader(frame)
            header = decode_request_header(reader)
            message = MESSAGES[header.api_key].decode_request(reader, header.api_version)
            reader.expect_end()
            wait_ms = message.max_wait_ms if isinstance(message, FetchRequest) else 0
            request = PeerRequest(header, message, self.clock.now_ms + wait_ms)
            connection.requests.append(request)

    def _answer(self, connection_id: int, connection: PeerConnection) -> None:
        """Answer the requests of a connection, up to a fetch that waits."""
        requests = connection.requests
        assert self._transport is not None
        while requests:
            request = requests[0]
            header = request.header
            is_late = self.clock.now_ms >= request.deadline_ms
            answer = self._answers.to(header.api_key, header.api_version, request.message)
            if header.api_key == api_keys.FETCH and self._answers.is_bare and not is_late:
                self._due_ms = min(self._due_ms, request.deadline_ms)
                return
            requests.popleft()
            chunks = encode_response(
                header.api_key, header.api_version, header.correlation_id, answer
            )
            self._transport.send(connection_id, chunks)
