"""Input of `tarry produce`: files that are opened before anything is sent, and bytes cut into
pieces."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator
from typing import IO, Final, NamedTuple

import click

from tarry.base.errors import TarryError

# Bytes of one read, at most: a read returns what is there, so that typed lines are sent at once.
READ_BYTES: Final = 256 * 1024

# Time between two calls of `look` while no input comes.
LOOK_SECONDS: Final = 0.5

# Files that stay open from the check until they are read; further files are opened again then.
OPEN_FILES_MAX: Final = 256


# Largest piece: no request can be larger, so no record either.
PIECE_BYTES_MAX: Final = 100 * 1024 * 1024


class InputRecord(NamedTuple):
    """Record to send; None means null for a key or value, and not given for a place."""

    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    timestamp: int | None = None
    topic: str | None = None
    partition: int | None = None


class Shape(NamedTuple):
    """Shape of the input: how bytes become keys and values."""

    delimiter: bytes = b"\n"
    key_delimiter: bytes | None = None
    # Key of the records that have none of their own.
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    empty_is_null: bool = False

    def split(self, piece: bytes) -> tuple[bytes | None, bytes | None]:
        """Key and value of a piece of the input."""
        key, value = self.key, piece
        if self.key_delimiter is not None:
            before, found, behind = piece.partition(self.key_delimiter)
            if found:
                key, value = before, behind
        if self.empty_is_null:
            return key or None, value or None
        return key, value

    def filled(self, record: InputRecord) -> InputRecord:
        """Return the record with values of the options for those that it does not give."""
        key, value = record.key, record.value
        if self.empty_is_null:
            key, value = key or None, value or None
        return record._replace(
            value=value,
            key=self.key if key is None else key,
            headers=record.headers or self.headers,
        )


class BadInput(TarryError):
    """Input that is no record; the text says where."""


class InputSource:
    """Source of input and the name that messages call it by."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = "stdin" if path == "-" else path
        self.size = 0
        self._stream: IO[bytes] | None = None

    def open(self) -> IO[bytes]:
        """Open the file unless it is open.  Raises BadInput with the reason why it cannot be."""
        if self._stream is not None:
            return self._stream
        if self.path == "-":
            self._stream = sys.stdin.buffer
            return self._stream
        try:
            stream = open(self.path, "rb")  # noqa: SIM115
            self.size = os.fstat(stream.fileno()).st_size
        except OSError as error:
            raise BadInput(f"cannot read {self.path}: {error.strerror}") from None
        self._stream = stream
        return stream

    def close(self) -> None:
        """Close what was opened; stdin belongs to the process."""
        if self._stream is not None and self.path != "-":
            self._stream.close()
        self._stream = None


@contextlib.contextmanager
def opened(paths: tuple[str, ...]) -> Iterator[list[InputSource]]:
    """Open the files in their order, all of which can be read; stdin if there are none, or for
    `-`.
    """
    sources = [InputSource(path) for path in paths or ("-",)]
    try:
        for number, source in enumerate(sources):
            try:
                source.open()
            except BadInput as error:
                raise click.UsageError(f"{error}; nothing was sent") from None
            if number >= OPEN_FILES_MAX and source.size:
                source.close()
        yield sources
    finally:
        for source in sources:
            source.close()


def read_pieces(
    stream: IO[bytes], delimiter: bytes, look: Callable[[], None] | None = None
) -> Iterator[list[bytes]]:
    """Pieces between delimiters, as many at a time as have come.  `look` is called before each
    read, and now and then while nothing comes.

    What stands behind the last delimiter is a piece if it is not empty.
    """
    # Blocks behind the last delimiter, and the last bytes of them: a delimiter may begin there.
    held: list[bytes] = []
    size = 0
    tail = b""
    read = getattr(stream, "read1", stream.read)
    while True:
        if look is not None:
            _wait_for_input(stream, look)
        data = read(READ_BYTES)
        if not data:
            break
        held.append(data)
        size += len(data)
        seam = tail + data
        if delimiter in seam:
            pieces = b"".join(held).split(delimiter)
            seam = pieces.pop()
            held, size = [seam], len(seam)
            yield pieces
        elif size > PIECE_BYTES_MAX:
            raise BadInput(
                f"the input has no delimiter in {size} bytes, which is more than a record can have"
            )
        tail = seam[max(len(seam) - len(delimiter) + 1, 0) :]
    if size:
        yield [b"".join(held)]


def _wait_for_input(stream: IO[bytes], look: Callable[[], None]) -> None:
    """Wait until something can be read.  A read takes all that was buffered, so the handle
    knows.
    """
    look()
    try:
        while not select.select([stream], [], [], LOOK_SECONDS)[0]:
            look()
    except (OSError, ValueError):
        # The stream has no handle, or none that can be waited for.
        return
