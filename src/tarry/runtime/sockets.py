"""The door `Transport` over TCP sockets, none of which ever blocks.

Connection ids are never used twice.  This module limits the number of connections, in all and from
one address: a connection over the limit is closed before the broker learns of it.
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

# Time that the peer of an ending connection has to take sent bytes.
END_MS_MAX: Final = 1_000

# Time between two sweeps of a restless transport.
SWEEP_MS: Final = 100


class OsTransport:
    """Transport of the operating system, with all connections of one broker."""

    def __init__(
        self,
        reactor: Reactor,
        settings: Settings,
        connections_max: int,
        look_ups: LookUps | None = None,
    ) -> None:
        self._reactor = reactor
        self._look_ups = look_ups
        # Outgoing connections that wait for a name's look-up; and for each connecting one the
        # addresses to try next.
        self._resolving: dict[int, None] = {}
        self._further: dict[int, list[SocketAddress]] = {}
        self._settings = settings
        self._connections_max = connections_max
        self._rate = ConnectionRate(settings, clock.now_ms())
        self._acceptors: list[Acceptor] = []
        self._peers: dict[int, Peer] = {}
        # Ending peers, in the order of their deadlines, which all lie equally far ahead.
        self._ending: deque[Peer] = deque()
        self._last_id = 0
        self._count = 0
        self._count_by_host: dict[str, int] = {}
        self._faults = RepeatedFaults(logger)
        # True if `sweep` has work at a time, even if no descriptor becomes ready.
        self.is_restless = False

    # --- Listening.

    def bind(self) -> None:
        """Bind the addresses of all listeners; no client can connect yet."""
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
        """Listen, so that connections are accepted."""
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
        """Continue a connection whose name was looked up, unless it was given up."""
        if connection_id not in self._resolving:
            return
        del self._resolving[connection_id]
        if addresses:
            self._connect_to(connection_id, host, addresses)
        else:
            self._reactor.post(disconnected(connection_id, f"{host}: {error or 'no address'}"))

    def _connect_to(self, connection_id: int, host: str, addresses: list[SocketAddress]) -> None:
        """Connect to the first of these addresses that can be tried."""
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
            # Bytes already wait for the peer, so a send would not succeed.
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
            # Nothing was sent, so the peer need not read anything before the end.
            self._on_gone(peer)
            return
        self._ending.append(peer)
        self.is_restless = True
        peer.end(clock.now_ms() + END_MS_MAX)

    # --- Calls of the loop.

    @property
    def count(self) -> int:
        """Number of connections with open sockets, ending ones included."""
        return self._count

    def sweep(self, now_ms: int) -> None:
        """Close connections that did not end in time; resume accepting; sum up refusals.

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
        """Close this process's copies of all sockets; the parent of the fork keeps its own."""
        for acceptor in self._acceptors:
            acceptor.socket.close()
        for peer in [*self._peers.values(), *self._ending]:
            peer.socket.close()

    # --- Reports of acceptors and peers.

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
            # The peer has gone while it was accepted.
            one.close()
            return
        peer = self._add(self._next_id(), one, counted)
        peer.accept()
        events.append(connected(peer.id, listener, host_and_port(host, port)))

    def _fault_of_one_more(self, host: str) -> str:
        # Read the setting each time: max.connections may change while the broker runs.
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
