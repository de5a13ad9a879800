"""A proxy in front of a broker or an etcd that can hold back what passes, in either direction."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final

BLOCK: Final = 1 << 16


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
        # Set while bytes may pass towards the server, and back from it.
        self._to_server = threading.Event()
        self._from_server = threading.Event()
        self.heal()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def forward_to(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        is_first = self._server == ("", 0)
        self._server = (host, int(port))
        if is_first:
            threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, *, requests: bool = True, answers: bool = True) -> None:
        """Hold back what goes towards the server, what comes from it, or both."""
        if requests:
            self._to_server.clear()
        if answers:
            self._from_server.clear()

    def heal(self) -> None:
        self._to_server.set()
        self._from_server.set()

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
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        # A connection through a cut network is not refused: it is not answered.
        self._to_server.wait()
        try:
            server = socket.create_connection(self._server)
        except OSError:
            client.close()
            return
        self._sockets += [client, server]
        back = threading.Thread(
            target=self._pump, args=(server, client, self._from_server), daemon=True
        )
        back.start()
        self._pump(client, server, self._to_server)

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket, may_pass: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(BLOCK):
                may_pass.wait()
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
