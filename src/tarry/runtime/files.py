"""The door `Disk` over a directory of the operating system.

A descriptor is closed when no object refers to its file.  `close` only ends its use for writing: a
region of it that is being sent, or a flush of it under way, continues.  All descriptors are
close-on-exec, a last path component that is a link is refused, and files belong to the owner alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Final
from weakref import WeakSet

from tarry.base.doors import LogFile
from tarry.base.errors import DiskFull, StorageError, TooManyOpenFiles
from tarry.runtime.descriptors import files_end
from tarry.runtime.flusher import Flusher
from tarry.runtime.refusal import reason_of

_OPEN_FLAGS: Final = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
_GATHER_MAX: Final = os.sysconf("SC_IOV_MAX")


class OsLogFile:
    """File of the door `LogFile`."""

    __slots__ = ("__weakref__", "_is_closed", "_is_torn", "descriptor", "path", "size")

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.size = os.fstat(descriptor).st_size
        self._is_closed = False
        # True if a failed append left bytes past `size` that could not be cut off yet.
        self._is_torn = False

    def append(self, chunks: list[bytes | memoryview]) -> int:
        assert not self._is_closed, f"{self.path}: append after close"
        if self._is_torn:
            self._cut()
        position = self.size
        try:
            written = self._write(chunks)
        except OSError as error:
            self._take_back()
            raise _storage_error(self.path, error) from None
        self.size = position + written
        return position

    def read(self, position: int, size_max: int) -> bytes:
        size = min(size_max, self.size - position)
        if size <= 0:
            return b""
        try:
            data = os.pread(self.descriptor, size, position)
            while len(data) < size:
                more = os.pread(self.descriptor, size - len(data), position + len(data))
                if not more:
                    raise StorageError(
                        f"{self.path}: it ends at {position + len(data)}, before its size of "
                        f"{self.size}; something else has cut it"
                    )
                data += more
        except OSError as error:
            raise StorageError(f"{self.path}: {reason_of(error)}") from None
        return data

    def truncate(self, size: int) -> None:
        assert not self._is_closed, f"{self.path}: truncate after close"
        assert 0 <= size <= self.size
        self.size = size
        self._is_torn = True
        self._cut()

    def close(self) -> None:
        self._is_closed = True

    def release(self) -> None:
        """Close the descriptor at once; objects that still hold the file cannot read any more."""
        self.close()
        descriptor, self.descriptor = self.descriptor, -1
        with contextlib.suppress(OSError):
            os.close(descriptor)

    def __del__(self) -> None:
        # The finalizer replaces a count of the holders: regions, flushes, the log.
        with contextlib.suppress(OSError):
            os.close(self.descriptor)

    def _write(self, chunks: list[bytes | memoryview]) -> int:
        total = 0
        for start in range(0, len(chunks), _GATHER_MAX):
            part = chunks[start : start + _GATHER_MAX] if len(chunks) > _GATHER_MAX else chunks
            size = sum(map(len, part))
            written = os.writev(self.descriptor, part)
            if written < size:
                self._write_rest(b"".join(part)[written:])
            total += size
        return total

    def _write_rest(self, data: bytes) -> None:
        """Write the rest after a short write; if there is no room, this raises the reason."""
        rest = memoryview(data)
        while rest:
            written = os.write(self.descriptor, rest)
            if written == 0:
                raise OSError(errno.EIO, "the disk takes nothing and does not say why")
            rest = rest[written:]

    def _take_back(self) -> None:
        self._is_torn = True
        with contextlib.suppress(StorageError):
            self._cut()

    def _cut(self) -> None:
        try:
            os.ftruncate(self.descriptor, self.size)
        except OSError as error:
            raise StorageError(f"{self.path}: {reason_of(error)}") from None
        self._is_torn = False


class OsDisk:
    """Disk of the door `Disk`; `root` is a directory that this process has locked."""

    def __init__(self, root: str, flusher: Flusher) -> None:
        self._root = root
        self._flusher = flusher
        self._files_end = files_end()

    def open(self, path: str, *, create: bool = False) -> OsLogFile:
        flags = _OPEN_FLAGS | (os.O_CREAT if create else 0)
        try:
            descriptor = os.open(self._full(path), flags, 0o600)
        except OSError as error:
            raise _storage_error(path, error) from None
        if descriptor >= self._files_end:
            os.close(descriptor)
            raise _too_many_open_files(path)
        return OsLogFile(path, descriptor)

    def exists(self, path: str) -> bool:
        return os.path.lexists(self._full(path))

    def paths(self, directory: str = "") -> list[str]:
        prefix = f"{directory.rstrip('/')}/" if directory else ""
        try:
            with os.scandir(self._full(directory)) as entries:
                found = [(e.name, e.is_dir(follow_symlinks=False)) for e in entries]
        except OSError as error:
            raise _storage_error(directory, error) from None
        return [
            f"{prefix}{name}/" if is_dir else f"{prefix}{name}" for name, is_dir in sorted(found)
        ]

    def make_directory(self, path: str) -> None:
        full = self._full(path)
        try:
            os.mkdir(full, 0o700)
        except FileExistsError as error:
            if not os.path.isdir(full):
                raise _storage_error(path, error) from None
        except OSError as error:
            raise _storage_error(path, error) from None

    def rename(self, old: str, new: str) -> None:
        try:
            os.rename(self._full(old), self._full(new))
        except OSError as error:
            raise _storage_error(old, error) from None
        self._flusher.renamed(self._full(old), self._full(new))

    def remove(self, path: str) -> None:
        try:
            os.unlink(self._full(path))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _storage_error(path, error) from None

    def begin_remove(self, path: str) -> None:
        self._flusher.begin_remove(self._full(path))

    def begin_flush(self, files: list[LogFile], directories: list[str]) -> int:
        return self._flusher.begin(_ours(files), self._open_directories(directories))

    def flush(self, files: list[LogFile], directories: list[str]) -> None:
        error = self._flusher.flush(_ours(files), self._open_directories(directories))
        if error:
            raise StorageError(error)

    def free_bytes(self) -> int:
        status = self._file_system()
        return status.f_bavail * status.f_frsize

    def total_bytes(self) -> int:
        status = self._file_system()
        return status.f_blocks * status.f_frsize

    def _file_system(self) -> os.statvfs_result:
        try:
            return os.statvfs(self._root)
        except OSError as error:
            raise _storage_error(self._root, error) from None

    def _full(self, path: str) -> str:
        # A violation is a mistake in Tarry, not of a user: names are checked where topics are made.
        assert not path.startswith("/"), path
        assert ".." not in path.split("/"), path
        return f"{self._root}/{path}"

    def _open_directories(self, paths: list[str]) -> list[OsLogFile]:
        """Open the directories now, so that a later rename does not lose them."""
        opened: list[OsLogFile] = []
        try:
            for path in paths:
                opened.append(self._open_directory(path))
        except StorageError:
            # The error's traceback refers to this list.  Without the release the directories would
            # stay open while the error is handled, and no smaller flush could begin.
            for directory in opened:
                directory.release()
            raise
        return opened

    def _open_directory(self, path: str) -> OsLogFile:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            return OsLogFile(path, os.open(self._full(path), flags))
        except OSError as error:
            raise _storage_error(path, error) from None


class TemporaryDisk(OsDisk):
    """Disk that can close every file that it has opened, even if an object still holds it."""

    def __init__(self, root: str, flusher: Flusher) -> None:
        super().__init__(root, flusher)
        self._files: WeakSet[OsLogFile] = WeakSet()

    def open(self, path: str, *, create: bool = False) -> OsLogFile:
        file = super().open(path, create=create)
        self._files.add(file)
        return file

    def close_files(self) -> None:
        """Close every file at once, for good."""
        for file in list(self._files):
            file.release()


class ReadOnlyDisk(OsDisk):
    """Disk that is only read: files are opened for reading, and a change is a mistake in Tarry."""

    def __init__(self, root: str) -> None:
        self._root = root

    def open(self, path: str, *, create: bool = False) -> OsLogFile:
        assert not create, path
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return OsLogFile(path, os.open(self._full(path), flags))
        except OSError as error:
            raise _storage_error(path, error) from None


def _ours(files: list[LogFile]) -> list[OsLogFile]:
    ours: list[OsLogFile] = []
    for file in files:
        assert isinstance(file, OsLogFile)
        ours.append(file)
    return ours


def _storage_error(path: str, error: OSError) -> StorageError:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return _too_many_open_files(path)
    kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StorageError
    return kind(f"{path or 'the log directory'}: {reason_of(error)}")


def _too_many_open_files(path: str) -> StorageError:
    return TooManyOpenFiles(
        f"{path or 'the log directory'}: too many files are open; raise the limit of this process "
        "(LimitNOFILE, ulimit -n)"
    )
