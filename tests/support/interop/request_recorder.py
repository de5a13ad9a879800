"""A proxy between clients and a broker that notes which version of which API was asked."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final

BLOCK_SIZE: Final = 65_536


class RequestRecorder:
    """Listens at `port`; what comes goes on to 127.0.0.1:`broker_port`, once that is set."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.server.getsockname()[1]
        self.broker_port = 0
        self.versions: dict[int, set[int]] = {}
        self.sockets: list[socket.socket] = [self.server]
        self.threads: list[threading.Thread] = []
        self.run(self.accept)

    def run(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self.server.accept()[0]
                # Noted before the next step: the broker may be gone.
                self.sockets.append(client)
                broker = socket.create_connection(("127.0.0.1", self.broker_port))
                self.sockets.append(broker)
                self.run(self.forward_requests, client, broker)
                self.run(self.forward_answers, broker, client)

    def forward_requests(self, client: socket.socket, broker: socket.socket) -> None:
        with contextlib.suppress(OSError), client.makefile("rb") as stream:
            while len(prefix := stream.read(4)) == 4:
                frame = stream.read(int.from_bytes(prefix, "big"))
                api_key = int.from_bytes(frame[0:2], "big")
                version = int.from_bytes(frame[2:4], "big")
                self.versions.setdefault(api_key, set()).add(version)
                broker.sendall(prefix + frame)
        end(broker)

    def forward_answers(self, broker: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while block := broker.recv(BLOCK_SIZE):
                client.sendall(block)
        end(client)

    def close(self) -> None:
        for one in self.sockets:
            end(one)
        for thread in self.threads:
            thread.join(5)
        for one in self.sockets:
            one.close()


def end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
