"""Connection to an endpoint of etcd, non-blocking: TCP, optionally TLS, and gRPC on top."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable
from typing import Final

import msgspec

from tarry.base.doors import Event
from tarry.base.listeners import host_and_port
from tarry.runtime.etcd.grpc_link import CallEnded, CallMessage, GrpcLink, LinkBroken
from tarry.runtime.poller import READABLE, WRITABLE
from tarry.runtime.reactor import Reactor
from tarry.runtime.refusal import reason_of

# Bytes read in one turn: as empty frames of 9 bytes they take h2 25 ms.
_RECEIVE_BYTES: Final = 32 * 1024


class Endpoint(msgspec.Struct, frozen=True):
    """Address of one member of etcd, as the setting names it."""

    host: str
    port: int

    @property
    def text(self) -> str:
        """Address as host:port."""
        return host_and_port(self.host, self.port)


class SocketLink:
    """Source of the reactor; `heard` gets received messages, `lost` the reason of the end."""

    def __init__(
        self,
        endpoint: Endpoint,
        address: tuple[str, int],
        reactor: Reactor,
        tls: ssl.SSLContext | None,
        heard: Callable[[list[CallMessage | CallEnded]], None],
        lost: Callable[[str], None],
    ) -> None:
        self.endpoint = endpoint
        self.grpc = GrpcLink(endpoint.text, "http" if tls is None else "https")
        # Bytes received in all, by which a cancel finds out that the peer is silent.
        self.received_bytes = 0
        # False until a byte of a call was sent: the connection, or TLS, is still being made.
        self.has_sent = False
        self._reactor = reactor
        self._heard = heard
        self._lost = lost
        self._outbox = bytearray()
        self._is_connecting = True
        self._is_closed = False
        self._socket, error_number = _begin_to_connect(address)
        self._mask = WRITABLE
        reactor.add(self._socket.fileno(), WRITABLE, self)
        self._tls: ssl.SSLObject | None = None
        if tls is not None:
            self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = tls.wrap_bio(self._incoming, self._outgoing, server_hostname=endpoint.host)
        self._is_shaking_hands = tls is not None
        # Bytes of gRPC that wait for the connection, and for TLS if it is used.
        self._plain = bytearray()
        self.first_error = (
            "" if error_number in (0, errno.EINPROGRESS) else os.strerror(error_number)
        )

    def flush(self) -> None:
        """Send gRPC's bytes, as many as the kernel accepts."""
        self._plain += self.grpc.take()
        if self._is_connecting or self._is_closed:
            return
        self._seal()
        self._send()

    def close(self) -> None:
        """Close at once; `lost` is not called."""
        if not self._is_closed:
            self._is_closed = True
            self._reactor.remove(self._socket.fileno())
            self._socket.close()

    def ready(self, mask: int, events: list[Event]) -> None:
        """Continue with reading or writing, whichever the socket is ready for."""
        if self._is_connecting:
            error_number = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if error_number:
                self._break(os.strerror(error_number))
                return
            self._is_connecting = False
            self.flush()
            return
        if mask & ~WRITABLE:
            self._receive()
        if mask & WRITABLE and not self._is_closed:
            self._send()

    def _receive(self) -> None:
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._break(reason_of(error))
            return
        if not data:
            self._break("the member has closed the connection")
            return
        self.received_bytes += len(data)
        try:
            found = self.grpc.receive(self._open(data))
        except LinkBroken as error:
            self._break(str(error))
            return
        except ssl.SSLCertVerificationError as error:
            self._break(
                f"its certificate is not accepted ({error.verify_message}): name who has signed it "
                "in metadata.store.ssl.ca.location"
            )
            return
        except ssl.SSLError as error:
            self._break(f"TLS: {error.reason or error}")
            return
        self._heard(found)
        if not self._is_closed:
            self.flush()

    def _open(self, data: bytes) -> bytes:
        """Return the content of the complete TLS records."""
        tls = self._tls
        if tls is None:
            return data
        self._incoming.write(data)
        self._shake_hands(tls)
        plain = b""
        while not self._is_shaking_hands:
            try:
                part = tls.read(_RECEIVE_BYTES)
            except ssl.SSLWantReadError:
                break
            if not part:
                break
            plain += part
        return plain

    def _seal(self) -> None:
        """Move bytes to the outbox, inside TLS records if TLS is used."""
        tls = self._tls
        if tls is None:
            self._outbox += self._plain
            self._plain.clear()
            self.has_sent = True
            return
        self._shake_hands(tls)
        if not self._is_shaking_hands and self._plain:
            tls.write(self._plain)
            self._plain.clear()
            self.has_sent = True
        self._outbox += self._outgoing.read()

    def _shake_hands(self, tls: ssl.SSLObject) -> None:
        if self._is_shaking_hands:
            try:
                tls.do_handshake()
                self._is_shaking_hands = False
            except ssl.SSLWantReadError:
                pass

    def _send(self) -> None:
        try:
            while self._outbox:
                del self._outbox[: self._socket.send(self._outbox)]
        except BlockingIOError:
            pass
        except OSError as error:
            self._break(reason_of(error))
            return
        mask = READABLE | (WRITABLE if self._outbox else 0)
        if mask != self._mask:
            self._mask = mask
            self._reactor.change(self._socket.fileno(), mask)

    def _break(self, reason: str) -> None:
        self.close()
        self._lost(f"{self.endpoint.text}: {reason}")


def _begin_to_connect(address: tuple[str, int]) -> tuple[socket.socket, int]:
    """Return a socket that is connecting, and the error number or 0."""
    found = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    family, _, _, _, where = found[0]
    one = socket.socket(family, socket.SOCK_STREAM)
    one.setblocking(False)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one, one.connect_ex(where)
