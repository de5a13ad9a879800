"""File locks: of several processes one has a file's lock, which ends with the process."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Final

log = logging.getLogger("tarry.spark")

# What a file system answers that has no locks.
NO_LOCKS: Final = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)

# Who waits asks so often, and tells of it after so long.
RETRY_SECONDS: Final = 0.02
TELL_SECONDS: Final = 5.0


class LockHeld(Exception):
    """Another process has the lock; `owner` is its number, "?" where nobody can tell."""

    def __init__(self, path: Path, owner: str) -> None:
        super().__init__(f"process {owner} has the lock of {path}")
        self.owner = owner


@contextmanager
def held(path: Path, seconds: float = 0.0) -> Iterator[bool]:
    """Hold the lock of a file, which is made if need be and tells whose it is.

    Yields False where the file system has no locks.  Raises LockHeld where another process has it
    for longer than `seconds`, and OSError.
    """
    with path.open("a+b", buffering=0) as file:
        is_held = _lock(path, file, seconds)
        # For whoever is refused; without it the lock is the same.
        with suppress(OSError):
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        yield is_held


def _lock(path: Path, file: FileIO, seconds: float) -> bool:
    """Take the lock; False if the file system has no locks."""
    begun, is_told = time.monotonic(), False
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            # SMB says the latter.
            waited = time.monotonic() - begun
            if waited >= seconds:
                raise LockHeld(path, _owner(file)) from None
            if waited >= TELL_SECONDS and not is_told:
                is_told = True
                log.warning("waiting for process %s, which has the lock of %s", _owner(file), path)
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            return False
        else:
            return True
        time.sleep(RETRY_SECONDS)


def _owner(file: FileIO) -> str:
    """Return who noted to have the lock; SMB lets nobody else read the file."""
    with suppress(OSError):
        file.seek(0)
        return file.read().decode(errors="replace").strip() or "?"
    return "?"
