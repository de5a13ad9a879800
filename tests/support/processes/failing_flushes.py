"""Program: the command `tarry`, whose flushes fail with EIO as long as a file is there.

python failing_flushes.py FILE serve --set=…
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

from tarry.cli.main import main

marker = sys.argv.pop(1)


def failing(flush: Callable[[int], None]) -> Callable[[int], None]:
    def flush_or_fail(descriptor: int) -> None:
        if os.path.exists(marker):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        flush(descriptor)

    return flush_or_fail


# A disk does the same: the caller gets an error, and the bytes may be there or not.
os.fsync = failing(os.fsync)  # type: ignore[assignment]
os.fdatasync = failing(os.fdatasync)  # type: ignore[assignment]
main()
