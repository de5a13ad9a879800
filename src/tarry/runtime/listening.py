"""Listening sockets: bound before the broker is made, so that a taken port is known at once.

They listen when the broker is ready; `Acceptor` accepts connections, a bounded number in a turn.
"""

from __future__ import annotations

import errno
import logging
import socket
from typing import Final, Protocol

from tarry.base.doors import Event
from tarry.base.listeners import BrokerListener, host_and_port
from tarry.base.settings import Settings
from tarry.runtime import clock
from tarry.runtime.connection_rate import ConnectionRate
from tarry.runtime.poller import READABLE
from tarry.runtime.reactor import Reactor
from tarry.runtime.refusal import StartRefused, reason_of

logger = logging.getLogger("tarry.runtime")

# Connections accepted in one turn from one listener, so that many do not hold up other work.
ACCEPTS_PER_TURN_MAX: Final = 64

# Pause after a lack of descriptors or memory: the listener stays readable, and would cause a spin.
ACCEPT_PAUSE_MS: Final = 500

# Errors of peers that gave up before they were accepted, and of the network, as Linux reports them.
_PEER_GONE: Final = (
    errno.ECONNABORTED,
    errno.EPROTO,
    errno.ENETDOWN,
    errno.EHOSTDOWN,
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EPERM,
)


class AcceptorOwner(Protocol):
    """Owner of an acceptor, to which connections are reported."""

    def on_accepted(
        self, one: socket.socket, listener: str, host: str, port: int, events: list[Event]
    ) -> None: ...

    def on_accept_paused(self) -> None: ...


class Acceptor:
    """Acceptor of one listening socket, a source of the reactor."""

    def __init__(
        self,
        listener: str,
        listening: socket.socket,
        reactor: Reactor,
        owner: AcceptorOwner,
        rate: ConnectionRate,
    ) -> None:
        self.listener = listener
        self.socket = listening
        self._reactor = reactor
        self._owner = owner
        self._rate = rate
        # Time at which accepting resumes after a pause; -1 if it is not paused.
        self.resume_ms = -1

    def start(self, backlog: int) -> None:
        """Listen, so that connections are accepted."""
        try:
            self.socket.listen(backlog)
        except OSError as error:
            host, port = self.socket.getsockname()[:2]
            raise _refusal(self.listener, host, port, error) from None
        self._reactor.add(self.socket.fileno(), READABLE, self)

    def ready(self, mask: int, events: list[Event]) -> None:
        rate = self._rate if self._rate.applies_to(self.listener) else None
        accepts_max = ACCEPTS_PER_TURN_MAX
        if rate is not None:
            now_ms = clock.now_ms()
            accepts_max = min(rate.room(now_ms), accepts_max)
            if accepts_max == 0:
                self._pause(rate.wait_ms(now_ms))
                return
        for _ in range(accepts_max):
            try:
                peer, address = self.socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _PEER_GONE:
                    continue
                self._pause_for(error)
                return
            if rate is not None:
                rate.spend()
            self._owner.on_accepted(peer, self.listener, plain_host(address[0]), address[1], events)

    def resume(self) -> None:
        """Resume after a pause."""
        self.resume_ms = -1
        self._reactor.change(self.socket.fileno(), READABLE)

    def close(self) -> None:
        """Close the socket: connections in the backlog are refused."""
        if self.socket.fileno() >= 0:
            if self._reactor.has(self.socket.fileno()):
                self._reactor.remove(self.socket.fileno())
            self.socket.close()

    def _pause_for(self, error: OSError) -> None:
        logger.error(
            "listener %s cannot accept connections: %s; it tries again in %d ms",
            self.listener,
            reason_of(error),
            ACCEPT_PAUSE_MS,
        )
        self._pause(ACCEPT_PAUSE_MS)

    def _pause(self, pause_ms: int) -> None:
        self.resume_ms = clock.now_ms() + pause_ms
        self._reactor.change(self.socket.fileno(), 0)
        self._owner.on_accept_paused()


def plain_host(host: str) -> str:
    """Return the plain IPv4 address of an IPv4 peer of an IPv6 socket."""
    return host[7:] if host.startswith("::ffff:") and "." in host else host


def tune(one: socket.socket, settings: Settings) -> None:
    """Set the options of a connection; connections inherit those of their listening socket."""
    one.setblocking(False)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if settings.socket_send_buffer_bytes >= 0:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, settings.socket_send_buffer_bytes)
    if settings.socket_receive_buffer_bytes >= 0:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, settings.socket_receive_buffer_bytes)


def bind_listener(listener: BrokerListener, settings: Settings) -> list[socket.socket]:
    """Bind the sockets of a listener: one for each address of its host name.

    Clients that connect to "localhost" may try either of its addresses.
    """
    bound: list[socket.socket] = []
    try:
        for family, host in _addresses(listener):
            try:
                bound.append(_bind(family, host, listener.port, settings))
            except OSError as error:
                is_absent = error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
                if bound and is_absent:
                    continue
                raise _refusal(listener.name, host, listener.port, error) from None
            if listener.port == 0:
                listener.bound(bound[0].getsockname()[1])
    except StartRefused:
        for one in bound:
            one.close()
        raise
    return bound


def _addresses(listener: BrokerListener) -> list[tuple[int, str]]:
    if listener.host in ("", "::"):
        if listener.host == "::" or _has_ipv6():
            return [(socket.AF_INET6, "::")]
        return [(socket.AF_INET, "0.0.0.0")]
    try:
        found = socket.getaddrinfo(listener.host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise StartRefused(
            f"listener {listener.name}: the name {listener.host} has no address: "
            f"{reason_of(error)}; write an address of this machine into listeners"
        ) from None
    # Each address once, in the system's order; a numeric host is its own only result.
    return list(dict.fromkeys((int(row[0]), str(row[4][0])) for row in found))


def _has_ipv6() -> bool:
    """Return True if this machine has IPv6; containers often lack it, though Python has it."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


def _bind(family: int, host: str, port: int, settings: Settings) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        tune(one, settings)
        # Allow a port whose last connections are still in TIME_WAIT.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # "::" accepts IPv4 as well, as in Java; any other address is IPv6 only.
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if host == "::" else 1)
        address = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0][4]
        one.bind(address)
    except OSError:
        one.close()
        raise
    return one


def _refusal(name: str, host: str, port: int, error: OSError) -> StartRefused:
    address = host_and_port(host, port)
    if error.errno == errno.EADDRINUSE:
        return StartRefused(
            f"listener {name}: the address {address} is taken by another program; stop it, or "
            f"write another port, as in listeners={name}://{host_and_port(host, port + 1)}"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return StartRefused(
            f"listener {name}: {host} is no address of this machine; write one that is into "
            "listeners, and the one that clients know into advertised.listeners"
        )
    return StartRefused(f"listener {name}: {address} cannot be opened: {reason_of(error)}")
