"""The outbox: order, gathered bytes, regions by sendfile or without, and a slow peer."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.patience import PATIENCE_S

from tarry.base.doors import Chunk, FileRegion
from tarry.runtime.files import OsDisk, OsLogFile
from tarry.runtime.flusher import Flusher
from tarry.runtime.outbox import REGION_READ_MAX, SEND_BYTES_MAX, Outbox


@pytest.fixture
def file(tmp_path: Path) -> OsLogFile:
    file = OsDisk(str(tmp_path), Flusher(lambda: None)).open("a", create=True)
    file.append([random.Random(1).randbytes(4 * SEND_BYTES_MAX)])
    return file


@pytest.fixture(params=[True, False], ids=["sendfile", "without sendfile"])
def outbox(request: pytest.FixtureRequest) -> Outbox:
    return Outbox(request.param)


class Pair:
    def __init__(self) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        self.far = socket.create_connection(listening.getsockname())
        self.near, _ = listening.accept()
        listening.close()
        self.near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100 * 1024)
        self.near.setblocking(False)
        self.far.settimeout(PATIENCE_S)

    def exchange(self, outbox: Outbox) -> bytes:
        """Send and read by turns until all has arrived."""
        expected = outbox.size
        parts = bytearray()
        while len(parts) < expected:
            outbox.send(self.near)
            parts += self.far.recv(1 << 20)
        return bytes(parts)


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.near.close()
    pair.far.close()


def expected_of(chunks: list[Chunk]) -> bytes:
    return b"".join(
        chunk.file.read(chunk.position, chunk.size) if isinstance(chunk, FileRegion) else chunk
        for chunk in chunks
    )


def test_chunks_of_all_kinds_arrive_in_their_order(
    outbox: Outbox, pair: Pair, file: OsLogFile
) -> None:
    chunks: list[Chunk] = [
        b"header",
        memoryview(b"xbodyx")[1:5],
        FileRegion(file, 10, 1_000),
        b"",
        FileRegion(file, 5, REGION_READ_MAX),
        FileRegion(file, 7, REGION_READ_MAX + 1),
        b"",
        FileRegion(file, 100, 0),
        b"between",
        FileRegion(file, 1, 3 * SEND_BYTES_MAX),
        FileRegion(file, 0, 500_000),
        b"end",
    ]
    outbox.add(chunks)
    assert outbox.size == sum(map(len, chunks))

    arrived = pair.exchange(outbox)

    assert arrived == expected_of(chunks)
    assert outbox.size == 0


@pytest.mark.parametrize("seed", range(20))
def test_any_mixture_arrives_as_it_was_given(
    outbox: Outbox, pair: Pair, file: OsLogFile, seed: int
) -> None:
    chance = random.Random(seed)
    chunks: list[Chunk] = []
    for _ in range(chance.randrange(1, 60)):
        size = chance.choice([0, 1, 100, 5_000, 20_000, 200_000])
        if chance.randrange(2):
            chunks.append(FileRegion(file, chance.randrange(1_000), size))
        else:
            chunks.append(chance.randbytes(size))
    outbox.add(chunks)

    assert pair.exchange(outbox) == expected_of(chunks)


def test_more_chunks_than_the_system_gathers_at_once_arrive(outbox: Outbox, pair: Pair) -> None:
    chunks: list[Chunk] = [f"{i:05d}".encode() for i in range(5_000)]
    outbox.add(chunks)

    assert pair.exchange(outbox) == expected_of(chunks)


def test_what_is_added_while_some_waits_goes_behind_it(outbox: Outbox, pair: Pair) -> None:
    outbox.add([b"a" * 1_000_000])
    outbox.send(pair.near)
    assert 0 < outbox.size < 1_000_000
    left = outbox.size

    outbox.add([b"b" * 10])
    assert outbox.size == left + 10

    arrived = bytearray()
    while len(arrived) < 1_000_010:
        arrived += pair.far.recv(1 << 20)
        outbox.send(pair.near)
    assert bytes(arrived) == b"a" * 1_000_000 + b"b" * 10


def test_the_lists_of_the_caller_are_not_kept(outbox: Outbox) -> None:
    chunks: list[Chunk] = [b"abc"]
    outbox.add(chunks)

    chunks.append(b"def")

    assert outbox.size == 3


def test_a_peer_that_does_not_read_is_not_waited_for(
    outbox: Outbox, pair: Pair, file: OsLogFile
) -> None:
    outbox.add([FileRegion(file, 0, 4 * SEND_BYTES_MAX)])

    for _ in range(50):
        outbox.send(pair.near)

    assert outbox.size > 0


def test_one_send_is_bounded_though_the_peer_takes_all(outbox: Outbox, file: OsLogFile) -> None:
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * SEND_BYTES_MAX)
    outbox.add([b"x" * 100_000 for _ in range(40)])

    near.setblocking(False)
    outbox.send(near)

    assert outbox.size >= 40 * 100_000 - 2 * SEND_BYTES_MAX
    near.close()
    far.close()


def test_a_region_past_the_end_of_its_file_is_an_error_and_no_silence(
    outbox: Outbox, pair: Pair, file: OsLogFile, tmp_path: Path
) -> None:
    outbox.add([FileRegion(file, 0, 100_000)])
    file.truncate(50_000)

    with pytest.raises(OSError, match="before its region"):
        for _ in range(10):
            outbox.send(pair.near)


def test_sent_files_are_let_go(outbox: Outbox, pair: Pair, tmp_path: Path) -> None:
    disk = OsDisk(str(tmp_path), Flusher(lambda: None))
    file: OsLogFile | None = disk.open("b", create=True)
    assert file is not None
    file.append([b"x" * 50_000])
    descriptor = file.descriptor
    outbox.add([FileRegion(file, 0, 50_000)])
    file.close()
    file = None

    assert pair.exchange(outbox) == b"x" * 50_000

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
