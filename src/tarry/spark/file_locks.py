"""File locks: of several processes one has a file's lock, which ends with the process."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

# What a file system answers that has no locks.
NO_LOCKS: Final = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)


class LockHeld(Exception):
    """Another process has the lock; `owner` is its number, "?" where nobody can tell."""

    def __init__(self, path: Path, owner: str) -> None:
        super().__init__(f"process {owner} has the lock of {path}")
        self.owner = owner


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Hold the lock of a file, which is made if need be and tells whose it is.

    Yields False where the file system has no locks.  Raises LockHeld at once, and OSError.
    """
    with path.open("a+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            # SMB says the latter, and lets nobody else read the file.
            owner = ""
            with suppress(OSError):
                file.seek(0)
                owner = file.read().decode(errors="replace").strip()
            raise LockHeld(path, owner or "?") from None
        except OSError as error:
            if error.errno not in NO_LOCKS:
                raise
            yield False
            return
        # For whoever is refused; without it the lock is the same.
        with suppress(OSError):
            file.truncate(0)
            file.write(str(os.getpid()).encode())
        yield True
