"""A proxy between clients and a broker that damages or cuts one answer, once."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable


class DamagingProxy:
    """Listens at once; `forward_to` says where.  After `arm` the first answer that holds `mark`
    arrives with another byte in the mark's place, or ends there with its connection; nothing else
    is touched."""

    def __init__(self, mark: bytes) -> None:
        self.mark = mark
        self.damaged = 0
        self._is_armed = False
        self._is_cutting = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._broker = ("", 0)
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()

    def forward_to(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._broker = (host, int(port))
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, *, cuts: bool) -> None:
        """Damage the next answer that holds the mark, or cut it."""
        self.damaged = 0
        self._is_cutting = cuts
        self._is_armed = True

    def close(self) -> None:
        for one in [self._listener, *self._sockets]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                broker = socket.create_connection(self._broker)
                self._sockets += [client, broker]
                threading.Thread(target=self._pump, args=(client, broker), daemon=True).start()
                arguments = (broker, client, self._damage)
                threading.Thread(target=self._pump, args=arguments, daemon=True).start()

    def _pump(
        self, source: socket.socket, target: socket.socket, change: Callable[[bytes], bytes] = bytes
    ) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 20):
                changed = change(data)
                target.sendall(changed)
                if len(changed) < len(data):
                    source.shutdown(socket.SHUT_RDWR)
                    break
            target.shutdown(socket.SHUT_WR)

    def _damage(self, data: bytes) -> bytes:
        with self._lock:
            place = data.find(self.mark) if self._is_armed else -1
            if place < 0:
                return data
            self._is_armed = False
            self.damaged += 1
            if self._is_cutting:
                return data[:place]
            return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
