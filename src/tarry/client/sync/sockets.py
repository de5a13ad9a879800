"""Sockets of one client behind a selector: they perform what the core asks for, and collect events.

Only `wait` blocks.  Only the thread that drives the client may call it, except for `wake`.
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
    """The connections of one client, and the means to end a wait for them."""

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
        # A look-up may take as long as the system likes, so it has a thread of its own.  The core
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
            # No thread can be started, as at the end of the process from Python 3.12 on, but a
            # producer's records still have to be sent.
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
        """Wait for an event, at most `timeout_ms`; an interrupt here loses nothing."""
        waits_ms = 0 if self.events or self._resolved else timeout_ms
        try:
            return self._selector.select(waits_ms / 1000)
        except (OSError, ValueError):
            # The selector was closed meanwhile: the handler of a signal has forked or closed the
            # client.
            if self.is_closed:
                return []
            raise

    def take(self, ready: Sequence[Ready]) -> list[LinkEvent]:
        """Read and write on the sockets that are ready; return the events."""
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
        """End a wait under way; any thread may call it."""
        # A full pipe wakes the wait as well; a closed pipe belongs to a client that needs no
        # waking.
        with contextlib.suppress(OSError):
            self._wake_out.send(b"\0")

    def _drain_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wake_in.recv(4096):
                pass

    def disown(self) -> None:
        # The selector is closed first and as a whole, so that nothing is removed from the one that
        # the parent uses.
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
