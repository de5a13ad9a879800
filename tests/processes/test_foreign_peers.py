"""The synchronous client at ports of something else: an error in time, no descriptor left."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tarry.client import Admin, ClientError, Producer

PEERS = {
    "TLS": (b"\x15\x03\x03\x00\x02\x02\x46", "the peer answers in TLS"),
    "half an answer": (b"\0\0\1\x2c" + bytes(24), "only 24 of the 300 bytes of an answer came"),
    "nothing": (b"", "before its first answer"),
}


@contextmanager
def peer(said: bytes) -> Iterator[str]:
    """A port that says this to everybody who has asked, and hangs up if it is nothing."""
    kept: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                stream, _ = listener.accept()
            except OSError:
                return
            # The client may have hung up meanwhile.
            with stream, suppress(OSError):
                stream.recv(4096)
                if said:
                    stream.sendall(said)
                    kept.append(stream.dup())

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for stream in kept:
                stream.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.mark.parametrize("kind", PEERS)
def test_a_port_of_something_else_is_an_error_in_its_time(kind: str) -> None:
    said, sentence = PEERS[kind]
    before = descriptors()

    with peer(said) as address:
        settings = {"bootstrap.servers": address, "socket.connection.setup.timeout.ms": 400}
        with pytest.raises(ClientError, match=sentence):
            if kind == "TLS":
                with Producer({**settings, "max.block.ms": 700}) as producer:
                    producer.send("orders", b"1")
            else:
                with Admin(settings) as admin:
                    admin.describe_cluster(timeout=0.7)

    assert descriptors() <= before
