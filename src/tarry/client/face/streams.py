"""Streams: the sockets of one client, which never block; they perform what the core asks for.

A subclass waits for the sockets, with a selector or an event loop: it is told which to watch, and
calls `happened`.  Events are kept in `events` until the next turn takes them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from collections import deque
from collections.abc import Sequence
from typing import Final

from tarry.base.doors import connected_to, disconnected, received
from tarry.client.core.operation import Notice
from tarry.client.face.forks import DESCRIPTORS
from tarry.client.settings import ClientSettings
from tarry.link.events import Address, Close, Connect, LinkEvent, Output, Resolve, Resolved, Send

# Size of one read: a fetch answer of 1 MiB takes four reads, and small answers waste no memory.
READ_BYTES: Final = 256 * 1024

# Number of buffers in one gathered write, far below every system's IOV_MAX.
GATHER_MAX: Final = 64

PORT_MAX: Final = 65_535

# Interests of a socket; the same bits as those of `selectors`.
READING: Final = 1
WRITING: Final = 2


class Stream:
    """Stream of one socket, with the bytes that the socket has not taken yet."""

    __slots__ = ("connection_id", "handle", "interest", "is_connecting", "unsent")

    def __init__(self, connection_id: int, handle: socket.socket) -> None:
        self.connection_id = connection_id
        self.handle = handle
        self.is_connecting = True
        self.unsent: deque[memoryview] = deque()
        # Interest for which the socket is watched.
        self.interest = 0


class Streams:
    """The connections of one client, by the ids that its core has given."""

    def __init__(self, settings: ClientSettings) -> None:
        self.events: list[LinkEvent] = []
        self.is_closed = False
        self._settings = settings
        self._streams: dict[int, Stream] = {}

    # --- Defined by subclasses

    def watch(self, stream: Stream, interest: int) -> None:
        """Watch a socket for this interest instead of `stream.interest`; 0 stops watching it."""
        raise NotImplementedError

    def look_up(self, output: Resolve) -> None:
        """Look a host name up without blocking; the answer becomes an event `Resolved`."""
        raise NotImplementedError

    # --- Outputs

    def perform(self, outputs: Sequence[Output | Notice]) -> None:
        """Do what the core asks for; failures become events of the next turn."""
        if self.is_closed:
            return
        for output in outputs:
            if isinstance(output, Send):
                self._send(output)
            elif isinstance(output, Connect):
                self._connect(output.connection_id, output.address)
            elif isinstance(output, Resolve):
                self._resolve(output)
            elif isinstance(output, Close):
                self.drop(output.connection_id)

    def _resolve(self, output: Resolve) -> None:
        flaw = address_flaw(output.address)
        if flaw:
            self.events.append(Resolved(output.connection_id, [], flaw))
        elif is_numeric(output.address.host):
            self.events.append(Resolved(output.connection_id, [output.address]))
        else:
            self.look_up(output)

    def _connect(self, connection_id: int, address: Address) -> None:
        self.drop(connection_id)
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        with DESCRIPTORS:
            try:
                handle = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                self.events.append(disconnected(connection_id, sentence_of(error.errno)))
                return
            # The stream is noted before the socket is used, so that a forked child finds its copy.
            stream = Stream(connection_id, handle)
            self._streams[connection_id] = stream
        handle.setblocking(False)
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._set_buffer(handle, socket.SO_SNDBUF, self._settings.send_buffer_bytes)
        self._set_buffer(handle, socket.SO_RCVBUF, self._settings.receive_buffer_bytes)
        code = handle.connect_ex((address.host, address.port))
        if code in (0, errno.EINPROGRESS):
            self._set_interest(stream)
        else:
            self._lose(stream, sentence_of(code))

    @staticmethod
    def _set_buffer(handle: socket.socket, option: int, size: int) -> None:
        if size > 0:
            handle.setsockopt(socket.SOL_SOCKET, option, size)

    def _send(self, output: Send) -> None:
        stream = self._streams.get(output.connection_id)
        if stream is None:
            return
        stream.unsent.append(memoryview(output.data))
        if len(stream.unsent) == 1 and not stream.is_connecting:
            self._write(stream)

    def _write(self, stream: Stream) -> None:
        """Give the kernel what it takes; watch for room if some is left."""
        while stream.unsent:
            pieces = [stream.unsent[place] for place in range(min(len(stream.unsent), GATHER_MAX))]
            try:
                taken = stream.handle.sendmsg(pieces)
            except BlockingIOError:
                break
            except OSError as error:
                self._lose(stream, sentence_of(error.errno))
                return
            while taken > 0:
                piece = stream.unsent[0]
                if taken < len(piece):
                    stream.unsent[0] = piece[taken:]
                    break
                taken -= len(piece)
                stream.unsent.popleft()
        self._set_interest(stream)

    def _set_interest(self, stream: Stream) -> None:
        interest = WRITING if stream.is_connecting else READING
        if stream.unsent:
            interest |= WRITING
        if interest != stream.interest:
            self.watch(stream, interest)
            stream.interest = interest

    # --- Events

    def take_events(self) -> list[LinkEvent]:
        """Return the events since the last turn."""
        events = self.events
        self.events = []
        return events

    def happened(self, stream: Stream, mask: int) -> None:
        """Read, write or finish connecting, because the socket is ready for it."""
        if stream.is_connecting:
            self._finish_connecting(stream)
            return
        if mask & READING:
            self._read(stream)
        if mask & WRITING and stream.connection_id in self._streams:
            self._write(stream)

    def _finish_connecting(self, stream: Stream) -> None:
        code = stream.handle.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code != 0:
            self._lose(stream, sentence_of(code))
            return
        stream.is_connecting = False
        self._set_interest(stream)
        self.events.append(connected_to(stream.connection_id, ""))

    def _read(self, stream: Stream) -> None:
        try:
            data = stream.handle.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(stream, sentence_of(error.errno))
            return
        if data:
            self.events.append(received(stream.connection_id, data))
        else:
            self._lose(stream, "the broker closed the connection")

    def _lose(self, stream: Stream, error: str) -> None:
        self.drop(stream.connection_id)
        self.events.append(disconnected(stream.connection_id, error))

    def drop(self, connection_id: int) -> None:
        """Close a connection, if it exists."""
        stream = self._streams.get(connection_id)
        if stream is None:
            return
        if stream.interest:
            self.watch(stream, 0)
        with DESCRIPTORS:
            del self._streams[connection_id]
            stream.handle.close()

    def disown(self) -> None:
        """Close the descriptors of a forked child, which ends no connection of the parent.  The
        selector is shared with the parent, so it is not changed."""
        self.is_closed = True
        for stream in self._streams.values():
            # `close` would not do: some event loops delay it until the socket is no longer watched.
            os.close(stream.handle.detach())
        self._streams.clear()

    def close(self) -> None:
        """Close all connections."""
        self.is_closed = True
        for connection_id in list(self._streams):
            self.drop(connection_id)


def address_flaw(address: Address) -> str:
    """Return why no system can connect to an address, which a broker may have given; "" if one
    can."""
    if not 0 < address.port <= PORT_MAX:
        return f"{address.port} is no port, which is a number from 1 to {PORT_MAX}"
    if "\0" in address.host:
        return f"{address.host!r:.60} is no name of a host"
    return ""


def is_numeric(host: str) -> bool:
    """Return true if the host is a numeric address."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return True
    return False


def addresses_of(rows: Sequence[tuple[object, ...]], port: int) -> list[Address]:
    """Return the addresses that `getaddrinfo` has found, without repetitions."""
    found: list[Address] = []
    for row in rows:
        place = row[4]
        assert isinstance(place, tuple)
        address = Address(str(place[0]), port)
        if address not in found:
            found.append(address)
    return found


def lookup_flaw(host: str, error: OSError | UnicodeError) -> str:
    """Return why a name could not be looked up."""
    if isinstance(error, UnicodeError):
        return f"{host} is no name of a host"
    return f"the name {host} is not known ({error.strerror or error})"


def sentence_of(code: int | None) -> str:
    """Return the system's words for an error of a socket."""
    return os.strerror(code).lower() if code else "the connection failed"
