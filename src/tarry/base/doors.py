"""The doors through which the deterministic core meets the world: Disk, Transport, Random, and
LogLevels.

`runtime` implements them with the operating system, `simulation` from a seed.  Nothing below
`runtime` touches a file, a socket, a clock or chance in any other way.  Time is no door: it is an
argument (`now_ms` monotonic, `now_wall_ms` calendar).

Paths are relative to the broker's one log directory and use "/".  Bytes are durable only when
their flush has completed; a new, renamed or removed name only when its directory's flush has.
"""

from __future__ import annotations

from typing import Final, Protocol

from mypy_extensions import mypyc_attr


class LogFile(Protocol):
    """A file that grows at its end.  `size` is what has been written, flushed or not."""

    path: str
    size: int

    def append(self, chunks: list[bytes | memoryview]) -> int:
        """Write all chunks at the end; return the position of the first byte.

        A short write, ENOSPC or EIO raises `StorageError` and leaves `size` as it was.
        """

    def read(self, position: int, size_max: int) -> bytes:
        """Read at most `size_max` bytes from `position`; fewer only at the end of the file.

        Raises `StorageError` if the device fails.
        """

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes; the file's next flush makes it durable."""

    def close(self) -> None:
        """End the use for writing.  Reads by a `FileRegion` that still holds the file continue."""


class Disk(Protocol):
    """The broker's log directory."""

    def open(self, path: str, *, create: bool = False) -> LogFile:
        """Open for append and read; `StorageError` if the file is missing and `create` is False.

        With `create` the file is made if missing (never emptied); its name becomes durable with
        the next flush of its directory.
        """

    def exists(self, path: str) -> bool: ...

    def paths(self, directory: str = "") -> list[str]:
        """List the paths directly inside `directory`, sorted; those of directories end with "/"."""

    def make_directory(self, path: str) -> None:
        """Make one directory; do nothing if it exists.  Durable with its parent's flush."""

    def rename(self, old: str, new: str) -> None:
        """Rename atomically; replace `new` if it is a file.  Durable with the directory's flush."""

    def remove(self, path: str) -> None:
        """Unlink one small file, quiet if missing.  For large files use `begin_remove`."""

    def begin_remove(self, path: str) -> None:
        """Remove a file or a whole directory tree outside the turn, at any time later.

        It removes the file that has this name now, even if the file or its directory has another
        name by then: a topic that was made again meanwhile has files of the same names.
        """

    def begin_flush(self, files: list[LogFile], directories: list[str]) -> int:
        """Begin to make these files' bytes and these directories' names durable.

        Return a flush id; the end is one `Flushed` event with that id.  Bytes appended after this
        call are not covered.  "" names the log directory itself.
        """

    def flush(self, files: list[LogFile], directories: list[str]) -> None:
        """Flush and wait for the end; only for start and stop, never in a turn.  Raises
        `StorageError`.
        """

    def free_bytes(self) -> int: ...

    def total_bytes(self) -> int:
        """Return the size of the file system that the directory is on, in bytes."""


class FileRegion:
    """Part of a file as a chunk of an answer, which `runtime` may send without a copy.

    It holds the file, so a segment that is removed while it is sent is sent to its end.
    """

    __slots__ = ("file", "position", "size")

    def __init__(self, file: LogFile, position: int, size: int) -> None:
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        return self.size


Chunk = bytes | memoryview | FileRegion


class Transport(Protocol):
    """Connections by id.  An id is never used twice in one process of the broker."""

    def connect(self, host: str, port: int) -> int:
        """Begin an outgoing connection; ends as `Connected` or `Disconnected`.

        `host` is a name or a number; a name is looked up outside the turn.
        """

    def send(self, connection_id: int, chunks: list[Chunk]) -> int:
        """Take the chunks in order; return how many bytes the peer has not taken yet.

        The transport keeps those and sends them by itself; `Drained` comes when none is left.
        Does nothing for a connection that is gone (its `Disconnected` is under way).
        """

    def pause_reading(self, connection_id: int) -> None: ...

    def resume_reading(self, connection_id: int) -> None: ...

    def stop_listening(self) -> None:
        """Take no new connections; the broker is about to stop."""

    def close(self, connection_id: int) -> None:
        """Close after sent bytes have left, at most 1 s later.  No `Disconnected` follows."""


