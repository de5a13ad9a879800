"""Outbox of a connection: bytes that the peer has not taken yet, and how the kernel gets them.

Bytes are sent by one gathered `sendmsg`; a region of a file up to 16 KiB is read and gathered with
them; a larger one is sent by `sendfile`, without a copy.  A send passes what the kernel accepts and
never waits.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import Final

from tarry.base.doors import Chunk, FileRegion
from tarry.runtime.files import OsLogFile

# Region size up to which reading and gathering cost less than two more system calls.
REGION_READ_MAX: Final = 16 * 1024

# Bytes that one connection may send in a turn: some fillings of the kernel's send buffer.
SEND_BYTES_MAX: Final = 1024 * 1024

# Bytes of a region that are read at once if there is no sendfile.
_PIECE_BYTES: Final = 256 * 1024
_GATHER_MAX: Final = os.sysconf("SC_IOV_MAX")
# Flag by which header and region leave in one packet; 0 if the system lacks it.
_MORE: Final[int] = getattr(socket, "MSG_MORE", 0)
_NO_SENDFILE: Final = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class Outbox:
    """Chunks in order; `_taken` bytes of the first one have been sent."""

    __slots__ = ("_chunks", "_has_sendfile", "_taken", "size")

    def __init__(self, has_sendfile: bool = hasattr(os, "sendfile")) -> None:
        self._chunks: list[Chunk] = []
        self._taken = 0
        self._has_sendfile = has_sendfile
        self.size = 0

    def add(self, chunks: list[Chunk]) -> None:
        """Append chunks."""
        self._chunks.extend(chunks)
        self.size += sum(map(len, chunks))

    def send(self, peer: socket.socket) -> None:
        """Pass on what the kernel accepts; OSError if the peer is gone or a file fails."""
        sent = 0
        try:
            while self.size and sent < SEND_BYTES_MAX:
                chunk = self._chunks[0]
                if isinstance(chunk, FileRegion) and chunk.size > REGION_READ_MAX:
                    taken, is_full = self._send_region(peer, chunk)
                else:
                    taken, is_full = self._send_gathered(peer)
                self._take(taken)
                sent += taken
                if is_full:
                    return
        except BlockingIOError:
            pass

    def clear(self) -> None:
        """Drop all chunks, with the regions' files."""
        self._chunks = []
        self._taken = 0
        self.size = 0

    def _send_gathered(self, peer: socket.socket) -> tuple[int, bool]:
        """Send chunks up to the next large region; return the bytes sent, and True if the kernel is
        full.
        """
        gathered: list[bytes | memoryview] = []
        size = 0
        flags = 0
        for chunk in self._chunks[:_GATHER_MAX]:
            if isinstance(chunk, FileRegion):
                if chunk.size > REGION_READ_MAX:
                    flags = _MORE
                    break
                data: bytes | memoryview = _read_whole(chunk.file, chunk.position, chunk.size)
            else:
                data = chunk
            gathered.append(data)
            size += len(data)
            if size >= SEND_BYTES_MAX:
                break
        if self._taken:
            gathered[0] = memoryview(gathered[0])[self._taken :]
            size -= self._taken
        if len(gathered) == 1:
            taken = peer.send(gathered[0], flags)
        else:
            taken = peer.sendmsg(gathered, (), flags)
        return taken, taken < size

    def _send_region(self, peer: socket.socket, region: FileRegion) -> tuple[int, bool]:
        position = region.position + self._taken
        size = min(region.size - self._taken, SEND_BYTES_MAX)
        file = region.file
        assert isinstance(file, OsLogFile)
        if self._has_sendfile:
            try:
                taken = os.sendfile(peer.fileno(), file.descriptor, position, size)
            except OSError as error:
                if error.errno not in _NO_SENDFILE:
                    raise
                self._has_sendfile = False
            else:
                if taken == 0:
                    raise OSError(errno.EIO, f"{file.path} ends at {position}, before its region")
                return taken, taken < size
        size = min(size, _PIECE_BYTES)
        taken = peer.send(_read_whole(file, position, size))
        return taken, taken < size

    def _take(self, taken: int) -> None:
        """Note that `taken` more bytes were sent."""
        self.size -= taken
        if not self.size:
            self.clear()
            return
        taken += self._taken
        first = 0
        while taken >= len(self._chunks[first]):
            taken -= len(self._chunks[first])
            first += 1
        # Drop sent chunks, so that their memory and files are freed.
        del self._chunks[:first]
        self._taken = taken


def _read_whole(file: object, position: int, size: int) -> bytes:
    assert isinstance(file, OsLogFile)
    data = file.read(position, size)
    if len(data) != size:
        raise OSError(errno.EIO, f"{file.path} ends at {position + len(data)}, before its region")
    return data
