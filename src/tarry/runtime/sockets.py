"""The door `Transport` over TCP sockets, none of which ever blocks.

Connections have ids that are never used twice.  How many there may be, in all and from one
address, is kept here: a connection over the limit is closed before the broker hears of it.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections import deque
from functools import partial
from typing import Final

from tarry.base.doors import Chunk, Event, connected, disconnected
from tarry.base.hosts import counted_host
from tarry.base.listeners import host_and_port
from tarry.base.repeated import RepeatedFaults
from tarry.base.settings import Settings
from tarry.runtime import clock
from tarry.runtime.connection_rate import ConnectionRate
from tarry.runtime.listening import Acceptor, bind_listener, tune
from tarry.runtime.look_ups import LookUps, SocketAddress, numeric_addresses
from tarry.runtime.peer import Peer
from tarry.runtime.reactor import Reactor
from tarry.runtime.refusal import StartRefused, reason_of

logger = logging.getLogger("tarry.runtime")

# A connection that ends gives its peer so long to take what was sent.
END_MS_MAX: Final = 1_000

# How often a restless transport is swept.
SWEEP_MS: Final = 100


class OsTransport:
    """Transport of the operating system: all connections of one broker."""

    def __init__(
        self,
        reactor: Reactor,
        settings: Settings,
        connections_max: int,
        look_ups: LookUps | None = None,
    ) -> None:
        self._reactor = reactor
        self._look_ups = look_ups
        # Outgoing connections that wait for the look-up of a name, and the addresses that are left
        # to be tried while one is being connected.
        self._resolving: dict[int, None] = {}
        self._further: dict[int, list[SocketAddress]] = {}
        self._settings = settings
        self._connections_max = connections_max
        self._rate = ConnectionRate(settings, clock.now_ms())
        self._acceptors: list[Acceptor] = []
        self._peers: dict[int, Peer] = {}
        # In order of their deadlines, which all lie the same time ahead.
        self._ending: deque[Peer] = deque()
        self._last_id = 0
        self._count = 0
        self._count_by_host: dict[str, int] = {}
        self._faults = RepeatedFaults(logger)
        # Something must be done in time though no descriptor becomes ready.
        self.is_restless = False

    # --- Listening.

    def bind(self) -> None:
        """Take the addresses of all listeners; nobody can connect yet."""
        try:
            for listener in self._settings.open_listeners:
                for one in bind_listener(listener, self._settings):
                    self._acceptors.append(
                        Acceptor(listener.name, one, self._reactor, self, self._rate)
                    )
        except StartRefused:
            self.stop_listening()
            raise

    def listen(self) -> None:
        """Let connections in."""
        try:
            for acceptor in self._acceptors:
                acceptor.start(self._settings.socket_listen_backlog_size)
        except StartRefused:
            self.stop_listening()
            raise

    def stop_listening(self) -> None:
        for acceptor in self._acceptors:
            acceptor.close()
        self._acceptors = []

    # --- The door.

    def connect(self, host: str, port: int) -> int:
        connection_id = self._next_id()
        addresses = numeric_addresses(host, port)
        if addresses:
            self._connect_to(connection_id, host, addresses)
        elif self._look_ups is None:
            self._reactor.post(disconnected(connection_id, f"{host} is a name, not an address"))
        else:
            self._resolving[connection_id] = None
            self._look_ups.look_up(host, port, partial(self._on_found, connection_id, host))
        return connection_id

    def _on_found(
        self, connection_id: int, host: str, addresses: list[SocketAddress], error: str
    ) -> None:
        """Go on with a connection whose peer's name was looked up, unless it was given up."""
        if connection_id not in self._resolving:
            return
        del self._resolving[connection_id]
        if addresses:
            self._connect_to(connection_id, host, addresses)
        else:
            self._reactor.post(disconnected(connection_id, f"{host}: {error or 'no address'}"))

    def _connect_to(self, connection_id: int, host: str, addresses: list[SocketAddress]) -> None:
        """Begin to connect to the first of these addresses that can be tried."""
        error = ""
        for place, (family, address) in enumerate(addresses):
            try:
                one = socket.socket(family, socket.SOCK_STREAM)
            except OSError as failure:
                error = reason_of(failure)
                continue
            try:
                tune(one, self._settings)
                error_number = one.connect_ex(address)
            except OSError as failure:
                one.close()
                error = reason_of(failure)
                continue
            if error_number not in (0, errno.EINPROGRESS):
                one.close()
                error = os.strerror(error_number)
                continue
            peer = self._add(connection_id, one, counted_host(host))
            peer.connect()
            self._further[connection_id] = addresses[place + 1 :]
            return
        self._reactor.post(disconnected(connection_id, error))

    def send(self, connection_id: int, chunks: list[Chunk]) -> int:
        peer = self._peers.get(connection_id)
        if peer is None:
            return 0
        outbox = peer.outbox
        if outbox.size:
            # Behind what waits for the peer there is nothing to try.
            outbox.add(chunks)
        elif len(chunks) == 1 and type(chunks[0]) is bytes:
            peer.send_bytes(chunks[0])
        else:
            outbox.add(chunks)
            peer.send()
        return outbox.size

    def pause_reading(self, connection_id: int) -> None:
        peer = self._peers.get(connection_id)
        if peer is not None:
            peer.pause_reading()

    def resume_reading(self, connection_id: int) -> None:
        peer = self._peers.get(connection_id)
        if peer is not None:
            peer.resume_reading()

    def close(self, connection_id: int) -> None:
        self._resolving.pop(connection_id, None)
        self._further.pop(connection_id, None)
        peer = self._peers.pop(connection_id, None)
        if peer is None:
            return
        if peer.is_connecting:
            # Nothing was sent, so the other side has nothing to read before the end.
            self._on_gone(peer)
            return
        self._ending.append(peer)
        self.is_restless = True
        peer.end(clock.now_ms() + END_MS_MAX)

    # --- The loop's.

    @property
    def count(self) -> int:
        """Connections whose sockets are open, ending ones too."""
        return self._count

    def sweep(self, now_ms: int) -> None:
        """Close what has not ended in time; accept again after a pause; sum up what was refused.

        Called at least every SWEEP_MS while `is_restless`.
        """
        while self._ending and self._ending[0].deadline_ms <= now_ms:
            self._on_gone(self._ending.popleft())
        is_paused = False
        for acceptor in self._acceptors:
            if 0 <= acceptor.resume_ms <= now_ms:
                acceptor.resume()
            is_paused = is_paused or acceptor.resume_ms >= 0
        self._faults.flush(now_ms)
        self.is_restless = is_paused or len(self._ending) > 0 or len(self._faults) > 0

    def close_all(self) -> None:
        """End every connection; `sweep` and `ready` do the rest until `count` is 0."""
        for connection_id in list(self._peers):
            self.close(connection_id)

    def abandon_all(self) -> None:
        """Close every socket at once."""
        self.stop_listening()
        for peer in [*self._peers.values(), *self._ending]:
            self._on_gone(peer)
        self._peers.clear()
        self._ending.clear()
        self._resolving.clear()
        self._further.clear()

    def disown(self) -> None:
        """Close this process's copies of all sockets: in the parent of a fork they go on."""
        for acceptor in self._acceptors:
            acceptor.socket.close()
        for peer in [*self._peers.values(), *self._ending]:
            peer.socket.close()

    # --- What acceptors and peers report.

    def on_accept_paused(self) -> None:
        self.is_restless = True

    def on_accepted(
        self, one: socket.socket, listener: str, host: str, port: int, events: list[Event]
    ) -> None:
        counted = counted_host(host)
        fault = self._fault_of_one_more(counted)
        if fault:
            self._faults.report(host_and_port(host, port), fault, clock.now_ms())
            self.is_restless = True
            one.close()
            return
        try:
            tune(one, self._settings)
        except OSError:
            # It went away while it was accepted.
            one.close()
            return
        peer = self._add(self._next_id(), one, counted)
        peer.accept()
        events.append(connected(peer.id, listener, host_and_port(host, port)))

    def _fault_of_one_more(self, host: str) -> str:
        # Read each time: max.connections may be changed while the broker runs.
        if self._count >= min(self._connections_max, self._settings.max_connections):
            return (
                f"refused: {self._count} connections are open, as many as max.connections and "
                "the process's file descriptors allow"
            )
        limit = self._settings.connections_max_by_ip.get(
            host, self._settings.max_connections_per_ip
        )
        if self._count_by_host.get(host, 0) >= limit:
            return f"refused: it has {limit} connections, the limit of one address"
        return ""

    def _on_lost(self, peer: Peer, error: str) -> None:
        del self._peers[peer.id]
        self._on_gone(peer)
        further = self._further.pop(peer.id, None)
        if further and peer.is_connecting:
            self._connect_to(peer.id, peer.host, further)
            return
        self._reactor.post(disconnected(peer.id, error))

    def _on_gone(self, peer: Peer) -> None:
        if peer.close():
            self._count -= 1
            left = self._count_by_host[peer.host] - 1
            if left:
                self._count_by_host[peer.host] = left
            else:
                del self._count_by_host[peer.host]

    def _add(self, connection_id: int, one: socket.socket, host: str) -> Peer:
        peer = Peer(connection_id, one, host, self._reactor, self._on_lost, self._on_gone)
        self._peers[connection_id] = peer
        self._count += 1
        self._count_by_host[host] = self._count_by_host.get(host, 0) + 1
        return peer

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id
