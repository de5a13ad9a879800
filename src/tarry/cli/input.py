"""Input of `tarry produce`: bytes cut into records, lines of JSON, or whole files."""

from __future__ import annotations

import base64
import contextlib
import select
import sys
from collections.abc import Callable, Iterator
from typing import IO, Final, NamedTuple

import click
import msgspec

from tarry.base.errors import TarryError

# A read takes what is there, so that lines typed at a terminal leave at once.
READ_BYTES: Final = 256 * 1024

# How often somebody looks around while no input comes.
LOOK_SECONDS: Final = 0.5


class InputRecord(NamedTuple):
    """One record to send; None for a key or value is null."""

    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    timestamp: int | None = None


class Shape(NamedTuple):
    """How bytes of the input become keys and values."""

    delimiter: bytes = b"\n"
    key_delimiter: bytes | None = None
    # Of the records that have no key of their own.
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


class BadInput(TarryError):
    """Input that is no record; the text says which line."""


def read_pieces(
    stream: IO[bytes], delimiter: bytes, look: Callable[[], None] | None = None
) -> Iterator[list[bytes]]:
    """Pieces between delimiters, as many at a time as have come.  `look` is called before each
    read, and now and then while nothing comes.

    What stands behind the last delimiter is a piece if it is not empty.
    """
    rest = b""
    read = getattr(stream, "read1", stream.read)
    while True:
        if look is not None:
            _wait_for_input(stream, look)
        data = read(READ_BYTES)
        if not data:
            break
        pieces = (rest + data).split(delimiter) if rest else data.split(delimiter)
        rest = pieces.pop()
        if pieces:
            yield pieces
    if rest:
        yield [rest]


def _wait_for_input(stream: IO[bytes], look: Callable[[], None]) -> None:
    """Until something can be read.  A read takes all that was buffered, so the handle knows."""
    look()
    try:
        while not select.select([stream], [], [], LOOK_SECONDS)[0]:
            look()
    except (OSError, ValueError):
        # No handle, or none that can be waited for.
        return


def open_inputs(paths: tuple[str, ...]) -> Iterator[IO[bytes]]:
    """The files in their order; stdin if there are none, or for `-`."""
    for path in paths or ("-",):
        if path == "-":
            yield sys.stdin.buffer
            continue
        with contextlib.ExitStack() as stack:
            try:
                stream = stack.enter_context(open(path, "rb"))
            except OSError as error:
                raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
            yield stream


class _JsonHeader(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    value: str | msgspec.UnsetType | None = msgspec.UNSET
    value_base64: str | msgspec.UnsetType = msgspec.UNSET


class _JsonRecord(msgspec.Struct, forbid_unknown_fields=True):
    """What `tarry consume --json` prints; topic, partition and offset are not taken over."""

    value: str | msgspec.UnsetType | None = msgspec.UNSET
    value_base64: str | msgspec.UnsetType = msgspec.UNSET
    key: str | msgspec.UnsetType | None = msgspec.UNSET
    key_base64: str | msgspec.UnsetType = msgspec.UNSET
    headers: list[_JsonHeader] = []
    timestamp: int | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


_DECODER: Final = msgspec.json.Decoder(_JsonRecord)


def record_of_json(line: bytes, number: int) -> InputRecord:
    """A line of `tarry consume --json` as a record."""
    try:
        found = _DECODER.decode(line)
        return InputRecord(
            _value("a record", found.value, found.value_base64),
            _content("key", found.key, found.key_base64),
            [
                (one.name, _value(f"header {one.name!r}", one.value, one.value_base64))
                for one in found.headers
            ],
            found.timestamp,
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise BadInput(f"record {number} is no JSON of a record: {error}") from None


def _value(
    what: str, text: str | msgspec.UnsetType | None, encoded: str | msgspec.UnsetType
) -> bytes | None:
    """A value has to be there: who means null writes null, and who mistypes is told."""
    if text is msgspec.UNSET and encoded is msgspec.UNSET:
        raise ValueError(f"{what} needs a value or value_base64; null is written as null")
    return _content("value", text, encoded)


def _content(
    name: str, text: str | msgspec.UnsetType | None, encoded: str | msgspec.UnsetType
) -> bytes | None:
    if not isinstance(encoded, msgspec.UnsetType):
        if not isinstance(text, msgspec.UnsetType):
            raise ValueError(f"{name} and {name}_base64 exclude each other")
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError:
            raise ValueError(f"{name}_base64 is no base64") from None
    if text is None or isinstance(text, msgspec.UnsetType):
        return None
    return text.encode()
