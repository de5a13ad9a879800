"""Each face at ports of something else: an error in time, no descriptor left."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from tests.support.client.faces import make_face
from tests.support.client.late import error_when_late

PEERS = {
    "TLS": (b"\x15\x03\x03\x00\x02\x02\x46", "the peer answers in TLS"),
    "half an answer": (b"\0\0\1\x2c" + bytes(24), "only 24 of the 300 bytes of an answer came"),
    "a frame of 2 GiB": (b"\x7f\xff\xff\xff" + bytes(100), "an answer of 2147483647 bytes"),
    "an answer that nobody asked for": (
        b"\0\0\0\x0c\0\0\0\x63" + bytes(8),
        "it answered request 99",
    ),
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
@pytest.mark.parametrize("name", ["sync", "asyncio", "arrow"])
def test_a_port_of_something_else_is_an_error_in_its_time(name: str, kind: str) -> None:
    said, sentence = PEERS[kind]
    face = make_face(name)
    before = descriptors()

    with peer(said) as address:
        settings = {"bootstrap.servers": address, "socket.connection.setup.timeout.ms": 400}

        def send(time_s: float) -> None:
            producer = face.Producer({**settings, "max.block.ms": int(time_s * 1_000)})
            try:
                face.run(producer.send("orders", b"1"))
            finally:
                face.run(producer.close())

        def look(time_s: float) -> None:
            consumer = face.Consumer(settings)
            try:
                face.run(consumer.end_offsets([("orders", 0)], timeout=time_s))
            finally:
                face.run(consumer.close())

        ask = send if kind in ("TLS", "nothing") else look
        error = error_when_late(ask, sentence, 0.5)

    assert sentence in str(error)
    assert descriptors() <= before
    face.close()
