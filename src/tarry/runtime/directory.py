"""The log directory: made if missing, held by one broker, of a format that this one reads."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from typing import Final

from tarry.runtime.flusher import flush_descriptor
from tarry.runtime.refusal import StartRefused, reason_of

LOCK_NAME: Final = ".lock"
FORMAT_NAME: Final = ".tarry_format"

# Number of the data's format; it grows if an older Tarry would misread the data of a newer one.
# 2: compacted segments, whose gaps counted as damage before.
FORMAT: Final = 2


class HeldDirectory:
    """Directory, locked until `close` or until the process ends in any way.

    A temporary one need not outlive the process, so it is never flushed.
    """

    def __init__(self, path: str, *, is_temporary: bool = False) -> None:
        self.path = os.path.abspath(path)
        _make(self.path)
        self._lock_descriptor = _lock(self.path)
        try:
            _refuse_kafkas(self.path)
            _check_format(self.path, is_durable=not is_temporary)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock, so that another broker may use the directory."""
        os.close(self._lock_descriptor)


def _make(path: str) -> None:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except FileExistsError:
        raise StartRefused(f"{path} is a file: write log.dirs=<a directory>") from None
    except OSError as error:
        raise StartRefused(
            f"the directory {path} cannot be made: {reason_of(error)}; "
            "write log.dirs=<a directory that may be written>"
        ) from None


def _lock(path: str) -> int:
    """Lock the directory and return the descriptor; the kernel releases the lock when the process
    ends.
    """
    name = os.path.join(path, LOCK_NAME)
    try:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StartRefused(
            f"the directory {path} cannot be written: {reason_of(error)}; "
            "write log.dirs=<a directory that may be written>"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = _holder(descriptor)
        os.close(descriptor)
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise StartRefused(
                f"another broker{holder} uses the directory {path}: stop it, or write "
                "log.dirs=<another directory>"
            ) from None
        raise StartRefused(f"{name} cannot be locked: {reason_of(error)}") from None
    # The process id is only for the sentence that a second broker prints.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _holder(descriptor: int) -> str:
    text = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
    return f" (process {text})" if text.isdigit() else ""


def _refuse_kafkas(path: str) -> None:
    # Kafka's files look like Tarry's, its metadata does not: using the directory would lose it.
    if os.path.exists(os.path.join(path, "meta.properties")):
        raise StartRefused(
            f"{path} holds the data of Apache Kafka (meta.properties): "
            "write log.dirs=<a directory of its own>"
        )


def _check_format(path: str, *, is_durable: bool) -> None:
    name = os.path.join(path, FORMAT_NAME)
    try:
        with open(name, encoding="ascii", errors="replace") as file:
            text = file.read(20).strip()
    except FileNotFoundError:
        _write_format(path, name, is_durable=is_durable)
        return
    except OSError as error:
        raise StartRefused(f"{name} cannot be read: {reason_of(error)}") from None
    if not text.isdigit():
        raise StartRefused(f"{name} holds no number, so the format of the data is unknown")
    if int(text) > FORMAT:
        raise StartRefused(
            f"the data in {path} has format {text}, written by a newer Tarry; this one reads "
            f"format {FORMAT}: install a newer one"
        )
    if int(text) < FORMAT:
        _write_format(path, name, is_durable=is_durable)


def _write_format(path: str, name: str, *, is_durable: bool) -> None:
    temporary = f"{name}.tmp"
    try:
        _write(temporary, f"{FORMAT}\n".encode(), is_durable=is_durable)
        os.replace(temporary, name)
        if is_durable:
            _flush_names(path)
    except OSError as error:
        raise StartRefused(
            f"the directory {path} cannot be written: {reason_of(error)}; "
            "write log.dirs=<a directory that may be written>"
        ) from None


def _write(name: str, data: bytes, *, is_durable: bool) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, data)
        if is_durable:
            flush_descriptor(descriptor)
    finally:
        os.close(descriptor)


def _flush_names(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flush_descriptor(descriptor)
    finally:
        os.close(descriptor)
