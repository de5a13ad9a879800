"""Sockets of one client behind a selector: performs what the core asks for, tells it what came.

Never blocks but in `poll`.  Only the thread that drives the client touches it, except `wake`.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections import deque

from tarry.client.face.streams import Stream, Streams, addresses_of, lookup_flaw
from tarry.client.settings import ClientSettings
from tarry.link.events import Address, LinkEvent, Resolve, Resolved


class Sockets(Streams):
    """The connections of one client, and what ends a wait for them."""

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__(settings)
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector.register(self._wake_in, selectors.EVENT_READ, None)
        self._resolved: deque[Resolved] = deque()

    def watch(self, stream: Stream, interest: int) -> None:
        if interest == 0:
            self._selector.unregister(stream.handle)
        elif stream.interest == 0:
            self._selector.register(stream.handle, interest, stream)
        else:
            self._selector.modify(stream.handle, interest, stream)

    def look_up(self, output: Resolve) -> None:
        # A look-up may take as long as the system likes, so it gets a thread of its own; the core
        # waits for it no longer than `socket.connection.setup.timeout.ms`.
        thread = threading.Thread(
            target=self._look_up,
            args=(output.connection_id, output.address),
            name=f"tarry-resolve-{output.address.host}",
            daemon=True,
        )
        thread.start()

    def _look_up(self, connection_id: int, address: Address) -> None:
        host, port = address
        addresses: list[Address] = []
        error = ""
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = addresses_of(rows, port)
        except (OSError, UnicodeError) as failure:
            error = lookup_flaw(host, failure)
        self._resolved.append(Resolved(connection_id, addresses, error))
        self.wake()

    def poll(self, timeout_ms: int) -> list[LinkEvent]:
        """Wait for something to happen, `timeout_ms` at most; what happened."""
        waits_ms = 0 if self.events or self._resolved else timeout_ms
        for key, mask in self._selector.select(waits_ms / 1000):
            if key.data is None:
                self._drain_wakes()
            else:
                self.happened(key.data, mask)
        while self._resolved:
            self.events.append(self._resolved.popleft())
        return self.take_events()

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

    def close(self) -> None:
        super().close()
        self._selector.close()
        self._wake_in.close()
        self._wake_out.close()