class Random(Protocol):
    """`random.Random(seed)` satisfies it; the runtime's is `random.SystemRandom()`."""

    def randrange(self, stop: int, /) -> int: ...

    def getrandbits(self, bits: int, /) -> int: ...


class LogLevels(Protocol):
    """Levels of loggers, as numbers of `logging`.  "" names the logger above all others.

    The loggers belong to the whole process: if other code shares the process, a broker must not
    change them.
    """

    def level(self, name: str) -> int:
        """Return the effective level: the logger's own, or that of the nearest logger above it."""

    def set_level(self, name: str, level: int) -> None:
        """Set the logger's own level; with `logging.NOTSET` the logger above decides."""


# --- Events, which a turn handles.  Code compares `kind` and not the class, which is slower.

CONNECTED: Final = 1
RECEIVED: Final = 2
DRAINED: Final = 3
DISCONNECTED: Final = 4
FLUSHED: Final = 5
STOP_REQUESTED: Final = 6
# Event of `base/etcd`: an answer of the store that several brokers share.
ETCD: Final = 7


@mypyc_attr(allow_interpreted_subclasses=True)
class Event:
    """Event that a turn handles; `kind` decides which fields are set."""

    __slots__ = ("connection_id", "data", "error", "flush_id", "kind", "listener", "peer")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        # open: an event is data, which its maker fills
        self.connection_id = 0
        self.data = b""
        self.listener = ""
        self.peer = ""
        self.flush_id = 0
        # open: an event is data, which its maker fills
        self.error = ""

    @property
    def is_outgoing(self) -> bool:
        """True if the broker began the connection (CONNECTED), False if a listener accepted it."""
        return not self.listener


def connected(connection_id: int, listener: str, peer: str) -> Event:
    """Return the event of a peer that connected to the named listener (`PLAINTEXT`); `peer` is
    "host:port".
    """
    event = Event(CONNECTED)
    event.connection_id = connection_id
    event.listener = listener
    event.peer = peer
    return event


def connected_to(connection_id: int, peer: str) -> Event:
    """Return the event of a connection that this broker began; `peer` is "host:port"."""
    return connected(connection_id, "", peer)


def received(connection_id: int, data: bytes) -> Event:
    """Return the event of received bytes, at least one; the stream may be cut anywhere."""
    event = Event(RECEIVED)
    event.connection_id = connection_id
    event.data = data
    return event


def drained(connection_id: int) -> Event:
    """Return the event of a connection that has sent all bytes given to `send`."""
    event = Event(DRAINED)
    event.connection_id = connection_id
    return event


def disconnected(connection_id: int, error: str = "") -> Event:
    """Return the event of a peer that is gone; no other event of this id follows."""
    event = Event(DISCONNECTED)
    event.connection_id = connection_id
    event.error = error
    return event


def renumbered(event: Event, connection_id: int) -> Event:
    """Return a copy of an event of an outgoing connection, with another connection id."""
    same = Event(event.kind)
    same.connection_id = connection_id
    same.data = event.data
    same.error = event.error
    return same


def flushed(flush_id: int, error: str = "") -> Event:
    """Return the event of a flush that ended; if `error` is not "", nothing of it is durable."""
    event = Event(FLUSHED)
    event.flush_id = flush_id
    event.error = error
    return event


def stop_requested() -> Event:
    """Return the event of SIGTERM or SIGINT: stop accepting, answer requests, flush, mark clean."""
    return Event(STOP_REQUESTED)
