"""Exchange of two directories: each gets the other's name, at one moment where the system can."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path
from typing import Any, Final

# Of Linux's renameat2: paths count from the working directory; both names change at one moment.
AT_FDCWD: Final = -100
RENAME_EXCHANGE: Final = 2

# What a file system answers that cannot.
CANNOT: Final = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two directories; False where system or file system cannot."""
    # Python has no function for it.
    renameat2: Any = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    if renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(one))
