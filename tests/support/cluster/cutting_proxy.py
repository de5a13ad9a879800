"""A proxy in front of a broker or an etcd that holds back what passes, in either direction, or lets
it pass slowly.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import Final

BLOCK: Final = 1 << 16
# Slow traffic passes in so many parts a second, or byte by byte.
PARTS_PER_S: Final = 20


class _Direction:
    """Bytes towards the server, or back from it: how many a second pass.  None: all, 0: none.

    `of`: what holds for one client alone, which the first bytes of its connections name.
    """

    def __init__(self) -> None:
        self.bytes_per_s: int | None = None
        self.of = b""


class CuttingProxy:
    """Listens on a port of its own from the beginning, so that it can be named before the server
    is there; `forward_to` says where.

    A direction that is cut holds bytes back, as a network does that drops them: connections stay
    and are silent.  After `heal` the held bytes of connections that are still there arrive.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._server = ("", 0)
        self._sockets: list[socket.socket] = []
        self._to_server = _Direction()
        self._from_server = _Direction()
        # Told of each change of a direction.
        self._changed = threading.Condition()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def forward_to(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        is_first = self._server == ("", 0)
        self._server = (host, int(port))
        if is_first:
            threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, *, requests: bool = True, answers: bool = True, of: bytes = b"") -> None:
        """Hold back what goes towards the server, what comes from it, or both."""
        self._limit(0, of, requests=requests, answers=answers)

    def slow(
        self, bytes_per_s: int, *, requests: bool = True, answers: bool = True, of: bytes = b""
    ) -> None:
        """Let so many bytes a second pass on each connection; `of`: the client whose they are."""
        self._limit(bytes_per_s, of, requests=requests, answers=answers)

    def heal(self) -> None:
        self._limit(None, b"", requests=True, answers=True)

    def _limit(self, bytes_per_s: int | None, of: bytes, *, requests: bool, answers: bool) -> None:
        with self._changed:
            for direction, is_meant in ((self._to_server, requests), (self._from_server, answers)):
                if is_meant:
                    direction.bytes_per_s = bytes_per_s
                    direction.of = of
            self._changed.notify_all()

    def close(self) -> None:
        self.heal()
        for one in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # A connection through a cut network is not refused: it is not answered.  The client, who
        # always speaks first, says who it is.
        with contextlib.suppress(OSError):
            if first := client.recv(BLOCK):
                self._wait_until_open(first)
                server = socket.create_connection(self._server)
                self._sockets.append(server)
                back = threading.Thread(
                    target=self._pump,
                    args=(server, client, self._from_server, first, b""),
                    daemon=True,
                )
                back.start()
                self._pump(client, server, self._to_server, first, first)
                return
        client.close()

    def _wait_until_open(self, first: bytes) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._rate(self._to_server, first) != 0)

    @staticmethod
    def _rate(direction: _Direction, first: bytes) -> int | None:
        return direction.bytes_per_s if direction.of in first else None

    def _pump(
        self,
        source: socket.socket,
        target: socket.socket,
        direction: _Direction,
        first: bytes,
        data: bytes,
    ) -> None:
        """Pass on `data` and whatever follows; `first`: what the client said first."""
        with contextlib.suppress(OSError):
            while data := data or source.recv(BLOCK):
                part = data[: self._wait_for_room(direction, first)]
                target.sendall(part)
                data = data[len(part) :]
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _wait_for_room(self, direction: _Direction, first: bytes) -> int:
        """Wait until something may pass; return how many bytes."""
        began = time.monotonic()
        with self._changed:
            while True:
                rate = self._rate(direction, first)
                if rate is None:
                    return BLOCK
                part = max(rate // PARTS_PER_S, 1)
                left = part / rate - (time.monotonic() - began) if rate else None
                if left is not None and left <= 0:
                    return part
                self._changed.wait(left)
