"""Sockets of one client behind a selector: performs what the core asks for, tells it what came.

Never blocks but in `wait`.  Only the thread that drives the client touches it, except `wake`.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections import deque
from collections.abc import Sequence

from tarry.client.face.forks import DESCRIPTORS
from tarry.client.face.streams import Stream, Streams, addresses_of, lookup_flaw, sentence_of
from tarry.client.settings import ClientSettings
from tarry.link.errors import ClientError
from tarry.link.events import Address, LinkEvent, Resolve, Resolved

# Socket that can be read or written, with what it can.
Ready = tuple[selectors.SelectorKey, int]


class Sockets(Streams):
    """The connections of one client, and what ends a wait for them."""

    def __init__(self, settings: ClientSettings) -> None:
        super().__init__(settings)
        try:
            self._selector = selectors.DefaultSelector()
            self._wake_in, self._wake_out = socket.socketpair()
        except OSError as error:
            raise ClientError(
                f"the client cannot be made: {sentence_of(error.errno)}; it needs three file "
                "descriptors of its own and one for each broker"
            ) from error
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
        try:
            thread.start()
        except RuntimeError:
            # There can be no more threads: at the end of the process, from Python 3.12 on, none
            # starts, and what a producer was given is still to be sent.
            self._look_up(output.connection_id, output.address)

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

    def wait(self, timeout_ms: int) -> list[Ready]:
        """Wait for something to happen, `timeout_ms` at most; an interrupt here loses nothing."""
        waits_ms = 0 if self.events or self._resolved else timeout_ms
        try:
            return self._selector.select(waits_ms / 1000)
        except (OSError, ValueError):
            # Closed meanwhile: the handler of a signal has forked or closed the client.
            if self.is_closed:
                return []
            raise

    def take(self, ready: Sequence[Ready]) -> list[LinkEvent]:
        """Read and write what `wait` has found possible; return what happened."""
        if self.is_closed:
            return []
        for key, mask in ready:
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

    def disown(self) -> None:
        # Closed first and as a whole: nothing is taken out of what the parent waits for.
        with contextlib.suppress(OSError):
            self._selector.close()
        super().disown()
        self._wake_in.close()
        self._wake_out.close()

    def close(self) -> None:
        super().close()
        with DESCRIPTORS:
            self._selector.close()
            self._wake_in.close()
            self._wake_out.close()
