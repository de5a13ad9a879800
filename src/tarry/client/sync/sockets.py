"""Sockets of one client: performs what the core asks for, tells it what came.

Never blocks but in `wait`.  Only the thread that drives the client touches it, except `wake`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from tarry.base.doors import connected_to, disconnected, received
from tarry.client.core.operation import Notice
from tarry.client.settings import ClientSettings
from tarry.link.errors import ClientError
from tarry.link.events import Address, Close, Connect, LinkEvent, Output, Resolve, Resolved, Send

# One read: a fetch answer of 1 MiB takes four of them, small answers waste nothing.
READ_BYTES: Final = 256 * 1024

# Socket that can be read or written, with what it can.
Ready = tuple[selectors.SelectorKey, int]

# Buffers in one gathered write, far below every system's IOV_MAX.
GATHER_MAX: Final = 64


class _Stream:
    """Stream of one socket, with the bytes that the socket has not taken yet."""

    def __init__(self, connection_id: int, handle: socket.socket) -> None:
        self.connection_id = connection_id
        self.handle = handle
        self.is_connecting = True
        self.unsent: deque[memoryview] = deque()
        self.interest = selectors.EVENT_WRITE


class Sockets:
    """The connections of one client by the ids that its core gave."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        try:
            self._selector = selectors.DefaultSelector()
            self._wake_in, self._wake_out = socket.socketpair()
        except OSError as error:
            raise ClientError(
                f"the client cannot be made: {_sentence(error.errno)}; a client needs four file "
                "descriptors and one for each broker"
            ) from error
        self._is_closed = False
        self._streams: dict[int, _Stream] = {}
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector.register(self._wake_in, selectors.EVENT_READ, None)
        self._events: list[LinkEvent] = []
        self._resolved: deque[Resolved] = deque()

    # --- Outputs

    def perform(self, outputs: Sequence[Output | Notice]) -> None:
        """Do what the core asked for; failures come back as events of the next `take`."""
        if self._is_closed:
            return
        for output in outputs:
            if isinstance(output, Send):
                self._send(output)
            elif isinstance(output, Connect):
                self._connect(output.connection_id, output.address)
            elif isinstance(output, Resolve):
                self._resolve(output)
            elif isinstance(output, Close):
                self._drop(output.connection_id)

    def _resolve(self, output: Resolve) -> None:
        address = output.address
        if is_numeric(address.host):
            self._events.append(Resolved(output.connection_id, [address]))
            return
        # A look-up may take as long as the system likes, so it gets a thread of its own; the core
        # waits for it no longer than `socket.connection.setup.timeout.ms`.
        thread = threading.Thread(
            target=self._look_up,
            args=(output.connection_id, address),
            name=f"tarry-resolve-{address.host}",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError as error:
            reason = f"no thread can be started to look {address.host} up: {error}"
            self._events.append(Resolved(output.connection_id, [], reason))

    def _look_up(self, connection_id: int, address: Address) -> None:
        addresses: list[Address] = []
        error = ""
        try:
            for row in socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM):
                found = Address(str(row[4][0]), address.port)
                if found not in addresses:
                    addresses.append(found)
        except OSError as failure:
            error = f"the name {address.host} is not known ({failure.strerror or failure})"
        except UnicodeError:
            error = f"{address.host} is no name of a host"
        self._resolved.append(Resolved(connection_id, addresses, error))
        self.wake()

    def _connect(self, connection_id: int, address: Address) -> None:
        self._drop(connection_id)
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        try:
            handle = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            self._events.append(disconnected(connection_id, _sentence(error.errno)))
            return
        # Known before anything is done with it, so that a forked child finds its copy.
        stream = _Stream(connection_id, handle)
        self._streams[connection_id] = stream
        self._selector.register(handle, stream.interest, stream)
        handle.setblocking(False)
        handle.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._set_buffer(handle, socket.SO_SNDBUF, self._settings.send_buffer_bytes)
        self._set_buffer(handle, socket.SO_RCVBUF, self._settings.receive_buffer_bytes)
        code = handle.connect_ex((address.host, address.port))
        if code not in (0, errno.EINPROGRESS):
            self._lose(stream, _sentence(code))

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

    def _write(self, stream: _Stream) -> None:
        """Give the kernel what it takes; wait for room for the rest."""
        while stream.unsent:
            pieces = [stream.unsent[place] for place in range(min(len(stream.unsent), GATHER_MAX))]
            try:
                taken = stream.handle.sendmsg(pieces)
            except BlockingIOError:
                break
            except OSError as error:
                self._lose(stream, _sentence(error.errno))
                return
            while taken > 0:
                piece = stream.unsent[0]
                if taken < len(piece):
                    stream.unsent[0] = piece[taken:]
                    break
                taken -= len(piece)
                stream.unsent.popleft()
        self._set_interest(stream)

    def _set_interest(self, stream: _Stream) -> None:
        interest = selectors.EVENT_READ
        if stream.unsent:
            interest |= selectors.EVENT_WRITE
        if interest != stream.interest:
            stream.interest = interest
            self._selector.modify(stream.handle, interest, stream)

    # --- Events

    def wait(self, timeout_ms: int) -> list[Ready]:
        """Wait for something to happen, `timeout_ms` at most; whoever is interrupted here has lost
        nothing."""
        waits_ms = 0 if self._events or self._resolved else timeout_ms
        try:
            return self._selector.select(waits_ms / 1000)
        except (OSError, ValueError):
            # Closed meanwhile, in a handler of a signal that has forked too.
            if self._is_closed:
                return []
            raise

    def take(self, ready: Sequence[Ready]) -> list[LinkEvent]:
        """Read and write what `wait` has found possible; return what happened."""
        if self._is_closed:
            return []
        for key, mask in ready:
            if key.data is None:
                self._drain_wakes()
            else:
                self._happened(key.data, mask)
        while self._resolved:
            self._events.append(self._resolved.popleft())
        events = self._events
        self._events = []
        return events

    def _happened(self, stream: _Stream, mask: int) -> None:
        if stream.is_connecting:
            self._finish_connecting(stream)
            return
        if mask & selectors.EVENT_READ:
            self._read(stream)
        if mask & selectors.EVENT_WRITE and stream.connection_id in self._streams:
            self._write(stream)

    def _finish_connecting(self, stream: _Stream) -> None:
        code = stream.handle.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code != 0:
            self._lose(stream, _sentence(code))
            return
        stream.is_connecting = False
        self._set_interest(stream)
        self._events.append(connected_to(stream.connection_id, ""))

    def _read(self, stream: _Stream) -> None:
        try:
            data = stream.handle.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(stream, _sentence(error.errno))
            return
        if data:
            self._events.append(received(stream.connection_id, data))
        else:
            self._lose(stream, "the broker closed the connection")

    def _lose(self, stream: _Stream, error: str) -> None:
        self._drop(stream.connection_id)
        self._events.append(disconnected(stream.connection_id, error))

    def _drop(self, connection_id: int) -> None:
        stream = self._streams.pop(connection_id, None)
        if stream is not None:
            self._selector.unregister(stream.handle)
            stream.handle.close()

    # --- Waking and closing

    def wake(self) -> None:
        """End a poll under way; from any thread."""
        # A full pipe wakes as well; a closed one belongs to a client that needs no waking.
        with contextlib.suppress(OSError):
            self._wake_out.send(b"\0")

    def _drain_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wake_in.recv(4096):
                pass

    def disown(self) -> None:
        """Close the descriptors of a forked child, which ends no connection of the parent.  The
        selector is shared with the parent: nothing is taken out of it, it is closed first."""
        self._is_closed = True
        with contextlib.suppress(OSError):
            self._selector.close()
        for stream in self._streams.values():
            stream.handle.close()
        self._streams.clear()
        self._wake_in.close()
        self._wake_out.close()

    def close(self) -> None:
        self._is_closed = True
        for connection_id in list(self._streams):
            self._drop(connection_id)
        self._selector.close()
        self._wake_in.close()
        self._wake_out.close()


def is_numeric(host: str) -> bool:
    """Return true if the host is an address already."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, host)
            return True
    return False


def _sentence(code: int | None) -> str:
    return os.strerror(code).lower() if code else "the connection failed"
